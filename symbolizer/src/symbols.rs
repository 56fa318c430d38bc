//! Names of native places.

use crate::trace::{Place, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{
    Avma, FileOffset, Module, ModuleKey, NativeFunction, NativeLines, SymbolOwner, Symbols,
};

/// Native places without names in a recording.
#[derive(Debug, Default)]
pub struct Hits {
    /// Ascending file offsets with samples, by module.
    pub modules: Vec<(Module, Vec<FileOffset>)>,
    /// Ascending kernel addresses with samples.
    pub kernel: Vec<Avma>,
}

impl Hits {
    /// All native places of `trace` without recorded symbols.
    #[must_use]
    pub fn missing_in(trace: &Trace) -> Self {
        // Files unreadable at recording time may be readable here.
        let named = trace.symbols.iter().filter(|s| !s.functions.is_empty());
        let known: FxHashSet<SymbolOwner> = named.map(|symbols| symbols.owner).collect();
        let mut by_module: FxHashMap<ModuleKey, Vec<FileOffset>> = FxHashMap::default();
        let mut kernel = Vec::new();
        for place in &trace.places {
            match *place {
                Place::Native(module, offset, _)
                    if !known.contains(&SymbolOwner::Module(module)) =>
                {
                    by_module.entry(module).or_default().push(offset);
                }
                Place::Kernel(address) if !known.contains(&SymbolOwner::Kernel) => {
                    kernel.push(address);
                }
                _ => {}
            }
        }
        let mut modules: Vec<(Module, Vec<FileOffset>)> = by_module
            .into_iter()
            .filter_map(|(key, mut offsets)| {
                offsets.sort_unstable();
                offsets.dedup();
                Some((trace.modules.get(&key)?.clone(), offsets))
            })
            .collect();
        modules.sort_by_key(|(module, _)| module.key);
        kernel.sort_unstable();
        Hits { modules, kernel }
    }
}

/// Symbol lookup.
#[derive(Debug, Default)]
pub struct SymbolTable<'a> {
    functions: FxHashMap<SymbolOwner, Vec<&'a NativeFunction>>,
}

impl<'a> SymbolTable<'a> {
    /// Builds the lookup from `symbols`.
    #[must_use]
    pub fn new(symbols: impl IntoIterator<Item = &'a Symbols>) -> Self {
        let mut table = SymbolTable::default();
        for symbols in symbols {
            let functions = table.functions.entry(symbols.owner).or_default();
            functions.extend(&symbols.functions);
        }
        for functions in table.functions.values_mut() {
            // For duplicates, prefer the function with more lines, then the larger.
            functions.sort_by_key(|function| {
                let says = (function.lines.len(), function.size);
                (function.start, std::cmp::Reverse(says))
            });
            functions.dedup_by_key(|function| function.start);
        }
        table
    }

    /// The function at an address, and its piece with line information, if any.
    #[must_use]
    pub fn lookup(
        &self,
        owner: SymbolOwner,
        at: FileOffset,
    ) -> Option<(&'a NativeFunction, Option<&'a NativeLines>)> {
        let functions = self.functions.get(&owner)?;
        let after = functions.partition_point(|function| function.start <= at);
        let function = *functions.get(after.checked_sub(1)?)?;
        let end = function.start.0.saturating_add(function.size);
        if function.size != 0 && at.0 >= end {
            return None;
        }
        let after = function.lines.partition_point(|piece| piece.start <= at);
        let piece = after
            .checked_sub(1)
            .and_then(|index| function.lines.get(index));
        Some((function, piece.filter(|piece| at < piece.end)))
    }
}
