//! JVMs that run the programs of `tests/programs`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::java::{classes, listed};
use super::jdks::Jdk;
use super::{attach, await_that};

/// With this flag a program stands still while what it runs is compiled: what is compiled when it
/// is ready depends on what it did, and not on how fast the machine is.
pub const WAITS_FOR_COMPILERS: &str = "-Xbatch";

/// A JVM that has said that it is ready. Dropped, it is killed.
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

/// What others may have set for their JVMs is not meant for these.
fn undisturbed(command: &mut Command) {
    command
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS");
}

impl Jvm {
    /// A JVM that runs a program until that says `ready`: with `--wait` among the arguments all
    /// work is done, and nothing happens in it any more but what the JVM does by itself, which
    /// may be to compile: see [`Jvm::rests`].
    pub fn ready(jdk: &Jdk, flags: &[&str], class: &str, arguments: &[&str]) -> Option<Self> {
        Some(Jvm::of(java(jdk, flags, class, arguments)?))
    }

    /// A JVM that runs `tests/listings/Listed.java` and has said that it is ready: it waits
    /// then.
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

    /// Has a program with `--wait` do its work once more.
    pub fn works_again(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("piped");
        stdin.write_all(b"\n").expect("it reads");
        self.becomes_ready();
    }

    /// Waits until it has compiled all that it meant to: by its own word, as no time is long
    /// enough for every machine.
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
