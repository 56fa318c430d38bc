//! Snapshots of Cog VMs, for tests from files and for fuzzing.

use std::sync::Arc;

use vmscope_process::{
    CoreFile, ElfError, MapEntry, Memory, MemoryError, ModuleFile, ProcessView, Symbol, SymbolKind,
};
use vmscope_records::{Avma, Pid};

use crate::cog_method::{CogMethod, EntryKind};
use crate::vm::Vm;

/// A core file with the VM's symbols.
pub struct Snapshot {
    /// Memory of the core file.
    pub memory: Arc<dyn Memory>,
    /// Its mappings.
    pub mappings: Vec<MapEntry>,
    /// Name of the VM's executable.
    pub program: String,
    /// Symbols at run-time addresses.
    pub symbols: Vec<Symbol>,
    /// Entries of the code zone.
    pub entries: Vec<CogMethod>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("program", &self.program)
            .field("symbols", &self.symbols.len())
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    /// A snapshot from the bytes of a core file, and lines of address, size, type and name, between tabs.
    ///
    /// # Errors
    /// [`ElfError`] if it is no core file.
    pub fn new(core: Vec<u8>, symbols: &str) -> Result<Self, ElfError> {
        let core = CoreFile::from_file(Arc::new(ModuleFile::from_image(core.into())))?;
        let mappings = core.info().mappings.clone();
        let first = mappings.iter().find_map(MapEntry::path);
        let mut snapshot = Snapshot {
            program: String::from_utf8_lossy(first.unwrap_or_default()).into_owned(),
            memory: Arc::new(core),
            mappings,
            symbols: symbols.lines().filter_map(symbol).collect(),
            entries: Vec::new(),
        };
        if let Ok(Some(vm)) = Vm::open(&snapshot.process())
            && let Ok((zone, ())) = vm.with_zone(&*snapshot.memory, |_, _| Ok(()))
        {
            snapshot.entries = zone.methods.entries;
        }
        Ok(snapshot)
    }

    /// Addresses as samples have: one per entry.
    #[must_use]
    pub fn sampled(&self) -> Vec<Avma> {
        let entries = self.entries.iter();
        entries.map(|entry| Avma(entry.at.0 + 64)).collect()
    }

    /// The process.
    #[must_use]
    pub fn process(&self) -> ProcessView {
        self.process_with(Arc::clone(&self.memory))
    }

    /// The process with another memory.
    #[must_use]
    pub fn process_with(&self, memory: Arc<dyn Memory>) -> ProcessView {
        ProcessView::fake(Pid(1), memory, self.mappings.clone())
            .with_symbols(&self.program, self.symbols.clone())
    }
}

fn symbol(line: &str) -> Option<Symbol> {
    let mut fields = line.split('\t');
    let address = fields.next()?.strip_prefix("0x")?;
    let size = fields.next()?.parse().ok()?;
    let kind = match fields.next()? {
        "t" | "T" => SymbolKind::Function,
        _ => SymbolKind::Object,
    };
    Some(Symbol {
        name: fields.next()?.to_owned(),
        address: Avma(u64::from_str_radix(address, 16).ok()?),
        size,
        kind,
    })
}

/// Memory of a snapshot with some bytes overwritten.
#[derive(Clone)]
struct Patched {
    memory: Arc<dyn Memory>,
    patches: Vec<(Avma, Vec<u8>)>,
}

impl Memory for Patched {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let got = self.memory.read_partial(at, buffer)?;
        let read = buffer.get_mut(..got).unwrap_or_default();
        for (to, bytes) in &self.patches {
            for (place, byte) in (to.0..).zip(bytes) {
                let offset = place.checked_sub(at.0);
                let offset = offset.and_then(|offset| usize::try_from(offset).ok());
                if let Some(target) = offset.and_then(|offset| read.get_mut(offset)) {
                    *target = *byte;
                }
            }
        }
        Ok(got)
    }

    fn pointer_bytes(&self) -> usize {
        self.memory.pointer_bytes()
    }
}

impl Snapshot {
    /// The process with overwritten bytes.
    #[must_use]
    pub fn patched(&self, patches: Vec<(Avma, Vec<u8>)>) -> ProcessView {
        self.process_with(Arc::new(Patched {
            memory: Arc::clone(&self.memory),
            patches,
        }))
    }

    /// A place that the reader reads, by two numbers of a fuzzer: a variable, a word of the code zone, of the
    /// table of bytecodes, of the objects, or of a compiled method.
    #[must_use]
    pub fn place(&self, kind: u8, number: u32) -> Avma {
        let number = u64::from(number);
        let variable = |name: &str| {
            let symbol = self.symbols.iter().find(|symbol| symbol.name == name);
            symbol.map_or(Avma(0), |symbol| symbol.address)
        };
        let value = |name: &str| self.memory.read_u64(variable(name)).unwrap_or(0);
        let within = |from: u64, to: u64| {
            let words = to.saturating_sub(from).max(8) / 8;
            Avma(from.saturating_add(number % words * 8))
        };
        match kind % 5 {
            0 => {
                let names: Vec<_> = crate::variables::names().collect();
                let index = usize::try_from(number).unwrap_or(0) % names.len().max(1);
                names.get(index).map_or(Avma(0), |name| variable(name))
            }
            1 => within(value("methodZoneBase"), value("mzFreeStart")),
            2 => {
                let table = variable("generatorTable").0;
                within(table, table.saturating_add(1 << 14))
            }
            3 => within(value("nilObj"), value("nilObj").saturating_add(0x50_0000)),
            _ => {
                let methods = self
                    .entries
                    .iter()
                    .filter(|entry| entry.kind == EntryKind::Method);
                let methods: Vec<Avma> = methods.map(|entry| entry.method).collect();
                let index = usize::try_from(number >> 5).unwrap_or(0) % methods.len().max(1);
                let method = methods.get(index).map_or(0, |method| method.0);
                within(method, method + 32 * 8)
            }
        }
    }
}
