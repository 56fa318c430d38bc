//! Processes as adapters see them.

use std::collections::HashMap;
use std::ops::Deref as _;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use vmscope_records::{Avma, Pid, ProcessKey, Tid, TimeNs};

use crate::attach::{
    examine, explain, has_memory, list_threads, open_memory, open_stat, program_stamp, start_ticks,
};
use crate::core_memory::{CoreMemory, open_same};
use crate::opening::{Opening, header_of};
use crate::{
    AttachError, CoreFile, ElfFile, LiveMemory, LoadBias, LoadedModule, MapEntry, MapsError,
    Memory, ModuleFile, ProgramStamp, ReadAt, Root, Symbol, SymbolError, ThreadInfo, read_maps,
    symbols_in_memory,
};

/// See [`ProcessView::keep`].
#[derive(Debug)]
struct KeptFile {
    numbers: Option<(u64, u64)>,
    file: Arc<ModuleFile>,
}

/// A process (or its core file) as adapters see it: memory, mappings and symbols.
///
/// Thread-safe. A view covers one program: after an `exec` the recorder makes another view.
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
    files: Mutex<HashMap<Vec<u8>, Arc<ElfFile>>>,
    /// Files opened at their first mapping, by path.
    kept: Mutex<HashMap<Vec<u8>, Vec<KeptFile>>>,
    /// Symbols from the caller, by module path.
    given: HashMap<Vec<u8>, Vec<Symbol>>,
}

enum Source {
    Live {
        start_ticks: u64,
        /// Kept open for [`ProcessView::stamp`], which every poll reads.
        stat: OnceLock<std::fs::File>,
        /// The program at the last stamp, with its open memory.
        program: Mutex<Option<(std::fs::File, ProgramStamp)>>,
    },
    Core {
        root: Option<Arc<Root>>,
        threads: Vec<Tid>,
    },
    MadeUp,
    /// Exited before it could be inspected.
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
    /// The live process `pid`. Does not test access to its memory: sampling works without.
    ///
    /// # Errors
    /// [`AttachError`] if the process does not exist or denies access.
    pub fn open(pid: Pid) -> Result<Self, AttachError> {
        let facts = examine(pid)?;
        let maps = read_maps(pid).map_err(|error| explain(&facts, error))?;
        if maps.entries.is_empty() {
            return Err(AttachError::Ended { pid });
        }
        // A 32-bit process has no memory above 4 GiB (except the vsyscall page).
        let own = maps
            .entries
            .iter()
            .filter(|entry| entry.name != b"[vsyscall]");
        let narrow = own.map(|entry| entry.end).max() <= Some(Avma(1 << 32));
        let memory = LiveMemory::new(pid).with_pointer_bytes(if narrow { 4 } else { 8 });
        let source = Source::Live {
            start_ticks: facts.start_ticks,
            stat: OnceLock::new(),
            program: Mutex::default(),
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

    /// The process in a core file. Files below `root` supply symbols and memory omitted from the
    /// core file, if their build-id matches the core file.
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
        let threads = info.threads.iter().map(|thread| thread.tid).collect();
        let source = Source::Core { root, threads };
        let pid = info.pid.unwrap_or_default();
        let mut view = Self::new(pid, memory, mappings.to_vec(), source);
        view.name = info.name;
        view.command = info.command.split(' ').map(str::to_owned).collect();
        view
    }

    /// A test's fake process.
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

    /// Sets the recording's key for this address space.
    #[must_use]
    pub fn with_key(mut self, key: ProcessKey) -> Self {
        self.key = key;
        self
    }

    /// Adds symbols at run-time addresses for module `path`, for tests and core files without
    /// binaries. They take precedence over the file.
    #[must_use]
    pub fn with_symbols(mut self, path: impl AsRef<[u8]>, symbols: Vec<Symbol>) -> Self {
        self.given.insert(path.as_ref().to_vec(), symbols);
        self
    }

    /// Key of the address space in records; 0 outside recordings.
    #[must_use]
    pub fn key(&self) -> ProcessKey {
        self.key
    }

    /// Process id; 0 if unknown (core file).
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Process id in its own pid namespace, which VMs use in file names (`/tmp/perf-1.map`).
    #[must_use]
    pub fn inner_pid(&self) -> Pid {
        self.inner_pid
    }

    /// Name (`comm`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Command line (core files: the first 79 bytes, split at spaces).
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Path of the program as the target sees it; empty if unknown.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Process memory.
    #[must_use]
    pub fn memory(&self) -> &dyn Memory {
        &*self.memory
    }

    /// Likewise for longer than the view.
    #[must_use]
    pub fn shared_memory(&self) -> Arc<dyn Memory> {
        Arc::clone(&self.memory)
    }

    /// Whether the process is live (not a core file).
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Live { .. })
    }

    /// Whether the same process still runs. Always true without a live process.
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

    /// Identity of the current program, cheap to read; `None` after the exit or without a live
    /// process.
    #[must_use]
    pub fn stamp(&self) -> Option<ProgramStamp> {
        let Source::Live {
            start_ticks,
            stat,
            program,
        } = &self.source
        else {
            return None;
        };
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((memory, stamp)) = &*program
            && has_memory(memory)
        {
            return Some(*stamp);
        }
        // Before the stamp: if another program starts in between, the next look at this memory tells.
        let memory = open_memory(self.pid);
        let file = match stat.get() {
            Some(file) => file,
            None => {
                let file = open_stat(self.pid)?;
                stat.get_or_init(|| file)
            }
        };
        // An open `stat` file never shows another process with a reused id.
        let stamp = program_stamp(file).filter(|stamp| stamp.is_since(*start_ticks));
        *program = memory.zip(stamp);
        stamp
    }

    /// Start time in clock ticks since boot (`proc_pid_stat(5)`); `None` without a live process.
    #[must_use]
    pub fn start_ticks(&self) -> Option<u64> {
        match self.source {
            Source::Live { start_ticks, .. } => Some(start_ticks),
            _ => None,
        }
    }

    /// Mappings of the last [`ProcessView::refresh`], in ascending order of addresses.
    #[must_use]
    pub fn mappings(&self) -> Arc<[MapEntry]> {
        let maps = self.maps.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&maps)
    }

    /// Keeps an opened file of `path` for later uses, even after its deletion or the process's exit: for mappings of the
    /// file with these device and inode numbers, `None` for all mappings of the path.
    pub fn keep(&self, path: &[u8], numbers: Option<(u64, u64)>, file: Arc<ModuleFile>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = kept.entry(path.to_vec()).or_default();
        of_path.retain(|kept| kept.numbers != numbers);
        of_path.push(KeptFile { numbers, file });
    }

    /// The newest kept file with the path of mapping `entry` whose numbers `fits` accepts.
    fn kept_file(
        &self,
        entry: &MapEntry,
        fits: impl Fn(Option<(u64, u64)>) -> bool,
    ) -> Option<Arc<ModuleFile>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = kept.get(entry.path().unwrap_or_default())?;
        let found = of_path.iter().rev().find(|kept| fits(kept.numbers))?;
        Some(Arc::clone(&found.file))
    }

    /// File of mapping `entry`: the kept file, or a verified route to it.
    ///
    /// # Errors
    /// [`SymbolError`] if opening fails or the file was replaced.
    pub fn open_mapped(&self, entry: &MapEntry) -> Result<Arc<ModuleFile>, SymbolError> {
        let path = entry.path().unwrap_or_default();
        let own = (entry.device, entry.inode);
        if let Some(file) = self.kept_file(entry, |numbers| numbers.is_none_or(|it| it == own)) {
            return Ok(file);
        }
        let maps = self.mappings();
        match &self.source {
            Source::Live { .. } | Source::Departed => {}
            Source::Core {
                root: Some(root), ..
            } => return open_same(root, path, entry, self.memory.deref(), &maps),
            _ => {
                return Err(SymbolError::NoFiles {
                    path: display(path),
                });
            }
        }
        let opening = Opening::of_file(self.pid, entry, Some(&maps));
        // On overlayfs, mappings and events of the kernel have different numbers for one file.
        let is_of_no_other = |numbers: Option<(u64, u64)>| {
            let mut mapped = maps.iter().map(|one| (one.device, one.inode));
            numbers.is_some_and(|numbers| mapped.all(|other| other != numbers))
        };
        let kept = || self.kept_file(entry, is_of_no_other);
        opening
            .file
            .or_else(kept)
            .ok_or_else(|| SymbolError::NotOpened {
                path: display(path),
                state: opening.state,
            })
    }

    /// The process's own root directory, for its paths.
    ///
    /// # Errors
    /// I/O errors; `ENOENT` after the exit or without a live process.
    pub fn root(&self) -> std::io::Result<Root> {
        match self.source {
            Source::Live { .. } => Root::of_process(self.pid),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    /// Reads the mappings again.
    ///
    /// # Errors
    /// [`MapsError`] if unreadable; old mappings stay.
    pub fn refresh(&self) -> Result<(), MapsError> {
        self.refresh_if(|_| true).map(drop)
    }

    /// Reads the mappings again and takes them if `is_it` accepts them as those of this view's
    /// program; returns its answer. Without a live process, mappings never change.
    ///
    /// # Errors
    /// [`MapsError`] if unreadable; old mappings stay.
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

    /// The mapping at `at`.
    #[must_use]
    pub fn mapping_at(&self, at: Avma) -> Option<MapEntry> {
        MapEntry::find(&self.mappings(), at).cloned()
    }

    /// Mapped files in order of their first addresses.
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

    /// First module whose file name `is_it` accepts.
    #[must_use]
    pub fn module(&self, mut is_it: impl FnMut(&str) -> bool) -> Option<LoadedModule> {
        let modules = self.modules().into_iter();
        modules
            .into_iter()
            .find(|module| is_it(&module.file_name()))
    }

    /// ELF file of a module, opened on first use.
    ///
    /// # Errors
    /// [`SymbolError`] if opening fails, the file was replaced, or is no ELF file.
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

    /// Load bias of a module: that of most of its mappings. A program may map parts of the file once more, as V8 does
    /// with its builtins.
    ///
    /// # Errors
    /// [`SymbolError`], also if no segment fits the mappings.
    pub fn bias(&self, module: &LoadedModule) -> Result<LoadBias, SymbolError> {
        let elf = self.elf(module)?;
        let (code, data): (Vec<&MapEntry>, Vec<&MapEntry>) = module
            .mappings
            .iter()
            .partition(|mapping| mapping.executable);
        let all = code.into_iter().chain(data);
        let biases: Vec<LoadBias> = all.filter_map(|mapping| elf.bias(mapping)).collect();
        let mut votes: HashMap<u64, usize> = HashMap::new();
        for bias in &biases {
            *votes.entry(bias.0).or_default() += 1;
        }
        // Of equals, the first: code counts before data.
        let most = biases.iter().rev().max_by_key(|bias| votes.get(&bias.0));
        most.copied().ok_or_else(|| SymbolError::NoBias {
            path: display(&module.path),
        })
    }

    /// Symbols of a module at run-time addresses, in the order of `names`, in one pass. If the file
    /// can't be opened (deleted, replaced by an upgrade), dynamic symbols in memory.
    ///
    /// # Errors
    /// [`SymbolError`]; a missing name is `None`, not an error.
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
            // Memory has dynamic symbols even without the file.
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

    /// Addresses of a module's dynamic symbols, in the order of `names`; `None` for missing ones. A live
    /// process supplies them from memory, not from its file: these tables have a tenth of the size of
    /// the tables in a large program's file.
    #[must_use]
    pub fn exported(&self, module: &LoadedModule, names: &[&str]) -> Vec<Option<Avma>> {
        let found = if self.is_live() {
            symbols_in_memory(self.memory(), module.start(), names).ok()
        } else {
            self.symbols(module, names).ok()
        };
        let found = found.unwrap_or_default().into_iter();
        found
            .map(|symbol| symbol.map(|symbol| symbol.address))
            .collect()
    }

    /// Symbols of a module with one of these prefixes, at most `cap`.
    ///
    /// # Errors
    /// [`SymbolError`].
    pub fn symbols_beginning(
        &self,
        module: &LoadedModule,
        prefixes: &[&str],
        cap: usize,
    ) -> Result<Vec<Symbol>, SymbolError> {
        if let Some(given) = self.given.get(&module.path) {
            let begin = |symbol: &&Symbol| {
                let mut prefixes = prefixes.iter();
                prefixes.any(|prefix| symbol.name.starts_with(prefix))
            };
            return Ok(given.iter().filter(begin).take(cap).cloned().collect());
        }
        let bias = self.bias(module)?;
        let found = self.elf(module)?.find_prefixes(prefixes, bias, cap);
        found.map_err(|source| SymbolError::Elf {
            path: display(&module.path),
            source,
        })
    }

    /// Threads; in core files without names.
    ///
    /// # Errors
    /// I/O errors; `ENOENT` or `ESRCH` after the exit.
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
        Ok(self.open_mapped(entry)?)
    }
}

/// Root directory for files of a core file from this machine.
///
/// # Errors
/// I/O errors.
pub fn own_root() -> std::io::Result<Root> {
    Root::at(Path::new("/"))
}

pub(crate) fn display(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

mod exited;
mod own;

pub use own::{Environment, monotonic_time, wall_time};
#[cfg(test)]
mod tests;
