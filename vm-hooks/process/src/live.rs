//! Memory of a live process, through `process_vm_readv`.

use std::io::IoSliceMut;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use vmscope_records::{Avma, Pid};

use crate::attach::living;
use crate::{Memory, MemoryError};

/// Memory of a live process. Reads neither stop nor change the process.
///
/// The kernel requires debugger permissions for every read (`PTRACE_MODE_ATTACH_REALCREDS`, see
/// `process_vm_readv(2)`): the same user and a dumpable process, or `CAP_SYS_PTRACE`; yama may
/// require more. Process ids are reused: long-term users check [`crate::ProcessView::is_alive`] now
/// and then.
#[derive(Clone, Copy, Debug)]
pub struct LiveMemory {
    pid: Pid,
    pointer_bytes: usize,
}

impl LiveMemory {
    /// Memory of process `pid`, with 64-bit pointers. Reads nothing yet.
    #[must_use]
    pub fn new(pid: Pid) -> Self {
        Self {
            pid,
            pointer_bytes: 8,
        }
    }

    /// Sets the pointer size in bytes (4 or 8).
    #[must_use]
    pub fn with_pointer_bytes(self, bytes: usize) -> Self {
        Self {
            pointer_bytes: bytes,
            ..self
        }
    }
}

/// Maximum number of ranges in one system call (`UIO_MAXIOV`).
const MAX_RANGES: usize = 1024;

impl LiveMemory {
    /// Fills `buffer` from the ranges, up to the first unreadable byte; `id` is the thread to ask,
    /// which changes when the main thread has exited. Returns the number of bytes.
    fn read_ranges(
        &self,
        id: &mut Pid,
        ranges: &[RemoteIoVec],
        buffer: &mut [u8],
    ) -> Result<usize, MemoryError> {
        let at = Avma(ranges.first().map_or(0, |range| range.base as u64));
        let wanted = buffer.len();
        let io = |source: Errno| MemoryError::Io {
            at,
            wanted,
            source: source.into(),
        };
        let gone = || MemoryError::Gone { pid: self.pid };
        loop {
            let raw = i32::try_from(id.get()).map_err(|_| gone())?;
            let pid = nix::unistd::Pid::from_raw(raw);
            match process_vm_readv(pid, &mut [IoSliceMut::new(buffer)], ranges) {
                Err(Errno::EFAULT) => return Ok(0),
                Ok(count) => return Ok(count),
                Err(Errno::EINTR) => {}
                Err(Errno::EPERM | Errno::EACCES) => {
                    return Err(MemoryError::Denied { pid: self.pid });
                }
                Err(Errno::ESRCH) => match living(self.pid) {
                    other if other != *id => *id = other,
                    _ => return Err(gone()),
                },
                Err(other) => return Err(io(other)),
            }
        }
    }
}

impl Memory for LiveMemory {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let mut id = self.pid;
        let mut got = 0;
        // A call may end early without a gap (after 2 GiB, for example); another call tells.
        while let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
            let Some(base) =
                at.0.checked_add(got as u64)
                    .and_then(|base| usize::try_from(base).ok())
            else {
                break;
            };
            let remote = [RemoteIoVec {
                base,
                len: rest.len(),
            }];
            match self.read_ranges(&mut id, &remote, rest)? {
                0 => break,
                count => got = got.saturating_add(count),
            }
        }
        Ok(got)
    }

    fn read_each(
        &self,
        addresses: &[Avma],
        length: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Vec<bool>, MemoryError> {
        buffer.clear();
        buffer.resize(addresses.len().saturating_mul(length), 0);
        let mut id = self.pid;
        let mut are_read = vec![false; addresses.len()];
        let mut from = 0;
        while length > 0 && from < addresses.len() {
            let ranges = addresses.iter().skip(from).take(MAX_RANGES);
            let ranges: Vec<RemoteIoVec> = ranges
                .map(|at| RemoteIoVec {
                    base: usize::try_from(at.0).unwrap_or(usize::MAX),
                    len: length,
                })
                .collect();
            let begin = from * length;
            let Some(into) = buffer.get_mut(begin..begin + ranges.len() * length) else {
                break;
            };
            // The call ends at the first unreadable range.
            let whole = self.read_ranges(&mut id, &ranges, into)? / length;
            let read = are_read.iter_mut().skip(from).take(whole);
            read.for_each(|is_read| *is_read = true);
            from += match whole < ranges.len() {
                true => whole + 1,
                false => whole,
            };
        }
        Ok(are_read)
    }

    fn pointer_bytes(&self) -> usize {
        self.pointer_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_very_process_and_stops_at_a_gap() {
        let memory = LiveMemory::new(Pid(std::process::id()));
        let here = b"seen from outside\0".to_vec();
        let at = Avma(here.as_ptr() as u64);
        assert_eq!(memory.read_c_string(at, 100).unwrap(), b"seen from outside");
        assert_eq!(memory.read_vec(at, 4, 4).unwrap(), b"seen");
        // vm.mmap_min_addr keeps the first page unmapped.
        assert!(matches!(
            memory.read_u64(Avma(8)),
            Err(MemoryError::Unmapped { got: 0, .. })
        ));
        assert!(matches!(
            memory.read_u64(Avma(u64::MAX - 100)),
            Err(MemoryError::Unmapped { got: 0, .. })
        ));
    }

    #[test]
    fn many_places_are_read_at_once_except_unreadable_ones() {
        let memory = LiveMemory::new(Pid(std::process::id()));
        let numbers: Vec<u64> = (0..3000).collect();
        let mut addresses: Vec<Avma> = numbers
            .iter()
            .map(|number| Avma(std::ptr::from_ref(number) as u64))
            .collect();
        for gap in [0, 1, 1500, 2999] {
            addresses[gap] = Avma(8);
        }
        let mut buffer = Vec::new();
        let are_read = memory.read_each(&addresses, 8, &mut buffer).unwrap();
        let (words, _) = buffer.as_chunks::<8>();
        for (number, (is_read, word)) in numbers.iter().zip(are_read.iter().zip(words)) {
            assert_eq!(*is_read, ![0, 1, 1500, 2999].contains(number), "{number}");
            assert!(!is_read || u64::from_le_bytes(*word) == *number);
        }
    }

    #[test]
    fn a_process_that_does_not_exist_is_gone() {
        let memory = LiveMemory::new(Pid(0x7fff_fff0));
        assert!(matches!(
            memory.read_u8(Avma(0x1000)),
            Err(MemoryError::Gone { .. })
        ));
        let memory = LiveMemory::new(Pid(u32::MAX));
        assert!(matches!(
            memory.read_u8(Avma(0x1000)),
            Err(MemoryError::Gone { .. })
        ));
    }
}
