//! State of a running recording that its newest part needs: threads, mappings and code present now
//! or during the window.

use super::lives::{CodeLife, Departed, ProcessLife, ThreadLife};
use super::mappings::Mappings;
use super::residents::Residents;
use crate::{
    AllocationSite, ClassKey, ConstituentKey, Content, Limit, LimitKind, MethodKey, ModuleKey,
    PcMap, Process, ProcessKey, Record, SiteKey, ThreadKey, ThreadUpdate, TimeNs,
};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Below this number, unused methods are not swept.
const METHODS_BEFORE_SWEEP: usize = 4096;

/// Up to this number, unused modules stay, so that mapping one again writes no second record.
const MODULES_BEFORE_SWEEP: usize = 4096;

/// Cap on ended processes with inherited code.
const MAX_ANCESTORS: usize = 4096;

/// Cap on distinct limits.
const MAX_LIMITS: usize = 256;

/// All records other than samples and lifetimes, except those irrelevant since `horizon`.
#[derive(Debug, Default)]
pub(super) struct LastingState {
    /// Newest session record, and newest symbols per owner.
    constant: Vec<Record>,
    limits: Vec<Limit>,
    gone_bytes: usize,
    /// Number of dropped limits.
    limits_left_out: u64,
    facts: BTreeMap<(ProcessKey, String), Record>,
    rules: BTreeMap<(ProcessKey, String), Record>,
    interpreters: BTreeMap<(ProcessKey, String), Record>,
    /// The newest record of each compilation.
    compilations: BTreeMap<(ThreadKey, u64, TimeNs), Record>,
    classes: BTreeMap<ClassKey, (ProcessKey, Record)>,
    /// All allocation sites, since later births may refer to them. Programs have few.
    sites: BTreeMap<SiteKey, Box<AllocationSite>>,
    modules: BTreeMap<ModuleKey, (TimeNs, Record)>,
    processes: BTreeMap<ProcessKey, ProcessLife>,
    threads: BTreeMap<ThreadKey, ThreadLife>,
    mappings: BTreeMap<ProcessKey, Mappings>,
    code: BTreeMap<ConstituentKey, CodeLife>,
    residents: Residents,
    methods: HashMap<MethodKey, Record>,
    methods_after_sweep: usize,
    /// Newest value of each counter before the horizon, by section and name.
    counters: HashMap<(ProcessKey, String, String), Record>,
    /// Newest CPU time of each thread before the horizon.
    cpu_before: HashMap<ThreadKey, Record>,
    /// Records relevant only at their own time: collections, losses, counters, marks.
    passing: VecDeque<(TimeNs, Record)>,
}

impl LastingState {
    pub fn put(&mut self, record: Record) {
        match record {
            Record::Session(_) | Record::Symbols(_) => self.put_constant(record),
            Record::Limit(limit) => self.put_limit(limit),
            Record::Fact(ref fact) => {
                self.facts.insert((fact.process, fact.name.clone()), record);
            }
            Record::RegionRules(ref rules) => {
                self.rules.insert((rules.process, rules.vm.clone()), record);
            }
            Record::InterpreterRules(ref rules) => {
                (self.interpreters).insert((rules.process, rules.vm.clone()), record);
            }
            Record::Compilation(ref compilation) => {
                self.compilations.insert(compilation.identity(), record);
            }
            Record::Class(ref class) => {
                self.classes.insert(class.key, (class.process, record));
            }
            Record::AllocationSite(site) => {
                self.sites.insert(site.key, site);
            }
            Record::Module(ref module) => {
                self.modules.insert(module.key, (module.time, record));
            }
            Record::Process(process) => self.put_process(process),
            Record::ProcessEnd(end) => {
                if let Some(life) = self.processes.get_mut(&end.key) {
                    life.end = Some(end);
                }
            }
            Record::Thread(ref thread) => {
                let life = ThreadLife {
                    process: thread.process,
                    ended: None,
                    records: Vec::new(),
                };
                let life = self.threads.entry(thread.key).or_insert(life);
                life.records.clear();
                life.records.push(record);
            }
            Record::ThreadUpdate(update) => {
                // Renames change the thread's start record: endless renames take no memory, and
                // reports show the newest name only.
                let Some(life) = self.threads.get_mut(&update.key) else {
                    return;
                };
                if let Some(Record::Thread(thread)) = life.records.first_mut() {
                    thread.name = update.name.unwrap_or(std::mem::take(&mut thread.name));
                    thread.role = update.role.unwrap_or(thread.role);
                }
                if let Some(process) = update.process {
                    // The change of address space keeps its own time.
                    life.process = process;
                    let (key, time) = (update.key, update.time);
                    let record = Record::ThreadUpdate(ThreadUpdate {
                        key,
                        time,
                        name: None,
                        role: None,
                        process: Some(process),
                    });
                    self.passing.push_back((time, record));
                }
            }
            Record::ThreadEnd(ref end) => {
                if let Some(life) = self.threads.get_mut(&end.key) {
                    life.ended = Some(end.time);
                    life.records.truncate(1);
                    life.records.push(record);
                }
            }
            Record::Mapping(mapping) => {
                let mappings = self.mappings.entry(mapping.process).or_default();
                mappings.map(mapping);
            }
            Record::Unmapping(ref unmapping) => {
                let (start, end) = (unmapping.start.0, unmapping.end.0);
                let mappings = self.mappings.entry(unmapping.process).or_default();
                mappings.unmap(start, end, unmapping.time);
                self.passing.push_back((unmapping.time, record));
            }
            Record::Constituent(constituent) => {
                let key = constituent.key;
                match self.code.get_mut(&key) {
                    Some(life) => life.constituent.update(*constituent),
                    None => {
                        let (since, start) = (constituent.since, constituent.start.0);
                        self.residents.put(since, key, start);
                        self.code.insert(key, CodeLife::new(constituent));
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
                    self.residents.put(moved.time, moved.key, moved.to.0);
                    life.moves.push(moved);
                }
            }
            Record::Method(ref method) => {
                self.methods.insert(method.key, record);
            }
            // Chunks hold samples and lifetimes; saving writes the end.
            Record::Sample(_)
            | Record::Births(_)
            | Record::Fates(_)
            | Record::LifetimeCounts(_)
            | Record::End(_) => {}
            _ => {
                let time = record.time().unwrap_or_default();
                self.passing.push_back((time, record));
            }
        }
    }

    /// A later session record, or later symbols of the same owner, replace earlier ones.
    fn put_constant(&mut self, record: Record) {
        let same = |other: &Record| match (other, &record) {
            (Record::Session(_), Record::Session(_)) => true,
            (Record::Symbols(a), Record::Symbols(b)) => a.owner == b.owner,
            _ => false,
        };
        match self.constant.iter_mut().find(|other| same(other)) {
            Some(slot) => *slot = record,
            None => self.constant.push(record),
        }
    }

    /// Keeps distinct limits; counts those beyond a reader's maximum.
    fn put_limit(&mut self, limit: Limit) {
        let same = |other: &Limit| other.kind == limit.kind && other.text == limit.text;
        if self.limits.iter().any(same) {
            return;
        }
        if self.limits.len() < MAX_LIMITS {
            self.limits.push(limit);
        } else {
            self.limits_left_out += 1;
        }
    }

    /// Copies the parent's mappings for a forked process: the parent may end or unmap them. A
    /// forked process written again without a parent has executed another program.
    fn put_process(&mut self, process: Process) {
        let parent = process.parent.and_then(|key| self.processes.get(&key));
        let forked = parent.is_some_and(|parent| parent.process.pid != process.pid);
        match self.processes.get_mut(&process.key) {
            Some(known) if known.forked && process.parent.is_none() => {
                self.mappings.remove(&process.key);
            }
            Some(known) => {
                // Start time and parent of the first record stay.
                let (time, parent) = (known.process.time, known.process.parent);
                known.process = Process {
                    time,
                    parent,
                    ..process
                };
                return;
            }
            None => {}
        }
        if forked
            && let Some(mappings) = process.parent.and_then(|key| self.mappings.get(&key))
            && !self.mappings.contains_key(&process.key)
        {
            let forked = mappings.forked(process.key, process.time);
            self.mappings.insert(process.key, forked);
        }
        let life = ProcessLife {
            process,
            forked,
            end: None,
        };
        self.processes.insert(life.process.key, life);
    }

    /// Drops state that ended before `horizon`.
    pub fn forget_before(&mut self, horizon: TimeNs) {
        let past = |time: TimeNs| time < horizon;
        self.residents.advance(&mut self.code, horizon);
        let code = self.code.values();
        let departed = Departed::of(&self.processes, code, horizon, MAX_ANCESTORS);
        self.forget_processes(&departed, horizon);
        self.forget_code(&departed, horizon);
        self.threads.retain(|_, life| !life.ended.is_some_and(past));
        self.compilations
            .retain(|_, record| !record.time().is_some_and(past));
        for mappings in self.mappings.values_mut() {
            mappings.forget_before(horizon);
        }
        if self.modules.len() > MODULES_BEFORE_SWEEP {
            let used: HashSet<ModuleKey> =
                self.mappings.values().flat_map(Mappings::modules).collect();
            // A recent module may precede its mapping.
            self.modules
                .retain(|key, (time, _)| used.contains(key) || !past(*time));
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
                Some((_, Record::ThreadUpdate(update))) => {
                    let life = self.threads.get_mut(&update.key);
                    if let Some(Record::Thread(thread)) = life.and_then(|l| l.records.first_mut()) {
                        thread.process = update.process.unwrap_or(thread.process);
                    }
                }
                _ => {}
            }
        }
        self.cpu_before
            .retain(|key, _| self.threads.contains_key(key));
    }

    /// Memory of removed code and mappings in bytes; of code, at the last removal of old state.
    pub fn gone_bytes(&self) -> usize {
        let mappings = self.mappings.values().map(Mappings::gone_bytes);
        self.gone_bytes + mappings.sum::<usize>()
    }

    fn count_gone(&mut self) {
        let there = self.code.values().filter(|life| life.gone.is_none());
        let mut counted: HashSet<MethodKey> = there.filter_map(|l| l.constituent.method).collect();
        let gone = self.code.values().filter(|life| life.gone.is_some());
        let bytes = gone.map(|life| {
            let method = life.constituent.method.filter(|key| counted.insert(*key));
            let method = method.and_then(|key| self.methods.get(&key));
            let of_method = match method {
                Some(Record::Method(method)) => method.heap_bytes(),
                _ => 0,
            };
            life.bytes() + of_method
        });
        self.gone_bytes = bytes.sum();
    }

    /// Drops code removed or replaced before `horizon`, except code that forked processes inherited.
    fn forget_code(&mut self, departed: &Departed, horizon: TimeNs) {
        self.code.retain(|_, life| {
            let process = life.constituent.process;
            // Code of an already dropped process is irrelevant.
            let known = life.constituent.since >= horizon || self.processes.contains_key(&process);
            let over = departed.all.contains(&process) || life.gone_before(horizon);
            let inherited = !departed.is_forgotten(process) && departed.is_inherited(life);
            let kept = known && (!over || inherited);
            if !kept {
                self.residents.remove(life);
            }
            kept
        });
        for life in self.code.values_mut() {
            let times = departed.forks_of(life.constituent.process);
            life.forget_moves(horizon, times);
        }
        self.count_gone();
    }

    /// Drops ended processes with all their records. Processes with inherited code stay, without
    /// other records.
    fn forget_processes(&mut self, departed: &Departed, horizon: TimeNs) {
        if departed.too_many > 0 {
            self.put_limit(Limit {
                time: horizon,
                kind: LimitKind::Other,
                text: "too many ended parents of forked processes: inherited JIT code has no names"
                    .into(),
                remedy: "record without --keep-last".into(),
            });
        }
        let gone = &departed.all;
        if gone.is_empty() {
            return;
        }
        self.processes.retain(|key, _| !departed.is_forgotten(*key));
        for life in self.processes.values_mut() {
            let process = &mut life.process;
            process.parent = process.parent.filter(|key| !departed.is_forgotten(*key));
        }
        self.mappings.retain(|key, _| !gone.contains(key));
        self.threads.retain(|_, life| !gone.contains(&life.process));
        self.facts.retain(|(process, _), _| !gone.contains(process));
        self.rules.retain(|(process, _), _| !gone.contains(process));
        // Forked processes run their ancestor's interpreter.
        self.interpreters
            .retain(|(process, _), _| !departed.is_forgotten(*process));
        self.sites.retain(|_, site| !gone.contains(&site.process));
        self.classes
            .retain(|_, (process, _)| !gone.contains(process));
        self.counters
            .retain(|(process, ..), _| !gone.contains(process));
    }

    /// Drops methods without references from code or from `lifetimes` (allocation sites of kept
    /// chunks).
    pub fn sweep_methods(&mut self) {
        if self.methods.len() < METHODS_BEFORE_SWEEP.max(2 * self.methods_after_sweep) {
            return;
        }
        let sites = self.sites.values().flat_map(|site| &site.frames);
        let mut used: HashSet<MethodKey> = sites.map(|(method, _)| *method).collect();
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

    /// All kept records in order of reference.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let processes = self.processes.values();
        let code = self.code.values();
        (self.constant.iter().cloned())
            .chain(self.limits.iter().cloned().map(Record::Limit))
            .chain(self.limits_left_out())
            .chain(
                processes
                    .clone()
                    .map(|life| Record::Process(life.process.clone())),
            )
            .chain(processes.clone().filter_map(ProcessLife::not_inherited))
            .chain(self.facts.values().cloned())
            .chain(self.rules.values().cloned())
            .chain(self.interpreters.values().cloned())
            .chain(self.classes.values().map(|(_, record)| record.clone()))
            .chain(self.modules.values().map(|(_, record)| record.clone()))
            .chain(
                self.threads
                    .values()
                    .flat_map(|l| l.records.iter().cloned()),
            )
            .chain(
                self.mappings
                    .values()
                    .flat_map(Mappings::iter)
                    .map(Record::Mapping),
            )
            .chain(self.compilations.values().cloned())
            .chain(self.methods.values().cloned())
            .chain(self.sites.values().cloned().map(Record::AllocationSite))
            .chain(
                code.clone()
                    .map(|life| Record::Constituent(life.constituent.clone())),
            )
            .chain(
                code.clone()
                    .flat_map(|l| l.moves.iter().cloned().map(Record::ConstituentMoved)),
            )
            .chain(code.filter_map(|life| life.end().map(Record::ConstituentGone)))
            .chain(
                self.counters
                    .values()
                    .chain(self.cpu_before.values())
                    .cloned(),
            )
            .chain(self.passing.iter().map(|(_, record)| record.clone()))
            .chain(processes.filter_map(|life| life.end.clone().map(Record::ProcessEnd)))
            .filter(|record| record.content() == Content::STATE)
    }

    fn limits_left_out(&self) -> Option<Record> {
        let time = self.limits.last()?.time;
        (self.limits_left_out > 0).then(|| {
            Record::Limit(Limit {
                time,
                kind: LimitKind::Other,
                text: format!("{} more limits are not listed", self.limits_left_out),
                remedy: String::new(),
            })
        })
    }
}
