//! A recording in order: each sample with its place in the address space and the code zone of
//! its time, before names.

mod ahead;
mod code_events;
mod extents;
mod interpreted;
mod known;
mod memory;
mod near;
mod place;
mod places;
mod state;
mod world;

pub(crate) use interpreted::Interpreters;
pub(crate) use place::{Placing, Upcoming};
pub(crate) use state::Changes;
pub(crate) use world::World;

pub(crate) use state::MAX_RULES;

pub use code_events::{CodeEvent, CodeEvents, CodeStep};
pub use extents::{Extent, Extents};
pub use memory::{Unread, memory_for};

use crate::ids::{ChainId, IndexVec, PlaceId, ThreadId};
use crate::paths::PathTree;
use crate::zone::{Code, CodeId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use vmscope_records::recording::{Ending, ReadError, Reader};
use vmscope_records::{
    AllocationSite, Avma, CallChain, ChainEnd, Class, ClassKey, Collection, Compilation,
    Constituent, Counter, DurationNs, Fact, FileOffset, InterpreterRules, Limit, Lost, Mark,
    Method, MethodKey, Module, ModuleKey, Process, ProcessEnd, ProcessKey, RecordingEnd,
    RegionRules, Session, SiteKey, Symbols, Thread, ThreadCpu, ThreadEnd, ThreadKey, ThreadRole,
    Tid, TimeNs,
};

/// Reading a recording failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file is unreadable.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file was cut off before its session record.
    #[error("the recording is empty: it was cut off at its beginning")]
    NoSession,
    /// The caller stopped the reading.
    #[error("stopped reading the recording")]
    Stopped,
}

/// The progress of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read in both passes over the file.
    pub done: u64,
    /// Twice the file's size.
    pub all: u64,
}

/// Gets the progress after every chunk; may stop the reading.
pub type Watch<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Reports the progress of one of the two passes.
fn tell(watch: Watch, pass: u64, (done, all): (u64, u64)) -> Result<(), TraceError> {
    let told = watch(Progress {
        done: pass * all + done,
        all: 2 * all,
    });
    match told {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(TraceError::Stopped),
    }
}

/// The location of a sample. Places are interned: equal places share one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A constituent's index, and the offset from its start.
    Code(CodeId, u32),
    /// A bytecode under interpretation.
    Interpreted {
        /// The interpreter's code for the bytecode; of a caller, whose call is going on, the
        /// bytecodes themselves.
        handler: CodeId,
        /// The constituent with the bytecodes.
        bytecodes: CodeId,
        /// The bytecode's offset from their start.
        bytecode: u32,
    },
    /// The entry of a method under interpretation.
    Entering {
        /// The interpreter's code for method entry.
        handler: CodeId,
        /// The method's object.
        method: CodeId,
    },
    /// Generated code without a frame, and its caller.
    Called {
        /// The code.
        code: CodeId,
        /// The caller's code.
        caller: CodeId,
        /// The call's offset from the caller's start.
        offset: u32,
    },
    /// File and offset; and the role of the sampled thread, if rules of regions ask for roles.
    /// Otherwise [`ThreadRole::Other`].
    Native(ModuleKey, FileOffset, ThreadRole),
    /// The kernel.
    Kernel(Avma),
    /// Generated code without a constituent: executable memory without a file.
    Generated,
    /// An address with two possible constituents.
    Doubtful,
    /// An unmapped address.
    Unmapped,
    /// The thread did not run.
    Idle,
}

/// A thread of the recording.
#[derive(Clone, Debug)]
pub struct TraceThread {
    /// The thread with its newest name and role.
    pub thread: Thread,
    /// Its end, if recorded.
    pub end: Option<ThreadEnd>,
    /// Its CPU time over time, ascending.
    pub cpu: Vec<ThreadCpu>,
}

impl TraceThread {
    /// A thread with an unknown start.
    pub(crate) fn unknown(key: ThreadKey) -> Self {
        TraceThread {
            thread: Thread {
                key,
                process: ProcessKey(u32::MAX),
                tid: Tid(0),
                time: TimeNs(0),
                name: String::new(),
                role: ThreadRole::Other,
                cpu_before: DurationNs(0),
            },
            end: None,
            cpu: Vec::new(),
        }
    }

    /// Whether this is a free index, whose former thread is part of a sum: no samples, and not
    /// for lists.
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.thread.key == NOBODY && self.thread.name.is_empty()
    }
}

/// The key of sums of threads.
pub(crate) const NOBODY: ThreadKey = ThreadKey(u32::MAX);

/// Samples in columns: 16 bytes each, 20 with chains.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Times, ascending as far as in the recording.
    pub times: Vec<TimeNs>,
    /// The threads.
    pub threads: Vec<ThreadId>,
    /// The places.
    pub places: Vec<PlaceId>,
    /// The callers, from the direct caller outwards; empty without any callers.
    pub chains: Vec<Option<ChainId>>,
    /// Why the chains end.
    pub chain_ends: ChainEnds,
}

/// Numbers of chains by the reason of their end (TRUTH.md §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainEnds {
    /// Followed by frame pointers until they made no sense.
    pub unknown: u64,
    /// Reached the thread's first frame.
    pub whole: u64,
    /// Cut off at the maximum depth.
    pub depth: u64,
    /// Cut off at the end of the copied stack.
    pub stack: u64,
    /// Broken at a frame without a rule, or at a caller where nothing is mapped.
    pub broken: u64,
    /// Without user callers: unwinding was behind.
    pub behind: u64,
    /// Chains among them with a frame that only its frame pointer explains.
    pub guessed: u64,
    /// Chains among them with callers that were read after the sample.
    pub late: u64,
}

impl ChainEnds {
    pub(crate) fn count(&mut self, end: ChainEnd, chain: &CallChain) {
        let count = match end {
            ChainEnd::Whole => &mut self.whole,
            ChainEnd::Depth => &mut self.depth,
            ChainEnd::Stack => &mut self.stack,
            ChainEnd::Broken => &mut self.broken,
            ChainEnd::Behind => &mut self.behind,
            _ => &mut self.unknown,
        };
        *count += 1;
        self.guessed += u64::from(chain.guessed);
        self.late += u64::from(chain.late);
    }
}

impl Samples {
    /// Reserves memory for the expected number, if available.
    fn expect(&mut self, count: usize) {
        // Otherwise the columns grow sample by sample.
        let _ = self.times.try_reserve_exact(count);
        let _ = self.threads.try_reserve_exact(count);
        let _ = self.places.try_reserve_exact(count);
    }

    fn reserve(&mut self, more: usize) {
        self.times.reserve(more);
        self.threads.reserve(more);
        self.places.reserve(more);
    }

    /// Sorts the samples by time, stably.
    pub(crate) fn put_in_order(&mut self) {
        self.put_in_order_from(0);
    }

    /// Sorts the samples from `first` on by time, stably. Samples earlier than the one before
    /// `first` get its time.
    pub(crate) fn put_in_order_from(&mut self, first: usize) {
        let last = first.checked_sub(1).and_then(|last| self.times.get(last));
        let last = last.copied().unwrap_or_default();
        let new = self.times.get_mut(first..).unwrap_or_default();
        for time in &mut *new {
            *time = (*time).max(last);
        }
        if new.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..new.len()).collect();
        order.sort_by_key(|&index| new.get(index).copied());
        fn ordered<T: Copy>(column: &mut [T], order: &[usize]) {
            let in_order = order.iter().filter_map(|&index| column.get(index).copied());
            let in_order: Vec<T> = in_order.collect();
            for (slot, value) in column.iter_mut().zip(in_order) {
                *slot = value;
            }
        }
        ordered(new, &order);
        ordered(self.threads.get_mut(first..).unwrap_or_default(), &order);
        ordered(self.places.get_mut(first..).unwrap_or_default(), &order);
        ordered(self.chains.get_mut(first..).unwrap_or_default(), &order);
    }

    /// Removes the first samples, and shrinks much too large columns.
    pub(crate) fn drop_first(&mut self, count: usize) {
        fn drop_first<T>(column: &mut Vec<T>, count: usize) {
            column.drain(..count.min(column.len()));
            if column.capacity() / 4 > column.len() {
                column.shrink_to(column.len() * 2);
            }
        }
        drop_first(&mut self.times, count);
        drop_first(&mut self.threads, count);
        drop_first(&mut self.places, count);
        drop_first(&mut self.chains, count);
    }
}

/// A recording, read and put in order.
#[derive(Debug, Default)]
pub struct Trace {
    /// The recorded session.
    pub session: Option<Session>,
    /// Limits of accuracy.
    pub limits: Vec<Limit>,
    /// Address spaces.
    pub processes: FxHashMap<ProcessKey, Process>,
    /// Ends of processes, with their CPU time.
    pub process_ends: Vec<ProcessEnd>,
    /// Threads, in order of appearance.
    pub threads: IndexVec<ThreadId, TraceThread>,
    /// Files with mapped code.
    pub modules: FxHashMap<ModuleKey, Module>,
    /// All executable mappings, whenever they were.
    pub extents: Extents,
    /// Methods.
    pub methods: FxHashMap<MethodKey, Method>,
    /// Classes of allocated objects.
    pub classes: FxHashMap<ClassKey, Class>,
    /// Allocation sites.
    pub allocation_sites: FxHashMap<SiteKey, AllocationSite>,
    /// Facts about VMs.
    pub facts: Vec<Fact>,
    /// The VMs' figures over time.
    pub counters: Vec<Counter>,
    /// The newest record of each garbage collection.
    pub collections: Vec<Collection>,
    /// The newest record of each observed compilation, by thread and time.
    pub compilations: Vec<Compilation>,
    /// Losses.
    pub lost: Vec<Lost>,
    /// Comings, moves and ends of code.
    pub code_events: CodeEvents,
    /// The user's marks, by time.
    pub marks: Vec<Mark>,
    /// The newest region rules of each process and VM.
    pub region_rules: BTreeMap<(ProcessKey, String), RegionRules>,
    /// Whether a region rule asks for the role of the sampled thread.
    pub(crate) asks_for_roles: bool,
    /// The newest interpreter rules of each process and VM.
    pub interpreters: BTreeMap<(ProcessKey, String), InterpreterRules>,
    /// The recording's native symbols.
    pub symbols: Vec<Symbols>,
    /// The recording's end, unless it was cut off.
    pub end: Option<RecordingEnd>,
    /// Damages of the file.
    pub ending: Ending,
    /// The unread rest, if the recording needs too much memory.
    pub unread: Option<Unread>,
    /// The number of records of unknown kinds.
    pub unknown_records: u64,
    /// The number of undecodable records.
    pub malformed_records: u64,
    /// The number of samples out of time order.
    pub disordered_samples: u64,
    /// Distinct places.
    pub places: IndexVec<PlaceId, Place>,
    /// The samples.
    pub samples: Samples,
    /// The samples' callers: the calls' places, not the return addresses.
    pub chains: PathTree<ChainId, PlaceId>,
    pub(crate) code: Code,
    pub(crate) thread_index: FxHashMap<ThreadKey, ThreadId>,
    /// Free indices of [`Trace::threads`].
    pub(crate) free_threads: Vec<ThreadId>,
    /// Whether to keep samples; otherwise places only.
    pub(crate) keep_samples: bool,
    /// Approximate memory of all records other than samples, in bytes.
    pub(crate) state_memory: u64,
    /// The most memory of records and samples, in bytes.
    pub(crate) max_memory: u64,
}

impl Trace {
    /// Reads a recording, whole or damaged, in the memory of [`memory_for`] its size.
    ///
    /// # Errors
    /// [`TraceError`] for a recording without reportable content.
    pub fn read<R: Read + Seek + Send>(reader: &mut Reader<R>) -> Result<Self, TraceError> {
        let max_memory = memory_for(reader.progress().1);
        Self::read_with(reader, max_memory, &mut |_| ControlFlow::Continue(()))
    }

    /// Reads a recording in about `max_memory` bytes of memory, and reports the progress to `watch`.
    /// [`Trace::unread`] tells the rest.
    ///
    /// # Errors
    /// [`TraceError`] for a recording without reportable content, and [`TraceError::Stopped`] if
    /// `watch` breaks.
    pub fn read_with<R: Read + Seek + Send>(
        reader: &mut Reader<R>,
        max_memory: u64,
        watch: Watch,
    ) -> Result<Self, TraceError> {
        Self::read_keeping(reader, true, max_memory, watch)
    }

    /// Reads only the distinct places of a recording's samples, to find the symbols that it
    /// needs. Memory does not grow with the samples: [`Trace::samples`] and the threads' CPU
    /// times are empty.
    ///
    /// # Errors
    /// [`TraceError`] for a recording without reportable content.
    pub fn read_places<R: Read + Seek + Send>(
        reader: &mut Reader<R>,
        max_memory: u64,
    ) -> Result<Self, TraceError> {
        Self::read_keeping(
            reader,
            false,
            max_memory,
            &mut |_| ControlFlow::Continue(()),
        )
    }

    fn read_keeping<R: Read + Seek + Send>(
        reader: &mut Reader<R>,
        keep_samples: bool,
        max_memory: u64,
        watch: Watch,
    ) -> Result<Self, TraceError> {
        let mut trace = Trace {
            keep_samples,
            max_memory,
            ..Trace::default()
        };
        let changes = trace.read_state(reader, watch)?;
        if trace.session.is_none() {
            return Err(TraceError::NoSession);
        }
        let state_ending = reader.ending().clone();
        trace.place_samples(reader, changes, watch)?;
        trace.ending = both(state_ending, reader.ending().clone());
        Ok(trace)
    }

    /// The first process of a thread.
    #[must_use]
    pub fn process_of(&self, thread: ThreadId) -> ProcessKey {
        self.threads[thread].thread.process
    }

    /// The newest record of a constituent.
    #[must_use]
    pub fn constituent(&self, code: CodeId) -> &Constituent {
        &self.code.constituents[code]
    }

    /// The index of a thread in [`Trace::threads`].
    #[must_use]
    pub fn number_of(&self, thread: ThreadKey) -> Option<ThreadId> {
        self.thread_index.get(&thread).copied()
    }
}

/// Merges the damages of two passes over one file. Each pass decodes its own chunks and may
/// find damage there; both passes find damaged headers.
fn both(first: Ending, second: Ending) -> Ending {
    let all_listed = |ending: &Ending| ending.damage_count == ending.damages.len() as u64;
    let complete = all_listed(&first) && all_listed(&second);
    let (count, bytes) = (
        first.damage_count.max(second.damage_count),
        first.damaged_bytes.max(second.damaged_bytes),
    );
    let mut damages = first.damages;
    damages.extend(second.damages);
    damages.sort_by_key(|damage| damage.offset);
    damages.dedup_by_key(|damage| damage.offset);
    let listed = damages.len() as u64;
    let listed_bytes = damages.iter().map(|damage| damage.bytes).sum();
    damages.truncate(Ending::MAX_DAMAGES);
    Ending {
        damages,
        // A lower bound, if a list is incomplete.
        damage_count: if complete { listed } else { count.max(listed) },
        damaged_bytes: if complete {
            listed_bytes
        } else {
            bytes.max(listed_bytes)
        },
        last_time: first.last_time.max(second.last_time),
    }
}
