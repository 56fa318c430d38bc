//! The jitdump format (`tools/perf/Documentation/jitdump-specification.txt` of Linux):
//! what a VM writes for `perf` about the code it generates.
//!
//! [`Decoder`] decodes it while it is being written. It does no I/O: it says which bytes it
//! needs, is given a window of the file that begins there, and goes past the code itself
//! without asking for it. It never waits for what can't come: a size that lies is an
//! error that stays ([`DumpError`]) where the next record can't be found, and counted
//! ([`DumpFlaw`]) where it can.
//!
//! There is a crate that reads this format, `linux-perf-data` (its `jitdump` module; 0.12
//! was read). It is not used: it subtracts a record's header from the size that the record
//! claims without a check, so that a size below 16 panics in a debug build and in a release
//! build asks for 16 EiB and reports "not yet" for ever; a size of 4 GiB is
//! waited for in memory; a load record is only handed out with all of its code in memory,
//! or skipped with its name; and it takes a whole tree of crates for `perf.data`. A guard
//! around it would have to parse the headers itself, and with them almost all of it.

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

/// What a dump tells; times are on its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Code was put there.
    Load(Load),
    /// Code was moved.
    Move(Move),
    /// The dump is complete, says the VM. More may follow all the same (a second engine
    /// in the same process).
    Close,
}

/// Code was put there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// When.
    pub time: u64,
    /// Its first address.
    pub address: Avma,
    /// Its size in bytes; not 0, and its end is in the address space.
    pub size: u64,
    /// Its number, unique in the dump.
    pub index: u64,
    /// Its name as the VM writes it, made valid UTF-8; at most [`MAX_NAME_BYTES`] of
    /// it, and whatever characters the VM (or the program it runs) put there.
    pub name: String,
    /// Its source positions, ascending by address, as the debug-info record before
    /// it told them; empty where there are none.
    ///
    /// The addresses are the VM's word and need not lie in the code. V8's lie 64 bytes
    /// (an ELF header) after where they should, for the sake of `perf inject`; Erlang's
    /// begin before the function.
    pub lines: Vec<LineStart>,
}

/// From an address on, the source position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStart {
    /// The first address.
    pub address: Avma,
    /// The line, 1-based; 0 where it is not known.
    pub line: u32,
    /// The discriminator: V8 and others write the column there.
    pub column: u32,
    /// The source file; empty where it is not known.
    pub file: std::sync::Arc<str>,
}

/// Code was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub time: u64,
    /// Where it was.
    pub from: Avma,
    /// Where it is.
    pub to: Avma,
    /// Its size in bytes; not 0, and both ends are in the address space.
    pub size: u64,
    /// The number of its load.
    pub index: u64,
}
