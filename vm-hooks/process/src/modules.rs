//! The files that code is mapped from, each opened when its mapping first appears:
//! later it may be gone, with the process and its root directory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit};
use vmscope_records::{
    Avma, FileOffset, Limit, LimitKind, Mapping, Module, ModuleKey, Pid, ProcessKey, TimeNs,
};

use crate::opening::{Opening, is_program, read_vdso};
use crate::{MapEntry, MapsError, ModuleFile, ReadAt, read_maps};

/// More files than this are not kept open: a process with that many libraries is not
/// known, and each takes a descriptor.
pub const MAX_OPEN_FILES: usize = 4000;
/// More modules than this get no key: what a hostile target maps and unmaps must not
/// fill our memory.
pub const MAX_MODULES: usize = 1 << 14;

/// The registry of modules of a recording: one key for each distinct file that code
/// is mapped from, in whichever process, and that file, open.
///
/// Keys are shared between processes by device, inode and path. As long as a file is
/// open its inode can't be given to another one.
#[derive(Clone, Debug)]
pub struct Modules {
    keys: HashMap<Identity, ModuleKey>,
    known: Vec<Known>,
    open_files: usize,
    max_open_files: usize,
    not_kept_open: u64,
    not_registered: u64,
    told: (u64, u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    File {
        device: u64,
        inode: u64,
        path: Vec<u8>,
    },
    /// A vdso, by its content; empty where that could not be read.
    Vdso(Arc<[u8]>),
}

#[derive(Clone, Debug)]
struct Known {
    record: Module,
    file: Option<Arc<ModuleFile>>,
}

/// A mapping that was seen, as the recording wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The record of its module when it is the first mapping of it; to be written
    /// before the mapping.
    pub new_module: Option<Module>,
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// Where in the file `start` lies.
    pub offset: FileOffset,
    /// The file, `None` for anonymous memory.
    pub module: Option<ModuleKey>,
    /// The name of anonymous memory, else empty.
    pub name: String,
    /// Whether it may be executed.
    pub executable: bool,
}

impl Sighting {
    /// The mapping as a record of the address space `process`.
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
    /// An empty registry, which keeps at most [`MAX_OPEN_FILES`] files open and never
    /// more than half of the descriptors that this process may have.
    #[must_use]
    pub fn new() -> Self {
        // The other half is for the sampler's events.
        let allowed = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft / 2);
        Self::with_max_open_files(usize::try_from(allowed).unwrap_or(usize::MAX))
    }

    /// An empty registry, which keeps at most `max` files open.
    #[must_use]
    pub fn with_max_open_files(max: usize) -> Self {
        Self {
            keys: HashMap::new(),
            known: Vec::new(),
            open_files: 0,
            max_open_files: max.min(MAX_OPEN_FILES),
            not_kept_open: 0,
            not_registered: 0,
            told: (0, 0),
        }
    }

    /// All executable mappings that process `pid` has now, each as `/proc/PID/maps` has
    /// it and as the recording wants it. (A sample's pc lies in
    /// one; what becomes executable later is told by the kernel.)
    ///
    /// # Errors
    ///
    /// [`MapsError`] when the mappings can't be read.
    pub fn scan(&mut self, pid: Pid, time: TimeNs) -> Result<Vec<(MapEntry, Sighting)>, MapsError> {
        let maps = read_maps(pid)?;
        let executable = maps.entries.iter().filter(|entry| entry.executable);
        Ok(executable
            .map(|entry| {
                let sighting = self.sight(pid, entry, time, Some(&maps.entries));
                (entry.clone(), sighting)
            })
            .collect())
    }

    /// One mapping of process `pid`, as the kernel's `PERF_RECORD_MMAP2` describes
    /// it. Opens the module's file if it is a new one: some tens of microseconds, a
    /// few hundred where the file must be told by its build-id.
    pub fn see(&mut self, pid: Pid, entry: &MapEntry, time: TimeNs) -> Sighting {
        self.sight(pid, entry, time, None)
    }

    /// The open file (or the image) of a module; `None` where it could not be opened
    /// or kept open.
    #[must_use]
    pub fn file(&self, key: ModuleKey) -> Option<Arc<ModuleFile>> {
        self.at(key)?.file.clone()
    }

    /// The record of a module, as [`Sighting::new_module`] gave it.
    #[must_use]
    pub fn module(&self, key: ModuleKey) -> Option<&Module> {
        Some(&self.at(key)?.record)
    }

    /// All modules so far, in the order of their keys, each with its open file.
    pub fn iter(&self) -> impl Iterator<Item = (&Module, Option<&Arc<ModuleFile>>)> {
        let known = self.known.iter();
        known.map(|known| (&known.record, known.file.as_ref()))
    }

    /// What this registry could not do since the last call, for the recording.
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
        let (not_kept_open, not_registered) = (self.not_kept_open, self.not_registered);
        if not_kept_open > self.told.0 {
            say(
                format!(
                    "{not_kept_open} files with code could not be kept open; where they \
                     are gone at the end, their functions have no names"
                ),
                "raise the limit on open files (ulimit -n)",
            );
        }
        if not_registered > self.told.1 {
            say(
                format!(
                    "{not_registered} mappings came from more than {MAX_MODULES} files; \
                     their functions have no names"
                ),
                "",
            );
        }
        self.told = (not_kept_open, not_registered);
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
            let image = read_vdso(pid, entry);
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
            self.not_registered += 1;
            sighting.name = entry.display_name();
            return sighting;
        };
        slot.insert(key);
        let mut found = found.unwrap_or_else(|| Opening::of_file(pid, entry, maps));
        let path = entry.path().unwrap_or(&entry.name);
        let record = Module {
            key,
            time,
            path: String::from_utf8_lossy(path).into_owned(),
            build_id: found.build_id,
            device: entry.device,
            inode: entry.inode,
            size: found.file.as_ref().map_or(0, |file| file.len()),
            main: is_program(pid, entry),
            state: found.state,
        };
        if found.file.as_ref().is_some_and(|f| f.holds_descriptor()) {
            if self.open_files >= self.max_open_files {
                found.file = None;
            } else {
                self.open_files += 1;
            }
        }
        self.not_kept_open += u64::from(found.file.is_none() && found.opened);
        self.known.push(Known {
            record: record.clone(),
            file: found.file,
        });
        sighting.module = Some(key);
        sighting.new_module = Some(record);
        sighting
    }
}

#[cfg(test)]
mod tests;
