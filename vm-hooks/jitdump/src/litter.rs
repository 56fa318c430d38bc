//! Files that a VM leaves behind because vmscope asked it to write them.
//!
//! Where `record` has turned a dump on through the environment, the dump is not the
//! user's: it is removed as soon as it is open. Who removes somebody's files has to be
//! sure whose they are, and leaves in doubt. A file is removed
//!
//! - only if it is there because of what vmscope has set (`family::whose`),
//! - only by its own folder entry, if that is the very file (device and inode) that was
//!   opened: the one that a process of this recording had mapped, as a VM marks its dump,
//!   or that has the name that its VM gives such files,
//! - only if it belongs to the user as whom that process ran, and was made (where the file
//!   system tells) and written since that process was started.
//!
//! What a run could not remove itself, because it was killed, the next one removes, by a
//! journal in the user's own state folder. What the journal does not reach: processes that
//! began in the last tenths of a second before, perf maps in folders but `/tmp`, and
//! processes in pid namespaces of their own.

mod journal;

pub use journal::{Journal, state_folder};

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use nix::unistd::geteuid;
use vmscope_process::{ModuleFile, ProcessView, Root, own_root, wall_time};

use crate::family::Ours;

/// So many files are kept in mind: more than any run leaves.
const MAX_FILES: usize = 1 << 16;

/// More names of a folder are not looked at.
const MAX_NAMES: usize = 1 << 16;

/// Clocks of files and of the system may differ by so many seconds.
const SLACK_SECONDS: i64 = 5;

/// A file that is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Piece {
    /// Its path as its process sees it: in our own file system it is another file, or
    /// none, where the process has a file system of its own.
    pub path: Vec<u8>,
    /// [`ModuleFile::identity`].
    pub identity: (u64, u64),
}

/// What this run has to clean up.
#[derive(Debug, Default)]
pub struct Litter {
    journal: Option<Journal>,
    left: Mutex<HashSet<Piece>>,
}

impl Litter {
    /// For a run that keeps `journal`, if it can.
    #[must_use]
    pub fn new(journal: Option<Journal>) -> Self {
        Litter {
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

    /// A process of the run was recognised, whose files these are.
    pub(crate) fn is_seen(&self, process: &ProcessView, ours: Ours) {
        let pid = process.pid();
        let Some(journal) = &self.journal else {
            return;
        };
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        match cwd {
            Ok(cwd) if ours.files && ours.logs && cwd.is_absolute() => {
                if process.inner_pid() == pid {
                    journal.process(pid.0, cwd.as_os_str().as_bytes());
                }
            }
            _ => journal.not_ours(pid.0),
        }
    }

    /// Removes a dump of `process` that is open, at once, by its path.
    pub(crate) fn remove_dump(&self, process: &ProcessView, path: &[u8], file: &ModuleFile) {
        let (Some(mark), Ok(identity)) = (Mark::of(process), file.identity()) else {
            return;
        };
        if !mark.is_on(file) {
            return;
        }
        let root = process.root().or_else(|_| own_root());
        // What could not be removed now may be at the end.
        if !root.is_ok_and(|root| matches!(root.remove(path, identity), Ok(true))) {
            self.remember(path, identity);
        }
    }

    /// Notes a perf map of `process` that is to be removed when it is read: it is still
    /// needed under its name. Whether it is.
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

    /// Removes it now: `name` in `folder`. If that fails it is tried again at the end.
    pub(crate) fn remove_map(&self, folder: &Root, name: &[u8], file: &ModuleFile) {
        if let Ok(identity) = file.identity()
            && matches!(folder.remove(name, identity), Ok(true))
        {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            left.retain(|piece| piece.identity != identity);
        }
    }

    /// Removes the logs that V8 has written into `folder` beside the dump of `process`.
    pub(crate) fn remove_logs(process: &ProcessView, folder: &[u8]) {
        let root = process.root().or_else(|_| own_root());
        if let (Some(mark), Ok(root)) = (Mark::of(process), root) {
            remove_v8_logs(&root, folder, process.inner_pid().0, mark);
        }
    }

    fn remember(&self, path: &[u8], identity: (u64, u64)) {
        let piece = Piece {
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

    /// The recording is over: removes what is left, and the journal with it.
    pub fn finish(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(root) = own_root() {
            // What can't be removed stays in the journal's place for nobody: the next
            // run could not remove it either.
            left.retain(|piece| root.remove(&piece.path, piece.identity).is_err());
        }
        if let Some(journal) = &self.journal {
            journal.end();
        }
    }
}

/// Removes the log files that V8 (up to version 13 at least) writes beside a dump: one for
/// each isolate, `isolate-0xADDRESS-PID-v8.log`, of process `inner_pid`, in `folder`.
/// Only regular files that begin as such a log does, and bear `mark`.
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
            // It may be gone by itself.
            let _ = root.remove(&path, identity);
        }
    }
}

/// By what a file is told to be a process's.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Its user.
    owner: u32,
    /// When the process began, seconds since 1970: it was made and last written since.
    since: i64,
}

impl Mark {
    /// That of files of `process`. One that was over before it could be looked at ran as
    /// our own user, or its files stay.
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
    // One that was just created is empty until V8 flushes it.
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
