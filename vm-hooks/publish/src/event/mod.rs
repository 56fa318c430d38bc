//! What a VM publishes: events, and their form in words.
//!
//! An event struct borrows its texts and lists, so publishing copies their contents once, into the
//! ring. A decoded event owns its texts and lists. Times are nanoseconds of `CLOCK_MONOTONIC`. Ids
//! are the VM's own numbers: two things of a sort never share an id.
//!
//! Later versions may append fields to an event and add kinds. Decoders ignore unknown fields.

mod code;
mod heap;
mod map;
mod vm;
pub mod wire;

pub use code::{
    Cases, Class, Constituent, ConstituentKind, Gone, GoneReason, LineEntry, ListingEntry, Method,
    Moved, PicCase,
};
pub use heap::{
    Birth, Births, CollectionBegin, CollectionEnd, CollectionScope, Death, Deaths, Lifetimes,
    PhaseBegin, PhaseEnd, Site, SiteFrame, SpaceUse, Survival, SurvivalBucket, Survivals,
};
pub use map::{Boundary, BoundaryRule, ChainFrame, Cover, Exactness, PcMap, PositionKind};
pub use vm::{
    AddressRange, CompilationBegin, CompilationEnd, Counter, CounterMeaning, Fact, Frames,
    Interpreter, InterpreterSource, InterpreterValue, Region, RegionRule, Regions, SamplePlace,
    Snapshot, Thread, ThreadEnd, ThreadRole,
};
pub use wire::{DecodeError, Text};

use wire::{Sink, Wire, Words};

/// The struct of an event.
pub trait Body: Wire {
    /// Number of the event's kind.
    const KIND: u8;
    /// Number of the event's kind in a snapshot. Differs from [`KIND`](Self::KIND) if readers must
    /// distinguish descriptions from changes.
    const KIND_IN_SNAPSHOT: u8 = Self::KIND;
}

/// Declares the kinds of events.
macro_rules! events {
    ($($(#[$meta:meta])* $number:literal $name:ident($body:ty),)*) => {
        /// An event.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Event<'a> {
            $($(#[$meta])* $name($body),)*
        }

        impl Event<'_> {
            /// Numbers of all kinds.
            pub const KINDS: &'static [u8] = &[$($number,)*];

            /// Number of the event's kind.
            #[must_use]
            pub fn kind(&self) -> u8 {
                match self {
                    $(Self::$name(_) => $number,)*
                }
            }

            /// Pushes the event's words.
            pub fn encode<S: Sink>(&self, sink: &mut S) {
                match self {
                    $(Self::$name(body) => body.encode(sink),)*
                }
            }

            /// The event of kind `kind` with these words.
            ///
            /// # Errors
            ///
            /// For unknown kinds and malformed words.
            pub fn decode(kind: u8, words: &[u64]) -> Result<Event<'static>, DecodeError> {
                let mut words = Words(words);
                Ok(match kind {
                    $($number => Event::$name(Wire::decode(&mut words)?),)*
                    _ => return Err(DecodeError::Kind(kind)),
                })
            }
        }
    };
}

events! {
    /// A snapshot begins. The events before its end describe existing things, mixed with current
    /// changes.
    1 SnapshotBegin(Snapshot),
    /// A snapshot ends.
    2 SnapshotEnd(Snapshot),
    /// A method.
    3 Method(Method<'a>),
    /// A class.
    4 Class(Class<'a>),
    /// A new constituent, or later data about a known one.
    5 Constituent(Constituent<'a>),
    /// A constituent that existed when a snapshot described it.
    6 Described(Constituent<'a>),
    /// A removed constituent.
    7 Gone(Gone),
    /// A moved constituent.
    8 Moved(Moved),
    /// Changed cases of a PIC.
    9 Cases(Cases<'a>),
    /// A thread.
    10 Thread(Thread<'a>),
    /// The end of a thread.
    11 ThreadEnd(ThreadEnd),
    /// The start of a collection.
    12 CollectionBegin(CollectionBegin<'a>),
    /// The end of a collection.
    13 CollectionEnd(CollectionEnd<'a>),
    /// The start of a phase.
    14 PhaseBegin(PhaseBegin<'a>),
    /// The end of a phase.
    15 PhaseEnd(PhaseEnd),
    /// The start of a compilation.
    16 CompilationBegin(CompilationBegin<'a>),
    /// The end of a compilation.
    17 CompilationEnd(CompilationEnd),
    /// A figure.
    18 Counter(Counter<'a>),
    /// A property.
    19 Fact(Fact<'a>),
    /// How the interpreter shows its position.
    20 Interpreter(Interpreter<'a>),
    /// Rules for native functions.
    21 Regions(Regions<'a>),
    /// An allocation site.
    22 Site(Site<'a>),
    /// Allocations.
    23 Births(Births<'a>),
    /// Survivals.
    24 Survivals(Survivals<'a>),
    /// Deaths.
    25 Deaths(Deaths<'a>),
    /// Counts of objects.
    26 Lifetimes(Lifetimes<'a>),
    /// Frames of interpreted methods.
    27 Frames(Frames),
}

macro_rules! bodies {
    ($($number:literal $body:ty,)*) => {
        $(impl Body for $body {
            const KIND: u8 = $number;
        })*
    };
}

bodies! {
    3 Method<'_>, 4 Class<'_>, 7 Gone, 8 Moved, 10 Thread<'_>, 11 ThreadEnd,
    12 CollectionBegin<'_>, 13 CollectionEnd<'_>, 14 PhaseBegin<'_>, 15 PhaseEnd,
    16 CompilationBegin<'_>, 17 CompilationEnd, 18 Counter<'_>, 19 Fact<'_>, 20 Interpreter<'_>,
    21 Regions<'_>, 22 Site<'_>, 23 Births<'_>, 24 Survivals<'_>, 25 Deaths<'_>, 26 Lifetimes<'_>,
    27 Frames, 9 Cases<'_>,
}

impl Body for Constituent<'_> {
    const KIND: u8 = 5;
    const KIND_IN_SNAPSHOT: u8 = 6;
}

/// Kinds of the two ends of a snapshot, which only the publisher writes.
pub(crate) const SNAPSHOT_BEGIN: u8 = 1;
pub(crate) const SNAPSHOT_END: u8 = 2;

#[cfg(test)]
mod tests;
