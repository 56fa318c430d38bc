//! The files that code is mapped from, each opened when its mapping first appears:
//! later it may be gone, with the process and its root directory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use vmscope_records::{
    Avma, BuildId, FileOffset, Limit, LimitKind, Mapping, Module, ModuleKey, ModuleState, Pid,
    ProcessKey, TimeNs,
};

use crate::{
    ElfFile, LiveMemory, MapEntry, MapsError, Memory, ModuleFile, ReadAt, Root, build_id_in_memory,
    open_magic_link, own_root, read_maps,
};

/// More files than this are not kept open: a process with that many libraries is not
/// known, and each takes a descriptor.
pub const MAX_OPEN_FILES: usize = 4000;
/// More modules than this get no key: what a hostile target maps and unmaps must not
/// fill our memory.
pub const MAX_MODULES: usize = 1 << 16;
/// A vdso is two to four pages; a larger one is not kept.
const MAX_VDSO_BYTES: u64 = 1 << 20;

/// The registry of modules of a recording: one key for each distinct file that code
/// is mapped from, in whichever process, and that file, open.
///
/// Keys are shared between processes by device, inode and path. As long as a file is
/// open its inode can't be given to another one.
#[derive(Debug)]
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

#[derive(Debug)]
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

    /// All executable mappings that process `pid` has now. (A sample's pc lies in
    /// one; what becomes executable later is told by the kernel.)
    ///
    /// # Errors
    ///
    /// [`MapsError`] when the mappings can't be read.
    pub fn scan(&mut self, pid: Pid, time: TimeNs) -> Result<Vec<Sighting>, MapsError> {
        let maps = read_maps(pid)?;
        let executable = maps.entries.iter().filter(|entry| entry.executable);
        Ok(executable
            .map(|entry| self.sight(pid, entry, time, Some(&maps.entries)))
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

/// What came of opening a module.
pub(crate) struct Opening {
    pub state: ModuleState,
    pub file: Option<Arc<ModuleFile>>,
    pub build_id: Option<BuildId>,
    /// Whether it was opened, or would have been with more descriptors.
    opened: bool,
}

impl Opening {
    fn of_vdso(image: &Arc<[u8]>) -> Self {
        let file = (!image.is_empty()).then(|| Arc::new(ModuleFile::from_image(Arc::clone(image))));
        Self {
            state: ModuleState::Vdso,
            build_id: file.clone().and_then(|file| build_id(&file)),
            file,
            opened: false,
        }
    }

    /// Opens the file that `entry` of process `pid` is a mapping of, by whichever
    /// way leads to it; `maps` are the process's mappings, if at hand.
    pub fn of_file(pid: Pid, entry: &MapEntry, maps: Option<&[MapEntry]>) -> Self {
        let mut other_file = false;
        let mut failure: Option<io::Error> = None;
        let mut memory_build_id = None;
        let mut in_memory = || {
            memory_build_id
                .get_or_insert_with(|| mapped_build_id(pid, entry, maps))
                .clone()
        };
        let (start, end) = (entry.start.get(), entry.end.get());
        let ways = [
            // The file itself, even one without a name; needs CAP_SYS_ADMIN or
            // CAP_CHECKPOINT_RESTORE.
            Way::Link(format!("/proc/{pid}/map_files/{start:x}-{end:x}")),
            Way::Path,
            // The program itself, even when it has lost its name.
            Way::Link(format!("/proc/{pid}/exe")),
            // A process that is over already has no root any more; ours may have been
            // its, which the file's identity tells.
            Way::OwnRoot,
        ];
        for way in ways {
            let (file, is_path) = match way {
                Way::Link(link) => (open_magic_link(Path::new(&link)), false),
                Way::Path => {
                    let path = entry.path().unwrap_or_default();
                    let root = Root::of_process(pid);
                    (root.and_then(|root| open_named(&root, path, entry)), true)
                }
                Way::OwnRoot => {
                    let path = entry.path().unwrap_or_default();
                    (
                        own_root().and_then(|root| open_named(&root, path, entry)),
                        false,
                    )
                }
            };
            let file = match file {
                Ok(file) => Arc::new(file),
                Err(error) => {
                    if is_path {
                        failure = Some(error);
                    }
                    continue;
                }
            };
            let own = build_id(&file);
            let same = file
                .identity()
                .is_ok_and(|identity| identity == (entry.device, entry.inode));
            if same || (own.is_some() && own == in_memory()) {
                return Self {
                    state: ModuleState::Opened,
                    build_id: own,
                    file: Some(file),
                    opened: true,
                };
            }
            other_file |= is_path;
        }
        let too_many = |error: &io::Error| {
            let errno = error.raw_os_error();
            errno == Some(Errno::EMFILE as i32) || errno == Some(Errno::ENFILE as i32)
        };
        let is_missing = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::ENOTDIR as i32)
        };
        let opened = failure.as_ref().is_some_and(too_many);
        let state = match failure {
            // A deleted file whose name was given to another one is replaced.
            _ if other_file => ModuleState::Replaced,
            Some(error) if is_missing(&error) => ModuleState::Deleted,
            Some(error) if error.kind() == io::ErrorKind::InvalidInput => {
                ModuleState::Unreadable("not a regular file".to_owned())
            }
            Some(error) => ModuleState::Unreadable(error.to_string()),
            None => ModuleState::Deleted,
        };
        Self {
            state,
            build_id: in_memory(),
            file: None,
            opened,
        }
    }
}

enum Way {
    Link(String),
    Path,
    OwnRoot,
}

/// Whether a mapping's file is the program that the process runs.
fn is_program(pid: Pid, entry: &MapEntry) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| {
        let program = program.as_os_str().as_bytes();
        let name = program
            .strip_suffix(b" (deleted)".as_slice())
            .unwrap_or(program);
        entry.path().is_some_and(|path| path == name)
    })
}

/// Opens `path`; a name that really ends in what the kernel appends to the names of
/// deleted files is tried too.
fn open_named(root: &Root, path: &[u8], entry: &MapEntry) -> io::Result<ModuleFile> {
    let plain = root.open(path);
    if plain.is_err() && entry.is_marked_deleted() {
        return root.open(&entry.name).or(plain);
    }
    plain
}

fn build_id(file: &Arc<ModuleFile>) -> Option<BuildId> {
    let file: Arc<dyn ReadAt> = file.clone();
    ElfFile::open(file).and_then(|elf| elf.build_id()).ok()?
}

/// The build-id of the file of `entry` as the process has it in its memory: the ELF
/// header is at the nearest mapping before it of the beginning of the same file.
fn mapped_build_id(pid: Pid, entry: &MapEntry, maps: Option<&[MapEntry]>) -> Option<BuildId> {
    let read;
    let maps = match maps {
        Some(maps) => maps,
        None => {
            read = read_maps(pid).ok()?.entries;
            &read
        }
    };
    header_of(entry, maps)
        .and_then(|at| build_id_in_memory(&LiveMemory::new(pid), at).ok())
        .flatten()
}

/// Where the first page of the file of `entry` is mapped, among `maps` in ascending
/// order.
pub(crate) fn header_of(entry: &MapEntry, maps: &[MapEntry]) -> Option<Avma> {
    let same = |other: &&MapEntry| {
        other.start <= entry.start
            && other.offset.get() == 0
            && (other.device, other.inode) == (entry.device, entry.inode)
            && other.path() == entry.path()
    };
    maps.iter().rfind(same).map(|first| first.start)
}

/// The vdso of a process; where its memory may not be read, our own, which the same
/// kernel mapped, if it is as long. Empty where neither can be had.
fn read_vdso(pid: Pid, entry: &MapEntry) -> Arc<[u8]> {
    let image = |pid: Pid, entry: &MapEntry| {
        let length = entry.end.offset_from(entry.start)?;
        let cap = usize::try_from(MAX_VDSO_BYTES).ok()?;
        LiveMemory::new(pid).read_vec(entry.start, length, cap).ok()
    };
    let own = || {
        let me = Pid(std::process::id());
        let maps = read_maps(me).ok()?;
        let own = maps.entries.iter().find(|own| own.is_vdso())?;
        let length = |entry: &MapEntry| entry.end.offset_from(entry.start);
        (length(own) == length(entry)).then(|| image(me, own))?
    };
    image(pid, entry).or_else(own).unwrap_or_default().into()
}

#[cfg(test)]
mod tests;
