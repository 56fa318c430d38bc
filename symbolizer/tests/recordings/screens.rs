//! Recordings for tests of the terminal UI's screens. Each has known content in every view,
//! documented here and verified by `tests/screens.rs`.
//!
//! Times start at `BEGIN`, like a real clock's. A view confusing them with times since the start
//! becomes obvious.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers that were chosen to fit"
)]

mod cog;
mod collections;
mod figures;
mod java;
mod leaves;
mod libraries;
mod methods;
pub mod nasty;
mod native;
mod node;
mod stage;
mod zone;

use super::{Draw, Recording};
use std::sync::OnceLock;
use vmscope_records::TimeNs;
use vmscope_records::recording::Writer;

/// The default period, in ns.
pub const PERIOD: u64 = 713_927;
/// Start of all recordings, in ns.
pub const BEGIN: u64 = 1_000_000_000_000;
/// Length of [`java`].
const SECONDS: u64 = 20;

const MS: u64 = 1_000_000;

/// The time in ns, given milliseconds since the start.
pub const fn ms(ms: u64) -> u64 {
    BEGIN + ms * MS
}

/// 20 s of a JVM matching orders: 12,564 samples (another 23 were lost between 13.4 and 13.9 s), 9
/// threads of all roles; `worker-2` lives from 6 to 14 s.
///
/// - By region: generated 6,470, interpreter 739, collector 1,916, compilers 1,790, rest of the VM
///   643, libraries 631, kernel 368, unknown 7. Doubtful: 9; unnamed: 101.
/// - Hottest: `OrderBook.match` by C2 with 5.67 %, `Parser.token` by C2 with 4.38 %,
///   `Codec.checksum` by C2 with 3.48 %. `match`, `checksum`, `PriceLevel.peek`, `HashMap.getNode`
///   and `Limits.visit` have listings; all methods have lines.
/// - Startup until 3 s (interpreter 717, compilers 967 of 4,294), a burst of collections from 10 to
///   12 s (1,620 of 3,043), idle from 15 to 16 s.
/// - Zone: 28 stubs, 22 adapters, 26 parts of the interpreter, 68 methods by C1 and C2 over time
///   (40 methods in 10 classes). `Limits.check` is deoptimised at 9 s and compiled again;
///   `HashMap.resize` replaces `Parser.token` by C1 between 6.9 and 7.1 s, which makes samples
///   doubtful.
/// - 25 collections: 19 young, 4 mixed, 1 full (187 ms at 11.64 s), 1 concurrent cycle with two
///   pauses. Two lack an observed begin, one an observed end; no mutator runs in a pause.
/// - Only the 8,345 samples of mutators have callers: 3 to 12 of them; 59 chains were cut off.
///   Inlined once 558, twice 106, three times 13.
/// - Compiler threads: 2,083 samples, 1,213 during an observed compilation, 688 between two, 182
///   without one; 36 of 68 compilations were observed.
pub fn java() -> Vec<u8> {
    // Tests open it for each size of the screen.
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(java::java).clone()
}

/// 6 s of Squeak on Cog: 7,263 samples, two threads.
///
/// - By region: generated 5,935 (all exact), interpreter 536, collector 235, compiler 75, rest of
///   the VM 144, libraries 185, kernel 153.
/// - Hottest: `Integer>>benchFib` with 16.23 %, `Integer>>benchmark` with 10.23 %, `interpret` with
///   7.38 %. Every other method has a listing: `benchFib` has one, `benchmark` none.
/// - Zone, from 0x10000000 to 0x10004000: 10 trampolines, 2 enilopmarts, 20 methods with boundary
///   maps, 3 closed PICs (up to 3 cases), an open one, free space at the end.
/// - A compaction at 3 s flushes 5 methods (such as `Point>>dist:`) and moves 17 constituents down
///   (such as `Float>>truncated`); the free space grows.
pub fn cog() -> Vec<u8> {
    cog::cog()
}

/// 8 s of Node.js: 11,837 samples, 7 threads (`node`, 2 of V8, 4 of libuv), no callers, no recorded
/// collections.
///
/// - By region: generated 6,846 (all with lines), interpreter 503, collector 1,220, compilers 447,
///   rest of the VM 1,307, libraries 299, kernel 1,215.
/// - Hottest: `parseRow` by TurboFan with 14.56 %, `splitCells` by TurboFan with 9.89 %, the
///   kernel's `vfs_read` with 7.96 %.
/// - Ten functions of three scripts, two of them `(anonymous)`; compiled by Sparkplug from 0.3 s,
///   Maglev from 0.7 s, TurboFan from 1.5 s. V8's threads compile until 4 s.
pub fn node() -> Vec<u8> {
    node::node()
}

/// 5 s of a native program: 7,660 samples, 4 threads (`sim`, two `grid`, `particles`), all
/// samples with 1 to 4 callers.
///
/// - By region: program 6,326 (all with lines), libraries 1,066, kernel 268.
/// - Hottest: `sim::Grid::relax()` with 17.17 %, `sim::blend()`, inlined into it, with 14.06 %,
///   `sim::Particle::advance()` with 11.66 %.
pub fn native() -> Vec<u8> {
    native::native()
}

/// A JVM session ending after 3 s, without process, thread or sample.
pub fn nothing() -> Vec<u8> {
    native::nothing()
}

/// [`java`] truncated within a chunk at 13 s, with an earlier byte flipped: 10,886 samples.
///
/// - Two chunks are unreadable. End and symbols come last and are missing: 5,919 samples have no
///   name.
/// - The flipped byte is in the chunk with `worker-2`: a nameless thread has 922 samples, in
///   unmapped memory.
pub fn damaged() -> Vec<u8> {
    native::damaged()
}

/// 2 s of a VM with hostile names ([`nasty::NAMES`] and one of [`nasty::LONG`] characters) for
/// methods, classes, files, functions, tiers, kinds, threads, facts, limits, counters and the
/// session: 4,718 samples, 3,583 of them generated, 1,135 in the program; 17 threads, all mutators.
pub fn nasty() -> Vec<u8> {
    nasty::nasty()
}

/// Favours small numbers.
fn skewed(draw: &mut Draw, below: u64) -> u64 {
    let unit = draw.unit();
    ((unit * unit * unit) * below as f64) as u64
}

/// The file in a session's form: in time order, symbols last, one or two chunks per second.
fn file(mut recording: Recording) -> Vec<u8> {
    let end = TimeNs(u64::MAX);
    (recording.records).sort_by_key(|record| record.time().unwrap_or(end));
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let mut flushed = BEGIN;
    for record in recording.records {
        if let Some(time) = record.time().filter(|time| time.0 >= flushed + 1_000 * MS) {
            writer.flush().unwrap();
            flushed = time.0;
        }
        writer.put(record).unwrap();
    }
    writer.close().unwrap()
}
