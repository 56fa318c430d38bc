//! The vocabulary that everything in vmscope speaks, and the file it is kept in.
//!
//! A *recording* is a stream of [`Record`]s. The sampler and the adapters write
//! them, the symbolizer turns them into a profile; nothing else passes between
//! the two. The kinds are those of DESIGN.md §2. Every time in a record is
//! `CLOCK_MONOTONIC` in nanoseconds ([`TimeNs`]).
//!
//! The types here are plain and carry no serialization: what they look like on
//! disk is the business of [`recording`], described in `FORMAT.md` beside it.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test says what failed by panicking"
    )
)]

mod code;
mod collection;
mod compilation;
mod counter;
mod ids;
mod interpreter;
mod lifetime;
mod loss;
mod mark;
mod native;
mod pcmap;
mod process;
mod record;
pub mod recording;
mod region;
mod sample;
mod session;
mod wire;

pub use code::{
    CodeChange, Constituent, ConstituentGone, ConstituentKind, ConstituentMoved, GoneReason,
    LineEntry, Method, PicCase,
};
pub use collection::{COLLECTION_TIME_SUFFIX, COLLECTIONS_SECTION, Collection, Phase, SpaceUse};
pub use compilation::Compilation;
pub use counter::{Counter, CounterMeaning, Fact};
pub use ids::{
    Arch, Avma, BuildId, BytecodePc, ClassKey, CollectionKey, ConstituentKey, DurationNs,
    FileOffset, MethodKey, ModuleKey, ObjectKey, Pid, ProcessKey, ThreadKey, Tid, TimeNs,
};
pub use interpreter::{InterpreterRules, InterpreterSource, InterpreterValue, SamplePlace};
pub use lifetime::{AllocationSite, Class, Lifetime, SurvivalBucket};
pub use loss::{EndReason, LossReason, Lost, RecordingEnd, Stream};
pub use mark::Mark;
pub use native::{NativeFrame, NativeFunction, NativeLines, SymbolOwner, SymbolSource, Symbols};
pub use pcmap::{BoundaryRule, Chain, ChainFrame, Cover, Exactness, PcMap, Position, Range};
pub use process::{
    Mapping, Module, ModuleState, Process, ProcessEnd, Thread, ThreadCpu, ThreadEnd, ThreadRole,
    ThreadUpdate, Unmapping,
};
pub use record::{Content, Record};
pub use region::{Region, RegionRule, RegionRules};
pub use sample::{CallChain, CpuMode, Registers, Sample, SampleDetail, StackBytes, Word};
pub use session::{Limit, LimitKind, SampleClock, Session, VmIdentity};
pub use wire::WireError;
