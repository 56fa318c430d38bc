//! A process as an adapter gets to see it.

use std::collections::HashMap;
use std::ops::Deref as _;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use vmscope_records::{Avma, Pid, ProcessKey, Tid, TimeNs};

use crate::attach::{examine, explain, list_threads, open_stat, program_stamp, start_ticks};
use crate::core_memory::{CoreMemory, open_same};
use crate::opening::{Opening, header_of};
use crate::{
    AttachError, CoreFile, ElfFile, LiveMemory, LoadBias, LoadedModule, MapEntry, MapsError,
    Memory, ModuleFile, ProgramStamp, ReadAt, Root, Symbol, SymbolError, ThreadInfo, read_maps,
    symbols_in_memory,
};

/// A process (or what a core file keeps of one) as an adapter gets to see it: its
/// memory, what is mapped into it, and the symbols of that.
///
/// May be shared between threads. It is a view of one program: after an `exec` the
/// recorder makes a new one.
pub struct ProcessView {
    key: ProcessKey,
    pid: Pid,
    inner_pid: Pid,
    name: String,
    command: Vec<String>,
    program: String,
    user: Option<u32>,
    started: Option<TimeNs>,
    memory: Arc<dyn Memory>,
    source: Source,
    maps: RwLock<Arc<[MapEntry]>>,
    /// Open ELF files by path.
    files: Mutex<HashMap<Vec<u8>, Arc<ElfFile>>>,
    /// Files that were opened when their mappings appeared, by path.
    kept: Mutex<HashMap<Vec<u8>, Arc<ModuleFile>>>,
    /// Symbols that were given by the caller, by the module's path.
    given: HashMap<Vec<u8>, Vec<Symbol>>,
}

enum Source {
    Live {
        start_ticks: u64,
        /// What [`ProcessView::stamp`] reads: kept open, because it is asked for before
        /// each poll.
        stat: OnceLock<std::fs::File>,
    },
    Core {
        root: Option<Arc<Root>>,
        threads: Vec<Tid>,
    },
    MadeUp,
    /// A process that was over before it could be looked at.
    Departed,
}

impl std::fmt::Debug for ProcessView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessView")
            .field("pid", &self.pid)
            .field("key", &self.key)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ProcessView {
    /// The live process `pid`. Whether its memory may be read is only told by
    /// reading it: samples can be taken without.
    ///
    /// # Errors
    ///
    /// [`AttachError`] when there is nothing to attach to, or it may not be looked at.
    pub fn open(pid: Pid) -> Result<Self, AttachError> {
        let facts = examine(pid)?;
        let maps = read_maps(pid).map_err(|error| explain(&facts, error))?;
        if maps.entries.is_empty() {
            return Err(AttachError::Ended { pid });
        }
        // A 32-bit process has nothing above 4 GiB (but the vsyscall page, which is
        // not a process's own).
        let own = maps
            .entries
            .iter()
            .filter(|entry| entry.name != b"[vsyscall]");
        let narrow = own.map(|entry| entry.end).max() <= Some(Avma(1 << 32));
        let memory = LiveMemory::new(pid).with_pointer_bytes(if narrow { 4 } else { 8 });
        let source = Source::Live {
            start_ticks: facts.start_ticks,
            stat: OnceLock::new(),
        };
        let mut view = Self::new(pid, Arc::new(memory), maps.entries, source);
        view.inner_pid = facts.inner_pid;
        view.name = facts.name;
        view.command = facts.command;
        view.program = facts.program;
        view.user = Some(facts.user);
        view.started = own::time_of_ticks(facts.start_ticks);
        Ok(view)
    }

    /// The process that a core file was written of. Files are looked for below
    /// `root`, if one is given, and are only used where their build-id is that in
    /// the core file: for symbols, and for memory that the kernel left out of the core
    /// file because it is as in a file.
    #[must_use]
    pub fn from_core(core: CoreFile, root: Option<Root>) -> Self {
        let info = core.info().clone();
        let root = root.map(Arc::new);
        let mappings: Arc<[MapEntry]> = info.mappings.into();
        let memory: Arc<dyn Memory> = match &root {
            Some(root) => Arc::new(CoreMemory::new(
                core,
                Arc::clone(root),
                Arc::clone(&mappings),
            )),
            None => Arc::new(core),
        };
        let source = Source::Core {
            root,
            threads: info.threads,
        };
        let pid = info.pid.unwrap_or_default();
        let mut view = Self::new(pid, memory, mappings.to_vec(), source);
        view.name = info.name;
        view.command = info.command.split(' ').map(str::to_owned).collect();
        view
    }

    /// A process that a test makes up.
    #[must_use]
    pub fn fake(pid: Pid, memory: Arc<dyn Memory>, mappings: Vec<MapEntry>) -> Self {
        Self::new(pid, memory, mappings, Source::MadeUp)
    }

    fn new(pid: Pid, memory: Arc<dyn Memory>, maps: Vec<MapEntry>, source: Source) -> Self {
        Self {
            key: ProcessKey(0),
            pid,
            inner_pid: pid,
            name: String::new(),
            command: Vec::new(),
            program: String::new(),
            user: None,
            started: None,
            memory,
            source,
            maps: RwLock::new(maps.into()),
            files: Mutex::new(HashMap::new()),
            kept: Mutex::new(HashMap::new()),
            given: HashMap::new(),
        }
    }

    /// The same view, of the address space that a recording calls `key`.
    #[must_use]
    pub fn with_key(mut self, key: ProcessKey) -> Self {
        self.key = key;
        self
    }

    /// The same view, with symbols at run-time addresses for the module `path`: for
    /// core files whose binaries are elsewhere, and for tests. They are asked before
    /// the file is.
    #[must_use]
    pub fn with_symbols(mut self, path: &str, symbols: Vec<Symbol>) -> Self {
        self.given.insert(path.as_bytes().to_vec(), symbols);
        self
    }

    /// The address space, as records refer to it; 0 outside of a recording.
    #[must_use]
    pub fn key(&self) -> ProcessKey {
        self.key
    }

    /// Its process id; 0 where a core file does not tell.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Its process id in its own pid namespace: what the VM writes into the names of
    /// its files (`/tmp/perf-1.map`).
    #[must_use]
    pub fn inner_pid(&self) -> Pid {
        self.inner_pid
    }

    /// Its name (`comm`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its command line (of a core file: the first 79 bytes, split at spaces).
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// The path of its program as the target sees it; empty where it is not known.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Its memory.
    #[must_use]
    pub fn memory(&self) -> &dyn Memory {
        &*self.memory
    }

    /// Whether it is a process that runs (and not a core file).
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Live { .. })
    }

    /// Whether it is still there, and still the same process. What is no live
    /// process stays as it is.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        match self.source {
            Source::Live {
                start_ticks: then, ..
            } => start_ticks(self.pid) == Some(then),
            Source::Departed => false,
            _ => true,
        }
    }

    /// Which program it runs now, as far as that is cheap to know; `None` where it is no
    /// live process, or has ended.
    #[must_use]
    pub fn stamp(&self) -> Option<ProgramStamp> {
        let Source::Live { start_ticks, stat } = &self.source else {
            return None;
        };
        let file = match stat.get() {
            Some(file) => file,
            None => {
                let file = open_stat(self.pid)?;
                stat.get_or_init(|| file)
            }
        };
        // A file of a process that is gone is not another's, whoever has its number.
        program_stamp(file).filter(|stamp| stamp.is_since(*start_ticks))
    }

    /// When it started, in clock ticks since the machine did (`proc_pid_stat(5)`);
    /// `None` for what is no live process.
    #[must_use]
    pub fn start_ticks(&self) -> Option<u64> {
        match self.source {
            Source::Live { start_ticks, .. } => Some(start_ticks),
            _ => None,
        }
    }

    /// What is mapped, as of the last [`ProcessView::refresh`], in ascending order.
    #[must_use]
    pub fn mappings(&self) -> Arc<[MapEntry]> {
        let maps = self.maps.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&maps)
    }

    /// Takes a file that was opened when its mapping appeared: it is used wherever
    /// `path` is asked for, also when its name, or the process, is gone.
    pub fn keep(&self, path: &[u8], file: Arc<ModuleFile>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(path.to_vec(), file);
    }

    /// The file that `entry` is a mapping of: the one that was kept, or whichever way
    /// leads to it, if it is that file.
    ///
    /// # Errors
    ///
    /// [`SymbolError`] when it can't be opened, or is another file by now.
    pub fn open_mapped(&self, entry: &MapEntry) -> Result<Arc<ModuleFile>, SymbolError> {
        let path = entry.path().unwrap_or_default();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = kept.get(path) {
            return Ok(Arc::clone(file));
        }
        drop(kept);
        if !matches!(self.source, Source::Live { .. } | Source::Departed) {
            return Err(SymbolError::NoFiles {
                path: display(path),
            });
        }
        let maps = self.mappings();
        let opening = Opening::of_file(self.pid, entry, Some(&maps));
        opening.file.ok_or_else(|| SymbolError::NotOpened {
            path: display(path),
            state: opening.state,
        })
    }

    /// Where its paths are resolved: its own root directory.
    ///
    /// # Errors
    ///
    /// What the system says: `ENOENT` when the process is gone, or is none.
    pub fn root(&self) -> std::io::Result<Root> {
        match self.source {
            Source::Live { .. } => Root::of_process(self.pid),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    /// Reads the mappings again.
    ///
    /// # Errors
    ///
    /// [`MapsError`] when they can't be read; what was known before stays.
    pub fn refresh(&self) -> Result<(), MapsError> {
        self.refresh_if(|_| true).map(drop)
    }

    /// Reads the mappings again, and takes them if `is_it` says that they are those of
    /// the program that this is a view of: whether it did. What is no live process has
    /// the mappings that it had.
    ///
    /// # Errors
    ///
    /// [`MapsError`] when they can't be read; what was known before stays.
    pub fn refresh_if(&self, is_it: impl FnOnce(&[MapEntry]) -> bool) -> Result<bool, MapsError> {
        if !self.is_live() {
            return Ok(is_it(&self.mappings()));
        }
        let fresh = read_maps(self.pid)?.entries;
        let accepted = is_it(&fresh);
        if accepted {
            let mut maps = self.maps.write().unwrap_or_else(PoisonError::into_inner);
            *maps = fresh.into();
        }
        Ok(accepted)
    }

    /// The mapping that `at` lies in.
    #[must_use]
    pub fn mapping_at(&self, at: Avma) -> Option<MapEntry> {
        let maps = self.mappings();
        let after = maps.partition_point(|entry| entry.start <= at);
        let entry = maps.get(after.checked_sub(1)?)?;
        entry.contains(at).then(|| entry.clone())
    }

    /// The files that are mapped, in the order of their first addresses.
    #[must_use]
    pub fn modules(&self) -> Vec<LoadedModule> {
        let mut modules: Vec<LoadedModule> = Vec::new();
        let mut known = HashMap::new();
        for entry in self.mappings().iter() {
            let Some(path) = entry.path() else {
                continue;
            };
            let at = *known.entry(path.to_vec()).or_insert(modules.len());
            if at == modules.len() {
                modules.push(LoadedModule {
                    path: path.to_vec(),
                    mappings: Vec::new(),
                });
            }
            if let Some(module) = modules.get_mut(at) {
                module.mappings.push(entry.clone());
            }
        }
        modules
    }

    /// The first module whose file name `is_it` recognises.
    #[must_use]
    pub fn module(&self, mut is_it: impl FnMut(&str) -> bool) -> Option<LoadedModule> {
        let modules = self.modules().into_iter();
        modules
            .into_iter()
            .find(|module| is_it(&module.file_name()))
    }

    /// The ELF file of a module, opened when it is first asked for.
    ///
    /// # Errors
    ///
    /// [`SymbolError`] when it can't be opened, is another file by now, or is no ELF
    /// file.
    pub fn elf(&self, module: &LoadedModule) -> Result<Arc<ElfFile>, SymbolError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = files.get(&module.path) {
            return Ok(Arc::clone(open));
        }
        let error = |source| SymbolError::Elf {
            path: display(&module.path),
            source,
        };
        let file = self.open_file(module)?;
        let elf = Arc::new(ElfFile::open(file).map_err(error)?);
        files.insert(module.path.clone(), Arc::clone(&elf));
        Ok(elf)
    }

    /// What to add to a module's own addresses to get run-time addresses.
    ///
    /// # Errors
    ///
    /// [`SymbolError`], also when its mappings fit none of its segments.
    pub fn bias(&self, module: &LoadedModule) -> Result<LoadBias, SymbolError> {
        let elf = self.elf(module)?;
        let code = module.mappings.iter().filter(|mapping| mapping.executable);
        code.chain(&module.mappings)
            .find_map(|mapping| elf.bias(mapping))
            .ok_or_else(|| SymbolError::NoBias {
                path: display(&module.path),
            })
    }

    /// The symbols of these names of a module at their run-time addresses, in the
    /// order of `names`, in one pass. Where the file can't be opened (deleted, replaced
    /// by an upgrade), those dynamic symbols that are in memory.
    ///
    /// # Errors
    ///
    /// [`SymbolError`]; a name that is not there is `None`, not an error.
    pub fn symbols(
        &self,
        module: &LoadedModule,
        names: &[&str],
    ) -> Result<Vec<Option<Symbol>>, SymbolError> {
        if let Some(given) = self.given.get(&module.path) {
            let find = |name: &&str| given.iter().find(|symbol| symbol.name == **name).cloned();
            return Ok(names.iter().map(find).collect());
        }
        if let Err(error) = self.elf(module) {
            // Its dynamic symbols are in memory, whatever became of the file.
            let header_at = module.mappings.first();
            let header_at = header_at.and_then(|first| header_of(first, &module.mappings));
            let found = header_at.map(|at| symbols_in_memory(self.memory(), at, names));
            return match found {
                Some(Ok(found)) if found.iter().any(Option::is_some) => Ok(found),
                _ => Err(error),
            };
        }
        let bias = self.bias(module)?;
        let found = self.elf(module)?.find(names, bias);
        found.map_err(|source| SymbolError::Elf {
            path: display(&module.path),
            source,
        })
    }

    /// The symbols of a module whose names begin with `prefix`, at most `cap`.
    ///
    /// # Errors
    ///
    /// [`SymbolError`].
    pub fn symbols_beginning(
        &self,
        module: &LoadedModule,
        prefix: &str,
        cap: usize,
    ) -> Result<Vec<Symbol>, SymbolError> {
        if let Some(given) = self.given.get(&module.path) {
            let begin = |symbol: &&Symbol| symbol.name.starts_with(prefix);
            return Ok(given.iter().filter(begin).take(cap).cloned().collect());
        }
        let bias = self.bias(module)?;
        let found = self.elf(module)?.find_prefix(prefix, bias, cap);
        found.map_err(|source| SymbolError::Elf {
            path: display(&module.path),
            source,
        })
    }

    /// Its threads. A core file has no names for them.
    ///
    /// # Errors
    ///
    /// What the system says: `ENOENT` or `ESRCH` when the process is gone.
    pub fn threads(&self) -> std::io::Result<Vec<ThreadInfo>> {
        match &self.source {
            Source::Live { .. } => list_threads(self.pid, self.inner_pid),
            Source::Core { threads, .. } => Ok(threads
                .iter()
                .map(|tid| ThreadInfo {
                    tid: *tid,
                    inner_tid: *tid,
                    name: String::new(),
                })
                .collect()),
            Source::MadeUp | Source::Departed => Ok(Vec::new()),
        }
    }

    fn open_file(&self, module: &LoadedModule) -> Result<Arc<dyn ReadAt>, SymbolError> {
        let path = || display(&module.path);
        let code = module.mappings.iter().find(|mapping| mapping.executable);
        let Some(entry) = code.or_else(|| module.mappings.first()) else {
            return Err(SymbolError::NoBias { path: path() });
        };
        match &self.source {
            Source::Live { .. } | Source::Departed => Ok(self.open_mapped(entry)?),
            Source::Core {
                root: Some(root), ..
            } => {
                let memory = self.memory.deref();
                open_same(root, &module.path, entry, memory, &self.mappings())
            }
            _ => Err(SymbolError::NoFiles { path: path() }),
        }
    }
}

/// The directory that the files of a core file of this machine are below.
///
/// # Errors
///
/// What the system says.
pub fn own_root() -> std::io::Result<Root> {
    Root::at(Path::new("/"))
}

pub(crate) fn display(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

mod exited;
mod own;

pub use own::{Environment, wall_time};
#[cfg(test)]
mod tests;
