//! Processes to be profiled.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};

use super::{await_that, programs};

/// Running program, after its ready message. Dropped, it is killed.
#[derive(Debug)]
pub struct Target {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Target {
    /// Starts a program that prints `ready PID` as its first line.
    pub fn ready(command: Command) -> Self {
        Self::start(command, Stdio::null())
    }

    /// Likewise, a program that takes commands from stdin, and ends with them.
    pub fn commanded(command: Command) -> Self {
        Self::start(command, Stdio::piped())
    }

    fn start(mut command: Command, stdin: Stdio) -> Self {
        command.stdin(stdin);
        let mut target = Self::silent(&mut command);
        let mut line = String::new();
        target.stdout.read_line(&mut line).expect("its first line");
        assert!(line.starts_with("ready"), "{command:?} said `{line}`");
        target
    }

    /// Starts a program that does not say when it is ready.
    pub fn silent(command: &mut Command) -> Self {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Target { child, stdout }
    }

    /// known_shares, going on until it is asked to end; `None` where it can't be built.
    pub fn known_shares(threads: u32) -> Option<Self> {
        Self::known_shares_with(&["--threads", &threads.to_string()])
    }

    /// The same with these arguments.
    pub fn known_shares_with(arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new(programs::build(programs::KNOWN_SHARES)?);
        command.arg("--forever").args(arguments);
        Some(Self::ready(command))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Passes commands, and returns the line of the answer.
    pub fn command(&mut self, commands: &str) -> String {
        let stdin = self.child.stdin.as_mut().expect("piped");
        stdin.write_all(commands.as_bytes()).expect("it listens");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("its answer");
        line
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_none()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("a pid");
        kill(nix::unistd::Pid::from_raw(pid), signal).expect("it is not reaped yet");
    }

    /// Stops all its threads, and waits until they have stopped.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        await_that("all threads have stopped", || {
            let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
            let mut threads = threads.expect("it is not reaped yet");
            let is_stopped = threads.all(|thread| {
                let stat = thread.expect("a thread").path().join("stat");
                let stat = std::fs::read(stat).expect("it has not ended");
                // The state follows the thread's name, which may hold parentheses.
                let state = stat.rsplit(|byte| *byte == b')').next();
                state.is_some_and(|state| state.starts_with(b" T "))
            });
            is_stopped.then_some(())
        });
    }

    /// Asks it to end, and returns what it printed after `ready`.
    pub fn end(mut self) -> String {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Waits for its end, and returns what it printed after `ready`. Ends its commands.
    pub fn wait(&mut self) -> String {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("UTF-8");
        self.child.wait().expect("our child");
        text
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
