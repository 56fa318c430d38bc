//! Memory of a live process, through `process_vm_readv`.

use std::io::IoSliceMut;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use vmscope_records::{Avma, Pid};

use crate::attach::living;
use crate::parallel::both;
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

/// Likewise after an unreadable place; each complete call then doubles the number.
const RANGES_AFTER_ERROR: usize = 8;

/// Maximum number of bytes between two places that one range covers. A range costs as much as copying
/// some hundred bytes.
const MAX_GAP: usize = 512;

/// Maximum number of bytes in one system call with several ranges, gaps included.
const MAX_BYTES: usize = 1 << 20;

/// Number of places that two threads read: some milliseconds of work.
const MANY_PLACES: usize = 1 << 11;

/// A place to be read.
struct Wanted<'b> {
    at: Avma,
    is_read: &'b mut bool,
    into: &'b mut [u8],
}

/// Ranges that cover `length` bytes at each of the first places (ascending). One system call reads all
/// these ranges, `most` of them at most. Ranges cover no page without a place.
fn ranges(places: &[Wanted<'_>], length: usize, most: usize) -> Vec<RemoteIoVec> {
    let mut ranges: Vec<RemoteIoVec> = Vec::new();
    let mut bytes = 0_usize;
    for place in places {
        let base = usize::try_from(place.at.0).unwrap_or(usize::MAX);
        let within = |last: &&mut RemoteIoVec| {
            base.saturating_sub(last.base) <= last.len.saturating_add(MAX_GAP)
        };
        let is_full = ranges.len() >= most;
        if let Some(last) = ranges.last_mut().filter(within) {
            let len = base.saturating_sub(last.base).saturating_add(length);
            let more = len.saturating_sub(last.len);
            (last.len, bytes) = (last.len + more, bytes.saturating_add(more));
        } else if is_full {
            break;
        } else {
            bytes = bytes.saturating_add(length);
            ranges.push(RemoteIoVec { base, len: length });
        }
        if bytes >= MAX_BYTES {
            break;
        }
    }
    ranges
}

/// Hands out the first bytes of `ranges` to the places in them. Returns the number of completely read
/// places.
fn hand_out(places: &mut [Wanted<'_>], ranges: &[RemoteIoVec], bytes: &[u8]) -> usize {
    let mut done = 0;
    let (mut ranges, mut start) = (ranges.iter().peekable(), 0);
    for place in places {
        let base = usize::try_from(place.at.0).unwrap_or(usize::MAX);
        let is_before = |range: &&RemoteIoVec| range.base.saturating_add(range.len) <= base;
        while let Some(range) = ranges.next_if(is_before) {
            start += range.len;
        }
        let within = ranges.peek().and_then(|range| base.checked_sub(range.base));
        let from = within.map(|within| start + within);
        let until = from.and_then(|from| from.checked_add(place.into.len()));
        let Some(part) = from
            .zip(until)
            .and_then(|(from, until)| bytes.get(from..until))
        else {
            break;
        };
        place.into.copy_from_slice(part);
        *place.is_read = true;
        done += 1;
    }
    done
}

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
        if addresses.len() < MANY_PLACES {
            return self.read_places(addresses, length, buffer);
        }
        let (here, there) = addresses.split_at(addresses.len() / 2);
        let (first, second) = both(
            || self.read_places(here, length, buffer),
            || {
                let mut bytes = Vec::new();
                let are_read = self.read_places(there, length, &mut bytes)?;
                Ok((are_read, bytes))
            },
        );
        let (mut are_read, (second, bytes)) = (first?, second?);
        are_read.extend(second);
        buffer.extend(bytes);
        Ok(are_read)
    }

    fn pointer_bytes(&self) -> usize {
        self.pointer_bytes
    }
}

impl LiveMemory {
    /// [`Memory::read_each`] in this thread.
    fn read_places(
        &self,
        addresses: &[Avma],
        length: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Vec<bool>, MemoryError> {
        buffer.clear();
        buffer.resize(addresses.len().saturating_mul(length), 0);
        let mut are_read = vec![false; addresses.len()];
        let places = addresses.iter().copied().zip(are_read.iter_mut());
        let parts = buffer.chunks_exact_mut(length.max(1));
        let mut wanted: Vec<Wanted<'_>> = places
            .zip(parts)
            .map(|((at, is_read), into)| Wanted { at, is_read, into })
            .collect();
        wanted.sort_by_key(|one| one.at);
        let (mut id, mut scratch) = (self.pid, Vec::new());
        let (mut left, mut most) = (wanted.as_mut_slice(), MAX_RANGES);
        while !left.is_empty() {
            let ranges = ranges(left, length, most);
            scratch.resize(ranges.iter().map(|range| range.len).sum(), 0);
            let got = self.read_ranges(&mut id, &ranges, &mut scratch)?;
            let got = scratch.get(..got).unwrap_or_default();
            let done = hand_out(left, &ranges, got);
            // The call ended at the first unreadable place. More may follow, and the kernel copies
            // all ranges of a call before it reads the first.
            let is_ended = got.len() < scratch.len();
            most = match is_ended {
                true => RANGES_AFTER_ERROR,
                false => most.saturating_mul(2).min(MAX_RANGES),
            };
            let ended = done + usize::from(is_ended);
            left = left.get_mut(ended.max(1)..).unwrap_or_default();
        }
        Ok(are_read)
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
    fn places_close_together_share_a_range() {
        let lengths = |addresses: &[u64]| -> Vec<usize> {
            let mut are_read = vec![false; addresses.len()];
            let mut bytes = vec![[0; 8]; addresses.len()];
            let places = addresses.iter().zip(are_read.iter_mut()).zip(&mut bytes);
            let places = places.map(|((at, is_read), into)| Wanted {
                at: Avma(*at),
                is_read,
                into,
            });
            let ranges = ranges(&places.collect::<Vec<_>>(), 8, MAX_RANGES);
            ranges.iter().map(|range| range.len).collect()
        };
        let gap = MAX_GAP as u64;
        assert_eq!(lengths(&[0x1000, 0x1000, 0x1004]), [12]);
        assert_eq!(lengths(&[0x1000, 0x1008 + gap]), [16 + MAX_GAP]);
        assert_eq!(lengths(&[0x1000, 0x1009 + gap]), [8, 8]);
        assert_eq!(lengths(&[0x1000, u64::MAX - 3, u64::MAX]).len(), 2);
        let far: Vec<u64> = (1..3000).map(|at| at << 12).collect();
        assert_eq!(lengths(&far).len(), MAX_RANGES);
        let close: Vec<u64> = (1..10_000).map(|at| at << 9).collect();
        assert!(lengths(&close).iter().sum::<usize>() < 2 * MAX_BYTES);
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
