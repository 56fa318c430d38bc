//! Recordings to look at: what the screens of the terminal UI are tested with. Each has
//! something true to show in every view, known in advance, so that a screen can be checked by
//! eye; `tests/screens.rs` proves what is said of them here.
//!
//! All times are `BEGIN` and later, as a real clock's are: a view that takes them for times
//! since the beginning shows it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers that were chosen to fit"
)]

mod collections;
mod figures;
mod java;
mod leaves;
mod libraries;
mod methods;
mod zone;

use super::{Draw, Recording};
use vmscope_records::TimeNs;
use vmscope_records::recording::Writer;

/// The default period, in ns.
pub const PERIOD: u64 = 713_927;
/// When all recordings begin, in ns.
pub const BEGIN: u64 = 1_000_000_000_000;
/// How long [`java`] is.
const SECONDS: u64 = 20;

const MS: u64 = 1_000_000;

/// The time so many milliseconds after the beginning, in ns.
pub const fn ms(ms: u64) -> u64 {
    BEGIN + ms * MS
}

/// 20 s of a JVM that matches orders: 12,564 samples (23 more were lost, between 13.4 and
/// 13.9 s), 9 threads of all roles; `worker-2` is there from 6 to 14 s.
///
/// - By region: generated 6,470, interpreter 739, collector 1,916, compilers 1,790, the rest of
///   the VM 643, libraries 631, kernel 368, not known 7. Doubtful: 9; without a name: 101.
/// - The hottest: `OrderBook.match` by C2 with 5.67 %, `Parser.token` by C2 with 4.38 %,
///   `Codec.checksum` by C2 with 3.48 %; these and `PriceLevel.peek`, `HashMap.getNode` and
///   `Limits.visit` have listings (not `Parser.token`), all have lines.
/// - Starting until 3 s (interpreter 717, compilers 967 of 4,294), a burst of collections from
///   10 to 12 s (1,620 of 3,043), nothing from 15 to 16 s.
/// - The zone: 28 stubs, 22 adapters, 26 parts of the interpreter, 68 methods by C1 and C2 over
///   time (40 methods in 10 classes). `Limits.check` is deoptimised at 9 s and compiled again;
///   `HashMap.resize` gets the place of `Parser.token` by C1 between 6.9 and 7.1 s: there the
///   doubtful samples are.
/// - 25 collections: 19 young, 4 mixed, 1 full (187 ms at 11.64 s), 1 concurrent cycle with two
///   pauses. Of two the begin was not observed, of one the end; no mutator runs in a pause.
/// - The 8,345 samples of mutators have 3 to 12 callers, 59 chains were cut off; no other has
///   any. Inlined once 558, twice 106, three times 13.
/// - The compilers' threads: 2,083 samples, 1,213 while a method was seen to be compiled, 688
///   between two, 182 while none was seen; 36 of 68 compilations were seen.
pub fn java() -> Vec<u8> {
    java::java()
}

/// Few get most.
fn skewed(draw: &mut Draw, below: u64) -> u64 {
    let unit = draw.unit();
    ((unit * unit * unit) * below as f64) as u64
}

/// The file, as a session would have written it: in time order, symbols last, a chunk or two
/// for each second.
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
