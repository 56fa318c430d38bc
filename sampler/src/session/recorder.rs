//! Converts engine events to records: keys of processes and threads, files of mappings.

mod placeholders;
mod reading;
mod waiting;

use super::generated::Generated;
use super::native_hits::NativeHits;
use super::process_table::ProcessTable;
use super::unwind::{Unwinding, UnwoundSpace};
use crate::engine::{EngineEvent, RawMapping, RawSample, RawThreadEnd};
use std::collections::HashMap;
use vmscope_process::{MapEntry, Modules, Sighting};
use vmscope_records::{
    DurationNs, InterpreterSource, Lost, Pid, Process, ProcessEnd, ProcessKey, Record, Sample,
    Stream, Thread, ThreadCpu, ThreadEnd, ThreadKey, ThreadRole, ThreadUpdate, Tid, TimeNs,
};

use placeholders::Placeholders;
use waiting::WaitingSamples;

/// Maximum number of remembered ended threads.
const MAX_ENDED: usize = 4096;

/// Keys of processes and threads, and the modules' files.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    processes: HashMap<Pid, ProcessState>,
    threads: HashMap<Tid, ThreadState>,
    /// Threads that ended lately: adapters emit their last compilations afterwards.
    ended: HashMap<(ProcessKey, Tid), ThreadKey>,
    placeholders: Placeholders,
    next_process: u32,
    next_thread: u32,
    /// Present if VM families read processes.
    process_table: Option<ProcessTable>,
    /// Sources of interpreter positions in samples of unrecognised VMs.
    sources: Vec<InterpreterSource>,
    /// Present if samples get callers from their stacks.
    unwinding: Option<Unwinding>,
    waiting: WaitingSamples,
    pub modules: Modules,
    pub hits: NativeHits,
    pub samples: u64,
    pub lost: u64,
}

#[derive(Debug)]
struct ProcessState {
    key: ProcessKey,
    /// Whether any event followed the start; an exec before that counts as the start.
    used: bool,
    /// Begin of its program, if during the recording.
    began: Option<TimeNs>,
    /// Whether an adapter has rules for its frames, and has read its code.
    has_rules: bool,
    generated: Generated,
    unwound: UnwoundSpace,
}

#[derive(Debug)]
struct ThreadState {
    key: ThreadKey,
    pid: Pid,
    /// The kernel's name; started threads inherit it.
    name: String,
    /// The adapter's name.
    full_name: Option<String>,
}

impl Recorder {
    /// Publishes address spaces in `process_table`; `sources` are for unrecognised VMs. Samples get
    /// at most `unwind_depth` callers from their stacks; none without.
    pub fn new(
        process_table: Option<ProcessTable>,
        sources: Vec<InterpreterSource>,
        unwind_depth: Option<u16>,
    ) -> Self {
        Recorder {
            process_table,
            sources,
            unwinding: unwind_depth.map(Unwinding::new),
            ..Recorder::default()
        }
    }

    /// Sets the source of the modules' files.
    pub fn with_modules(self, modules: Modules) -> Self {
        Recorder { modules, ..self }
    }

    /// Appends the records of one event to `out`.
    pub fn take(&mut self, event: EngineEvent, out: &mut Vec<Record>) {
        match event {
            EngineEvent::Sample(sample) => self.sample(sample, out),
            EngineEvent::ThreadStarted {
                time,
                pid,
                tid,
                name,
                cpu_before,
                parent_tid,
            } => {
                let parent = parent_tid.and_then(|tid| self.threads.get(&tid));
                let inherited = || parent.map(|parent| parent.name.clone());
                let name = name.or_else(inherited).unwrap_or_default();
                self.start_thread(time, pid, tid, name, cpu_before, out);
            }
            EngineEvent::ProcessForked {
                time,
                pid,
                parent_pid,
                ..
            } => {
                let parent = self.process(parent_pid, time, out);
                let generated = (self.processes.get(&parent_pid)).map(|one| one.generated.forked());
                self.new_process(pid, time, Some(parent), String::new(), out);
                if let (Some(process), Some(generated)) = (self.processes.get_mut(&pid), generated)
                {
                    process.generated = generated;
                }
            }
            EngineEvent::Exec {
                time,
                pid,
                tid,
                name,
            } => self.exec(time, pid, tid, name, out),
            EngineEvent::Renamed {
                time,
                pid,
                tid,
                name,
            } => {
                let key = self.thread(time, pid, tid, out);
                self.rename(tid, &name);
                let full_name = self
                    .threads
                    .get(&tid)
                    .and_then(|one| one.full_name.as_deref());
                if !full_name.is_some_and(|full| is_start(&name, full)) {
                    out.push(update(key, time, |update| update.name = Some(name)));
                }
            }
            EngineEvent::ThreadCpu {
                time,
                pid,
                tid,
                cpu,
                cpu_user,
            } => {
                let key = self.thread(time, pid, tid, out);
                out.push(Record::ThreadCpu(ThreadCpu {
                    key,
                    time,
                    cpu,
                    cpu_user,
                }));
            }
            EngineEvent::ThreadEnded(end) => self.end_thread(&end, out),
            EngineEvent::ProcessEnded {
                time,
                pid,
                alive,
                cpu,
                cpu_user,
            } => {
                self.release_all(out);
                let key = self.process(pid, time, out);
                out.push(Record::ProcessEnd(ProcessEnd {
                    key,
                    time,
                    alive,
                    cpu,
                    cpu_user,
                }));
                self.publish_touched();
                self.processes.remove(&pid);
                // A live process stays in the table until the recording's end.
                if let Some(table) = self.process_table.as_ref().filter(|_| !alive) {
                    table.end(key, time);
                }
            }
            EngineEvent::Mapped(mapping) => self.map(&mapping, out),
            EngineEvent::Lost {
                reason,
                count,
                from,
                to,
                tid,
            } => {
                self.lost += count;
                let thread = tid
                    .and_then(|tid| self.threads.get(&tid))
                    .map(|thread| thread.key);
                out.push(Record::Lost(Lost {
                    stream: Stream::Samples,
                    reason,
                    count,
                    from,
                    to,
                    thread,
                }));
            }
            EngineEvent::Limit(limit) => out.push(Record::Limit(limit)),
        }
    }

    /// Takes the records of a poll of `process`. Records about threads unknown to the engine wait for the
    /// thread's start.
    pub fn take_poll(&mut self, process: ProcessKey, found: Vec<Record>, out: &mut Vec<Record>) {
        self.take_rules(process, &found);
        self.has_polled(process);
        for record in found {
            let (threads, processes) = (&self.threads, &self.processes);
            let ended = &self.ended;
            let key_of = |tid| {
                // The tid may belong to another process by now.
                let is_its = |of: &&ThreadState| {
                    let its_process = processes.get(&of.pid);
                    its_process.is_some_and(|one| one.key == process)
                };
                let thread = threads.get(&tid).filter(is_its).map(|thread| thread.key);
                thread.or_else(|| ended.get(&(process, tid)).copied())
            };
            let record = self.placeholders.resolve(process, record, key_of);
            out.extend(record.map(|record| self.with_name(record)));
        }
    }

    /// Keeps the name that an adapter gives to a thread.
    fn with_name(&mut self, record: Record) -> Record {
        if let Record::ThreadUpdate(update) = &record
            && let Some(name) = &update.name
        {
            let mut threads = self.threads.values_mut();
            if let Some(thread) = threads.find(|thread| thread.key == update.key) {
                thread.full_name = Some(name.clone());
            }
        }
        record
    }

    /// Passes on all samples, and counts compilations without a thread as lost.
    pub fn finish(&mut self, out: &mut Vec<Record>) {
        self.release_all(out);
        self.placeholders.finish(out);
    }

    /// Records a process found at the start, and its mappings; its threads come from the engine.
    ///
    /// # Errors
    /// [`vmscope_process::MapsError`].
    pub fn begin_process(
        &mut self,
        pid: Pid,
        name: String,
        time: TimeNs,
        out: &mut Vec<Record>,
    ) -> Result<ProcessKey, vmscope_process::MapsError> {
        let key = self.new_process(pid, time, None, name, out);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.used = true;
            process.began = None;
        }
        for (entry, sighting) in self.modules.scan(pid, time)? {
            self.sighted((pid, key), time, entry, sighting, out);
        }
        Ok(key)
    }

    /// The process's key, new for an unknown pid.
    pub fn process(&mut self, pid: Pid, time: TimeNs, out: &mut Vec<Record>) -> ProcessKey {
        match self.processes.get(&pid) {
            Some(process) => process.key,
            None => self.new_process(pid, time, None, String::new(), out),
        }
    }

    /// The thread's key, new for an unknown tid.
    pub fn thread(&mut self, time: TimeNs, pid: Pid, tid: Tid, out: &mut Vec<Record>) -> ThreadKey {
        match self.threads.get(&tid) {
            Some(thread) if thread.pid == pid => thread.key,
            _ => self.start_thread(time, pid, tid, String::new(), DurationNs(0), out),
        }
    }

    fn sample(&mut self, sample: RawSample, out: &mut Vec<Record>) {
        let thread = self.thread(sample.time, sample.pid, sample.tid, out);
        if let Some(process) = self.processes.get_mut(&sample.pid) {
            process.used = true;
        }
        self.samples += 1;
        self.pass_on((thread, sample), out);
    }

    fn new_process(
        &mut self,
        pid: Pid,
        time: TimeNs,
        parent: Option<ProcessKey>,
        name: String,
        out: &mut Vec<Record>,
    ) -> ProcessKey {
        let key = ProcessKey(self.next_process);
        self.next_process += 1;
        let process = ProcessState {
            key,
            used: false,
            began: Some(time),
            has_rules: false,
            generated: Generated::default(),
            unwound: UnwoundSpace::new(pid),
        };
        self.processes.insert(pid, process);
        if let Some(table) = &self.process_table {
            table.add(key, pid, parent, &name, time);
        }
        out.push(Record::Process(Process {
            key,
            time,
            pid,
            parent,
            name,
        }));
        key
    }

    fn start_thread(
        &mut self,
        time: TimeNs,
        pid: Pid,
        tid: Tid,
        name: String,
        cpu_before: DurationNs,
        out: &mut Vec<Record>,
    ) -> ThreadKey {
        let process = self.process(pid, time, out);
        let key = ThreadKey(self.next_thread);
        self.next_thread += 1;
        let state = ThreadState {
            key,
            pid,
            name: name.clone(),
            full_name: None,
        };
        self.threads.insert(tid, state);
        let role = ThreadRole::Other;
        out.push(Record::Thread(Thread {
            key,
            process,
            tid,
            time,
            name,
            role,
            cpu_before,
        }));
        let key_of = |_| Some(key);
        for record in self.placeholders.take(process, tid, time) {
            let record = self.placeholders.resolve(process, record, key_of);
            out.extend(record.map(|record| self.with_name(record)));
        }
        key
    }

    /// An exec: a new address space, in which the calling thread continues.
    fn exec(&mut self, time: TimeNs, pid: Pid, tid: Tid, name: String, out: &mut Vec<Record>) {
        self.release_all(out);
        let old = self.process(pid, time, out);
        let used = self.processes.get(&pid).is_some_and(|process| process.used);
        let is_read = self
            .process_table
            .as_ref()
            .is_some_and(|table| table.is_claimed(old));
        if !used && !is_read {
            // The exec of a launched command.
            if let Some(process) = self.processes.get_mut(&pid) {
                process.began = Some(time);
                process.generated = Generated::default();
                process.unwound = UnwoundSpace::new(pid);
            }
            if let Some(table) = &self.process_table {
                table.replace_program(old, &name);
            }
            let parent = None;
            out.push(Record::Process(Process {
                key: old,
                time,
                pid,
                parent,
                name: name.clone(),
            }));
            let thread = self.thread(time, pid, tid, out);
            self.rename(tid, &name);
            out.push(update(thread, time, |update| update.name = Some(name)));
            return;
        }
        let thread = self.thread(time, pid, tid, out);
        self.rename(tid, &name);
        // The kernel counts CPU time by pid, across execs: the last program's end carries it all.
        let cpu = Some(DurationNs(0));
        let end = ProcessEnd {
            key: old,
            time,
            alive: false,
            cpu,
            cpu_user: cpu,
        };
        out.push(Record::ProcessEnd(end));
        self.publish_touched();
        if let Some(table) = &self.process_table {
            table.end(old, time);
        }
        let new = self.new_process(pid, time, Some(old), name.clone(), out);
        out.push(update(thread, time, |update| {
            update.name = Some(name);
            update.process = Some(new);
        }));
    }

    fn rename(&mut self, tid: Tid, name: &str) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            name.clone_into(&mut thread.name);
        }
    }

    fn end_thread(&mut self, end: &RawThreadEnd, out: &mut Vec<Record>) {
        let key = self.thread(end.time, end.pid, end.tid, out);
        out.push(Record::ThreadEnd(ThreadEnd {
            key,
            time: end.time,
            alive: end.alive,
            cpu: end.cpu,
            cpu_measured: end.cpu_measured,
            cpu_user: end.cpu_user,
        }));
        self.threads.remove(&end.tid);
        if let Some(process) = self.processes.get(&end.pid) {
            if self.ended.len() >= MAX_ENDED {
                self.ended.clear();
            }
            self.ended.insert((process.key, end.tid), key);
        }
    }

    fn map(&mut self, raw: &RawMapping, out: &mut Vec<Record>) {
        let key = self.process(raw.pid, raw.time, out);
        if let Some(process) = self.processes.get_mut(&raw.pid) {
            process.used = true;
        }
        let Some(end) = raw.start.checked_add(raw.len) else {
            return;
        };
        let entry = MapEntry {
            start: raw.start,
            end,
            offset: raw.offset,
            device: MapEntry::pack_device(raw.major, raw.minor),
            inode: raw.inode,
            name: raw.path.clone(),
            readable: true,
            writable: false,
            executable: raw.executable,
        };
        let sighting = self.modules.see(raw.pid, &entry, raw.time);
        self.sighted((raw.pid, key), raw.time, entry, sighting, out);
    }

    fn sighted(
        &mut self,
        (pid, key): (Pid, ProcessKey),
        time: TimeNs,
        entry: MapEntry,
        seen: Sighting,
        out: &mut Vec<Record>,
    ) {
        let mapping = seen.mapping(key, time);
        let process = self.processes.get_mut(&pid).filter(|_| seen.executable);
        let is_new = process.is_none_or(|process| {
            let is_new = process.generated.mapped(&entry, &mapping);
            if is_new {
                process.unwound.changed(entry.start.0, entry.end.0);
            }
            if !process.generated.has_room() {
                self.hits.cut();
            }
            is_new
        });
        if let Some(table) = self.process_table.as_ref().filter(|_| seen.executable) {
            let file = seen.module.and_then(|module| self.modules.file(module));
            table.add_mapping(key, entry, file);
        }
        out.extend(seen.new_module.map(Record::Module));
        out.extend(is_new.then_some(Record::Mapping(mapping)));
        out.extend(
            self.modules
                .take_limits(time)
                .into_iter()
                .map(Record::Limit),
        );
    }
}

/// Whether the kernel's name, 15 bytes at most, is the cut beginning of a full name.
fn is_start(name: &str, full: &str) -> bool {
    // The cut may go through a character of four bytes.
    let whole = name.trim_end_matches(char::REPLACEMENT_CHARACTER);
    whole.len() >= 12 && full.starts_with(whole)
}

fn record_of(thread: ThreadKey, sample: RawSample) -> Record {
    let RawSample {
        time,
        pc,
        mode,
        detail,
        ..
    } = sample;
    Record::Sample(Sample {
        time,
        thread,
        pc,
        mode,
        detail,
    })
}

fn update(key: ThreadKey, time: TimeNs, change: impl FnOnce(&mut ThreadUpdate)) -> Record {
    let mut update = ThreadUpdate {
        key,
        time,
        name: None,
        role: None,
        process: None,
    };
    change(&mut update);
    Record::ThreadUpdate(update)
}

#[cfg(test)]
mod tests;
