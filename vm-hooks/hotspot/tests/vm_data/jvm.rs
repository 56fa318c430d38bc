//! Installed JVMs, and programs running on them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::common::jdks::jdks;

/// `java` commands, one per release.
pub fn all() -> Vec<(u32, PathBuf)> {
    let all = jdks().into_iter();
    all.map(|jdk| (jdk.release, jdk.java())).collect()
}

/// Compiles a program of `tests/programs` for JDK 11; `None` without a compiler.
pub fn compiled(program: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(program);
    let result = Command::new("javac")
        .args(["--release", "11", "-d"])
        .arg(folder.path())
        .arg(source)
        .status()
        .ok()?;
    assert!(result.success(), "{program} does not compile");
    Some(folder)
}

/// A running program; killed on drop.
pub struct Running {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts the program and waits for `ready`; `None` if the JVM lacks the option.
    pub fn start(
        java: &Path,
        options: &[String],
        classes: &Path,
        program: &[&str],
    ) -> Option<Self> {
        let mut child = Command::new(java)
            .args(options)
            .arg("-cp")
            .arg(classes)
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take()?);
        let mut running = Self {
            child,
            input,
            output,
        };
        running.wait_for("ready").then_some(running)
    }

    /// Gives it a line, and waits for the answer.
    pub fn ask(&mut self, line: &str, answer: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        assert!(self.wait_for(answer), "it ended instead of saying {answer}");
    }

    fn wait_for(&mut self, wanted: &str) -> bool {
        let mut line = String::new();
        while self.output.read_line(&mut line).is_ok_and(|got| got > 0) {
            if line.trim() == wanted {
                return true;
            }
            line.clear();
        }
        false
    }

    /// Closes the input and waits for the exit.
    pub fn end(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
