//! The command that is recorded: found before anything is touched, waited for or asked
//! to end, its exit code passed on.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use vmscope_sampler::{LaunchError, RunningCommand};

use super::follow::say;
use super::options::RecordOptions;

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// Polls for a program as exec will, to fail before anything is touched. What else may
/// keep it from running (it may be no program) shows itself in the exec.
pub(super) fn find_program(program: &OsStr) -> Result<(), LaunchError> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![PathBuf::from(program)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let folders = std::env::split_paths(&path);
        folders.map(|folder| folder.join(program)).collect()
    };
    let mut source = std::io::Error::from(std::io::ErrorKind::NotFound);
    for candidate in candidates {
        let may_run = nix::unistd::access(&candidate, nix::unistd::AccessFlags::X_OK);
        match may_run.map_err(std::io::Error::from) {
            Ok(()) if !candidate.is_dir() => return Ok(()),
            Ok(()) => source = std::io::ErrorKind::PermissionDenied.into(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => source = error,
        }
    }
    let program = program.to_string_lossy().into_owned();
    Err(LaunchError::Exec { program, source })
}

/// The exit code that a command's failure to start stands for, as shells have it.
#[must_use]
pub fn launch_code(error: &LaunchError) -> Option<u8> {
    match error {
        LaunchError::Exec { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Some(127)
        }
        LaunchError::Exec { .. } => Some(126),
        _ => None,
    }
}

/// Waits for the command's end; asks it to end first where the recording was ended by
/// the user or by --duration.
pub(super) fn end_command(
    child: &mut RunningCommand,
    asked: bool,
    options: &RecordOptions,
) -> Result<Option<ExitStatus>> {
    if !asked {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if !options.quiet {
            say("the command goes on; waiting for its end");
        }
        return child
            .wait()
            .map(Some)
            .context("cannot wait for the command");
    }
    // At a terminal it has had its own SIGINT.
    let pid = i32::try_from(child.pid().0).map(nix::unistd::Pid::from_raw);
    let mut signal = Some(nix::sys::signal::Signal::SIGTERM);
    let since = Instant::now();
    while since.elapsed() < GRACE {
        if child.try_wait()?.is_some() {
            // It ended because we asked: its code says nothing.
            return Ok(None);
        }
        if let (Some(signal), Ok(pid)) = (signal.take(), pid) {
            // Gone already: the next round sees it.
            let _ = nix::sys::signal::kill(pid, signal);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    say(&format!(
        "the command (pid {}) does not end and was left running",
        child.pid()
    ));
    Ok(None)
}

/// The code by which a command's end is passed on: its own, or 128 + its signal.
pub(super) fn exit_code(status: ExitStatus) -> Option<u8> {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))?;
    u8::try_from(code & 0xff).ok()
}
