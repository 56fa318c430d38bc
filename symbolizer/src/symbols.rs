//! Names for native places.

use crate::trace::{Place, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{
    Avma, FileOffset, Module, ModuleKey, NativeFunction, NativeLines, SymbolOwner, Symbols,
};

/// Which native places of a recording need a name.
#[derive(Debug, Default)]
pub struct Hits {
    /// File offsets that were hit, by module, ascending.
    pub modules: Vec<(Module, Vec<FileOffset>)>,
    /// Kernel addresses that were hit, ascending.
    pub kernel: Vec<Avma>,
}

impl Hits {
    /// All native places of `trace` whose symbols the recording does not hold.
    #[must_use]
    pub fn missing_in(trace: &Trace) -> Self {
        // What could not be read when it was recorded may be readable here.
        let named = trace.symbols.iter().filter(|s| !s.functions.is_empty());
        let known: FxHashSet<SymbolOwner> = named.map(|symbols| symbols.owner).collect();
        let mut by_module: FxHashMap<ModuleKey, Vec<FileOffset>> = FxHashMap::default();
        let mut kernel = Vec::new();
        for place in &trace.places {
            match *place {
                Place::Native(module, offset) if !known.contains(&SymbolOwner::Module(module)) => {
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
                Some((trace.modules.get(&key)?.clone(), offsets))
            })
            .collect();
        modules.sort_by_key(|(module, _)| module.key);
        kernel.sort_unstable();
        Hits { modules, kernel }
    }
}

/// Symbols for looking up.
#[derive(Debug, Default)]
pub struct SymbolTable<'a> {
    functions: FxHashMap<SymbolOwner, Vec<&'a NativeFunction>>,
}

impl<'a> SymbolTable<'a> {
    /// A table of all of `symbols`.
    #[must_use]
    pub fn new(symbols: impl IntoIterator<Item = &'a Symbols>) -> Self {
        let mut table = SymbolTable::default();
        for symbols in symbols {
            let functions = table.functions.entry(symbols.owner).or_default();
            functions.extend(&symbols.functions);
        }
        for functions in table.functions.values_mut() {
            // Told twice, the one that says more counts.
            functions.sort_by_key(|function| {
                let says = (function.lines.len(), function.size);
                (function.start, std::cmp::Reverse(says))
            });
            functions.dedup_by_key(|function| function.start);
        }
        table
    }

    /// The function at an address, and the piece of it with its lines where there
    /// are any.
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
