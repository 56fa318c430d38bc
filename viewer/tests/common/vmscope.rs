//! Runs the command as users do, and checks its output: every check that fails prints the command,
//! its status and all it said.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use vmscope_symbolizer::{Profile, Summary, Trace, profile_of};

use super::{PATIENCE, await_that, skipped};

/// A command that ended.
#[derive(Debug)]
pub struct Run {
    pub command: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    fn of(command: String, output: Output) -> Self {
        let run = Run {
            command,
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let calm = !run.stderr.contains("panicked");
        run.check(calm, "a panic")
    }

    /// Ends the test with all that is known unless `holds`.
    #[track_caller]
    pub fn check(self, holds: bool, what: &str) -> Self {
        assert!(
            holds,
            "{what}\n$ {}\n{}\n--- stdout\n{}\n--- stderr\n{}",
            self.command, self.status, self.stdout, self.stderr
        );
        self
    }

    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        let holds = self.status.code() == Some(code);
        self.check(holds, &format!("exit code {code} was expected"))
    }

    /// Something like `text` is on stderr.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        let holds = self.stderr.contains(text);
        self.check(holds, &format!("stderr should say `{text}`"))
    }

    /// `text` is on stdout, wherever its lines are broken.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        let words: Vec<&str> = self.stdout.split_whitespace().collect();
        let holds = words.join(" ").contains(text);
        self.check(holds, &format!("stdout should say `{text}`"))
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!(
                "{error}\n$ {}\n{}\n{}",
                self.command, self.stdout, self.stderr
            ),
        }
    }
}

/// The command, not started yet.
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmscope"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Run {
    let shown = format!("{command:?}");
    Run::of(shown, command.output().expect("it starts"))
}

/// Runs `vmscope` with these arguments to its end.
pub fn vmscope<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    run(command(arguments))
}

/// `vmscope report --full FILE` with these options.
pub fn report(file: &Path, options: &[&str]) -> Run {
    let mut command = command(["report", "--full"]);
    command.arg(file).args(options);
    run(command)
}

/// Whether programs can be sampled here; says so where they can't.
pub fn can_sample() -> bool {
    let works = vmscope(["doctor", "--json"]).status.success();
    if !works {
        skipped("perf events are not to be had here (`vmscope doctor` says why)");
    }
    works
}

/// Trace of a possibly growing recording.
pub fn trace_of(path: &Path) -> Option<Trace> {
    let file = std::fs::File::open(path).ok()?;
    let mut reader = vmscope_records::recording::Reader::open(BufReader::new(file)).ok()?;
    Trace::read(&mut reader).ok()
}

/// A complete recording's profile and counts, as in the report, by the recording's symbols alone.
pub fn profile(path: &Path) -> (Profile, Summary) {
    let trace = trace_of(path).expect("a recording");
    let profile = profile_of(trace, Vec::new(), false);
    let summary = Summary::with_errors(&profile, &vmscope_symbolizer::Filter::default());
    (profile, summary)
}

/// Polls the trace of a growing recording until `poll` finds something. Reads the recording again only after
/// a change, because reading takes CPU time from the target.
pub fn await_trace<T>(path: &Path, what: &str, mut poll: impl FnMut(Trace) -> Option<T>) -> T {
    let mut read = None;
    await_that(what, || {
        let file = path.metadata().ok()?;
        let now = Some((file.len(), file.modified().expect("a file's time")));
        if now == std::mem::replace(&mut read, now) {
            return None;
        }
        trace_of(path).and_then(&mut poll)
    })
}

/// Waits until a growing recording holds so many samples. Growth restarts the timeout: a program
/// that gets little of the machine's time has few samples in it.
pub fn await_samples(path: &Path, samples: usize) {
    let mut seen = 0;
    while seen < samples {
        let more = format!("{} has more than {seen} samples", path.display());
        seen = await_trace(path, &more, |trace| {
            Some(trace.samples.times.len()).filter(|now| *now > seen)
        });
    }
}

/// A `vmscope` at work. What it says on stderr comes line by line. Dropped, it is
/// killed.
#[derive(Debug)]
pub struct Working {
    command: String,
    child: Option<Child>,
    said: String,
    lines: Receiver<String>,
    stdout: Option<std::thread::JoinHandle<Vec<u8>>>,
}

impl Working {
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = format!("{command:?}");
        let mut child = command.spawn().expect("vmscope starts");
        let mut stdout = child.stdout.take().expect("piped");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            // Finished tests have dropped the receiver.
            stderr
                .lines()
                .map_while(Result::ok)
                .all(|line| tell.send(line).is_ok())
        });
        let stdout = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            bytes
        });
        Working {
            command: shown,
            child: Some(child),
            said: String::new(),
            lines,
            stdout: Some(stdout),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("a pid");
        kill(nix::unistd::Pid::from_raw(pid), signal).expect("it is not reaped yet");
    }

    /// The next line on stderr that contains `text`.
    pub fn await_line(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.said.push_str(&line);
                    self.said.push('\n');
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => panic!("no `{text}` from {}\n{}", self.command, self.said),
            }
        }
    }

    /// Waits for its end.
    pub fn end(mut self) -> Run {
        let mut child = self.child.take().expect("it runs");
        let status = child.wait().expect("it is waited for once");
        let stdout = self.stdout.take().expect("read once").join();
        let mut stderr = std::mem::take(&mut self.said);
        while let Ok(line) = self.lines.recv() {
            stderr.push_str(&line);
            stderr.push('\n');
        }
        let stdout = stdout.expect("the reading thread");
        Run::of(
            self.command.clone(),
            Output {
                status,
                stdout,
                stderr: stderr.into_bytes(),
            },
        )
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `vmscope attach` to a process, into `file`, for at least `samples` samples.
pub fn attached(pid: u32, file: &Path, samples: usize) -> Working {
    attached_by(&[], pid, file, samples)
}

/// The same with these options.
pub fn attached_by(options: &[&str], pid: u32, file: &Path, samples: usize) -> Working {
    let mut attach = command(["attach", "--quiet", &pid.to_string(), "--output"]);
    attach.arg(file).args(options);
    let working = Working::start(attach);
    await_samples(file, samples);
    working
}

/// Temporary folder of one test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().expect("a folder for temporary files"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// File names inside.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("our folder");
        let names = entries.map(|entry| entry.expect("its entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// `vmscope record` of a command, into `folder`.
pub fn record(folder: &Folder, options: &[&str], program: &[&str]) -> Run {
    let mut command = command(["record", "--full", "--output"]);
    command.arg(folder.file("out.vmscope")).args(options);
    run({
        command.arg("--").args(program);
        command
    })
}

#[track_caller]
pub fn nothing_is_left(folder: &Folder) {
    assert_eq!(folder.names(), [""; 0], "something was left behind");
}
