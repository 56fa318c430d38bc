//! Dump errors: fatal errors and counted flaws.

/// Permanent decoding error: garbage may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// Magic number missing.
    #[error(
        "it is no jitdump: it begins with {found:02x?}, not with \"JiTD\" in either byte order"
    )]
    NotADump {
        /// First four bytes.
        found: [u8; 4],
    },
    /// Unsupported format version.
    #[error("it is of version {version} of the jitdump format; version 1 is the one that is known")]
    Version {
        /// Claimed version.
        version: u32,
    },
    /// Header size out of range.
    #[error("its header says it is {size} bytes long; 40 to {MAX_HEADER_BYTES} are believed")]
    HeaderSize {
        /// Claimed size in bytes.
        size: u32,
    },
    /// Machine number exceeds ELF's `e_machine`.
    #[error("its header names machine {machine:#x}, which no ELF file can be for")]
    Machine {
        /// Machine number.
        machine: u32,
    },
    /// Unknown flags, possibly changing the meaning of records.
    #[error("its header has the flags {flags:#x}; only 1 (the CPU's clock) is known")]
    Flags {
        /// All flags.
        flags: u64,
    },
    /// Invalid record; start of the next record unknown.
    #[error(
        "its record at byte {at} (kind {kind}, {size} bytes) can't be right: {why}; where the next \
         one begins is not known, and what follows is not read{}",
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
    #[error("at least {least} bytes are needed")]
    TooSmall {
        /// Minimum size in bytes.
        least: u32,
    },
    /// Size above the limit, or far above the contents' size.
    #[error("at most {most} bytes are believed")]
    TooLarge {
        /// Maximum size in bytes.
        most: u32,
    },
    /// Kind far above all existing kinds.
    #[error("there is no such kind")]
    NoSuchKind,
    /// Too many consecutive records with misfit contents.
    #[error("its contents do not fit its size, nor did those of the {MAX_MISFITS} before it")]
    Misfits,
}

struct Suspect(Option<u64>);

impl std::fmt::Display for Suspect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(at) => write!(
                f,
                " (the size of the record at byte {at} may be the wrong one)"
            ),
            None => Ok(()),
        }
    }
}

/// Flaw in a dump; decoding continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum DumpFlaw {
    /// Record of unknown kind; skipped.
    #[error("records of a kind that is not known")]
    UnknownKind,
    /// Record contents larger than the record; skipped.
    #[error("records whose contents do not fit their size")]
    Misfit,
    /// Load record with unterminated name; skipped.
    #[error("code whose name does not end")]
    EndlessName,
    /// Empty load or move, or end outside the address space; skipped.
    #[error("code of no bytes, or beyond the end of the address space")]
    NoRange,
    /// Name longer than [`MAX_NAME_BYTES`]; truncated.
    #[error("names that were cut off")]
    CutName,
    /// Unreadable debug information; skipped.
    #[error("debug information that can't be read")]
    BadDebugInfo,
    /// Debug entries of one function beyond [`MAX_LINES`]; dropped.
    #[error("source positions beyond {MAX_LINES} of a function")]
    TooManyLines,
    /// Debug entries with missing or irreparably overwritten file name (see `names.rs`); kept,
    /// without file.
    #[error("source positions whose file is not told")]
    NoFile,
    /// Debug information without matching code; dropped.
    #[error("debug information of code that was not told of")]
    Unclaimed,
    /// Incomplete last record; counted once, at any length.
    #[error("a last record that is not whole")]
    Torn,
    /// Load or move from a forked process writing into the same dump; skipped as code of another
    /// process.
    #[error("code of another process, which was forked off and writes into the same dump")]
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
