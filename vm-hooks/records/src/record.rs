//! All kinds of record in one type.

use crate::{
    Class, Collection, Compilation, Constituent, ConstituentGone, ConstituentMoved, Counter, Fact,
    InterpreterRules, Lifetime, Limit, Lost, Mapping, Mark, Method, Module, Process, ProcessEnd,
    RecordingEnd, RegionRules, Sample, Session, Symbols, Thread, ThreadCpu, ThreadEnd,
    ThreadUpdate, TimeNs, Unmapping,
};

/// One record of a recording (DESIGN.md §2).
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type it holds")]
#[non_exhaustive]
pub enum Record {
    Session(Box<Session>),
    Limit(Limit),
    Process(Process),
    ProcessEnd(ProcessEnd),
    Thread(Thread),
    ThreadUpdate(ThreadUpdate),
    ThreadCpu(ThreadCpu),
    ThreadEnd(ThreadEnd),
    Module(Module),
    Mapping(Mapping),
    Unmapping(Unmapping),
    Sample(Sample),
    Constituent(Box<Constituent>),
    ConstituentGone(ConstituentGone),
    ConstituentMoved(ConstituentMoved),
    Method(Box<Method>),
    Collection(Box<Collection>),
    Class(Class),
    Lifetime(Box<Lifetime>),
    Counter(Counter),
    Fact(Fact),
    RegionRules(RegionRules),
    InterpreterRules(InterpreterRules),
    Compilation(Box<Compilation>),
    Symbols(Symbols),
    Lost(Lost),
    Mark(Mark),
    End(RecordingEnd),
}

/// What a chunk of a recording holds, so that a reader can skip what it does not
/// want without decompressing it. A set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content(pub u32);

impl Content {
    /// Samples.
    pub const SAMPLES: Content = Content(1);
    /// Lifetime events.
    pub const LIFETIMES: Content = Content(2);
    /// Everything else: what is needed to make sense of the rest.
    pub const STATE: Content = Content(4);
    /// All kinds, those of later versions included.
    pub const ALL: Content = Content(u32::MAX);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Content) -> Content {
        Content(self.0 | other.0)
    }

    /// Whether the two have anything in common.
    #[must_use]
    pub const fn meets(self, other: Content) -> bool {
        self.0 & other.0 != 0
    }
}

impl Record {
    /// The time it carries: when what it tells happened or was observed. Classes
    /// and symbols have none.
    #[must_use]
    pub fn time(&self) -> Option<TimeNs> {
        Some(match self {
            Record::Session(r) => r.time,
            Record::Limit(r) => r.time,
            Record::Process(r) => r.time,
            Record::ProcessEnd(r) => r.time,
            Record::Thread(r) => r.time,
            Record::ThreadUpdate(r) => r.time,
            Record::ThreadCpu(r) => r.time,
            Record::ThreadEnd(r) => r.time,
            Record::Module(r) => r.time,
            Record::Mapping(r) => r.time,
            Record::Unmapping(r) => r.time,
            Record::Sample(r) => r.time,
            Record::Constituent(r) => r.since,
            Record::ConstituentGone(r) => r.time,
            Record::ConstituentMoved(r) => r.time,
            Record::Method(r) => r.time,
            Record::Collection(r) => r.time,
            Record::Lifetime(r) => match **r {
                Lifetime::Birth { time, .. }
                | Lifetime::Survived { time, .. }
                | Lifetime::Death { time, .. }
                | Lifetime::StillAlive { time, .. }
                | Lifetime::Aggregate { time, .. } => time,
            },
            Record::Counter(r) => r.time,
            Record::Fact(r) => r.time,
            Record::RegionRules(r) => r.time,
            Record::InterpreterRules(r) => r.time,
            Record::Compilation(r) => r.told_at(),
            Record::Lost(r) => r.to,
            Record::Mark(r) => r.time,
            Record::End(r) => r.time,
            Record::Class(_) | Record::Symbols(_) => return None,
        })
    }

    /// Which part of a recording's content it belongs to.
    #[must_use]
    pub const fn content(&self) -> Content {
        match self {
            Record::Sample(_) => Content::SAMPLES,
            Record::Lifetime(_) => Content::LIFETIMES,
            _ => Content::STATE,
        }
    }
}
