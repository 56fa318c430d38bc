//! `tests/programs/GcPressure.java`, which obeys.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::java::classes;
use super::jdks::Jdk;

/// A running program; killed on drop.
pub struct Running {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts the program and waits for `ready`; `None` if the JVM lacks an option, or where the
    /// program can't be compiled.
    pub fn start(jdk: &Jdk, options: &[&str]) -> Option<Self> {
        let mut child = Command::new(jdk.java())
            .arg("-XX:+UnlockExperimentalVMOptions")
            .args(options)
            .arg("-cp")
            .arg(classes()?)
            .args(["GcPressure", "24"])
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
        let input = self.input.as_mut().expect("not ended");
        writeln!(input, "{line}").expect("it reads");
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
