//! Core files written by the kernel.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::resource::{Resource, getrlimit};

use super::skipped;

/// Folder for the core file of one process.
#[derive(Debug)]
pub struct CoreFolder(tempfile::TempDir);

impl CoreFolder {
    /// A new folder; `None`, told loudly, where the kernel writes no core files into a process's
    /// folder.
    pub fn new() -> Option<Self> {
        let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").expect("readable");
        let (_, limit) = getrlimit(Resource::RLIMIT_CORE).expect("a limit");
        if pattern.starts_with(['|', '/', '@']) || limit == 0 {
            skipped(&format!(
                "core files: the kernel hands them to `{}`, {limit} bytes at most",
                pattern.trim_end()
            ));
            return None;
        }
        Some(CoreFolder(tempfile::tempdir().expect("a folder")))
    }

    /// Starts a program that may leave a core file.
    pub fn spawn(&self, program: &Command) -> Child {
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -c \"$(ulimit -H -c)\" && exec \"$0\" \"$@\""])
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.spawn().expect("a shell")
    }

    /// The core file.
    pub fn file(&self) -> PathBuf {
        let files = std::fs::read_dir(&self.0).expect("our folder");
        let names = files.map(|file| file.expect("a file").path());
        let mut cores = names.filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("core")
        });
        cores.next().expect("a core file")
    }
}
