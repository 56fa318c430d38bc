//! .NET's diagnostic port: a socket by which .NET 8 and later begin to write a jitdump while they run
//! (`documentation/design-docs/ipc-protocol.md` of dotnet/diagnostics).

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use vmscope_process::ProcessView;
use vmscope_records::Pid;

use crate::cleanup::Cleanup;
use crate::find::DumpMarker;

/// First bytes of a message.
const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
/// Magic, size of the message, set and number of the command, reserved.
const HEADER: usize = 20;
/// Commands about the process.
const PROCESS: u8 = 4;
/// `EnablePerfMap` and `DisablePerfMap`.
const ENABLE: u8 = 5;
const DISABLE: u8 = 6;
/// `EnablePerfMap`'s argument: a jitdump alone.
const JITDUMP: u32 = 2;
/// Set of answers, and the numbers of success and failure in it.
const ANSWER: u8 = 0xff;
const OK: u8 = 0;
const FAILED: u8 = 0xff;
/// `HRESULT`s of .NET before 8: unknown command.
const UNKNOWN_COMMAND: u32 = 0x8013_1385;

/// The VM writes the code that it has before it answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// More names than a folder of temporary files has.
const MAX_NAMES: usize = 1 << 16;

/// Why a VM was not asked, or did not agree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortError {
    #[error("it has no diagnostic port (DOTNET_EnableDiagnostics=0, or another TMPDIR)")]
    Missing,
    #[error("its diagnostic port does not answer")]
    Io(#[from] io::Error),
    #[error("it is older than .NET 8")]
    Old,
    #[error("its diagnostic port answers with error {0:#x}")]
    Refused(u32),
    #[error("its diagnostic port answers in an unknown form")]
    Garbled,
}

/// A VM that writes a jitdump because vmscope asked; dropping stops it.
#[derive(Debug)]
pub(crate) struct Reporting {
    process: Pid,
    folder: Vec<u8>,
    name: Vec<u8>,
    /// Marks of earlier dumps, which .NET leaves in its mappings.
    pub ended: Vec<DumpMarker>,
    /// Removes the file.
    pub cleanup: Cleanup,
}

impl Reporting {
    /// Asks the .NET `process` for a jitdump of the code that it has, and of new code from now on. `folder` is its folder
    /// of temporary files, `ended` the marks of dumps that it wrote before.
    pub fn begin(
        process: &ProcessView,
        folder: &[u8],
        ended: Vec<DumpMarker>,
    ) -> Result<Self, PortError> {
        let root = process.root()?;
        let start = format!("dotnet-diagnostic-{}-", process.inner_pid());
        let mut names = root.names_in(folder, MAX_NAMES)?.into_iter();
        let is_port =
            |name: &Vec<u8>| name.starts_with(start.as_bytes()) && name.ends_with(b"-socket");
        let reporting = Reporting {
            process: process.pid(),
            folder: folder.to_vec(),
            name: names.find(is_port).ok_or(PortError::Missing)?,
            ended,
            cleanup: Cleanup::new(None),
        };
        reporting.ask(ENABLE, &JITDUMP.to_le_bytes())?;
        Ok(reporting)
    }

    fn ask(&self, command: u8, argument: &[u8]) -> Result<(), PortError> {
        let root = vmscope_process::Root::of_process(self.process)?;
        let path = [&self.folder, &b"/"[..], &self.name].concat();
        let mut port: UnixStream = root.connect(&path, self.process)?;
        port.set_read_timeout(Some(PATIENCE))?;
        port.set_write_timeout(Some(PATIENCE))?;
        port.write_all(&message(command, argument))?;
        let mut header = [0; HEADER];
        port.read_exact(&mut header)?;
        let mut error = [0; 4];
        if header[17] == FAILED {
            port.read_exact(&mut error)?;
        }
        judge(&header, u32::from_le_bytes(error))
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        // An ended VM writes nothing.
        let _ = self.ask(DISABLE, &[]);
        self.cleanup.finish();
    }
}

fn message(command: u8, argument: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let size = u16::try_from(HEADER + argument.len()).unwrap_or(u16::MAX);
    bytes.extend(size.to_le_bytes());
    bytes.extend([PROCESS, command, 0, 0]);
    bytes.extend(argument);
    bytes
}

/// What an answer with this header and error code says.
fn judge(header: &[u8; HEADER], error: u32) -> Result<(), PortError> {
    let is_answer = header.starts_with(MAGIC) && header[16] == ANSWER;
    match (is_answer, header[17]) {
        (true, OK) => Ok(()),
        (true, FAILED) if error == UNKNOWN_COMMAND => Err(PortError::Old),
        (true, FAILED) => Err(PortError::Refused(error)),
        _ => Err(PortError::Garbled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_the_protocol_has_it() {
        let wanted = b"DOTNET_IPC_V1\0\x18\0\x04\x05\0\0\x02\0\0\0";
        assert_eq!(message(ENABLE, &JITDUMP.to_le_bytes()), wanted);
    }

    #[test]
    fn answers_are_told_apart() {
        let answer = |bytes: &[u8; HEADER], error| judge(bytes, error);
        assert!(answer(b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0", 0).is_ok());
        let failed = b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0";
        let old = answer(failed, UNKNOWN_COMMAND);
        assert!(matches!(old, Err(PortError::Old)));
        let other = answer(failed, 0x8000_4001);
        assert!(matches!(other, Err(PortError::Refused(0x8000_4001))));
        for garbled in [
            b"DOTNET_IPC_V1\0\x18\0\xff\x01\0\0",
            b"DOTNET_IPC_V1\0\x18\0\x04\0\0\0",
            b"HTTP/1.1 400 Bad Req",
        ] {
            assert!(matches!(answer(garbled, 0), Err(PortError::Garbled)));
        }
    }
}
