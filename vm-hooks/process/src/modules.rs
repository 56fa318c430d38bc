//! Files with mapped code, each opened at its first mapping: later the file may be gone, with the
//! process and its root directory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit};
use vmscope_records::{
    Avma, FileOffset, Limit, LimitKind, Mapping, Module, ModuleKey, Pid, ProcessKey, TimeNs,
};

use crate::opening::{Opening, is_program, read_vdso};
use crate::{MapEntry, MapsError, ModuleFile, ReadAt, read_maps};

/// Cap on open files: each takes a descriptor, and no known process has that many libraries.
pub const MAX_OPEN_FILES: usize = 4000;
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
    /// An empty registry. Its limit of open files is [`MAX_OPEN_FILES`], and at most half of
    /// vmscope's descriptors.
    #[must_use]
    pub fn new() -> Self {
        // The sampler's events need the other half.
        let allowed = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft / 2);
        Self::with_max_open_files(usize::try_from(allowed).unwrap_or(usize::MAX))
    }

    /// An empty registry with at most `max` open files.
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

    /// All current executable mappings of process `pid`, each with its `/proc/PID/maps` entry.
    /// (Only these contain sampled pcs; the kernel reports later ones.)
    ///
    /// # Errors
    /// [`MapsError`] if the mappings are unreadable.
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
        let (not_kept_open, not_registered) = (self.not_kept_open, self.not_registered);
        if not_kept_open > self.told.0 {
            say(
                format!(
                    "{not_kept_open} binaries could not be kept open: if deleted before the end, \
                     their functions have no names"
                ),
                "raise the limit on open files (ulimit -n)",
            );
        }
        if not_registered > self.told.1 {
            say(
                format!(
                    "more than {MAX_MODULES} binaries: functions in {not_registered} further \
                     mappings have no names"
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
