//! What must be kept of a running recording so that its newest part makes sense:
//! the threads, mappings and code that are there now, or were in the window.

use crate::{
    Constituent, ConstituentGone, ConstituentKey, ConstituentMoved, Content, Mapping, MethodKey,
    PcMap, Process, ProcessEnd, ProcessKey, Record, ThreadKey, TimeNs,
};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Sweeping methods that nothing refers to any more pays from so many on.
const METHODS_BEFORE_SWEEP: usize = 4096;

/// Everything that is not a sample or a lifetime, without what has become
/// irrelevant to the time since `horizon`.
#[derive(Debug, Default)]
pub(super) struct LastingState {
    /// Session, limits, modules, classes, facts and other kinds that don't pass.
    constant: Vec<Record>,
    processes: BTreeMap<ProcessKey, (Process, Option<ProcessEnd>)>,
    /// A thread's start and end.
    threads: BTreeMap<ThreadKey, (Vec<Record>, Option<TimeNs>)>,
    mappings: BTreeMap<ProcessKey, Vec<MappingLife>>,
    code: BTreeMap<ConstituentKey, CodeLife>,
    methods: HashMap<MethodKey, Record>,
    methods_after_sweep: usize,
    /// The newest value of each counter before the horizon, by section and name.
    counters: HashMap<(ProcessKey, String, String), Record>,
    /// The newest CPU time of each thread before the horizon.
    cpu_before: HashMap<ThreadKey, Record>,
    /// Records that matter only for their own time: collections, losses, counters.
    passing: VecDeque<(TimeNs, Record)>,
}

/// A mapping, and when something else took its place.
#[derive(Debug)]
struct MappingLife {
    record: Record,
    start: u64,
    end: u64,
    gone: Option<TimeNs>,
}

/// A constituent's life so far.
#[derive(Debug)]
struct CodeLife {
    constituent: Box<Constituent>,
    moves: Vec<ConstituentMoved>,
    gone: Option<ConstituentGone>,
}

impl LastingState {
    /// Takes a record into the state.
    pub fn put(&mut self, record: Record) {
        match record {
            Record::Session(_)
            | Record::Limit(_)
            | Record::Module(_)
            | Record::Class(_)
            | Record::Fact(_)
            | Record::Symbols(_) => self.put_constant(record),
            Record::Process(process) => {
                self.processes.insert(process.key, (process, None));
            }
            Record::ProcessEnd(end) => {
                if let Some((_, slot)) = self.processes.get_mut(&end.key) {
                    *slot = Some(end);
                }
            }
            Record::Thread(ref thread) => {
                self.threads.insert(thread.key, (vec![record], None));
            }
            Record::ThreadUpdate(update) => {
                // Into the thread's start: so a thread that is renamed for ever needs
                // no more room, and its newest name is the one that is shown anyway.
                let records = self
                    .threads
                    .get_mut(&update.key)
                    .map(|(records, _)| records);
                if let Some(Record::Thread(thread)) = records.and_then(|r| r.first_mut()) {
                    thread.name = update.name.unwrap_or(std::mem::take(&mut thread.name));
                    thread.role = update.role.unwrap_or(thread.role);
                    thread.process = update.process.unwrap_or(thread.process);
                }
            }
            Record::ThreadEnd(ref end) => {
                if let Some((records, ended)) = self.threads.get_mut(&end.key) {
                    *ended = Some(end.time);
                    records.push(record);
                }
            }
            Record::Mapping(ref mapping) => {
                let Mapping {
                    process,
                    start,
                    end,
                    time,
                    ..
                } = *mapping;
                self.bury_mappings(process, start.0, end.0, time);
                self.mappings.entry(process).or_default().push(MappingLife {
                    record,
                    start: start.0,
                    end: end.0,
                    gone: None,
                });
            }
            Record::Unmapping(ref unmapping) => {
                let (start, end) = (unmapping.start.0, unmapping.end.0);
                self.bury_mappings(unmapping.process, start, end, unmapping.time);
                self.passing.push_back((unmapping.time, record));
            }
            Record::Constituent(constituent) => {
                let key = constituent.key;
                match self.code.get_mut(&key) {
                    Some(life) => life.constituent = constituent,
                    None => {
                        let life = CodeLife {
                            constituent,
                            moves: Vec::new(),
                            gone: None,
                        };
                        self.code.insert(key, life);
                    }
                }
            }
            Record::ConstituentGone(gone) => {
                if let Some(life) = self.code.get_mut(&gone.key) {
                    life.gone = Some(gone);
                }
            }
            Record::ConstituentMoved(moved) => {
                if let Some(life) = self.code.get_mut(&moved.key) {
                    life.moves.push(moved);
                }
            }
            Record::Method(ref method) => {
                self.methods.insert(method.key, record);
            }
            Record::Collection(_) | Record::Lost(_) | Record::Counter(_) | Record::ThreadCpu(_) => {
                let time = record.time().unwrap_or_default();
                self.passing.push_back((time, record));
            }
            // Samples and lifetimes are kept as chunks; the end is written at the end.
            Record::Sample(_) | Record::Lifetime(_) | Record::End(_) => {}
        }
    }

    /// A session record replaces the one before; a fact the one of its name.
    fn put_constant(&mut self, record: Record) {
        let same = |other: &Record| match (other, &record) {
            (Record::Session(_), Record::Session(_)) => true,
            (Record::Fact(a), Record::Fact(b)) => a.process == b.process && a.name == b.name,
            (Record::Limit(a), Record::Limit(b)) => a.kind == b.kind && a.text == b.text,
            _ => false,
        };
        match self.constant.iter_mut().find(|other| same(other)) {
            Some(slot) => *slot = record,
            None => self.constant.push(record),
        }
    }

    /// Marks mappings that lie wholly inside `[start, end)` as gone.
    fn bury_mappings(&mut self, process: ProcessKey, start: u64, end: u64, time: TimeNs) {
        for life in self.mappings.entry(process).or_default() {
            if life.gone.is_none() && start <= life.start && life.end <= end {
                life.gone = Some(time);
            }
        }
    }

    /// Forgets what ended before `horizon`.
    pub fn forget_before(&mut self, horizon: TimeNs) {
        let past = |time: &TimeNs| *time < horizon;
        self.threads
            .retain(|_, (_, ended)| !ended.as_ref().is_some_and(past));
        for lives in self.mappings.values_mut() {
            lives.retain(|life| !life.gone.as_ref().is_some_and(past));
        }
        // A process whose children live on has mappings that are theirs too.
        let parents: HashSet<ProcessKey> = self
            .processes
            .values()
            .filter_map(|(process, _)| process.parent)
            .collect();
        let mappings = &mut self.mappings;
        self.processes.retain(|key, (_, end)| {
            let dead = end.as_ref().is_some_and(|end| end.time < horizon);
            let keep = !dead || parents.contains(key);
            if !keep {
                mappings.remove(key);
            }
            keep
        });
        self.code
            .retain(|_, life| life.gone.as_ref().is_none_or(|gone| gone.time >= horizon));
        for life in self.code.values_mut() {
            // Of the moves before the horizon the last one says where it was then.
            let old = life.moves.partition_point(|moved| moved.time < horizon);
            life.moves.drain(..old.saturating_sub(1));
        }
        while let Some((time, _)) = self.passing.front() {
            if *time >= horizon {
                break;
            }
            match self.passing.pop_front() {
                Some((_, record @ Record::ThreadCpu(cpu))) => {
                    self.cpu_before.insert(cpu.key, record);
                }
                Some((_, Record::Counter(counter))) => {
                    let key = (
                        counter.process,
                        counter.section.clone(),
                        counter.name.clone(),
                    );
                    self.counters.insert(key, Record::Counter(counter));
                }
                _ => {}
            }
        }
        self.cpu_before
            .retain(|key, _| self.threads.contains_key(key));
    }

    /// Forgets methods that no code refers to. `lifetimes` says whether lifetime
    /// chunks are kept, whose sites may refer to any.
    pub fn sweep_methods(&mut self, lifetimes: bool) {
        let due = self.methods.len() >= METHODS_BEFORE_SWEEP.max(2 * self.methods_after_sweep);
        if lifetimes || !due {
            return;
        }
        let mut used: HashSet<MethodKey> = HashSet::new();
        for life in self.code.values() {
            let constituent = &life.constituent;
            used.extend(constituent.method);
            used.extend(constituent.cases.iter().filter_map(|case| case.method));
            if let PcMap::Covers { chains, .. } = &constituent.map {
                used.extend(chains.iter().flatten().map(|frame| frame.method));
            }
        }
        self.methods.retain(|key, _| used.contains(key));
        self.methods_after_sweep = self.methods.len();
    }

    /// Everything kept, in an order in which nothing is referred to before it is
    /// told.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let processes = self.processes.values();
        let code = self.code.values();
        (self.constant.iter().cloned())
            .chain(
                processes
                    .clone()
                    .map(|(process, _)| Record::Process(process.clone())),
            )
            .chain(
                self.threads
                    .values()
                    .flat_map(|(records, _)| records.iter().cloned()),
            )
            .chain(
                self.mappings
                    .values()
                    .flatten()
                    .map(|life| life.record.clone()),
            )
            .chain(self.methods.values().cloned())
            .chain(
                code.clone()
                    .map(|life| Record::Constituent(life.constituent.clone())),
            )
            .chain(
                code.clone()
                    .flat_map(|l| l.moves.iter().cloned().map(Record::ConstituentMoved)),
            )
            .chain(code.filter_map(|life| life.gone.clone().map(Record::ConstituentGone)))
            .chain(
                self.counters
                    .values()
                    .chain(self.cpu_before.values())
                    .cloned(),
            )
            .chain(self.passing.iter().map(|(_, record)| record.clone()))
            .chain(processes.filter_map(|(_, end)| end.clone().map(Record::ProcessEnd)))
            .filter(|record| record.content() == Content::STATE)
    }
}
