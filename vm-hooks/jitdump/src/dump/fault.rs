//! What can be wrong with a dump: what ends its reading, and what is counted.

/// Why a dump is read no further. It stays so: what follows can't be told apart from
/// garbage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// It does not begin as a dump does.
    #[error(
        "it is no jitdump: it begins with {found:02x?}, not with \"JiTD\" in either byte order"
    )]
    NotADump {
        /// Its first bytes.
        found: [u8; 4],
    },
    /// It is of another version of the format.
    #[error("it is of version {version} of the jitdump format; version 1 is the one that is known")]
    Version {
        /// The version it says it is of.
        version: u32,
    },
    /// Its header can't be as long as it says.
    #[error("its header says it is {size} bytes long; 40 to {MAX_HEADER_BYTES} are believed")]
    HeaderSize {
        /// The size it says.
        size: u32,
    },
    /// The machine is no `e_machine` of ELF.
    #[error("its header names machine {machine:#x}, which no ELF file can be for")]
    Machine {
        /// The number.
        machine: u32,
    },
    /// It has flags that are not known; what its records mean may hang on them.
    #[error("its header has the flags {flags:#x}; only 1 (the CPU's clock) is known")]
    Flags {
        /// All of them.
        flags: u64,
    },
    /// A record can't be what it says, so where the next one begins is not known.
    #[error(
        "its record at byte {at} (kind {kind}, {size} bytes) can't be right: {why}; where the next \
         one begins is not known, and what follows is not read{}",
        Suspect(*suspect)
    )]
    Record {
        /// Where the record begins, in bytes from the file's start.
        at: u64,
        /// Its kind, as it says.
        kind: u32,
        /// Its size, as it says.
        size: u32,
        /// What is wrong with it.
        why: RecordFault,
        /// Where the last record before it begins whose contents did not fit its size:
        /// that size may be the one that lies.
        suspect: Option<u64>,
    },
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// It is smaller than what every record of its kind begins with.
    #[error("at least {least} bytes are needed")]
    TooSmall {
        /// How many are needed.
        least: u32,
    },
    /// It is larger than is believed, or than what its contents need.
    #[error("at most {most} bytes are believed")]
    TooLarge {
        /// How many are believed.
        most: u32,
    },
    /// A kind far above those that exist.
    #[error("there is no such kind")]
    NoSuchKind,
    /// It is one of many in a row whose contents do not fit their sizes.
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

/// What is wrong in a dump and does not keep the rest from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum DumpFlaw {
    /// A record of a kind that is not known; skipped.
    #[error("records of a kind that is not known")]
    UnknownKind,
    /// A record whose contents need more bytes than it has; skipped.
    #[error("records whose contents do not fit their size")]
    Misfit,
    /// A load whose name does not end; skipped.
    #[error("code whose name does not end")]
    EndlessName,
    /// A load or a move of no bytes, or beyond the end of the address space; skipped.
    #[error("code of no bytes, or beyond the end of the address space")]
    NoRange,
    /// A name longer than [`MAX_NAME_BYTES`]; the rest of it is cut off.
    #[error("names that were cut off")]
    CutName,
    /// Debug information that can't be read; skipped.
    #[error("debug information that can't be read")]
    BadDebugInfo,
    /// Debug entries of one function beyond [`MAX_LINES`]; dropped.
    #[error("source positions beyond {MAX_LINES} of a function")]
    TooManyLines,
    /// Debug entries whose file name is not told, or was overwritten in the VM
    /// (see `names.rs`) and can't be restored; kept, without the file.
    #[error("source positions whose file is not told")]
    NoFile,
    /// Debug information without code that it is of; dropped.
    #[error("debug information of code that was not told of")]
    Unclaimed,
    /// The end is no whole record: counted as one, however long.
    #[error("a last record that is not whole")]
    Torn,
    /// A load or a move that another process wrote into this dump: one that was forked
    /// off and goes on writing. Skipped, since that code is not in this process.
    #[error("code of another process, which was forked off and writes into the same dump")]
    OtherProcess,
}

/// A header longer than this is not believed. All that is known of is 40 bytes.
pub const MAX_HEADER_BYTES: u32 = 4096;
/// The largest record of code that is believed.
pub const MAX_LOAD_BYTES: u32 = 256 << 20;
/// The largest record of any other kind that is believed.
pub const MAX_RECORD_BYTES: u32 = 16 << 20;
/// How many bytes more than its contents need a record may have. Padding to eight
/// bytes is usual.
pub const MAX_SLACK_BYTES: u32 = 16 << 10;
/// Names are cut off after this many bytes.
pub const MAX_NAME_BYTES: usize = 4096;
/// Source positions kept of one function.
pub const MAX_LINES: usize = 1 << 16;
/// Kinds from this one on are garbage, not kinds of a later version.
pub const MAX_KIND: u32 = 1 << 10;
/// So many records in a row whose contents do not fit are no records.
pub const MAX_MISFITS: u32 = 16;
