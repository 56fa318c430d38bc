//! Finding the files that a VM writes: the dump by the mark it leaves in its own
//! mappings, the perf map by its name.

use std::io;

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use vmscope_process::{
    Environment, MapEntry, ModuleFile, ProcessView, Root, SymbolError, own_root, wall_time,
};
use vmscope_records::Pid;

use crate::follow::{DumpFile, FileError, PerfMapFile};
use crate::vm::VmKind;

/// Where VMs write perf maps, whatever `TMPDIR` says; but see [`perf_map_folder`].
pub const PERF_MAP_FOLDER: &[u8] = b"/tmp";

/// File times come from a clock that is up to a tick behind, and when a process was
/// started is known to a hundredth of a second.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// A mapping by which a VM marks its dump: a page of it, executable, so that `perf`
/// sees it being mapped. Nothing is ever read or executed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpMarker {
    /// The mapping.
    pub mapping: MapEntry,
    /// The process that the file's name states, in its own pid namespace. A forking process leaves
    /// its mapping to its child: the dump's records up to the fork hold for the child, later records
    /// do not.
    pub pid: u32,
}

impl DumpMarker {
    /// Whether `process` writes the dump itself; a fork inherits its parent's mapping.
    #[must_use]
    pub fn is_of(&self, process: &ProcessView) -> bool {
        process.inner_pid() == Pid(self.pid)
    }

    /// The target's path of the dump.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.mapping.path().unwrap_or_default()
    }

    /// Time of the last change of the dump, if it can be opened.
    pub(crate) fn written(&self, process: &ProcessView) -> Option<SystemTime> {
        let file = process.open_mapped(&self.mapping).ok()?;
        file.metadata().ok()??.modified().ok()
    }

    /// Opens the dump: the file that is mapped, whatever became of its name.
    ///
    /// # Errors
    ///
    /// [`SymbolError`] when it can't be opened, or is another file by now.
    pub fn open(&self, process: &ProcessView) -> Result<DumpFile, SymbolError> {
        let file = process.open_mapped(&self.mapping)?;
        Ok(DumpFile::new(file, &display(self.path())))
    }
}

/// The dumps that `process` has marked, as of its last refresh, in ascending order of
/// their mappings' addresses, each once.
#[must_use]
pub fn dump_markers(process: &ProcessView) -> Vec<DumpMarker> {
    let mut markers: Vec<DumpMarker> = Vec::new();
    for mapping in process.mappings().iter().filter(|entry| entry.executable) {
        let Some(pid) = mapping.path().and_then(dump_pid) else {
            continue;
        };
        let same = |known: &DumpMarker| {
            (known.mapping.device, known.mapping.inode) == (mapping.device, mapping.inode)
                && known.mapping.name == mapping.name
        };
        if !markers.iter().any(same) {
            let mapping = mapping.clone();
            markers.push(DumpMarker { mapping, pid });
        }
    }
    markers
}

/// Process id in a dump's path: `…/jit-NUMBER.dump`.
#[must_use]
pub fn dump_pid(path: &[u8]) -> Option<u32> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let number = name.strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
    if !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Folder of a process's perf map: [`PERF_MAP_FOLDER`], for .NET the value of
/// `DOTNET_PerfMapJitDumpPath` (or its older name) or `TMPDIR`. `environment` is read from the process
/// if missing; without any, as of an exited process, the variables count as unset.
#[must_use]
pub fn perf_map_folder(
    kind: VmKind,
    process: &ProcessView,
    environment: Option<Environment>,
) -> Vec<u8> {
    if kind != VmKind::DotNet {
        return PERF_MAP_FOLDER.to_vec();
    }
    let environment = environment.or_else(|| process.environment().ok());
    let told = folder_told(&environment.unwrap_or_default(), &FOLDERS_OF_DOTNET);
    told.unwrap_or(PERF_MAP_FOLDER.to_vec())
}

/// Variables that name the folder of .NET's files.
const FOLDERS_OF_DOTNET: [&[u8]; 3] = [
    b"DOTNET_PerfMapJitDumpPath",
    b"COMPlus_PerfMapJitDumpPath",
    b"TMPDIR",
];

/// A process's folder of temporary files.
pub(crate) fn temporary_folder(process: &ProcessView) -> Vec<u8> {
    let environment = process.environment().unwrap_or_default();
    folder_told(&environment, &[b"TMPDIR"]).unwrap_or(b"/tmp".to_vec())
}

/// The folder that the first set variable names.
fn folder_told(environment: &Environment, names: &[&[u8]]) -> Option<Vec<u8>> {
    let told = |name: &&[u8]| environment.iter().find(|(other, _)| other == name);
    let (_, folder) = names.iter().find_map(told)?;
    // The base of a relative path is unknown.
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    folder.starts_with(b"/").then(|| folder.to_vec())
}

/// Path of a perf map of `process` in its own namespaces: `FOLDER/perf-PID.map`.
#[must_use]
pub fn perf_map_path(folder: &[u8], process: &ProcessView) -> Vec<u8> {
    let mut path = folder.to_vec();
    let name = format!("/perf-{}.map", process.inner_pid());
    path.extend_from_slice(name.as_bytes());
    path
}

/// A perf map and its folder.
#[derive(Debug)]
pub struct FoundMap {
    /// The map.
    pub map: PerfMapFile,
    /// Its folder, open: readable also after the process's exit.
    pub folder: Root,
    /// Its name there, after a `/`.
    pub name: Vec<u8>,
}

/// Opens the perf map of `process`, which runs a VM of kind `kind`, in `folder` (usually
/// [`PERF_MAP_FOLDER`]); `None` without such a file. Anybody can put a file there: the map must be a
/// regular file, belong to the target's user or to root, and be written after the target's
/// start.
///
/// For an exited process, this is the file with the map's name in vmscope's own file system, if
/// vmscope's user owns the file and created it after the process's start. CPython appends to an
/// existing file; a file older than the process is not used then, since nothing marks the begin of
/// the process's own part.
///
/// # Errors
///
/// [`FileError`].
pub fn open_perf_map(
    process: &ProcessView,
    folder: &[u8],
    kind: VmKind,
) -> Result<Option<FoundMap>, FileError> {
    let raw_path = perf_map_path(folder, process);
    let path = display(&raw_path);
    let failed = |source: io::Error| {
        let path = path.clone();
        match source.kind() {
            io::ErrorKind::InvalidInput => FileError::NotAFile { path },
            _ => FileError::Open { path, source },
        }
    };
    let found = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
    let is_over = !process.is_alive();
    // What it is called elsewhere is another process's here.
    if is_over && (process.inner_pid() != process.pid() || process.started().is_none()) {
        return Ok(None);
    }
    let root = if is_over { own_root() } else { process.root() };
    let root = match root.and_then(|root| root.folder(folder)) {
        Err(error) if !found(&error) => return Ok(None),
        root => root.map_err(failed)?,
    };
    let name = perf_map_path(b"", process);
    let file = match root.open_no_link(&name) {
        Err(error) if !found(&error) => return Ok(None),
        file => Arc::new(file.map_err(failed)?),
    };
    let user = match process.user() {
        None if is_over => nix::unistd::geteuid().as_raw(),
        None => return Err(FileError::NoOwner { path }),
        Some(user) => user,
    };
    let owner = Owner {
        user,
        started: process.started().and_then(wall_time),
        must_be_new: is_over || kind == VmKind::CPython,
    };
    check(&file, &path, &owner)?;
    Ok(Some(FoundMap {
        map: PerfMapFile::new(file, &path),
        folder: root,
        name,
    }))
}

/// Evidence that a perf map belongs to its process.
struct Owner {
    user: u32,
    /// When the process was started; without it nothing is stale.
    started: Option<SystemTime>,
    /// Files older than the process are stale, too.
    must_be_new: bool,
}

fn check(file: &ModuleFile, path: &str, owner: &Owner) -> Result<(), FileError> {
    let metadata = file.metadata().map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let Some(metadata) = metadata else {
        return Ok(());
    };
    let (uid, user) = (metadata.uid(), owner.user);
    if uid != user && uid != 0 {
        return Err(FileError::NotTheTargets {
            path: path.to_owned(),
            owner: uid,
            user,
        });
    }
    let Some(started) = owner.started else {
        return Ok(());
    };
    let before = |time: io::Result<SystemTime>| {
        let before = started.duration_since(time.ok()?).ok()?;
        (before > CLOCK_SLACK).then_some(before.as_secs())
    };
    if let Some(seconds) = before(metadata.modified()) {
        return Err(FileError::Stale {
            path: path.to_owned(),
            seconds,
        });
    }
    // Not every file system tells when a file was made.
    match before(metadata.created()) {
        Some(seconds) if owner.must_be_new => Err(FileError::Older {
            path: path.to_owned(),
            seconds,
        }),
        _ => Ok(()),
    }
}

fn display(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests;
