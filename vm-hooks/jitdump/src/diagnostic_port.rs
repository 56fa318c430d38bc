//! .NET's diagnostic port: a socket by which .NET 8 and later begin to write a jitdump while they run
//! (`documentation/design-docs/ipc-protocol.md` of dotnet/diagnostics).

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use vmscope_process::{ProcessView, Root};
use vmscope_records::Pid;

use crate::cleanup::Cleanup;
use crate::find::{self, DumpMarker};

/// First bytes of a message.
const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
/// Magic, size of the message, set and number of the command, reserved.
const HEADER: usize = 20;
/// An answer has an error code behind the header.
const ANSWER_SIZE: usize = HEADER + 4;
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

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// More names than a folder of temporary files has.
const MAX_NAMES: usize = 1 << 16;

/// Failure of a request.
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
    port: Port,
    /// Marks of earlier dumps, which .NET leaves in its mappings.
    pub ended: Vec<DumpMarker>,
    /// Removes the file.
    pub cleanup: Cleanup,
}

impl Reporting {
    /// Asks the .NET `process`, which writes no dump, for a jitdump of its present and future code. `folder`: its folder
    /// of temporary files. `None`: the VM continues a removed dump, another vmscope's.
    pub fn begin(process: &ProcessView, folder: &[u8]) -> Result<Option<Self>, PortError> {
        let port = Port::of(process, folder)?;
        let ended = find::dump_markers(process);
        if let Err(error) = port.ask(ENABLE, &JITDUMP.to_le_bytes()) {
            // The VM may have begun all the same.
            let _ = port.ask(DISABLE, &[]);
            return Err(error);
        }
        // The VM marks a new dump before it answers.
        let _ = process.refresh();
        let is_new = |marker: &DumpMarker| marker.is_of(process) && !ended.contains(marker);
        let begins = find::dump_markers(process).iter().any(is_new);
        Ok(begins.then(|| Reporting {
            port,
            ended,
            cleanup: Cleanup::new(None),
        }))
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        // An ended VM writes nothing.
        let _ = self.port.ask(DISABLE, &[]);
        self.cleanup.finish();
    }
}

/// The socket of a process's diagnostic port.
#[derive(Debug)]
struct Port {
    process: Pid,
    path: Vec<u8>,
}

impl Port {
    fn of(process: &ProcessView, folder: &[u8]) -> Result<Self, PortError> {
        let start = format!("dotnet-diagnostic-{}-", process.inner_pid());
        let mut names = process.root()?.names_in(folder, MAX_NAMES)?.into_iter();
        let is_port =
            |name: &Vec<u8>| name.starts_with(start.as_bytes()) && name.ends_with(b"-socket");
        let name = names.find(is_port).ok_or(PortError::Missing)?;
        Ok(Port {
            process: process.pid(),
            path: [folder, b"/", &name].concat(),
        })
    }

    fn ask(&self, command: u8, argument: &[u8]) -> Result<(), PortError> {
        let root = Root::of_process(self.process)?;
        let mut port = root.connect(&self.path, self.process)?;
        port.set_write_timeout(Some(PATIENCE))?;
        port.write_all(&message(command, argument))?;
        judge(&answer(&mut port, Instant::now() + PATIENCE)?)
    }
}

/// Bytes received before the deadline; no more than an answer holds.
fn answer(port: &mut UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_SIZE {
        let left = deadline.saturating_duration_since(Instant::now());
        port.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut piece = [0; ANSWER_SIZE];
        let count = port.read(&mut piece[bytes.len()..])?;
        bytes.extend_from_slice(&piece[bytes.len()..][..count]);
        if count == 0 || left.is_zero() {
            break;
        }
    }
    Ok(bytes)
}

fn message(command: u8, argument: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let size = u16::try_from(HEADER + argument.len()).unwrap_or(u16::MAX);
    bytes.extend(size.to_le_bytes());
    bytes.extend([PROCESS, command, 0, 0]);
    bytes.extend(argument);
    bytes
}

/// What an answer says.
fn judge(answer: &[u8]) -> Result<(), PortError> {
    let rest = answer.strip_prefix(MAGIC).ok_or(PortError::Garbled)?;
    let &[_, _, ANSWER, outcome, _, _, a, b, c, d] = rest else {
        return Err(PortError::Garbled);
    };
    match (outcome, u32::from_le_bytes([a, b, c, d])) {
        (OK, _) => Ok(()),
        (FAILED, UNKNOWN_COMMAND) => Err(PortError::Old),
        (FAILED, error) => Err(PortError::Refused(error)),
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
        assert!(judge(b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0").is_ok());
        let old = judge(b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80");
        assert!(matches!(old, Err(PortError::Old)));
        let other = judge(b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x01\x40\0\x80");
        assert!(matches!(other, Err(PortError::Refused(0x8000_4001))));
        for garbled in [
            &b"DOTNET_IPC_V1\0\x18\0\xff\x01\0\0\0\0\0\0"[..],
            b"DOTNET_IPC_V1\0\x18\0\x04\0\0\0\0\0\0\0",
            b"DOTNET_IPC_V1\0\x18\0\xff\0",
            b"HTTP/1.1 400 Bad Request",
            b"",
        ] {
            assert!(matches!(judge(garbled), Err(PortError::Garbled)));
        }
    }

    #[test]
    fn a_process_with_another_port_or_none_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str().as_encoded_bytes();
        let own = ProcessView::open(Pid(std::process::id())).unwrap();
        let begin = || Reporting::begin(&own, path).unwrap_err();
        assert!(matches!(begin(), PortError::Missing));
        let port = folder
            .path()
            .join(format!("dotnet-diagnostic-{}-1-socket", own.pid()));
        std::fs::write(&port, "no socket").unwrap();
        assert!(matches!(begin(), PortError::Io(_)));
        std::fs::remove_file(&port).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&port).unwrap();
        // Each request is followed by another, which ends the reports.
        let served = std::thread::spawn(move || {
            let commands = listener
                .incoming()
                .take(4)
                .zip([&b"no answer"[..], b"", b"", b""]);
            let commands = commands.map(|(stream, text)| {
                let mut stream = stream.unwrap();
                let mut header = [0; HEADER];
                stream.read_exact(&mut header).unwrap();
                let mut argument = vec![0; usize::from(header[14]) - HEADER];
                stream.read_exact(&mut argument).unwrap();
                stream.write_all(text).unwrap();
                header[17]
            });
            commands.collect::<Vec<u8>>()
        });
        assert!(matches!(begin(), PortError::Garbled));
        assert!(matches!(begin(), PortError::Garbled));
        assert_eq!(served.join().unwrap(), [ENABLE, DISABLE, ENABLE, DISABLE]);
    }

    #[test]
    fn a_slow_or_silent_listener_is_left() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let soon = || Instant::now() + Duration::from_millis(20);
        let silent = answer(&mut ours, soon()).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        theirs.write_all(&[b'x'; 7]).unwrap();
        assert!(answer(&mut ours, soon()).is_err());
        theirs.write_all(&[b'y'; 100]).unwrap();
        assert_eq!(answer(&mut ours, soon()).unwrap(), [b'y'; ANSWER_SIZE]);
        drop(theirs);
        assert!(answer(&mut ours, soon()).unwrap().len() <= ANSWER_SIZE);
    }
}
