//! All kinds of records in one type.

use crate::wire::{self, WireError, messages};
use crate::{
    AllocationSite, Births, Class, Collection, Compilation, Constituent, ConstituentGone,
    ConstituentMoved, Counter, Fact, Fates, InterpreterRules, LifetimeCounts, Limit, Lost, Mapping,
    Mark, Method, Module, Process, ProcessEnd, RecordingEnd, RegionRules, Sample, Session, Symbols,
    Thread, ThreadCpu, ThreadEnd, ThreadUpdate, TimeNs, Unmapping,
};

/// Declares the kinds of records: number in files, name (also of the message), type, and time.
///
/// A new kind needs a type, a row here, a message in `wire/messages.rs` with its row in FORMAT.md,
/// and a row in `tests/common/strategies.rs`; then an emitter, and an arm in the symbolizer's
/// `Trace::take`.
macro_rules! kinds {
    ($($number:literal $kind:ident($type:ty): $r:pat => $time:expr,)+) => {
        /// One record of a recording (DESIGN.md §2).
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "each variant is the type it holds")]
        #[non_exhaustive]
        pub enum Record {
            Sample(Sample),
            $($kind($type),)+
        }

        #[cfg(test)]
        pub(crate) const KINDS: &[(u32, &str)] = &[$(($number, stringify!($kind))),+];

        impl Record {
            /// Time of the event or observation (in columns: of the first event); `None` for classes,
            /// allocation sites and symbols.
            #[must_use]
            pub fn time(&self) -> Option<TimeNs> {
                match self {
                    Record::Sample(sample) => Some(sample.time),
                    $(Record::$kind($r) => $time,)+
                }
            }

            /// Appends its message to `out` and returns its kind; `None` for a sample, which needs
            /// a batch.
            pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Option<u32> {
                match self {
                    Record::Sample(_) => None,
                    $(Record::$kind(record) => {
                        wire::encode::<messages::$kind>(record, out);
                        Some($number)
                    })+
                }
            }

            /// Leaves out details of a record that is too large for a recording; returns whether it had any.
            pub(crate) fn leave_out(&mut self) -> bool {
                match self {
                    Record::Method(method) => method.leave_out(),
                    Record::Constituent(constituent) => constituent.leave_out(),
                    _ => false,
                }
            }

            /// Decodes a message of kind number `kind`, with its approximate memory in bytes; `None`
            /// for unknown kinds.
            pub(crate) fn decode(
                kind: u32,
                bytes: &[u8],
            ) -> Option<Result<(Record, usize), WireError>> {
                Some(match kind {
                    $($number => wire::decode::<messages::$kind, _>(bytes)
                        .map(|(record, memory)| (Record::$kind(record), memory)),)+
                    _ => return None,
                })
            }
        }
    };
}

kinds! {
    1 Session(Box<Session>): r => Some(r.time),
    2 Limit(Limit): r => Some(r.time),
    3 Process(Process): r => Some(r.time),
    4 ProcessEnd(ProcessEnd): r => Some(r.time),
    5 Thread(Thread): r => Some(r.time),
    6 ThreadUpdate(ThreadUpdate): r => Some(r.time),
    7 ThreadEnd(ThreadEnd): r => Some(r.time),
    8 Module(Module): r => Some(r.time),
    9 Mapping(Mapping): r => Some(r.time),
    10 Unmapping(Unmapping): r => Some(r.time),
    12 Constituent(Box<Constituent>): r => Some(r.since),
    13 ConstituentGone(ConstituentGone): r => Some(r.time),
    14 ConstituentMoved(ConstituentMoved): r => Some(r.time),
    15 Method(Box<Method>): r => Some(r.time),
    16 Collection(Box<Collection>): r => Some(r.time),
    17 Class(Class): _ => None,
    19 Counter(Counter): r => Some(r.time),
    20 Fact(Fact): r => Some(r.time),
    21 Symbols(Symbols): _ => None,
    22 Lost(Lost): r => Some(r.to),
    23 End(RecordingEnd): r => Some(r.time),
    24 ThreadCpu(ThreadCpu): r => Some(r.time),
    25 RegionRules(RegionRules): r => Some(r.time),
    26 InterpreterRules(InterpreterRules): r => Some(r.time),
    27 Compilation(Box<Compilation>): r => Some(r.emitted_at()),
    28 Mark(Mark): r => Some(r.time),
    29 AllocationSite(Box<AllocationSite>): _ => None,
    30 Births(Box<Births>): r => Some(r.time()),
    31 Fates(Box<Fates>): r => Some(r.time()),
    32 LifetimeCounts(Box<LifetimeCounts>): r => Some(r.time),
}

/// Kind number of sample batches; single samples have none.
pub(crate) const SAMPLES_KIND: u32 = 11;

/// Contents of a chunk: a set of kinds, so that readers can skip unwanted chunks without
/// decompression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content(pub u32);

impl Content {
    /// Samples.
    pub const SAMPLES: Content = Content(1);
    /// Lifetime events.
    pub const LIFETIMES: Content = Content(2);
    /// All other kinds, needed to interpret samples and lifetimes.
    pub const STATE: Content = Content(4);
    /// All kinds, including those of later versions.
    pub const ALL: Content = Content(u32::MAX);

    /// Union of both sets.
    #[must_use]
    pub const fn with(self, other: Content) -> Content {
        Content(self.0 | other.0)
    }

    /// Whether the sets intersect.
    #[must_use]
    pub const fn meets(self, other: Content) -> bool {
        self.0 & other.0 != 0
    }
}

impl Record {
    /// The record's content set.
    #[must_use]
    pub const fn content(&self) -> Content {
        match self {
            Record::Sample(_) => Content::SAMPLES,
            Record::Births(_) | Record::Fates(_) | Record::LifetimeCounts(_) => Content::LIFETIMES,
            _ => Content::STATE,
        }
    }
}
