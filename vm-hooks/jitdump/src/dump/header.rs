//! The head of a dump.

use vmscope_records::Arch;

use super::fault::{DumpError, MAX_HEADER_BYTES};
use super::fields::Fields;

/// The size of the head in version 1; there may be more, which is skipped.
pub(super) const HEADER_BYTES: usize = 40;
/// "JiTD", as a number in the dump's byte order.
const MAGIC: u32 = 0x4a69_5444;
/// `JITDUMP_FLAGS_ARCH_TIMESTAMP`.
const ARCH_TIMESTAMP: u64 = 1;

/// What the head of a dump says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The machine that its code is for. CPython 3.13 does not tell and writes 0
    /// (`EM_NONE`): see [`Header::may_be_for`].
    pub arch: Arch,
    /// The process, in its own pid namespace.
    pub pid: u32,
    /// When the dump was begun, as the VM writes it: V8 and CPython write microseconds
    /// since 1970 here, PHP and Erlang the dump's clock.
    pub timestamp: u64,
    /// Whether the clock of the records is the CPU's (`JITDUMP_FLAGS_ARCH_TIMESTAMP`),
    /// not `CLOCK_MONOTONIC` in nanoseconds.
    pub arch_timestamp: bool,
    /// Whether its numbers are written in big-endian order.
    pub big_endian: bool,
}

impl Header {
    /// Whether the code may be for `arch`: it is, or the dump does not say.
    #[must_use]
    pub fn may_be_for(&self, arch: Arch) -> bool {
        self.arch == arch || self.arch.elf_machine() == 0
    }

    /// Whether a record of process `pid` is of the process that began the dump. Who
    /// does not tell writes 0.
    pub(super) fn is_process(&self, pid: u32) -> bool {
        pid == self.pid || pid == 0 || self.pid == 0
    }

    /// The head, and its size in the file, from its first bytes.
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
