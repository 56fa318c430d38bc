//! The head of a dump.

use vmscope_records::Arch;

use super::fault::{DumpError, MAX_HEADER_BYTES};
use super::fields::Fields;

/// Header size of version 1; extra header bytes are skipped.
pub(super) const HEADER_BYTES: usize = 40;
/// "JiTD", as a number in the dump's byte order.
const MAGIC: u32 = 0x4a69_5444;
/// `JITDUMP_FLAGS_ARCH_TIMESTAMP`.
const ARCH_TIMESTAMP: u64 = 1;

/// Header of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Machine of the code. CPython 3.13 writes 0 (`EM_NONE`): see [`Header::may_be_for`].
    pub arch: Arch,
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// Start of the dump. V8 and CPython write microseconds since 1970; PHP and Erlang use the
    /// dump's clock.
    pub timestamp: u64,
    /// Record clock: true for the CPU's clock (`JITDUMP_FLAGS_ARCH_TIMESTAMP`), false for
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub arch_timestamp: bool,
    /// Whether numbers are big-endian.
    pub big_endian: bool,
}

impl Header {
    /// Whether the code's machine is `arch` or unknown.
    #[must_use]
    pub fn may_be_for(&self, arch: Arch) -> bool {
        self.arch == arch || self.arch.elf_machine() == 0
    }

    /// Whether `pid` matches the process of the header. Writers unaware of their pid write 0.
    pub(super) fn is_process(&self, pid: u32) -> bool {
        pid == self.pid || pid == 0 || self.pid == 0
    }

    /// Returns the header and its size in the file.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<(Self, u32), DumpError> {
        let found = [bytes[0], bytes[1], bytes[2], bytes[3]];
        let not_a_dump = DumpError::NotADump { found };
        let big_endian = found == MAGIC.to_be_bytes();
        if !big_endian && found != MAGIC.to_le_bytes() {
            return Err(not_a_dump);
        }
        Self::fields(bytes, big_endian).unwrap_or(Err(not_a_dump))
    }

    fn fields(bytes: &[u8], big_endian: bool) -> Option<Result<(Self, u32), DumpError>> {
        let mut fields = Fields::new(bytes, big_endian);
        let _magic = fields.u32()?;
        let version = fields.u32()?;
        let size = fields.u32()?;
        let machine = fields.u32()?;
        let _padding = fields.u32()?;
        let pid = fields.u32()?;
        let timestamp = fields.u64()?;
        let flags = fields.u64()?;
        if version != 1 {
            return Some(Err(DumpError::Version { version }));
        }
        if (size as usize) < HEADER_BYTES || size > MAX_HEADER_BYTES {
            return Some(Err(DumpError::HeaderSize { size }));
        }
        let Ok(elf_machine) = u16::try_from(machine) else {
            return Some(Err(DumpError::Machine { machine }));
        };
        if flags & !ARCH_TIMESTAMP != 0 {
            return Some(Err(DumpError::Flags { flags }));
        }
        let header = Self {
            arch: Arch::from_elf_machine(elf_machine),
            pid,
            timestamp,
            arch_timestamp: flags & ARCH_TIMESTAMP != 0,
            big_endian,
        };
        Some(Ok((header, size)))
    }
}
