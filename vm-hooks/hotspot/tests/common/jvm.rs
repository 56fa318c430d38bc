//! JVMs that run the programs of `tests/programs`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::java::{classes, listed};
use super::jdks::Jdk;
use super::{attach, await_that};

/// The program waits for each compilation, so compiled code does not depend on the machine's speed.
pub const WAITS_FOR_COMPILERS: &str = "-Xbatch";

/// A JVM after its `ready` line; killed on drop.
#[derive(Debug)]
pub struct Jvm {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

/// `java FLAGS programs.CLASS ARGUMENTS`; `None`, said, where the programs can't be compiled.
pub fn java(jdk: &Jdk, flags: &[&str], class: &str, arguments: &[&str]) -> Option<Command> {
    let classes: PathBuf = classes()?;
    let mut command = Command::new(jdk.java());
    command.args(flags).arg("-cp").arg(classes);
    command.arg(format!("programs.{class}")).args(arguments);
    undisturbed(&mut command);
    Some(command)
}

/// Removes JVM options inherited from the environment.
fn undisturbed(command: &mut Command) {
    command
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS");
}

impl Jvm {
    /// Starts a program and waits for its `ready` line. With `--wait`, all work is finished then;
    /// the JVM may still compile ([`Jvm::rests`]).
    pub fn ready(jdk: &Jdk, flags: &[&str], class: &str, arguments: &[&str]) -> Option<Self> {
        Some(Jvm::of(java(jdk, flags, class, arguments)?))
    }

    /// Starts `tests/listings/Listed.java` and waits for its `ready` line.
    pub fn listed(jdk: &Jdk, flags: &[&str]) -> Option<Self> {
        let mut command = Command::new(jdk.java());
        command.args(flags).arg("-cp").arg(listed()?).arg("Listed");
        undisturbed(&mut command);
        Some(Jvm::of(command))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("java starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut jvm = Jvm { child, stdout };
        jvm.becomes_ready();
        jvm
    }

    fn becomes_ready(&mut self) {
        let mut line = String::new();
        while !line.starts_with("ready ") {
            line.clear();
            let bytes = self.stdout.read_line(&mut line).expect("its output");
            assert!(bytes > 0, "it ended and was never ready");
        }
    }

    /// Repeats the work of a program with `--wait`.
    pub fn works_again(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("piped");
        stdin.write_all(b"\n").expect("it reads");
        self.becomes_ready();
    }

    /// Waits for an empty compile queue, as reported by the JVM.
    pub fn rests(&self) {
        await_that("nothing is compiled any more", || {
            attach::compiles_nothing(self.pid()).then_some(())
        });
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends its wait, and returns what it says after `ready`.
    pub fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("UTF-8");
        let status = self.child.wait().expect("our child");
        assert!(status.success(), "{status}: {text}");
        text
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
