//! Files with mapped code, each opened at its first mapping: later the file may be gone, with the
//! process and its root directory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit};
use vmscope_records::{
    Avma, FileOffset, Limit, LimitKind, Mapping, Module, ModuleKey, Pid, ProcessKey, TimeNs,
};

use crate::opening::{Opening, is_program, read_image, read_vdso};
use crate::{MapEntry, MapsError, ModuleFile, ProcessView, ReadAt, read_maps};

/// Cap on module keys: a hostile target must not fill our memory by mapping files.
pub const MAX_MODULES: usize = 1 << 14;

/// Module registry of a recording: one key and one open file for each distinct file with mapped
/// code, in any process.
///
/// Processes share keys by device, inode and path. The kernel can't reuse the inode of an open
/// file.
#[derive(Clone, Debug)]
pub struct Modules {
    keys: HashMap<Identity, ModuleKey>,
    known: Vec<Known>,
    open_files: usize,
    max_open_files: usize,
    /// First file beyond the open ones.
    beyond_open: Reached,
    /// First file beyond [`MAX_MODULES`].
    beyond_modules: Reached,
    /// The core file, if it is the only process.
    core: Option<Arc<ProcessView>>,
}

/// Whether a limit was reached. It is told once: a target may map files endlessly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reached {
    #[default]
    No,
    Now,
    Told,
}

impl Reached {
    fn note(&mut self) {
        if *self == Reached::No {
            *self = Reached::Now;
        }
    }

    fn take(&mut self) -> bool {
        let is_new = *self == Reached::Now;
        if is_new {
            *self = Reached::Told;
        }
        is_new
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    File {
        device: u64,
        inode: u64,
        path: Vec<u8>,
    },
    /// Vdso contents; empty if unreadable.
    Vdso(Arc<[u8]>),
}

#[derive(Clone, Debug)]
struct Known {
    record: Module,
    file: Option<Arc<ModuleFile>>,
}

/// An observed mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Record of its module, at the first mapping only; to be written before the mapping.
    pub new_module: Option<Module>,
    /// First address.
    pub start: Avma,
    /// First address after the mapping.
    pub end: Avma,
    /// File offset of `start`.
    pub offset: FileOffset,
    /// The file, `None` for anonymous memory.
    pub module: Option<ModuleKey>,
    /// Name of anonymous memory, else empty.
    pub name: String,
    /// Executable.
    pub executable: bool,
}

impl Sighting {
    /// The mapping record for address space `process`.
    #[must_use]
    pub fn mapping(&self, process: ProcessKey, time: TimeNs) -> Mapping {
        Mapping {
            process,
            time,
            start: self.start,
            end: self.end,
            offset: self.offset,
            module: self.module,
            name: self.name.clone(),
            executable: self.executable,
        }
    }
}

impl Default for Modules {
    fn default() -> Self {
        Self::new()
    }
}

impl Modules {
    /// An empty registry. It keeps as many files open as half of the descriptors that are free now.
    #[must_use]
    pub fn new() -> Self {
        let allowed = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        let used = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self::with_max_open_files(allowed.saturating_sub(used) / 2)
    }

    /// An empty registry with at most `max` open files.
    #[must_use]
    pub fn with_max_open_files(max: usize) -> Self {
        Self {
            keys: HashMap::new(),
            known: Vec::new(),
            open_files: 0,
            max_open_files: max,
            beyond_open: Reached::No,
            beyond_modules: Reached::No,
            core: None,
        }
    }

    /// An empty registry for the mappings of a core file.
    #[must_use]
    pub fn of_core(view: ProcessView) -> Self {
        Self {
            core: Some(Arc::new(view)),
            ..Self::new()
        }
    }

    /// All current executable mappings of process `pid`, each with its `/proc/PID/maps` entry.
    /// (Only these contain sampled pcs; the kernel reports later ones.)
    ///
    /// # Errors
    /// [`MapsError`] if the mappings are unreadable.
    pub fn scan(&mut self, pid: Pid, time: TimeNs) -> Result<Vec<(MapEntry, Sighting)>, MapsError> {
        let maps: Arc<[MapEntry]> = match &self.core {
            Some(core) => core.mappings(),
            None => read_maps(pid)?.entries.into(),
        };
        let executable = maps.iter().filter(|entry| entry.executable);
        Ok(executable
            .map(|entry| {
                let sighting = self.sight(pid, entry, time, Some(&maps));
                (entry.clone(), sighting)
            })
            .collect())
    }

    /// Name of a core file's process; `None` for live processes.
    #[must_use]
    pub fn core_name(&self) -> Option<String> {
        self.core.as_ref().map(|core| core.name().to_owned())
    }

    /// Registers a mapping of process `pid` from the kernel's `PERF_RECORD_MMAP2`. Opening the file
    /// of a new module takes tens of microseconds, a few hundred with a build-id comparison.
    pub fn see(&mut self, pid: Pid, entry: &MapEntry, time: TimeNs) -> Sighting {
        self.sight(pid, entry, time, None)
    }

    /// Open file (or image) of a module; `None` if opening failed or the limit was reached.
    #[must_use]
    pub fn file(&self, key: ModuleKey) -> Option<Arc<ModuleFile>> {
        self.at(key)?.file.clone()
    }

    /// Record of a module, as in [`Sighting::new_module`].
    #[must_use]
    pub fn module(&self, key: ModuleKey) -> Option<&Module> {
        Some(&self.at(key)?.record)
    }

    /// All modules in order of their keys, each with its open file.
    pub fn iter(&self) -> impl Iterator<Item = (&Module, Option<&Arc<ModuleFile>>)> {
        let known = self.known.iter();
        known.map(|known| (&known.record, known.file.as_ref()))
    }

    /// Limits reached since the last call, for the recording.
    pub fn take_limits(&mut self, time: TimeNs) -> Vec<Limit> {
        let mut limits = Vec::new();
        let mut say = |text: String, remedy: &str| {
            limits.push(Limit {
                time,
                kind: LimitKind::NoSymbols,
                text,
                remedy: remedy.to_owned(),
            });
        };
        if self.beyond_open.take() {
            say(
                format!(
                    "only {} binaries are kept open: if others are deleted before the end, their \
                     functions have no names",
                    self.open_files
                ),
                "raise the limit on open files (ulimit -n)",
            );
        }
        if self.beyond_modules.take() {
            say(
                format!("more than {MAX_MODULES} binaries: functions in the others have no names"),
                "",
            );
        }
        limits
    }

    fn at(&self, key: ModuleKey) -> Option<&Known> {
        self.known.get(usize::try_from(key.get()).ok()?)
    }

    fn sight(
        &mut self,
        pid: Pid,
        entry: &MapEntry,
        time: TimeNs,
        maps: Option<&[MapEntry]>,
    ) -> Sighting {
        let mut sighting = Sighting {
            new_module: None,
            start: entry.start,
            end: entry.end,
            offset: entry.offset,
            module: None,
            name: String::new(),
            executable: entry.executable,
        };
        let mut found = None;
        let identity = if entry.is_vdso() {
            let image = match &self.core {
                Some(core) => (read_image(core.memory(), entry).unwrap_or_default()).into(),
                None => read_vdso(pid, entry),
            };
            found = Some(Opening::of_vdso(&image));
            sighting.offset = FileOffset(0);
            Identity::Vdso(image)
        } else if let Some(path) = entry.path() {
            Identity::File {
                device: entry.device,
                inode: entry.inode,
                path: path.to_vec(),
            }
        } else {
            sighting.name = entry.display_name();
            return sighting;
        };
        let next = self.known.len();
        let slot = match self.keys.entry(identity) {
            Entry::Occupied(known) => {
                sighting.module = Some(*known.get());
                return sighting;
            }
            Entry::Vacant(slot) => slot,
        };
        let key = u32::try_from(next).map(ModuleKey);
        let Some(key) = key.ok().filter(|_| next < MAX_MODULES) else {
            self.beyond_modules.note();
            sighting.name = entry.display_name();
            return sighting;
        };
        slot.insert(key);
        let mut found = found.unwrap_or_else(|| match &self.core {
            Some(core) => Opening::of_core(core, entry),
            None => Opening::of_file(pid, entry, maps),
        });
        let path = entry.path().unwrap_or(&entry.name);
        let record = Module {
            key,
            time,
            path: String::from_utf8_lossy(path).into_owned(),
            build_id: found.build_id,
            device: entry.device,
            inode: entry.inode,
            size: found.file.as_ref().map_or(0, |file| file.len()),
            main: match &self.core {
                Some(core) => is_first_program(core, entry),
                None => is_program(pid, entry),
            },
            state: found.state,
        };
        if found.file.as_ref().is_some_and(|f| f.holds_descriptor()) {
            if self.open_files >= self.max_open_files {
                found.file = None;
            } else {
                self.open_files += 1;
            }
        }
        if found.file.is_none() && found.opened {
            self.beyond_open.note();
        }
        self.known.push(Known {
            record: record.clone(),
            file: found.file,
        });
        sighting.module = Some(key);
        sighting.new_module = Some(record);
        sighting
    }
}

/// Whether a mapping's file is a core file's first one with code: the program lies below its libraries.
fn is_first_program(core: &ProcessView, entry: &MapEntry) -> bool {
    let mappings = core.mappings();
    let mut code = mappings.iter().filter(|one| one.executable);
    let program = code.find_map(MapEntry::path);
    program.is_some() && program == entry.path()
}

#[cfg(test)]
mod tests;
