//! A Node.js whose program reached its end and waits.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
        let mut child = Command::new(&node.program)
            .args(options)
            .arg(programs.join(program))
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node");
        let mut output = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().expect("stdout"));
        while !output.ends_with(END) {
            let got = lines.read_until(b'\n', &mut output).expect("output");
            assert!(got > 0, "{node:?} ended early");
        }
        // V8 prints on; a full pipe would stop it.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
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
