//! The first pass: all records except samples.

use super::ahead::each_item;
use super::{Trace, TraceError, TraceThread, Watch};
use crate::ids::ThreadId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{
    Compilation, Content, InterpreterRules, Mapping, Process, ProcessKey, Record, RegionRules,
    ThreadKey, ThreadUpdate, TimeNs, Unmapping, is_shared_memory,
};

/// The most rules of a VM: each rule is compared with each function.
pub(crate) const MAX_RULES: usize = 4096;

/// The most changes of mappings that are read ahead of the samples: a program may make thousands
/// a second. Later ones must stand before the samples that need them.
pub(crate) const MAX_MAPPINGS: u64 = 1 << 16;

/// Changes by time and recording order.
pub(crate) type Changes = BTreeMap<(TimeNs, u64), Change>;

/// A change of an address space, or of a thread's address space.
#[derive(Debug)]
pub(crate) enum Change {
    /// A process begins. [`Trace::is_fork`] tells forks, from the parent's record, which may come
    /// later.
    Begin(Process),
    /// A process ends.
    End(ProcessKey),
    Map(Mapping),
    Unmap(Unmapping),
    /// A thread continues in another address space.
    Exec(ThreadId, ProcessKey),
}

impl Change {
    pub(crate) fn of_mapping(record: Record) -> Option<(TimeNs, Self)> {
        match record {
            Record::Mapping(mut mapping) => {
                // Modules have the names; a name may take megabytes.
                mapping.name = String::new();
                Some((mapping.time, Change::Map(mapping)))
            }
            Record::Unmapping(unmapping) => Some((unmapping.time, Change::Unmap(unmapping))),
            _ => None,
        }
    }
}

impl Trace {
    /// Reads all records except samples. Returns the changes, and whether mappings have more than
    /// [`MAX_MAPPINGS`] changes, which the second pass then reads.
    pub(crate) fn read_state<R: Read + Seek + Send>(
        &mut self,
        reader: &mut Reader<R>,
        watch: Watch,
    ) -> Result<(Changes, bool), TraceError> {
        let mut changes = Vec::new();
        let mut mappings = 0;
        let mut updates = Vec::new();
        let wanted = Content(!Content::SAMPLES.0);
        let unread = each_item(reader, wanted, (0, watch), |_, item, memory| {
            let is_kept = match item {
                Item::Record(Record::ThreadUpdate(update)) => {
                    updates.push(update);
                    true
                }
                Item::Record(record @ (Record::Mapping(_) | Record::Unmapping(_))) => {
                    mappings += 1;
                    self.note_extent(&record);
                    if mappings <= MAX_MAPPINGS {
                        changes.extend(Change::of_mapping(record));
                    }
                    mappings <= MAX_MAPPINGS
                }
                Item::Record(record) => self.take(record, &mut changes),
                Item::Samples(_) => false,
                Item::Unknown(_) => {
                    self.unknown_records += 1;
                    false
                }
                Item::Malformed(..) => {
                    self.malformed_records += 1;
                    false
                }
            };
            self.state_memory += if is_kept { memory as u64 } else { 0 };
            match self.is_state_full() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        if let Some((offset, length)) = unread {
            self.note_unread(offset, length);
        }
        self.update_threads(updates, &mut changes);
        for thread in &mut self.threads {
            thread.cpu.sort_by_key(|cpu| cpu.time);
        }
        self.keep_newest();
        self.marks.sort_by_key(|mark| mark.time);
        let changes = (0..).zip(changes);
        let changes = changes.map(|(number, (time, change))| ((time, number), change));
        Ok((changes.collect(), mappings > MAX_MAPPINGS))
    }

    /// Returns whether the record is kept.
    pub(crate) fn take(&mut self, record: Record, changes: &mut Vec<(TimeNs, Change)>) -> bool {
        match record {
            Record::Session(session) => self.session = Some(*session),
            Record::Limit(limit) => self.limits.push(limit),
            Record::Process(process) => {
                changes.push((process.time, Change::Begin(process.clone())));
                self.processes.insert(process.key, process);
            }
            Record::ProcessEnd(end) => {
                if !end.alive {
                    changes.push((end.time, Change::End(end.key)));
                }
                self.process_ends.push(end);
            }
            Record::Thread(thread) => {
                let key = thread.key;
                self.thread_slot(key).thread = thread;
            }
            Record::ThreadCpu(cpu) if self.keep_samples => self.thread_slot(cpu.key).cpu.push(cpu),
            Record::ThreadEnd(end) => {
                let key = end.key;
                self.thread_slot(key).end = Some(end);
            }
            Record::Module(module) => {
                self.modules.insert(module.key, module);
            }
            Record::Mapping(_) | Record::Unmapping(_) => {
                self.note_extent(&record);
                changes.extend(Change::of_mapping(record));
            }
            Record::Constituent(constituent) => {
                self.code_events.came(&constituent);
                self.code.seen(*constituent);
            }
            Record::ConstituentGone(gone) => {
                self.code_events.gone(&gone);
                self.code.gone(gone);
            }
            Record::ConstituentMoved(moved) => {
                self.code_events.moved(&moved);
                self.code.moved(moved);
            }
            Record::Method(method) => {
                self.methods.insert(method.key, *method);
            }
            Record::Class(class) => {
                self.classes.insert(class.key, class);
            }
            Record::AllocationSite(site) => {
                self.allocation_sites.insert(site.key, *site);
            }
            Record::Collection(collection) => self.collections.push(*collection),
            Record::Compilation(compilation) if self.keep_samples => {
                self.compilations.push(*compilation);
            }
            Record::Counter(counter) => self.counters.push(counter),
            Record::Fact(fact) => self.facts.push(fact),
            Record::RegionRules(rules) => self.take_rules(rules),
            Record::InterpreterRules(rules) => self.take_interpreter(rules),
            Record::Symbols(symbols) => self.symbols.push(symbols),
            Record::Lost(lost) => self.lost.push(lost),
            Record::Mark(mark) => self.marks.push(mark),
            Record::End(end) => self.end = Some(end),
            // Lifetimes have their own reader; samples come in the second pass.
            _ => return false,
        }
        true
    }

    fn note_extent(&mut self, record: &Record) {
        if let Record::Mapping(mapping) = record {
            let of_file = self.is_file_with_code(mapping);
            self.extents.note(mapping, of_file);
        }
    }

    /// Keeps the newest record of each compilation and collection.
    fn keep_newest(&mut self) {
        // Stable: the last of equal records is the newest.
        let identity = |one: &Compilation| (one.thread, one.first_seen, one.id);
        self.compilations
            .sort_by_key(|one| (identity(one), one.emitted_at()));
        self.compilations.dedup_by(|later, kept| {
            let same = identity(later) == identity(kept);
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        let mut newest = FxHashMap::default();
        for collection in std::mem::take(&mut self.collections) {
            let place = newest.len();
            let place = *newest.entry(collection.key).or_insert(place);
            match self.collections.get_mut(place) {
                Some(known) => *known = collection,
                None => self.collections.push(collection),
            }
        }
    }

    /// Drops ended processes, except their threads.
    pub(crate) fn forget_processes(&mut self, gone: &FxHashSet<ProcessKey>) {
        if gone.is_empty() {
            return;
        }
        self.processes.retain(|key, _| !gone.contains(key));
        self.region_rules.retain(|(key, _), _| !gone.contains(key));
        self.interpreters.retain(|(key, _), _| !gone.contains(key));
        self.classes.retain(|_, one| !gone.contains(&one.process));
        (self.allocation_sites).retain(|_, one| !gone.contains(&one.process));
        self.facts.retain(|fact| !gone.contains(&fact.process));
        self.extents.forget(gone);
    }

    /// Newer rules of a process and VM replace older ones.
    fn take_rules(&mut self, rules: RegionRules) {
        if rules.rules.len() > MAX_RULES {
            self.malformed_records += 1;
            return;
        }
        let key = (rules.process, rules.vm.clone());
        let known = self.region_rules.get(&key);
        if known.is_none_or(|known| known.time <= rules.time) {
            self.asks_for_roles |= rules.rules.iter().any(|rule| rule.role.is_some());
            self.region_rules.insert(key, rules);
        }
    }

    fn take_interpreter(&mut self, rules: InterpreterRules) {
        let key = (rules.process, rules.vm.clone());
        let known = self.interpreters.get(&key);
        if known.is_none_or(|known| known.time <= rules.time) {
            self.interpreters.insert(key, rules);
        }
    }

    /// Applies updates in time order, after all thread records.
    pub(crate) fn update_threads(
        &mut self,
        mut updates: Vec<ThreadUpdate>,
        changes: &mut Vec<(TimeNs, Change)>,
    ) {
        updates.sort_by_key(|update| update.time);
        for update in updates {
            if let Some(process) = update.process {
                let thread = self.thread_number(update.key);
                changes.push((update.time, Change::Exec(thread, process)));
            }
            let slot = &mut self.thread_slot(update.key).thread;
            slot.name = update.name.unwrap_or(std::mem::take(&mut slot.name));
            slot.role = update.role.unwrap_or(slot.role);
        }
    }

    /// Whether a process starts with its parent's mappings: an exec keeps the pid.
    pub(crate) fn is_fork(&self, process: &Process) -> bool {
        let parent = process
            .parent
            .and_then(|parent| self.processes.get(&parent));
        parent.is_some_and(|parent| parent.pid != process.pid)
    }

    /// Whether a mapping holds a file's code.
    pub(crate) fn is_file_with_code(&self, mapping: &Mapping) -> bool {
        let module = mapping.module.and_then(|key| self.modules.get(&key));
        mapping.executable && module.is_some_and(|module| !is_shared_memory(module.path.as_bytes()))
    }

    fn thread_slot(&mut self, key: ThreadKey) -> &mut TraceThread {
        let id = self.thread_number(key);
        &mut self.threads[id]
    }

    /// The index of a thread. A thread without a record gets a nameless entry.
    pub(crate) fn thread_number(&mut self, key: ThreadKey) -> ThreadId {
        if let Some(&known) = self.thread_index.get(&key) {
            return known;
        }
        let thread = TraceThread::unknown(key);
        let id = match self.free_threads.pop() {
            Some(free) => {
                self.threads[free] = thread;
                free
            }
            None => self.threads.push(thread),
        };
        self.thread_index.insert(key, id);
        id
    }
}
