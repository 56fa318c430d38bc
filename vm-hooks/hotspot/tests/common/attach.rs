//! The JVM's attach protocol: loads an agent into a running JVM, and asks it what it compiles.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::await_that;

/// Loads an agent into a started JVM of this user, outside containers.
///
/// # Panics
/// When the JVM refuses, or the agent fails.
pub fn load(pid: u32, library: &Path, options: &str) {
    let library = library.to_str().expect("UTF-8");
    let answer = asked(pid, ["load", library, "true", options]);
    // "0", of later releases and of the agent: "return code: 0".
    let code = answer.lines().next();
    assert_eq!(code, Some("0"), "{answer}");
    let agents = answer.lines().nth(1).unwrap_or("0");
    assert!(agents.ends_with('0'), "{answer}");
}

/// Whether the compile queue is empty.
///
/// # Panics
/// When the JVM does not say.
pub fn compiles_nothing(pid: u32) -> bool {
    let answer = asked(pid, ["jcmd", "Compiler.queue", "", ""]);
    let mut lines = answer.lines();
    assert_eq!(lines.next(), Some("0"), "{answer}");
    // Headings end with a colon; behind each come its compilations, or this word.
    lines.all(|line| line.is_empty() || line.trim_end().ends_with(':') || line == "Empty")
}

/// Answer to a command with arguments.
fn asked(pid: u32, words: [&str; 4]) -> String {
    // "1", the command, three arguments: each ends with a zero byte.
    let request = format!("1\0{}\0", words.join("\0"));
    let mut socket = UnixStream::connect(listening(pid)).expect("the JVM's socket");
    socket
        .write_all(request.as_bytes())
        .expect("a short request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("its answer");
    answer
}

/// The JVM's attach socket, requested by a file and a signal.
fn listening(pid: u32) -> PathBuf {
    let socket = std::env::temp_dir().join(format!(".java_pid{pid}"));
    if socket.exists() {
        return socket;
    }
    let trigger = PathBuf::from(format!("/proc/{pid}/cwd/.attach_pid{pid}"));
    std::fs::write(&trigger, "").expect("a file in the JVM's working directory");
    let target = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    kill(target, Signal::SIGQUIT).expect("our child");
    await_that("the JVM listens", || socket.exists().then_some(()));
    let _ = std::fs::remove_file(trigger);
    socket
}
