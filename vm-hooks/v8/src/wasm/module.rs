//! Functions of a WebAssembly module: names, and places of their bodies.

use std::ops::Range;

use rustc_hash::FxHashMap;
use wasmparser::{ExternalKind, KnownCustom, Name, Parser, Payload, TypeRef};

/// Longest name in bytes; longer names are cut.
const MAX_NAME: usize = 1024;

/// Maximum number of bodies, V8's own limit.
const MAX_BODIES: usize = 1_000_000;

/// Functions of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The module's address in V8's stack traces: `wasm://wasm/NAME-9f9d98de`.
    pub url: String,
    /// Names by the functions' numbers, as the module has them.
    names: FxHashMap<u32, String>,
    /// Number of imported functions, which come first.
    imported: u32,
    /// Offsets in the module: begin and end of each function's body.
    bodies: Vec<(u32, u32)>,
}

impl Module {
    /// Names and bodies in the bytes of a module. Three sources give names: the section of
    /// names, exports, imports with their modules (`env.now`). Damage ends the search.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut module = String::new();
        let (mut imported, mut bodies) = (0, Vec::new());
        let mut functions: FxHashMap<u32, String> = FxHashMap::default();
        let mut others: FxHashMap<u32, String> = FxHashMap::default();
        for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
            match payload {
                Payload::ImportSection(imports) => {
                    let imports = imports.into_imports().map_while(Result::ok);
                    let functions = imports.filter(|it| matches!(it.ty, TypeRef::Func(_)));
                    let names = functions.map(|it| cut(format!("{}.{}", it.module, it.name)));
                    for (number, name) in (0..).zip(names) {
                        others.insert(number, name);
                        imported = number + 1;
                    }
                }
                Payload::CodeSectionEntry(body) if bodies.len() < MAX_BODIES => {
                    let Range { start, end } = body.range();
                    let offset = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
                    bodies.push((offset(start), offset(end)));
                }
                Payload::ExportSection(exports) => {
                    let exports = exports.into_iter().map_while(Result::ok);
                    for it in exports.filter(|it| it.kind == ExternalKind::Func) {
                        others
                            .entry(it.index)
                            .or_insert_with(|| cut(it.name.to_owned()));
                    }
                }
                Payload::CustomSection(section) => {
                    let KnownCustom::Name(section) = section.as_known() else {
                        continue;
                    };
                    for part in section.into_iter().map_while(Result::ok) {
                        match part {
                            Name::Module { name, .. } => module = cut(name.to_owned()),
                            Name::Function(named) => {
                                let named = named.into_iter().map_while(Result::ok);
                                let named = named.filter(|it| !it.name.is_empty());
                                functions
                                    .extend(named.map(|it| (it.index, cut(it.name.to_owned()))));
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        for (number, name) in others {
            functions.entry(number).or_insert(name);
        }
        if !module.is_empty() {
            module.push('-');
        }
        Module {
            url: format!("wasm://wasm/{module}{:08x}", hash(bytes)),
            names: functions,
            imported,
            bodies,
        }
    }

    /// Offsets in the module of a function's body: declarations of local variables, then instructions. `None` for
    /// imported functions.
    #[must_use]
    pub fn body(&self, number: u32) -> Option<Range<u32>> {
        let index = number.checked_sub(self.imported)?;
        let (start, end) = *self.bodies.get(usize::try_from(index).ok()?)?;
        Some(start..end)
    }

    /// The name of a function, demangled if Rust's compiler made it; V8's own if the module has none.
    #[must_use]
    pub fn function(&self, number: u32) -> String {
        let Some(name) = self.names.get(&number) else {
            return format!("wasm-function[{number}]");
        };
        match rustc_demangle::try_demangle(name) {
            Ok(demangled) => cut(format!("{demangled:#}")),
            Err(_) => name.clone(),
        }
    }
}

/// V8's hash of a module: a string's hash (`strings/string-hasher-inl.h`, 10.2 to 13.6), whose last two bits
/// tell its kind. Long strings have their length as hash.
fn hash(bytes: &[u8]) -> u32 {
    const LONGEST: usize = 16383;
    const KIND: u32 = 2;
    let hash = if bytes.len() > LONGEST {
        bytes.len() as u32
    } else {
        let sum = bytes.iter().fold(0_u32, |sum, byte| {
            let sum = sum.wrapping_add(u32::from(*byte));
            let sum = sum.wrapping_add(sum << 10);
            sum ^ sum >> 6
        });
        let sum = sum.wrapping_add(sum << 3);
        let sum = sum ^ sum >> 11;
        sum.wrapping_add(sum << 15)
    };
    hash << 2 | KIND
}

fn cut(mut name: String) -> String {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

#[cfg(test)]
mod tests;
