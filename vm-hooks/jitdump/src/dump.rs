//! The jitdump format (`tools/perf/Documentation/jitdump-specification.txt`).

use vmscope_records::{Arch, Avma};

/// What the head of a dump says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The machine that its code is for.
    pub arch: Arch,
    /// The process, in its own pid namespace.
    pub pid: u32,
    /// When the dump was begun, on the dump's clock.
    pub timestamp: u64,
    /// Whether the clock is the CPU's (`JITDUMP_FLAGS_ARCH_TIMESTAMP`), not
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub arch_timestamp: bool,
}

/// What a dump tells; times are on its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Code was put there.
    Load(Load),
    /// Code was moved.
    Move(Move),
    /// The dump is complete.
    Close,
}

/// Code was put there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// When.
    pub time: u64,
    /// Its first address.
    pub address: Avma,
    /// Its size in bytes.
    pub size: u64,
    /// Its number, unique in the dump.
    pub index: u64,
    /// Its name as the VM writes it, made valid UTF-8.
    pub name: String,
    /// Its source positions, ascending by address, as the debug-info record before
    /// it told them; empty where there are none.
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
    /// The source file.
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
    /// Its size in bytes.
    pub size: u64,
    /// The number of its load.
    pub index: u64,
}
