//! Dump errors: fatal errors and counted flaws.

/// Permanent decoding error: garbage may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// Magic number missing.
    #[error(
        "not a jitdump: the file begins with {found:02x?} instead of \"JiTD\" in either byte order"
    )]
    NotADump {
        /// First four bytes.
        found: [u8; 4],
    },
    /// Unsupported format version.
    #[error("jitdump format version {version} is not supported (1 is)")]
    Version {
        /// Claimed version.
        version: u32,
    },
    /// Header size out of range.
    #[error("the header has {size} bytes (40 to {MAX_HEADER_BYTES} are accepted)")]
    HeaderSize {
        /// Claimed size in bytes.
        size: u32,
    },
    /// Machine number exceeds ELF's `e_machine`.
    #[error("the header has an invalid ELF machine, {machine:#x}")]
    Machine {
        /// Machine number.
        machine: u32,
    },
    /// Unknown flags, possibly changing the meaning of records.
    #[error("the header has unknown flags, {flags:#x} (only 1, the CPU's clock, is known)")]
    Flags {
        /// All flags.
        flags: u64,
    },
    /// Invalid record; start of the next record unknown.
    #[error(
        "invalid record at byte {at} (kind {kind}, {size} bytes): {why}; the rest of the file is \
         not read{}",
        Suspect(*suspect)
    )]
    Record {
        /// Record start: byte offset in the file.
        at: u64,
        /// Claimed kind.
        kind: u32,
        /// Claimed size in bytes.
        size: u32,
        /// Cause.
        why: RecordFault,
        /// File offset of the last misfit record before; possibly its size is false.
        suspect: Option<u64>,
    },
}

/// Fault of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// Size below the minimum for the record's kind.
    #[error("at least {least} bytes expected")]
    TooSmall {
        /// Minimum size in bytes.
        least: u32,
    },
    /// Size above the limit, or far above the contents' size.
    #[error("at most {most} bytes expected")]
    TooLarge {
        /// Maximum size in bytes.
        most: u32,
    },
    /// Kind far above all existing kinds.
    #[error("unknown kind")]
    NoSuchKind,
    /// Too many consecutive records with misfit contents.
    #[error("this record and {MAX_MISFITS} records before it do not fit their stated sizes")]
    Misfits,
}

struct Suspect(Option<u64>);

impl std::fmt::Display for Suspect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(at) => write!(f, " (perhaps the size of the record at byte {at} is wrong)"),
            None => Ok(()),
        }
    }
}

/// Flaw in a dump; decoding continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum DumpFlaw {
    /// Record of unknown kind; skipped.
    #[error("records of unknown kinds")]
    UnknownKind,
    /// Record contents larger than the record; skipped.
    #[error("records whose contents do not fit their size")]
    Misfit,
    /// Load record with unterminated name; skipped.
    #[error("code with an unterminated name")]
    EndlessName,
    /// Empty load or move, or end outside the address space; skipped.
    #[error("code of 0 bytes, or beyond the end of the address space")]
    NoRange,
    /// Name longer than [`MAX_NAME_BYTES`]; truncated.
    #[error("names that are too long (cut off)")]
    CutName,
    /// Unreadable debug information; skipped.
    #[error("unreadable debug information")]
    BadDebugInfo,
    /// Debug entries of one function beyond [`MAX_LINES`]; dropped.
    #[error("more than {MAX_LINES} source positions in a function")]
    TooManyLines,
    /// Debug entries with missing or irreparably overwritten file name (see `names.rs`); kept,
    /// without file.
    #[error("source positions without a file")]
    NoFile,
    /// Debug information without matching code; dropped.
    #[error("debug information without its code")]
    Unclaimed,
    /// Incomplete last record; counted once, at any length.
    #[error("an incomplete last record")]
    Torn,
    /// Load or move from a forked process writing into the same dump; skipped as code of another
    /// process.
    #[error("code of a forked process that writes into the same jitdump")]
    OtherProcess,
}

/// Maximum header size in bytes. Known fields need 40 bytes.
pub const MAX_HEADER_BYTES: u32 = 4096;
/// Maximum size of a load record, in bytes.
pub const MAX_LOAD_BYTES: u32 = 256 << 20;
/// Maximum size of other records, in bytes.
pub const MAX_RECORD_BYTES: u32 = 16 << 20;
/// Maximum excess of a record over its contents, in bytes. Usual: padding to eight bytes.
pub const MAX_SLACK_BYTES: u32 = 16 << 10;
/// Maximum name length in bytes; longer names are truncated.
pub const MAX_NAME_BYTES: usize = 4096;
/// Maximum number of source positions per function.
pub const MAX_LINES: usize = 1 << 16;
/// First invalid kind; later versions can use lower kinds.
pub const MAX_KIND: u32 = 1 << 10;
/// Maximum number of consecutive misfit records.
pub const MAX_MISFITS: u32 = 16;
