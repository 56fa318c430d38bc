//! Removal of files that VMs write at vmscope's request.
//!
//! A requested dump is removed once opened; doubtful files stay. A file is removed only
//!
//! - if vmscope requested it (`attribution`),
//! - by its own folder entry, if that is the opened file (device and inode): mapped by a process of
//!   this recording, or named as its VM names such files,
//! - if it belongs to that process's user and was created (if known) and written since that
//!   process's start.
//!
//! A journal in the user's state folder lets the next run remove a killed run's files, except those
//! of processes started in the last tenths of a second, perf maps outside `/tmp`, and processes in
//! other pid namespaces.

mod journal;

pub use journal::{Journal, state_folder};

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use nix::unistd::geteuid;
use vmscope_process::{ModuleFile, ProcessView, Root, own_root, wall_time};

use crate::attribution::Attribution;

/// Remembered files: more than any run leaves.
const MAX_FILES: usize = 1 << 16;

/// Names read per folder.
const MAX_NAMES: usize = 1 << 16;

/// Largest difference in seconds between file and system clocks.
const SLACK_SECONDS: i64 = 5;

/// A file to remove.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeftFile {
    /// Path in its process's file system, which may differ from ours.
    pub path: Vec<u8>,
    /// [`ModuleFile::identity`].
    pub identity: (u64, u64),
}

/// Files to remove in this run.
#[derive(Debug, Default)]
pub struct Cleanup {
    journal: Option<Journal>,
    left: Mutex<HashSet<LeftFile>>,
}

impl Cleanup {
    /// Uses `journal`, if available.
    #[must_use]
    pub fn new(journal: Option<Journal>) -> Self {
        Cleanup {
            journal,
            left: Mutex::default(),
        }
    }

    /// A process of the run began that may leave files named after its id in `folder`.
    pub(crate) fn launched(&self, inner_pid: u32, folder: &[u8]) {
        if let Some(journal) = &self.journal {
            journal.process(inner_pid, folder);
        }
    }

    /// Notes a recognised process of this run.
    pub(crate) fn note_process(&self, process: &ProcessView, attribution: Attribution) {
        let pid = process.pid();
        let Some(journal) = &self.journal else {
            return;
        };
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        match cwd {
            Ok(cwd) if attribution.files && attribution.logs && cwd.is_absolute() => {
                if process.inner_pid() == pid {
                    journal.process(pid.0, cwd.as_os_str().as_bytes());
                }
            }
            _ => journal.not_ours(pid.0),
        }
    }

    /// Removes an open dump of `process` by its path.
    pub(crate) fn remove_dump(&self, process: &ProcessView, path: &[u8], file: &ModuleFile) {
        let (Some(mark), Ok(identity)) = (Mark::of(process), file.identity()) else {
            return;
        };
        if !mark.is_on(file) {
            return;
        }
        let root = process.root().or_else(|_| own_root());
        // Retried at the end.
        if !root.is_ok_and(|root| matches!(root.remove(path, identity), Ok(true))) {
            self.remember(path, identity);
        }
    }

    /// Schedules a perf map of `process` for removal after its reading; `false` for foreign files.
    pub(crate) fn remove_map_later(
        &self,
        process: &ProcessView,
        path: &[u8],
        file: &ModuleFile,
    ) -> bool {
        let is_ours = Mark::of(process).is_some_and(|mark| mark.is_on(file));
        if is_ours && let Ok(identity) = file.identity() {
            self.remember(path, identity);
        }
        is_ours
    }

    /// Removes `name` in `folder`; a failure is retried at the end.
    pub(crate) fn remove_map(&self, folder: &Root, name: &[u8], file: &ModuleFile) {
        if let Ok(identity) = file.identity()
            && matches!(folder.remove(name, identity), Ok(true))
        {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            left.retain(|piece| piece.identity != identity);
        }
    }

    /// Removes V8's logs in `folder`, beside the dump of `process`.
    pub(crate) fn remove_logs(process: &ProcessView, folder: &[u8]) {
        let root = process.root().or_else(|_| own_root());
        if let (Some(mark), Ok(root)) = (Mark::of(process), root) {
            remove_v8_logs(&root, folder, process.inner_pid().0, mark);
        }
    }

    fn remember(&self, path: &[u8], identity: (u64, u64)) {
        let piece = LeftFile {
            path: path.to_vec(),
            identity,
        };
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() < MAX_FILES && left.insert(piece.clone()) {
            drop(left);
            if let Some(journal) = &self.journal {
                journal.file(&piece);
            }
        }
    }

    /// Removes remaining files and the journal, at the recording's end.
    pub fn finish(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(root) = own_root() {
            // A failed removal is not noted for the next run, which could not remove it either.
            left.retain(|piece| root.remove(&piece.path, piece.identity).is_err());
        }
        if let Some(journal) = &self.journal {
            journal.end();
        }
    }
}

/// Removes V8's log files (up to version 13 at least) of process `inner_pid` in `folder`, one per
/// isolate: `isolate-0xADDRESS-PID-v8.log`. Only regular files with V8's log header and `mark`.
fn remove_v8_logs(root: &Root, folder: &[u8], inner_pid: u32, mark: Mark) {
    let Ok(names) = root.names_in(folder, MAX_NAMES) else {
        return;
    };
    for name in names {
        if !is_v8_log(&name, inner_pid) {
            continue;
        }
        let path = [folder.strip_suffix(b"/").unwrap_or(folder), b"/", &name].concat();
        let Ok(file) = root.open_no_link(&path) else {
            continue;
        };
        if mark.is_on(&file)
            && begins_as_v8_log(&file)
            && let Ok(identity) = file.identity()
        {
            // V8 may have removed it.
            let _ = root.remove(&path, identity);
        }
    }
}

/// Properties by which a file belongs to a process.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Its user.
    owner: u32,
    /// Start of the process, seconds since 1970: its files are not older.
    since: i64,
}

impl Mark {
    /// Properties of the files of `process`. A process that ended too early to be examined must have
    /// run as our own user; otherwise its files stay.
    fn of(process: &ProcessView) -> Option<Self> {
        let owner = match process.user() {
            Some(user) => user,
            None if !process.is_live() => geteuid().as_raw(),
            None => return None,
        };
        let began = wall_time(process.started()?)?;
        let began = began.duration_since(UNIX_EPOCH).ok()?.as_secs();
        let since = i64::try_from(began).ok()?.saturating_sub(SLACK_SECONDS);
        Some(Mark { owner, since })
    }

    fn is_on(self, file: &ModuleFile) -> bool {
        let Ok(Some(metadata)) = file.metadata() else {
            return false;
        };
        let made = metadata.created().ok().map(|made| {
            let made = made.duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(made.as_secs()).unwrap_or(i64::MAX)
        });
        metadata.uid() == self.owner
            && metadata.mtime() >= self.since
            && made.is_none_or(|made| made >= self.since)
    }
}

fn begins_as_v8_log(file: &ModuleFile) -> bool {
    use vmscope_process::ReadAt as _;
    const HEAD: &[u8] = b"v8-version,";
    // A new log is empty until V8 flushes it.
    file.is_empty() || file.read_at(0, HEAD.len()).is_ok_and(|head| head == HEAD)
}

fn is_v8_log(name: &[u8], inner_pid: u32) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let Some(rest) = name.strip_prefix("isolate-0x") else {
        return false;
    };
    let Some((address, rest)) = rest.split_once('-') else {
        return false;
    };
    let hex = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex && rest.strip_suffix("-v8.log") == Some(inner_pid.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_logs_of_that_process_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        put("isolate-0x2cb38c90-42-v8.log", "v8-version,11,3\nnew,x");
        put("isolate-0x1-42-v8.log", "");
        put("isolate-0x2cb38c90-421-v8.log", "v8-version,11,3");
        put("isolate-0xnothex-42-v8.log", "v8-version,11,3");
        put("isolate-0x3-42-v8.log", "somebody's diary");
        std::os::unix::fs::symlink("jit-42.dump", dir.path().join("isolate-0x4-42-v8.log"))
            .unwrap();
        put("jit-42.dump", "v8-version,");
        let root = Root::at(dir.path()).unwrap();
        let me = nix::unistd::getuid().as_raw();
        let remove = |owner, since| remove_v8_logs(&root, b"/", 42, Mark { owner, since });
        remove(me + 1, 0);
        remove(me, i64::MAX);
        assert!(dir.path().join("isolate-0x1-42-v8.log").exists());
        remove(me, 0);
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "isolate-0x2cb38c90-421-v8.log",
                "isolate-0x3-42-v8.log",
                "isolate-0x4-42-v8.log",
                "isolate-0xnothex-42-v8.log",
                "jit-42.dump"
            ]
        );
    }
}
