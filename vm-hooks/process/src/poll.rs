//! What one poll of an adapter at its VM found.

use std::sync::Arc;
use std::time::Duration;

use vmscope_records::{
    Avma, COLLECTION_TIME_SUFFIX, COLLECTIONS_SECTION, Class, CodeChange, Collection, Compilation,
    Counter, CounterMeaning, Fact, InterpreterRules, InterpreterSource, Lifetime, Limit, LimitKind,
    LossReason, Lost, Method, ProcessKey, Record, RegionRule, RegionRules, Stream, ThreadKey,
    ThreadRole, Tid, TimeNs,
};

use crate::{KeySource, cpu_time};

/// More records than this in one poll are counted, not kept: some three times what
/// the largest code caches hold.
pub const MAX_RECORDS_OF_A_POLL: usize = 1 << 20;

/// So many addresses that samples touched a poll knows at most.
pub const MAX_TOUCHED_OF_A_POLL: usize = 1 << 16;

/// What a VM tells about one of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadNews {
    /// The thread, as vmscope's own pid namespace shows it (the VM knows the inner
    /// one: [`crate::ProcessView::threads`] has both).
    pub tid: Tid,
    /// Its name in the VM's words, where that says more than the kernel's.
    pub name: Option<String>,
    /// Its role.
    pub role: Option<ThreadRole>,
}

/// What a VM's compiler was seen to compile: a [`Compilation`] of a thread for which the
/// recorder has the key. Told again, with the same number and `first_seen`, when it was
/// seen longer, or is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompilationNews {
    /// The compiler's thread, as vmscope's own pid namespace shows it.
    pub tid: Tid,
    /// The VM's number of it.
    pub id: u64,
    /// The method, as constituents are named.
    pub name: String,
    /// The tier that is being made, as constituents are named.
    pub tier: String,
    /// The bytecode at which on-stack replacement is to enter, if it is for that.
    pub osr_bci: Option<u32>,
    /// When the last poll at that thread began that did not see it yet.
    pub absent_at: Option<TimeNs>,
    /// The time of the first poll that saw it.
    pub first_seen: TimeNs,
    /// The time of the last poll that saw it.
    pub last_seen: TimeNs,
    /// The time of the first poll that did not see it any more.
    pub gone_at: Option<TimeNs>,
}

impl CompilationNews {
    /// The record of it, of a thread that the recording calls `thread`.
    #[must_use]
    pub fn of(self, process: ProcessKey, thread: ThreadKey) -> Compilation {
        // A reader refuses what is not in this order.
        let last_seen = self.last_seen.max(self.first_seen);
        Compilation {
            process,
            thread,
            id: self.id,
            name: self.name,
            tier: self.tier,
            osr_bci: self.osr_bci,
            absent_at: self.absent_at.map(|time| time.min(self.first_seen)),
            first_seen: self.first_seen,
            last_seen,
            gone_at: self.gone_at.map(|time| time.max(last_seen)),
        }
    }
}

/// Where an adapter puts what it finds, in one poll.
///
/// The recorder makes one for each poll and takes the records out of it. What does
/// not fit ([`MAX_RECORDS_OF_A_POLL`]) is counted as lost: no VM's memory, however
/// hostile, fills ours.
pub struct Poll {
    keys: KeySource,
    process: ProcessKey,
    began: TimeNs,
    told_until: TimeNs,
    spare: Duration,
    spent: Duration,
    clock: Arc<dyn Fn() -> TimeNs + Send + Sync>,
    touched: Vec<Avma>,
    records: Vec<Record>,
    threads: Vec<ThreadNews>,
    compilations: Vec<CompilationNews>,
    cap: usize,
    dropped: u64,
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Look")
            .field("process", &self.process)
            .field("began", &self.began)
            .field("records", &self.records.len())
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

impl Poll {
    /// A poll at `process` that begins now, by `clock` (`CLOCK_MONOTONIC`, in a
    /// recording).
    #[must_use]
    pub fn new(
        keys: KeySource,
        process: ProcessKey,
        clock: Arc<dyn Fn() -> TimeNs + Send + Sync>,
    ) -> Self {
        let began = clock();
        Self {
            keys,
            process,
            began,
            told_until: began,
            spare: Duration::MAX,
            spent: Duration::ZERO,
            clock,
            touched: Vec::new(),
            records: Vec::new(),
            threads: Vec::new(),
            compilations: Vec::new(),
            cap: MAX_RECORDS_OF_A_POLL,
            dropped: 0,
        }
    }

    /// The same poll, with the addresses that samples touched since the last one, each
    /// once, ascending. More than [`MAX_TOUCHED_OF_A_POLL`] are not taken.
    #[must_use]
    pub fn with_touched(mut self, mut touched: Vec<Avma>) -> Self {
        touched.truncate(MAX_TOUCHED_OF_A_POLL);
        self.touched = touched;
        self
    }

    /// The same poll, with so much of a processor's time for what can wait.
    #[must_use]
    pub fn with_spare(mut self, spare: Duration) -> Self {
        self.spare = spare;
        self
    }

    /// The same poll, with room for `cap` records.
    #[must_use]
    pub fn with_room_for(mut self, cap: usize) -> Self {
        self.cap = cap;
        self
    }

    /// Where keys come from.
    #[must_use]
    pub fn keys(&self) -> &KeySource {
        &self.keys
    }

    /// The address space that is looked at.
    #[must_use]
    pub fn process(&self) -> ProcessKey {
        self.process
    }

    /// When this poll began, before anything was read: what it finds missing may
    /// have been there until then, and what the *next* look finds new was not there
    /// yet at this time.
    #[must_use]
    pub fn began(&self) -> TimeNs {
        self.began
    }

    /// All code of times before `time` has been told, in this poll or before; what an
    /// adapter that reads its VM's code less often than it looks says. Without it, that
    /// is when this poll began.
    pub fn code_is_told_until(&mut self, time: TimeNs) {
        self.told_until = time;
    }

    /// Until when all code has been told.
    #[must_use]
    pub fn told_until(&self) -> TimeNs {
        self.told_until
    }

    /// How much of a processor's time this poll may take for what can wait: what is only more
    /// precise for it. [`Duration::MAX`] where the session has no bound, nothing where adapters
    /// have used more than their share. An adapter that puts off for long what it would have
    /// told says so ([`Poll::limit`]).
    #[must_use]
    pub fn spare(&self) -> Duration {
        self.spare.saturating_sub(self.spent)
    }

    /// Whether the session bounds what adapters use.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.spare != Duration::MAX
    }

    /// Does what can wait: the CPU time that this thread uses meanwhile is taken from what
    /// there is to [`Poll::spare`].
    pub fn spending<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = cpu_time();
        let done = work(self);
        let used = cpu_time().saturating_sub(before);
        self.spent = self.spent.saturating_add(used);
        done
    }

    /// What was used of what there was to [`Poll::spare`].
    #[must_use]
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// The time now: what has been read by now was there by now.
    #[must_use]
    pub fn now(&self) -> TimeNs {
        (self.clock)()
    }

    /// Addresses of user space that samples of this process fell on since its adapter's
    /// last poll (or the beginning), and return addresses of their callers, where they lie
    /// in memory of no file: generated code. And every value that the places of
    /// [`crate::SampleNeeds::sources`] had in such samples (once
    /// [`Poll::interpreter`] has told where the interpreter is, in those there), whatever
    /// it is. Each once, ascending; at most [`MAX_TOUCHED_OF_A_POLL`], of which the
    /// recorder counts and tells what is beyond.
    #[must_use]
    pub fn touched(&self) -> &[Avma] {
        &self.touched
    }

    /// A change of the code zone. Changes are kept in the order they are told.
    pub fn code(&mut self, change: CodeChange) {
        self.push(match change {
            CodeChange::Seen(constituent) => Record::Constituent(Box::new(constituent)),
            CodeChange::Gone(gone) => Record::ConstituentGone(gone),
            CodeChange::Moved(moved) => Record::ConstituentMoved(moved),
        });
    }

    /// A method, before the first constituent or map that refers to it.
    pub fn method(&mut self, method: Method) {
        self.push(Record::Method(Box::new(method)));
    }

    /// A class, before the first lifetime that refers to it.
    pub fn class(&mut self, class: Class) {
        self.push(Record::Class(class));
    }

    /// A birth, survival or death.
    pub fn lifetime(&mut self, lifetime: Lifetime) {
        self.push(Record::Lifetime(Box::new(lifetime)));
    }

    /// A collection, or more about one.
    pub fn collection(&mut self, collection: Collection) {
        self.push(Record::Collection(Box::new(collection)));
    }

    /// A name or role of a thread.
    pub fn thread(&mut self, news: ThreadNews) {
        if self.has_room() {
            self.threads.push(news);
        }
    }

    /// What a compiler's thread is seen to compile, or was seen to until now.
    pub fn compilation(&mut self, news: CompilationNews) {
        if self.has_room() {
            self.compilations.push(news);
        }
    }

    /// Count and time of the VM's collections of one kind since it started, exact: of
    /// collector `collector`, and where it counts kinds apart, of this one (else empty).
    /// The report puts them beside the collections that were observed.
    pub fn collector_totals(
        &mut self,
        collector: &str,
        kind: &str,
        count: f64,
        time_ns: Option<f64>,
    ) {
        let total = CounterMeaning::Total;
        let label = Collection::label(collector, kind);
        self.counter(COLLECTIONS_SECTION, &label, "", total, count);
        if let Some(time) = time_ns {
            let name = format!("{label}{COLLECTION_TIME_SUFFIX}");
            self.counter(COLLECTIONS_SECTION, &name, "ns", total, time);
        }
    }

    /// Which of the VM's native functions belong to which part of it; `vm` is the
    /// adapter's own word for the VM.
    pub fn rules(&mut self, vm: &str, rules: Vec<RegionRule>) {
        self.push(Record::RegionRules(RegionRules {
            process: self.process,
            time: self.now(),
            vm: vm.to_owned(),
            rules,
        }));
    }

    /// Where the VM's interpreter is, and how its samples show what it executes; of
    /// more ranges and sources than a recording may have the first are told.
    pub fn interpreter(
        &mut self,
        vm: &str,
        mut ranges: Vec<(Avma, Avma)>,
        mut sources: Vec<InterpreterSource>,
    ) {
        ranges.truncate(InterpreterRules::MAX_RANGES);
        sources.truncate(InterpreterRules::MAX_SOURCES);
        self.push(Record::InterpreterRules(InterpreterRules {
            process: self.process,
            time: self.now(),
            vm: vm.to_owned(),
            ranges,
            sources,
        }));
    }

    /// A fact for the report's header.
    pub fn fact(&mut self, name: &str, value: String) {
        self.push(Record::Fact(Fact {
            process: self.process,
            time: self.now(),
            name: name.to_owned(),
            value,
        }));
    }

    /// A figure, read now, of the report's section `section`; `unit` is empty for a
    /// plain count.
    pub fn counter(
        &mut self,
        section: &str,
        name: &str,
        unit: &str,
        meaning: CounterMeaning,
        value: f64,
    ) {
        self.push(Record::Counter(Counter {
            process: self.process,
            time: self.now(),
            section: section.to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            meaning,
            value,
        }));
    }

    /// Something that limits what this adapter can tell.
    pub fn limit(&mut self, text: String, remedy: &str) {
        self.push(Record::Limit(Limit {
            time: self.now(),
            kind: LimitKind::AdapterIncomplete,
            text,
            remedy: remedy.to_owned(),
        }));
    }

    /// `count` things of `stream` that happened since `from` and could not be read.
    pub fn lost(&mut self, stream: Stream, count: u64, from: TimeNs) {
        self.push(Record::Lost(Lost {
            stream,
            reason: LossReason::Other,
            count,
            from,
            to: self.now(),
            thread: None,
        }));
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.threads.is_empty() && self.compilations.is_empty()
    }

    /// What compilers were seen to compile; to be taken before [`Poll::finish`].
    #[must_use]
    pub fn take_compilations(&mut self) -> Vec<CompilationNews> {
        std::mem::take(&mut self.compilations)
    }

    /// What was found, in the order it was told, with a record of what did not fit;
    /// and what is known about threads, for which the recorder has the keys.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Record>, Vec<ThreadNews>) {
        if self.dropped > 0 {
            self.records.push(Record::Lost(Lost {
                stream: Stream::Adapter,
                reason: LossReason::TooLarge,
                count: self.dropped,
                from: self.began,
                to: self.now(),
                thread: None,
            }));
        }
        (self.records, self.threads)
    }

    fn push(&mut self, record: Record) {
        if self.has_room() {
            self.records.push(record);
        }
    }

    fn has_room(&mut self) -> bool {
        let held = self.records.len() + self.threads.len() + self.compilations.len();
        let room = held < self.cap;
        self.dropped += u64::from(!room);
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let clock = Arc::new(|| TimeNs(5));
        let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock).with_room_for(2);
        for _ in 0..5 {
            poll.fact("x", "y".to_owned());
        }
        let (records, _) = poll.finish();
        assert_eq!(records.len(), 3);
        assert!(matches!(&records[2], Record::Lost(lost) if lost.count == 3));
    }
}
