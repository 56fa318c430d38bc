//! The adapter: converts a process's dump or perf map to code-zone changes.

mod clocks;
mod files;
mod flaws;
mod reading;
pub mod testing;
mod thread_roles;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use vmscope_process::{
    Adapter, AdapterError, Cadence, FramePointers, KeptFramePointers, MAX_RECORDS_OF_A_POLL,
    MachineCode, MapEntry, Poll, ProcessView, Root, Unwinder,
};
use vmscope_records::{LimitKind, Stream, TimeNs, VmIdentity};

use crate::attribution::Attribution;
use crate::clock::DumpClock;
use crate::code::LiveCode;
use crate::diagnostic_port::{PortError, Reporting};
use crate::follow::{DumpFile, PerfMapFile, Streams};
use crate::launched::Launched;
use crate::unwind::Php;
use crate::vm::{self, Vm, VmKind};

pub(crate) use clocks::now;
use thread_roles::ThreadRoles;

/// Poll intervals of busy and quiet files. Dumps carry times, so this bounds the lag only; code of
/// a perf map is dated to the interval between two polls.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
/// Changes in one poll that count as busy.
const BUSY_CHANGES: usize = 50;

/// Loads per poll; the next poll follows at once.
const MAX_LOADS_PER_POLL: usize = 10_000;

/// Bytes still read at the end of process or recording, which waits for it.
const MAX_BYTES_AT_END: u64 = 64 << 20;

/// Polls without a file before the start hint: a new VM writes its file at its first compilation.
const POLLS_BEFORE_HINT: u32 = 4;

/// A process has one dump; several libraries may each write one.
const MAX_DUMPS: usize = 8;

/// Polls without a dump header before the perf map is read instead: VMs buffer their dumps.
const POLLS_FOR_HEADER: u32 = 16;

/// Reads the files of one process.
pub(crate) struct FileAdapter {
    vm: Vm,
    /// Mappings at the last search for modules.
    mappings: Option<Arc<[MapEntry]>>,
    /// Number of emitted region rules.
    rules: usize,
    origin: FileOrigin,
    dumps: Vec<Dump>,
    map: Option<Map>,
    /// Searched for the first file.
    streams: OnceCell<Option<Streams>>,
    live: LiveCode,
    polls: u32,
    last_poll: Option<TimeNs>,
    /// See [`FileAdapter::absent_at`].
    last_flush_after: TimeNs,
    has_more: bool,
    /// Held-back code is left to emit.
    has_held: bool,
    threads: ThreadRoles,
    /// A file grew since it was last read to its end.
    grew: bool,
    /// Texts of emitted limits.
    limits: HashSet<String>,
    cadence: Cadence,
}

/// Origin of a process's files.
pub(crate) struct FileOrigin {
    /// Present if vmscope requested files.
    pub launched: Option<Arc<Launched>>,
    /// Files requested by vmscope.
    pub attribution: Attribution,
    /// The VM's answer, if vmscope asked for files while the VM ran.
    pub asked: Option<Result<Reporting, PortError>>,
    pub map_folder: Vec<u8>,
    /// The VM's code keeps no frame pointers: Mono's, unless told otherwise.
    pub omits_frame_pointers: bool,
}

struct Dump {
    file: DumpFile,
    /// Path in the target's mapping.
    path: Vec<u8>,
    /// Judged by the first load.
    clock: Option<DumpClock>,
    /// Number of unusable records.
    flaws: u64,
    over: bool,
    /// The last reading included the VM's buffer.
    with_buffer: bool,
    polls_without_header: u32,
}

struct Map {
    file: PerfMapFile,
    /// Folder and name for its removal.
    remove: Option<(Root, Vec<u8>)>,
    flaws: u64,
    over: bool,
    /// The last reading included the VM's buffer.
    with_buffer: bool,
    /// The map is being rewritten: last poll of the old one.
    anew_since: Option<TimeNs>,
}

impl Dump {
    fn new(file: DumpFile, path: Vec<u8>) -> Self {
        Dump {
            file,
            path,
            clock: None,
            flaws: 0,
            over: false,
            with_buffer: false,
            polls_without_header: 0,
        }
    }
}

impl Map {
    fn new(file: PerfMapFile, remove: Option<(Root, Vec<u8>)>) -> Self {
        Map {
            file,
            remove,
            flaws: 0,
            over: false,
            with_buffer: false,
            anew_since: None,
        }
    }
}

impl FileAdapter {
    /// Emits the code of `vm`, except code gone before `emit_from`.
    pub fn new(vm: Vm, origin: FileOrigin, emit_from: TimeNs) -> Self {
        FileAdapter {
            live: LiveCode::new(vm.kind, emit_from),
            vm,
            mappings: None,
            rules: 0,
            origin,
            dumps: Vec::new(),
            map: None,
            streams: OnceCell::new(),
            polls: 0,
            last_poll: None,
            last_flush_after: TimeNs(0),
            has_more: false,
            has_held: false,
            threads: ThreadRoles::default(),
            grew: false,
            limits: HashSet::new(),
            cadence: Cadence::new(SHORTEST_PAUSE, LONGEST_PAUSE, BUSY_CHANGES),
        }
    }

    /// Time at which newly read code was certainly absent, for files without times. VMs buffer: a flush
    /// holds code younger than the previous flush, which preceded the last poll but one.
    fn absent_at(&self) -> Option<TimeNs> {
        Some(self.last_flush_after)
    }

    /// The process's streams, whose buffers belong to its files; `None` without a shared glibc.
    fn streams(&self, process: &ProcessView) -> Option<Streams> {
        *self.streams.get_or_init(|| Streams::of(process))
    }

    /// Whether a file may lack what the VM has in its buffer. .NET writes each entry at once (3.1 and 8.0, by `strace`).
    fn may_lack_buffer(&self) -> bool {
        if self.vm.kind == VmKind::DotNet {
            return false;
        }
        let map = self.map.iter().filter(|_| !self.reads_a_dump(true));
        let mut files =
            (self.dumps.iter().map(|dump| dump.with_buffer)).chain(map.map(|map| map.with_buffer));
        files.any(|with_buffer| !with_buffer)
    }

    /// Emits a limit once.
    fn limit(&mut self, text: String, remedy: &str, poll: &mut Poll) {
        self.limit_of(LimitKind::AdapterIncomplete, text, remedy, poll);
    }

    /// Likewise, of a kind.
    fn limit_of(&mut self, kind: LimitKind, text: String, remedy: &str, poll: &mut Poll) {
        if self.limits.insert(text.clone()) {
            poll.limit_of(kind, text, remedy);
        }
    }

    /// Counts losses since the previous poll.
    fn count_lost(&self, count: u64, poll: &mut Poll) {
        if count > 0 {
            let from = self.last_poll.unwrap_or(poll.began());
            poll.lost(Stream::Adapter, count, from);
        }
    }

    /// Emits the region rules, and again when the VM has mapped more modules.
    fn emit_rules(&mut self, process: &ProcessView, poll: &mut Poll) {
        let mappings = Some(process.mappings());
        if mappings == self.mappings {
            return;
        }
        self.mappings = mappings;
        let mut rules = self.vm.rules.clone();
        rules.extend(vm::region_rules(self.vm.kind, process));
        if rules.len() > self.rules {
            self.rules = rules.len();
            poll.rules(&self.vm.identity.kind, rules);
        }
    }

    /// Emits what is known to be missing at the first poll.
    fn emit_limits(&mut self, poll: &mut Poll) {
        for (kind, text, remedy) in self.origin.launched.iter().flat_map(|l| l.take_limits()) {
            poll.limit_of(kind, text, remedy);
        }
        if let Some(asked) = &self.origin.asked {
            let kind = &self.vm.identity.kind;
            let text = match asked {
                Ok(_) => format!("{kind} names no stubs that it made before it was asked"),
                Err(error) => format!("{kind} does not report its code: {error}"),
            };
            self.limit_of(LimitKind::NoNames, text, self.vm.hint(), poll);
        }
        if self.vm.kind == VmKind::Mono && self.origin.omits_frame_pointers {
            let text = "Mono's code keeps no frame pointers: its callers are unknown";
            let remedy = "start Mono with MONO_DEBUG=disable_omit_fp in the environment, or through \
                          vmscope record";
            poll.limit(text.to_owned(), remedy);
        }
    }

    /// Emits the hint for a VM without files.
    fn report_missing(&mut self, process: &ProcessView, poll: &mut Poll) {
        if !self.dumps.is_empty() || self.map.is_some() || !self.limits.is_empty() {
            return;
        }
        // V8's memory tells names without files. This process ended before the first reading.
        let is_brief = self.polls < POLLS_BEFORE_HINT && !process.is_alive();
        if self.vm.kind == VmKind::V8 && is_brief {
            return;
        }
        // CPython functions have no machine code; other VMs without generated code lack nothing.
        let mappings = process.mappings();
        let generates = mappings.iter().any(MapEntry::is_for_generated_code);
        if generates || self.vm.kind == VmKind::CPython {
            let kind = &self.vm.identity.kind;
            // Without the pid, so equal processes share one limit.
            let text = format!("{kind} reports no names of its code");
            let hint = self.vm.hint();
            match self.vm.kind {
                VmKind::DotNet => {
                    let hint = format!("attach with --ask-vm (.NET 8 or later), or {hint}");
                    self.limit_of(LimitKind::NoNames, text, &hint, poll);
                }
                _ => self.limit_of(LimitKind::NoNames, text, hint, poll),
            }
        }
    }

    /// Emits held-back code, and the limit of an unread rest.
    fn emit_rest(&mut self, poll: &mut Poll) {
        self.live.emit_held(usize::MAX, poll);
        if !self.has_more {
            return;
        }
        self.count_lost(1, poll);
        let text = "the end of a VM's jitdump or perf map was not read (too much at once): code \
                    reported there has no name";
        self.limit(text.to_owned(), "", poll);
    }

    fn poll_files(&mut self, process: &ProcessView, at_end: bool, poll: &mut Poll) {
        self.emit_rules(process, poll);
        if self.polls == 0 {
            self.emit_limits(poll);
        }
        self.threads.poll(self.vm.kind, process, poll);
        self.polls = self.polls.saturating_add(1);
        self.has_more = false;
        let before = poll.len();
        self.live.sampled(poll);
        let files = self.dumps.len();
        self.find_files(process, poll);
        self.read_dumps(at_end, process, poll);
        if !self.reads_a_dump(at_end) {
            // Mono writes lines in parts, the last one at its exit.
            let may_go_on = self.vm.kind == VmKind::Mono && process.is_alive();
            self.read_map(at_end && !may_go_on, process, poll);
        }
        let unusable = std::mem::take(&mut self.live.unusable);
        self.count_lost(unusable, poll);
        if !self.has_more {
            self.has_held = !self.live.emit_held(MAX_LOADS_PER_POLL, poll);
            if std::mem::take(&mut self.grew) {
                self.last_flush_after = self.last_poll.unwrap_or_default();
            }
            self.last_poll = Some(poll.began());
        }
        if self.polls == POLLS_BEFORE_HINT && self.origin.launched.is_none() {
            self.report_missing(process, poll);
        }
        if self.dumps.len() != files || self.polls == POLLS_BEFORE_HINT {
            self.clean_up(process);
        }
        self.cadence.found(poll.len() - before);
    }
}

impl Adapter for FileAdapter {
    fn identity(&self) -> VmIdentity {
        self.vm.identity.clone()
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.poll_files(process, false, poll);
        Ok(())
    }

    fn unwinder(&mut self, process: &ProcessView) -> Option<Box<dyn Unwinder>> {
        let has_files = self.map.is_some() || !self.dumps.is_empty();
        let is_x86 = cfg!(target_arch = "x86_64");
        match self.vm.kind {
            VmKind::CPython | VmKind::DotNet if is_x86 => {
                let pieces = self.live.pieces();
                Some(Box::new(MachineCode::new(process.shared_memory(), pieces)))
            }
            // Erlang keeps frame pointers if it reports its code.
            VmKind::Beam if !has_files && !reports_erlang(process.command()) => None,
            VmKind::Beam if is_x86 => {
                let (memory, pieces) = (process.shared_memory(), self.live.pieces());
                let unwinder = KeptFramePointers::new(memory, pieces, Arc::default());
                Some(Box::new(unwinder))
            }
            VmKind::V8 if is_x86 => {
                let (memory, pieces) = (process.shared_memory(), self.live.pieces());
                let unwinder = KeptFramePointers::with_native_callers(memory, pieces);
                Some(Box::new(unwinder))
            }
            VmKind::Mono if self.origin.omits_frame_pointers => None,
            // The search takes a while, and finds nothing new later.
            VmKind::Php if is_x86 && self.polls <= 1 => {
                let execute_ex = vm::execute_ex(process)?;
                let pieces = self.live.pieces();
                let unwinder = Php::new(process.shared_memory(), pieces, execute_ex)?;
                Some(Box::new(unwinder))
            }
            // Its code uses the register for other things.
            VmKind::Php | VmKind::LuaJit => None,
            VmKind::Other => has_files.then(|| Box::new(FramePointers) as _),
            _ => Some(Box::new(FramePointers)),
        }
    }

    fn next_poll(&self) -> Duration {
        if self.has_more || self.has_held {
            Duration::ZERO
        } else {
            self.cadence.pause()
        }
    }

    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        // Bounded by bytes (a file may repeat known code without end) and by the poll's room.
        let until = self.bytes_read().saturating_add(MAX_BYTES_AT_END);
        loop {
            self.poll_files(process, true, poll);
            let has_room = poll.len() < MAX_RECORDS_OF_A_POLL && self.bytes_read() < until;
            if !self.has_more || !has_room {
                break;
            }
        }
        self.emit_rest(poll);
        self.report_missing(process, poll);
        if process.is_alive() && self.may_lack_buffer() {
            let (text, remedy) = match self.vm.kind {
                VmKind::Mono => (
                    "Mono still runs and buffers its perf map: much of its code has no name",
                    "record Mono until it exits",
                ),
                _ => (
                    "the VM still runs and buffers its reports: its newest code may have no name or \
                     an old one",
                    "",
                ),
            };
            self.limit(text.to_owned(), remedy, poll);
        }
        if self.live.waits_for_samples() {
            let text = "a VM's perf map has very many entries: those that only forked processes \
                        ran, or that lie in mapped files, have no name";
            self.limit(text.to_owned(), "", poll);
        }
        self.report_flaws(process, poll);
        self.clean_up(process);
        self.remove_map(process);
        Ok(())
    }
}

/// Whether Erlang was told to report its code.
fn reports_erlang(command: &[String]) -> bool {
    let mut words = command.iter().map(String::as_str);
    let is_told = words.any(|word| word.ends_with("JPperf"));
    is_told && words.next().is_some_and(|value| value != "false")
}

/// An error with its sources.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
