//! The recorded command: found before any side effect, waited for or ended, its exit code passed
//! on.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use vmscope_sampler::{LaunchError, RunningCommand};

use super::options::RecordOptions;
use crate::print::say;

/// Maximum wait for a command's end after the request.
const GRACE: Duration = Duration::from_secs(3);

/// Path of a program, as exec finds it, before any side effect. Exec itself reports other obstacles,
/// such as a file that is no program.
pub(super) fn find_program(program: &OsStr) -> Result<PathBuf, LaunchError> {
    let is_path = program.as_bytes().contains(&b'/');
    let candidates: Vec<PathBuf> = if is_path {
        vec![PathBuf::from(program)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let folders = std::env::split_paths(&path);
        folders.map(|folder| folder.join(program)).collect()
    };
    let missing = match is_path {
        true => "no such file",
        false => "no program of this name in the folders of PATH",
    };
    let mut source = std::io::Error::new(std::io::ErrorKind::NotFound, missing);
    for candidate in candidates {
        let may_run = nix::unistd::access(&candidate, nix::unistd::AccessFlags::X_OK);
        match may_run.map_err(std::io::Error::from) {
            Ok(()) if !candidate.is_dir() => return Ok(candidate),
            Ok(()) => {
                let kind = std::io::ErrorKind::PermissionDenied;
                source = std::io::Error::new(kind, "a directory, not a program");
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => source = error,
        }
    }
    let program = program.to_string_lossy().into_owned();
    Err(LaunchError::Exec { program, source })
}

/// Exit code of a command that could not start, as in shells.
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

/// Waits for the command's end; after an end by the user or by --duration, ends the command first.
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
            say("the command still runs; waiting for its end");
        }
        return child
            .wait()
            .map(Some)
            .context("cannot wait for the command");
    }
    // A terminal has sent SIGINT to the command too.
    let pid = i32::try_from(child.pid().0).map(nix::unistd::Pid::from_raw);
    let mut signal = Some(nix::sys::signal::Signal::SIGTERM);
    let since = Instant::now();
    while since.elapsed() < GRACE {
        if child.try_wait()?.is_some() {
            // vmscope ended the command: its code says nothing.
            return Ok(None);
        }
        if let (Some(signal), Ok(pid)) = (signal.take(), pid) {
            // Already gone: the next round notices.
            let _ = nix::sys::signal::kill(pid, signal);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    say(&format!(
        "the command (pid {}) did not end; vmscope left it running",
        child.pid()
    ));
    Ok(None)
}

/// Exit code for a command's end: its own, or 128 + signal.
pub(super) fn exit_code(status: ExitStatus) -> Option<u8> {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))?;
    u8::try_from(code & 0xff).ok()
}
