//! Files that a VM leaves behind because vmscope asked it to write them.
//!
//! Where `record` has turned a dump on through the environment, the dump is not the
//! user's: it is removed as soon as it is open. Who removes somebody's files has to be
//! sure whose they are: a file is removed only by its own folder entry, if that is the
//! very file (device and inode) that a process of this recording wrote, under the name
//! that its VM gives such files.
//!
//! What a run could not remove itself, because it was killed, the next one removes, by a
//! journal in the user's own state folder.

mod journal;

pub use journal::{Journal, state_folder};

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

use vmscope_target::{ModuleFile, Root};

/// So many files are kept in mind: more than any run leaves.
const MAX_FILES: usize = 1 << 16;

/// More names of a folder are not looked at.
const MAX_NAMES: usize = 1 << 16;

/// A file that is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Piece {
    /// Its path in our own file system.
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

    /// Removes a file that is open, at once, by its path beneath `root`.
    pub(crate) fn remove_now(&self, root: &Root, path: &[u8], file: &ModuleFile) {
        let Ok(identity) = file.identity() else {
            return;
        };
        // What could not be removed now may be at the end.
        if !matches!(root.remove(path, identity), Ok(true)) {
            self.remember(path, identity);
        }
    }

    /// Removes a file at the end: it is still needed under its name.
    pub(crate) fn remove_later(&self, path: &[u8], file: &ModuleFile) {
        if let Ok(identity) = file.identity() {
            self.remember(path, identity);
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
        if let Ok(root) = vmscope_target::own_root() {
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
/// Only regular files of user `owner` that begin as such a log does, written since
/// `since` (seconds since 1970).
pub(crate) fn remove_v8_logs(root: &Root, folder: &[u8], inner_pid: u32, owner: u32, since: i64) {
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
        if is_ours(&file, owner, since)
            && begins_as_v8_log(&file)
            && let Ok(identity) = file.identity()
        {
            // It may be gone by itself.
            let _ = root.remove(&path, identity);
        }
    }
}

/// Whether a file is one of user `owner`'s, last written since `since`.
pub(crate) fn is_ours(file: &ModuleFile, owner: u32, since: i64) -> bool {
    let metadata = file.metadata().ok().flatten();
    metadata.is_some_and(|metadata| metadata.uid() == owner && metadata.mtime() >= since)
}

fn begins_as_v8_log(file: &ModuleFile) -> bool {
    use vmscope_target::ReadAt as _;
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
        remove_v8_logs(&root, b"/", 42, me + 1, 0);
        remove_v8_logs(&root, b"/", 42, me, i64::MAX);
        assert!(dir.path().join("isolate-0x1-42-v8.log").exists());
        remove_v8_logs(&root, b"/", 42, me, 0);
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
