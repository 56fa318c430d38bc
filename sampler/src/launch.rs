//! Launching a command for sampling from its first instruction: it is held between fork and exec
//! until the engine has opened its events.
//!
//! ```text
//! vmscope            helper thread          child
//!   pipes  ────────▶   Command::spawn ───▶    fork
//!   reads pid_in ◀──────────────────────────  writes its pid
//!   opens events (enable on exec)             reads release, waits
//!   writes release ────────────────────────▶  exec
//!   joins  ◀────────   Ok(Child) or errno ◀─  (std's own pipe tells)
//! ```
//!
//! std's spawn returns after the exec only, hence the helper thread.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;

use vmscope_records::Pid;

use crate::sys;

/// Errors of starting a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program or its interpreter is missing (a shell exits with 127) or not executable (126);
    /// see `source`.
    #[error("cannot run `{program}`")]
    Exec {
        /// The program.
        program: String,
        /// The kernel's error, with errno.
        #[source]
        source: io::Error,
    },
    /// Preparing the command failed.
    #[error("cannot prepare to run `{program}`: {operation} failed")]
    Prepare {
        /// The program.
        program: String,
        /// The call.
        operation: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

/// A child process held before its exec. Dropping it ends the child without running the command.
#[derive(Debug)]
pub struct HeldCommand {
    program: String,
    pid: Pid,
    release: Option<File>,
    helper: Option<JoinHandle<io::Result<Child>>>,
}

impl HeldCommand {
    /// Forks a child for `command`, and holds it.
    ///
    /// # Errors
    /// [`LaunchError::Prepare`]. Errors of the exec itself come from [`Self::release`].
    pub fn start(mut command: Command) -> Result<Self, LaunchError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let prepare = |operation| {
            let program = program.clone();
            move |source| LaunchError::Prepare {
                program,
                operation,
                source,
            }
        };
        let (pid_in, pid_out) = sys::pipe().map_err(prepare("pipe2"))?;
        let (hold, release) = sys::pipe().map_err(prepare("pipe2"))?;
        let parents_ends = (pid_in.as_raw_fd(), release.as_raw_fd());
        sys::hold_before_exec(&mut command, pid_out, hold, parents_ends);
        let helper = std::thread::Builder::new()
            .name("launch".into())
            .spawn(move || command.spawn())
            .map_err(prepare("starting a thread"))?;
        let mut held = Self {
            program: program.clone(),
            pid: Pid(0),
            release: Some(release.into()),
            helper: Some(helper),
        };
        match read_pid(pid_in) {
            Ok(pid) => {
                held.pid = pid;
                Ok(held)
            }
            Err(no_pid) => {
                // The fork failed; spawn returns the cause.
                let source = match held.join() {
                    Some(Err(error)) => error,
                    _ => no_pid,
                };
                Err(prepare("fork")(source))
            }
        }
    }

    /// The child's pid, kept by the command.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the child exec, and waits for the exec.
    ///
    /// # Errors
    /// [`LaunchError::Exec`] with the errno; the child is gone.
    pub fn release(mut self) -> Result<RunningCommand, LaunchError> {
        let exec_error = |program: &str, source| LaunchError::Exec {
            program: program.to_owned(),
            source,
        };
        if let Some(mut release) = self.release.take() {
            // Spawn reports a child killed meanwhile.
            let _ = release.write_all(b"x");
        }
        match self.join() {
            Some(Ok(child)) => Ok(RunningCommand { child }),
            Some(Err(source)) => Err(exec_error(&self.program, source)),
            None => Err(exec_error(
                &self.program,
                io::Error::other("the thread that starts it failed: please report this"),
            )),
        }
    }

    fn join(&mut self) -> Option<io::Result<Child>> {
        self.helper.take()?.join().ok()
    }
}

impl Drop for HeldCommand {
    fn drop(&mut self) {
        // Closing this pipe ends the child before its exec; std's spawn reaps it, and the helper
        // ends.
        self.release = None;
        if let Some(Ok(mut child)) = self.join() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn read_pid(pid_in: OwnedFd) -> io::Result<Pid> {
    let mut bytes = [0u8; 4];
    File::from(pid_in).read_exact(&mut bytes)?;
    Ok(Pid(u32::from_ne_bytes(bytes)))
}

/// A launched command. Dropping it leaves it running.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
}

impl RunningCommand {
    #[must_use]
    /// The process id.
    pub fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// The exit status, once exited. Until then (or [`Self::wait`]) an exited process stays a
    /// zombie, and the engine reads its CPU time.
    ///
    /// # Errors
    /// Errors of `waitpid(2)`.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    ///
    /// # Errors
    /// Errors of `waitpid(2)`.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Kills it (SIGKILL).
    ///
    /// # Errors
    /// Errors of `kill(2)`.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // Reaps an exited command.
        let _ = self.child.try_wait();
    }
}

#[cfg(test)]
#[expect(clippy::panic, reason = "tests fail by it")]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_held_command_runs_only_when_it_is_released() {
        let mut command = Command::new("echo");
        command.arg("ran").stdout(Stdio::piped());
        let held = HeldCommand::start(command).expect("forks");
        let pid = held.pid();
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", pid.0)).expect("it lives");
        assert_ne!(comm.trim(), "echo", "not before its release");
        let mut running = held.release().expect("echo exists");
        assert_eq!(running.pid(), pid);
        let mut said = String::new();
        let mut out = running.child.stdout.take().expect("piped");
        out.read_to_string(&mut said).expect("readable");
        assert_eq!(said, "ran\n");
        assert!(running.wait().expect("waits").success());
    }

    #[test]
    fn a_command_that_cannot_run_says_so_with_its_errno() {
        for (program, errno) in [
            ("/nonexistent/program", libc::ENOENT),
            ("/proc/version", libc::EACCES),
        ] {
            let held = HeldCommand::start(Command::new(program)).expect("forks");
            match held.release() {
                Err(LaunchError::Exec { source, .. }) => {
                    assert_eq!(source.raw_os_error(), Some(errno), "{program}");
                }
                other => panic!("{program}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_dropped_command_is_gone_and_no_zombie() {
        let held = HeldCommand::start(Command::new("sleep")).expect("forks");
        let proc = format!("/proc/{}", held.pid().0);
        assert!(std::path::Path::new(&proc).exists());
        drop(held);
        assert!(!std::path::Path::new(&proc).exists());
    }

    #[test]
    fn the_command_has_default_signals() {
        let mut command = Command::new("grep");
        command
            .args(["-E", "Sig(Blk|Ign)", "/proc/self/status"])
            .stdout(Stdio::piped());
        let held = HeldCommand::start(command).expect("forks");
        let mut running = held.release().expect("grep exists");
        let mut said = String::new();
        let mut out = running.child.stdout.take().expect("piped");
        out.read_to_string(&mut said).expect("readable");
        running.wait().expect("waits");
        for line in said.lines() {
            assert!(line.ends_with("0000000000000000"), "{line}");
        }
    }
}
