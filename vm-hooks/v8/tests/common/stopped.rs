//! A Node.js whose program reached its end and waits.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use vmscope_process::ProcessView;
use vmscope_records::Pid;

use super::nodes::Node;

/// The line that programs print at their end.
const END: &[u8] = b"END\n";

/// A Node.js that waits; it ends with this value.
#[derive(Debug)]
pub struct Stopped {
    child: Child,
    folder: TempDir,
    /// Its output.
    pub output: String,
}

impl Stopped {
    /// Runs a program of `tests/programs` up to its end.
    pub fn run(node: &Node, options: &[&str], program: &str) -> Self {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let folder = TempDir::new().expect("a folder");
        // Node.js makes pipes non-blocking: V8's output into a full pipe is lost.
        let file = folder.path().join("output");
        let stdout = File::create(&file).expect("a file");
        let mut child = Command::new(&node.program)
            .args(options)
            .arg(programs.join(program))
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(stdout)
            .spawn()
            .expect("node");
        let mut output = Vec::new();
        let is_end = |line: &[u8]| line.ends_with(END);
        while !output.split_inclusive(|byte| *byte == b'\n').any(is_end) {
            let end = child.try_wait().expect("a child");
            assert!(end.is_none(), "{node:?} ended early: {end:?}");
            std::thread::sleep(Duration::from_millis(5));
            output = std::fs::read(&file).expect("output");
        }
        Stopped {
            child,
            folder,
            output: String::from_utf8_lossy(&output).into_owned(),
        }
    }

    /// The process.
    pub fn view(&self) -> ProcessView {
        ProcessView::open(Pid(self.child.id())).expect("a process")
    }

    /// The dump for `perf`, which V8 completes at its end.
    pub fn dump(mut self) -> Vec<u8> {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("an end");
        assert!(status.success(), "{status}");
        let file = format!("jit-{}.dump", self.child.id());
        std::fs::read(self.folder.path().join(file)).expect("a dump")
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
