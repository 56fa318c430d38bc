//! Sites of native code, from symbols, lines and region rules.

use super::{Builder, frame_named};
use crate::profile::{Entry, EntryKind, Frame, Region, Site, SiteId, last_component};
use crate::trace::Place;
use vmscope_records::{
    ConstituentKind, Exactness, FileOffset, ModuleKey, NativeFrame, NativeFunction, NativeLines,
    SymbolOwner, SymbolSource, ThreadRole, is_shared_memory,
};

/// Bytes of code without symbols that are one entry: a page, so that hot code stands out.
const UNNAMED_RANGE: u64 = 4096;

/// What is known of a native place without its symbol.
#[derive(Clone, Copy)]
struct Around<'a> {
    region: Region,
    /// The file's name, or the kernel's.
    module: &'a str,
    /// The role of the thread.
    role: ThreadRole,
}

impl<'a> Builder<'a> {
    pub(super) fn native_site(
        &mut self,
        key: ModuleKey,
        offset: FileOffset,
        role: ThreadRole,
    ) -> SiteId {
        let module = self.trace.modules.get(&key);
        let path = module.map_or("", |module| module.path.as_str());
        let name = last_component(path);
        let region = match module {
            Some(module) if module.main => Region::Vm,
            Some(_) => Region::Library,
            None => Region::Unknown,
        };
        // Other than a library, shared memory with code is a VM's code zone.
        if is_shared_memory(path.as_bytes())
            && self
                .table
                .get()
                .lookup(SymbolOwner::Module(key), offset)
                .is_none()
        {
            return self.site(Place::Generated);
        }
        let around = Around {
            region,
            module: name,
            role,
        };
        self.symbol_site(SymbolOwner::Module(key), offset, around)
    }

    pub(super) fn kernel_site(&mut self, at: FileOffset) -> SiteId {
        let around = Around {
            region: Region::Kernel,
            module: "[kernel]",
            role: ThreadRole::Other,
        };
        self.symbol_site(SymbolOwner::Kernel, at, around)
    }

    /// The site for a known symbol.
    fn symbol_site(&mut self, owner: SymbolOwner, at: FileOffset, around: Around) -> SiteId {
        let found = self.table.get().lookup(owner, at);
        let found = found.filter(|(function, _)| !function.name.is_empty());
        // Key of a piece: its function's start, and the piece's start.
        let piece = found.map(|(function, piece)| {
            (
                owner,
                function.start,
                piece.map_or(FileOffset(u64::MAX), |piece| piece.start),
                around.role,
            )
        });
        // One entry for each range of a module's unnamed code; one for the kernel.
        let range = match owner {
            SymbolOwner::Kernel => FileOffset(u64::MAX),
            _ => FileOffset(at.0 - at.0 % UNNAMED_RANGE),
        };
        let piece = piece.unwrap_or((owner, FileOffset(u64::MAX), range, around.role));
        if let Some(&site) = self.names.site_of_native.get(&piece) {
            return site;
        }
        let site = match found {
            Some((function, piece)) => self.function_site(function, piece, around),
            None => self.nameless_site(around, range),
        };
        self.names.site_of_native.insert(piece, site);
        site
    }

    /// The site of unnamed code from a file offset on; `u64::MAX` for all of a module.
    fn nameless_site(&mut self, around: Around, from: FileOffset) -> SiteId {
        let Around {
            region,
            module,
            role,
        } = around;
        let name = match (module, from) {
            ("", _) => "(no symbol)".to_owned(),
            (_, FileOffset(u64::MAX)) => format!("(no symbol) {module}"),
            (_, FileOffset(from)) => {
                let last = from.saturating_add(UNNAMED_RANGE - 1);
                format!("(no symbol) {module} {from:#x}-{last:#x}")
            }
        };
        // Unnamed code fits only a rule for everything.
        let told = self.regions.of(module, "", role);
        let entry = self.put_entry(Entry {
            region: told.map_or(region, |told| told.region),
            tier: told.map_or_else(String::new, |told| told.part.to_owned()),
            module: module.to_owned(),
            ..Entry::named(&name, EntryKind::Unnamed)
        });
        self.whole_entry(entry, &name)
    }

    fn function_site(
        &mut self,
        function: &'a NativeFunction,
        piece: Option<&'a NativeLines>,
        around: Around,
    ) -> SiteId {
        let told = self.regions.of(around.module, &function.name, around.role);
        // Inlined functions have the region of the function around them.
        let region = told.map_or(around.region, |told| told.region);
        let part = told.map_or("", |told| told.part);
        let own_name = told.map_or(function.name.as_str(), |told| told.name);
        let frames = piece.map_or(&[][..], |piece| piece.frames.as_slice());
        // One entry for generated builtins, whether named by a symbol or by a dump.
        let generated = told
            .filter(|told| told.stripped)
            .and_then(|told| match told.region {
                Region::Generated => Some(ConstituentKind::Stub),
                Region::Interpreter => Some(ConstituentKind::Interpreter),
                _ => None,
            });
        let exactness = match piece {
            Some(piece) => piece.exactness,
            // As other stubs, a builtin has no inside.
            None if generated.is_some() => Exactness::Exact,
            None => Exactness::MethodOnly,
        };
        let outermost = frames.last();
        let named = |builder: &mut Self, frame: &NativeFrame| {
            let is_outermost = outermost.is_some_and(|last| std::ptr::eq(last, frame));
            builder.native_frame(frame, is_outermost.then_some(own_name), own_name)
        };
        let (frame, via) = match frames.split_first() {
            Some((innermost, outer)) => (named(self, innermost), self.frames(outer, named)),
            None => (frame_named(self.text(own_name)), Vec::new()),
        };
        let (name, source) = if self.names.inlined && !via.is_empty() {
            (&*frame.name, SymbolSource::DebugInfo)
        } else {
            (own_name, function.source)
        };
        let (kind, module) = match generated {
            Some(kind) => (EntryKind::Code(kind), ""),
            None => (EntryKind::Function(kind_of_source(source)), around.module),
        };
        let entry = self.put_entry(Entry {
            region,
            tier: part.to_owned(),
            module: module.to_owned(),
            ..Entry::named(name, kind)
        });
        let exactness = if function.sized {
            exactness
        } else {
            worse(exactness)
        };
        self.put_site(Site {
            via,
            exactness,
            ..Site::whole(entry, frame)
        })
    }

    /// A frame from debug information. The outermost function has its symbol's name: DWARF may
    /// lack namespaces and parameters.
    fn native_frame(
        &mut self,
        frame: &NativeFrame,
        outermost: Option<&str>,
        function: &str,
    ) -> Frame {
        let name = match outermost {
            Some(name) => name,
            None if frame.function.is_empty() => function,
            None => &frame.function,
        };
        Frame {
            name: self.text(name),
            file: self.text(&frame.file),
            line: (frame.line != 0).then_some(frame.line),
            bytecode: None,
            method: None,
        }
    }
}

/// The source of a name, for stubs and invented names only: symbol and DWARF
/// of one function make one entry.
fn kind_of_source(source: SymbolSource) -> SymbolSource {
    match source {
        SymbolSource::Plt | SymbolSource::Kallsyms => source,
        _ => SymbolSource::SymbolTable,
    }
}

fn worse(exactness: Exactness) -> Exactness {
    match exactness {
        Exactness::Exact => Exactness::Approximate,
        other => other,
    }
}
