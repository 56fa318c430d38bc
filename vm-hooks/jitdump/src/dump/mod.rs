//! The jitdump format (`tools/perf/Documentation/jitdump-specification.txt` of Linux): VMs describe
//! generated code to `perf`.
//!
//! [`Decoder`] decodes growing dumps without I/O: callers pass a window of the file, starting at
//! the decoder's offset; the decoder skips machine code unread. False sizes never block decoding: a
//! lost record boundary gives a permanent [`DumpError`]; other flaws are counted ([`DumpFlaw`]).
//!
//! Reasons against the crate `linux-perf-data` (module `jitdump`, version 0.12):
//!
//! - It subtracts the record header from the claimed size unchecked. Sizes below 16 panic in debug
//!   builds; release builds request 16 EiB and report "not yet" forever.
//! - It buffers claimed sizes up to 4 GiB in memory.
//! - It returns load records only with all code in memory, or skips code and name together.
//! - It pulls in many crates for `perf.data`.
//!
//! A guard around the crate would parse all headers, almost the entire format.

mod debug;
mod decode;
mod fault;
mod fields;
mod header;
mod names;
#[cfg(test)]
pub(crate) mod tests;

use vmscope_records::Avma;

pub use decode::{Decoder, Step};
pub use fault::{
    DumpError, DumpFlaw, MAX_HEADER_BYTES, MAX_KIND, MAX_LINES, MAX_LOAD_BYTES, MAX_MISFITS,
    MAX_NAME_BYTES, MAX_RECORD_BYTES, MAX_SLACK_BYTES, RecordFault,
};
pub use header::Header;

/// Decoded record. Times use the dump's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Code was loaded.
    Load(Load),
    /// Code was moved.
    Move(Move),
    /// The VM closed the dump. A second engine in the same process may still add records.
    Close,
}

/// Newly loaded code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Time on the dump's clock.
    pub time: u64,
    /// First address.
    pub address: Avma,
    /// Size in bytes: not 0; code ends inside the address space.
    pub size: u64,
    /// Code number, unique per dump.
    pub index: u64,
    /// Name from the VM, converted to valid UTF-8; at most [`MAX_NAME_BYTES`]. Contains arbitrary
    /// characters from VM or program.
    pub name: String,
    /// Source positions, ascending by address, from the preceding debug-info record; possibly
    /// empty.
    ///
    /// Addresses come unchecked from the VM, and can lie outside the code. V8 shifts addresses by
    /// 64 bytes (an ELF header) for `perf inject`; Erlang's addresses begin before the function.
    pub lines: Vec<LineStart>,
}

/// Source position of code from an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStart {
    /// First address.
    pub address: Avma,
    /// Line, 1-based; 0 if unknown.
    pub line: u32,
    /// Discriminator; V8 and others store the column.
    pub column: u32,
    /// Source file; empty if unknown.
    pub file: std::sync::Arc<str>,
}

/// Moved code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Time on the dump's clock.
    pub time: u64,
    /// Old address.
    pub from: Avma,
    /// New address.
    pub to: Avma,
    /// Size in bytes: not 0; old and new code end inside the address space.
    pub size: u64,
    /// Code number from the load record.
    pub index: u64,
}
