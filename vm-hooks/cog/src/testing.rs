//! Snapshots of Cog VMs, for tests from files and for fuzzing.

use std::sync::Arc;

use vmscope_process::{
    CoreFile, ElfError, MapEntry, Memory, ModuleFile, ProcessView, Symbol, SymbolKind,
};
use vmscope_records::{Avma, Pid};

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
        Ok(Snapshot {
            program: String::from_utf8_lossy(first.unwrap_or_default()).into_owned(),
            memory: Arc::new(core),
            mappings,
            symbols: symbols.lines().filter_map(symbol).collect(),
        })
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
