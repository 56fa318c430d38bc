//! Results of one poll of an adapter.

use std::sync::Arc;
use std::time::Duration;

use vmscope_records::{
    AllocationSite, Avma, Births, COLLECTION_TIME_SUFFIX, COLLECTIONS_SECTION, Class, CodeChange,
    Collection, CollectionScope, Compilation, Counter, CounterMeaning, Fact, Fates,
    InterpreterRules, InterpreterSource, LifetimeCounts, Limit, LimitKind, LossReason, Lost,
    Method, ProcessKey, Record, RegionRule, RegionRules, Stream, ThreadKey, ThreadRole,
    ThreadUpdate, Tid, TimeNs,
};

use crate::{KeySource, cpu_time};

/// Cap on records per poll, about three times the contents of the largest code caches. Excess
/// records are only counted.
pub const MAX_RECORDS_OF_A_POLL: usize = 1 << 20;

/// Cap on addresses of samples that a poll can use.
pub const MAX_TOUCHED_OF_A_POLL: usize = 1 << 16;

/// The output of one poll of an adapter.
///
/// The recorder makes one per poll and takes its records. Excess records
/// ([`MAX_RECORDS_OF_A_POLL`]) count as lost: a hostile VM can't fill our memory.
pub struct Poll {
    keys: KeySource,
    process: ProcessKey,
    began: TimeNs,
    told_until: TimeNs,
    spare: Duration,
    spent: Duration,
    clock: Arc<dyn Fn() -> TimeNs + Send + Sync>,
    touched: Vec<Avma>,
    touched_until: TimeNs,
    records: Vec<Record>,
    event_time: Option<TimeNs>,
    cap: usize,
    dropped: u64,
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poll")
            .field("process", &self.process)
            .field("began", &self.began)
            .field("records", &self.records.len())
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

impl Poll {
    /// A poll of `process` that begins now, by `clock` (`CLOCK_MONOTONIC` in a recording).
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
            touched_until: began,
            records: Vec::new(),
            event_time: None,
            cap: MAX_RECORDS_OF_A_POLL,
            dropped: 0,
        }
    }

    /// Adds addresses of samples since the last poll, distinct and ascending, at most
    /// [`MAX_TOUCHED_OF_A_POLL`].
    #[must_use]
    pub fn with_touched(mut self, mut touched: Vec<Avma>) -> Self {
        touched.truncate(MAX_TOUCHED_OF_A_POLL);
        self.touched = touched;
        self
    }

    /// Sets a time: this poll and earlier polls have the addresses of all samples before it.
    /// Default: the start of this poll.
    #[must_use]
    pub fn with_touched_until(mut self, time: TimeNs) -> Self {
        self.touched_until = time;
        self
    }

    /// Adds a CPU time budget for deferrable work.
    #[must_use]
    pub fn with_spare(mut self, spare: Duration) -> Self {
        self.spare = spare;
        self
    }

    /// Sets the maximum number of records.
    #[must_use]
    pub fn with_room_for(mut self, cap: usize) -> Self {
        self.cap = cap;
        self
    }

    /// Source of keys.
    #[must_use]
    pub fn keys(&self) -> &KeySource {
        &self.keys
    }

    /// The polled address space.
    #[must_use]
    pub fn process(&self) -> ProcessKey {
        self.process
    }

    /// Start of this poll, before any read. Code missing now may have existed until then; new code
    /// in the *next* poll did not yet exist then.
    #[must_use]
    pub fn began(&self) -> TimeNs {
        self.began
    }

    /// Declares all code before `time` emitted, for adapters that read code less often than they
    /// poll. Default: the start of this poll.
    pub fn code_is_told_until(&mut self, time: TimeNs) {
        self.told_until = time;
    }

    /// Time up to which all code was emitted.
    #[must_use]
    pub fn told_until(&self) -> TimeNs {
        self.told_until
    }

    /// CPU time left for deferrable work, which only increases precision: [`Duration::MAX`] without
    /// a limit, zero if adapters exceeded their share. An adapter that defers work for long reports
    /// a limit ([`Poll::limit`]).
    #[must_use]
    pub fn spare(&self) -> Duration {
        self.spare.saturating_sub(self.spent)
    }

    /// Whether the session limits CPU time of adapters.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.spare != Duration::MAX
    }

    /// Does deferrable work; subtracts its CPU time from [`Poll::spare`].
    pub fn spending<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = cpu_time();
        let done = work(self);
        let used = cpu_time().saturating_sub(before);
        self.spent = self.spent.saturating_add(used);
        done
    }

    /// CPU time of deferrable work in this poll.
    #[must_use]
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// The current time: an upper bound for everything read so far.
    #[must_use]
    pub fn now(&self) -> TimeNs {
        (self.clock)()
    }

    /// Sets the time of facts, counters, rules, names, losses and limits that follow, for VMs that tell
    /// when an event happened; `None`, the default: the time of their emission.
    pub fn happened_at(&mut self, time: Option<TimeNs>) {
        self.event_time = time;
    }

    fn time(&self) -> TimeNs {
        self.event_time.unwrap_or_else(|| self.now())
    }

    /// User-space addresses in memory without a file (generated code) from samples of this process
    /// since its adapter's last poll: pcs and return addresses. Also every value at
    /// [`crate::SampleNeeds::sources`] in these samples (after [`Poll::interpreter`], only samples
    /// inside its ranges). Distinct, ascending, at most [`MAX_TOUCHED_OF_A_POLL`]; the recorder
    /// reports excess ones.
    #[must_use]
    pub fn touched(&self) -> &[Avma] {
        &self.touched
    }

    /// Time before which no sample's address is missing in [`Poll::touched`] of this poll and
    /// earlier ones, except those that the recorder reports.
    #[must_use]
    pub fn touched_until(&self) -> TimeNs {
        self.touched_until
    }

    /// Emits a change of the code zone; order is kept.
    pub fn code(&mut self, change: CodeChange) {
        self.push(match change {
            CodeChange::Seen(constituent) => Record::Constituent(Box::new(constituent)),
            CodeChange::Gone(gone) => Record::ConstituentGone(gone),
            CodeChange::Moved(moved) => Record::ConstituentMoved(moved),
        });
    }

    /// Emits a method, before the first constituent or map that refers to it.
    pub fn method(&mut self, method: Method) {
        self.push(Record::Method(Box::new(method)));
    }

    /// Emits a class, before the first lifetime that refers to it.
    pub fn class(&mut self, class: Class) {
        self.push(Record::Class(class));
    }

    /// Emits an allocation site, before the first birth that refers to it.
    pub fn site(&mut self, site: AllocationSite) {
        self.push(Record::AllocationSite(Box::new(site)));
    }

    /// Emits births.
    pub fn births(&mut self, births: Births) {
        self.push(Record::Births(Box::new(births)));
    }

    /// Emits survivals and deaths.
    pub fn fates(&mut self, fates: Fates) {
        self.push(Record::Fates(Box::new(fates)));
    }

    /// Emits counts of objects.
    pub fn lifetime_counts(&mut self, counts: LifetimeCounts) {
        self.push(Record::LifetimeCounts(Box::new(counts)));
    }

    /// Emits a collection, or further data of a known collection.
    pub fn collection(&mut self, collection: Collection) {
        self.push(Record::Collection(Box::new(collection)));
    }

    /// Emits the VM's name for thread `tid`, if it is more informative than the kernel's, and its role.
    /// (`tid` is the id in vmscope's pid namespace. VMs know ids of the inner one;
    /// [`crate::ProcessView::threads`] has both.)
    pub fn thread(&mut self, tid: Tid, name: Option<String>, role: Option<ThreadRole>) {
        self.push(Record::ThreadUpdate(ThreadUpdate {
            key: ThreadKey::of_tid(tid),
            time: self.time(),
            name,
            role,
            process: None,
        }));
    }

    /// Emits a running compilation, or its end. Emitted again, with equal thread, id and `first_seen`,
    /// after later observations.
    pub fn compilation(&mut self, compilation: Compilation) {
        // Readers reject any other order.
        let (first, last) = (compilation.first_seen, compilation.last_seen);
        let last_seen = last.max(first);
        self.push(Record::Compilation(Box::new(Compilation {
            process: self.process,
            last_seen,
            absent_at: compilation.absent_at.map(|time| time.min(first)),
            gone_at: compilation.gone_at.map(|time| time.max(last_seen)),
            ..compilation
        })));
    }

    /// Emits exact number and time of a VM's collections, cycles or pauses since its start, per
    /// collector and kind (empty if the VM does not distinguish kinds). The report compares them with
    /// observed ones.
    pub fn collector_totals(
        &mut self,
        collector: &str,
        kind: &str,
        scope: CollectionScope,
        (count, time_ns): (f64, Option<f64>),
    ) {
        let total = CounterMeaning::Total;
        let label = Collection::label(collector, kind);
        self.counter(COLLECTIONS_SECTION, &label, scope.unit(), total, count);
        if let Some(time) = time_ns {
            let name = format!("{label}{COLLECTION_TIME_SUFFIX}");
            self.counter(COLLECTIONS_SECTION, &name, "ns", total, time);
        }
    }

    /// Emits rules that assign the VM's native functions to its components; `vm` is the adapter's
    /// name for the VM.
    pub fn rules(&mut self, vm: &str, rules: Vec<RegionRule>) {
        self.push(Record::RegionRules(RegionRules {
            process: self.process,
            time: self.time(),
            vm: vm.to_owned(),
            rules,
        }));
    }

    /// Emits the interpreter's ranges and the sources of its position, cut to the maximum of a
    /// recording.
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
            time: self.time(),
            vm: vm.to_owned(),
            ranges,
            sources,
        }));
    }

    /// Emits a line of the report's header.
    pub fn fact(&mut self, name: &str, value: String) {
        self.push(Record::Fact(Fact {
            process: self.process,
            time: self.time(),
            name: name.to_owned(),
            value,
        }));
    }

    /// Emits a figure, read now, for the report's section `section`; `unit` is empty for plain
    /// counts.
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
            time: self.time(),
            section: section.to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            meaning,
            value,
        }));
    }

    /// Emits a limit of this adapter's data.
    pub fn limit(&mut self, text: String, remedy: &str) {
        self.limit_of(LimitKind::AdapterIncomplete, text, remedy);
    }

    /// Emits a limit of a kind.
    pub fn limit_of(&mut self, kind: LimitKind, text: String, remedy: &str) {
        self.push(Record::Limit(Limit {
            time: self.time(),
            kind,
            text,
            remedy: remedy.to_owned(),
        }));
    }

    /// Emits a loss: `count` unreadable items of `stream` since `from`.
    pub fn lost(&mut self, stream: Stream, count: u64, from: TimeNs) {
        self.push(Record::Lost(Lost {
            stream,
            reason: LossReason::Other,
            count,
            from,
            to: self.time(),
            thread: None,
        }));
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether the poll found nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Records in order of emission, with a loss record for excess ones. Threads have placeholders
    /// ([`ThreadKey::of_tid`]) for keys, which only the recorder knows.
    #[must_use]
    pub fn finish(mut self) -> Vec<Record> {
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
        self.records
    }

    fn push(&mut self, record: Record) {
        if self.has_room() {
            self.records.push(record);
        }
    }

    fn has_room(&mut self) -> bool {
        let room = self.records.len() < self.cap;
        self.dropped += u64::from(!room);
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_tells_when_an_event_happened() {
        let clock = Arc::new(|| TimeNs(50));
        let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock);
        poll.happened_at(Some(TimeNs(7)));
        poll.fact("x", String::new());
        poll.lost(Stream::Adapter, 1, TimeNs(3));
        poll.happened_at(None);
        poll.fact("y", String::new());
        let times = poll.finish().into_iter().filter_map(|one| one.time());
        assert_eq!(
            times.collect::<Vec<_>>(),
            [TimeNs(7), TimeNs(7), TimeNs(50)]
        );
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let clock = Arc::new(|| TimeNs(5));
        let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock).with_room_for(2);
        for _ in 0..5 {
            poll.fact("x", "y".to_owned());
        }
        let records = poll.finish();
        assert_eq!(records.len(), 3);
        assert!(matches!(&records[2], Record::Lost(lost) if lost.count == 3));
    }
}
