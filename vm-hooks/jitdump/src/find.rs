//! Finding the files that a VM writes: the dump by the mark it leaves in its own
//! mappings, the perf map by its name.

use std::io;

use nix::time::{ClockId, clock_gettime};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use vmscope_records::Pid;
use vmscope_target::{MapEntry, ModuleFile, ProcessFacts, ProcessView, SymbolError, examine};

use crate::follow::{DumpFile, FileError, PerfMapFile};

/// Where most VMs write perf maps, whatever `TMPDIR` says; .NET goes by
/// `DOTNET_PerfMapJitDumpPath` and `TMPDIR`.
pub const PERF_MAP_FOLDER: &[u8] = b"/tmp";

/// File times come from a clock that is up to a tick behind, and when a process was
/// started is known to a hundredth of a second.
const CLOCK_SLACK_SECONDS: f64 = 2.0;

/// A mapping by which a VM marks its dump: a page of it, executable, so that `perf`
/// sees it being mapped. Nothing is ever read or executed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpMarker {
    /// The mapping.
    pub mapping: MapEntry,
    /// The process that the file's name tells, in its own pid namespace. A process that
    /// forked leaves its mapping to its child: what the dump tells up to
    /// the fork holds for the child too, what it tells later does not.
    pub pid: u32,
}

impl DumpMarker {
    /// Whether the dump is `process`'s own, not one that it has from a fork.
    #[must_use]
    pub fn is_of(&self, process: &ProcessView) -> bool {
        process.inner_pid() == Pid(self.pid)
    }

    /// The path of the dump, as the target sees it.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.mapping.path().unwrap_or_default()
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

/// The process that a dump of this path is of: `…/jit-NUMBER.dump`.
#[must_use]
pub fn dump_pid(path: &[u8]) -> Option<u32> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let number = name.strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
    if !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Where `process` would write a perf map, as it sees it itself: `FOLDER/perf-PID.map`.
#[must_use]
pub fn perf_map_path(folder: &[u8], process: &ProcessView) -> Vec<u8> {
    let mut path = folder.to_vec();
    let name = format!("/perf-{}.map", process.inner_pid());
    path.extend_from_slice(name.as_bytes());
    path
}

/// Opens the perf map of `process` in `folder` (usually [`PERF_MAP_FOLDER`]); `None`
/// when there is none. Anybody can put a file there: it must be a regular file, belong
/// to the target's user or to root, and have been written since the target was
/// started.
///
/// # Errors
///
/// [`FileError`].
pub fn open_perf_map(
    process: &ProcessView,
    folder: &[u8],
) -> Result<Option<PerfMapFile>, FileError> {
    let raw_path = perf_map_path(folder, process);
    let path = display(&raw_path);
    let failed = |source: io::Error| {
        let path = path.clone();
        match source.kind() {
            io::ErrorKind::InvalidInput => FileError::NotAFile { path },
            _ => FileError::Open { path, source },
        }
    };
    let root = match process.root() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        root => root.map_err(failed)?,
    };
    let file = match root.open_no_link(&raw_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => Arc::new(file.map_err(failed)?),
    };
    let facts = examine(process.pid()).map_err(|source| FileError::NoOwner {
        path: path.clone(),
        source,
    })?;
    check(&file, &path, &facts)?;
    Ok(Some(PerfMapFile::new(file, &path)))
}

fn check(file: &ModuleFile, path: &str, facts: &ProcessFacts) -> Result<(), FileError> {
    let metadata = file.metadata().map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let Some(metadata) = metadata else {
        return Ok(());
    };
    let (owner, user) = (metadata.uid(), facts.user);
    if owner != user && owner != 0 {
        return Err(FileError::NotTheTargets {
            path: path.to_owned(),
            owner,
            user,
        });
    }
    // Without clocks nothing is stale.
    let Some(started) = started_at(facts.start_ticks) else {
        return Ok(());
    };
    let before = started - metadata.mtime() as f64;
    if before > CLOCK_SLACK_SECONDS {
        return Err(FileError::Stale {
            path: path.to_owned(),
            seconds: before as u64,
        });
    }
    Ok(())
}

/// When a process was started, in seconds since 1970, from the clock ticks since boot
/// that the kernel tells.
fn started_at(start_ticks: u64) -> Option<f64> {
    let seconds = |clock: ClockId| {
        let time = clock_gettime(clock).ok()?;
        Some(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
    };
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    let per_second = per_second.ok()?.filter(|ticks| *ticks > 0)?;
    let booted = seconds(ClockId::CLOCK_REALTIME)? - seconds(ClockId::CLOCK_BOOTTIME)?;
    Some(booted + start_ticks as f64 / per_second as f64)
}

fn display(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests;
