//! The adapter: what a process's dump or perf map tells, as changes of its code zone.

mod clocks;
mod files;
mod flawed;
mod reading;
mod threads;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use vmscope_process::{
    Adapter, AdapterError, Cadence, MAX_RECORDS_OF_A_POLL, MapEntry, Poll, ProcessView, Root,
};
use vmscope_records::{Stream, TimeNs, VmIdentity};

use crate::clock::DumpClock;
use crate::code::LiveCode;
use crate::family::{Launched, Ours};
use crate::follow::{DumpFile, PerfMapFile};
use crate::vm::{Vm, VmKind};

pub(crate) use clocks::now;
use threads::Threads;

/// How often a quiet file is looked at, and a busy one: dumps have their own times, so
/// this is about not falling behind; of a perf map's code no more is known than that
/// it came between two polls.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
/// News in one poll that are much.
const MUCH: usize = 50;

/// Pieces of code taken in one poll; the next one follows at once.
const PIECES_A_POLL: usize = 10_000;

/// So much is still read of a process's files when it, or the recording, is over: the
/// recording's end waits for it.
const MAX_BYTES_AT_END: u64 = 64 << 20;

/// Polls without a file before it is said how to get one: a VM that has just started
/// writes its file only when it compiles.
const LOOKS_BEFORE_HINT: u32 = 4;

/// A process has one dump; some libraries in one process may each write one.
const MAX_DUMPS: usize = 8;

/// Polls without a dump's head before the perf map is read in its stead: VMs write
/// dumps through a buffer.
const LOOKS_FOR_A_HEAD: u32 = 16;

/// Reads the files of one process.
pub(crate) struct FileAdapter {
    vm: Vm,
    origin: Origin,
    dumps: Vec<Dump>,
    map: Option<Map>,
    live: LiveCode,
    polls: u32,
    /// When the poll before began.
    last_poll: Option<TimeNs>,
    /// What a file without times tells next was made after that: see
    /// [`FileAdapter::absent_at`].
    last_flush_after: TimeNs,
    has_more: bool,
    /// Whether there is more to be told of what was read.
    is_telling: bool,
    threads: Threads,
    /// Whether there was anything in a file since all of it was read.
    grew: bool,
    /// What was said already.
    told: HashSet<String>,
    cadence: Cadence,
}

/// Where the files of a process come from.
pub(crate) struct Origin {
    /// Set where vmscope has turned files on.
    pub launched: Option<Arc<Launched>>,
    /// Which of the process's files are there because of that.
    pub ours: Ours,
    /// The folder of its perf map.
    pub map_folder: Vec<u8>,
}

/// A dump that is read.
struct Dump {
    file: DumpFile,
    /// Its path, as the target's mapping names it.
    path: Vec<u8>,
    /// Judged by its first piece of code.
    clock: Option<DumpClock>,
    /// How much of what it tells could not be used.
    flaws: u64,
    over: bool,
    /// Polls at it without its head.
    headless: u32,
}

/// A perf map that is read.
struct Map {
    file: PerfMapFile,
    /// Where it is to be removed when it is read: its folder, and its name there.
    remove: Option<(Root, Vec<u8>)>,
    flaws: u64,
    over: bool,
    /// It is written anew: when it was last seen as it was before.
    anew_since: Option<TimeNs>,
}

impl FileAdapter {
    /// For `vm`, whose code is told as far as it is not over before `tell_from`.
    pub fn new(vm: Vm, origin: Origin, tell_from: TimeNs) -> Self {
        FileAdapter {
            live: LiveCode::new(vm.kind, tell_from),
            vm,
            origin,
            dumps: Vec::new(),
            map: None,
            polls: 0,
            last_poll: None,
            last_flush_after: TimeNs(0),
            has_more: false,
            is_telling: false,
            threads: Threads::default(),
            grew: false,
            told: HashSet::new(),
            cadence: Cadence::new(SHORTEST_PAUSE, LONGEST_PAUSE, MUCH),
        }
    }

    /// When code that a file without times tells now was certainly not there yet. VMs
    /// write through a buffer, so that not to be in the file yet says nothing; but what
    /// comes out of it now was put in after it was emptied the last time, and that
    /// was after the poll before the one that saw what came out then.
    fn absent_at(&self) -> Option<TimeNs> {
        Some(self.last_flush_after)
    }

    /// Says once what limits what this adapter can tell.
    fn say(&mut self, text: String, remedy: &str, poll: &mut Poll) {
        if self.told.insert(text.clone()) {
            poll.limit(text, remedy);
        }
    }

    /// What was lost is counted for the time since the poll before.
    fn lose(&self, count: u64, poll: &mut Poll) {
        if count > 0 {
            let from = self.last_poll.unwrap_or(poll.began());
            poll.lost(Stream::Adapter, count, from);
        }
    }

    /// What is said once, at the first poll.
    fn introduce(&mut self, poll: &mut Poll) {
        if !self.vm.rules.is_empty() {
            poll.rules(&self.vm.identity.kind, std::mem::take(&mut self.vm.rules));
        }
        for (text, remedy) in self.origin.launched.iter().flat_map(|l| l.take_said()) {
            poll.limit(text, remedy);
        }
    }

    /// Why there is nothing where there is nothing.
    fn say_what_is_missing(&mut self, process: &ProcessView, poll: &mut Poll) {
        if !self.dumps.is_empty() || self.map.is_some() || !self.told.is_empty() {
            return;
        }
        // An interpreter's functions have no code of their own either; without any
        // generated code, of other VMs nothing is missing.
        let generates = process.mappings().iter().any(is_generated);
        if generates || self.vm.kind == VmKind::CPython {
            let kind = &self.vm.identity.kind;
            // Without the process: of many that are alike it is said once.
            let text = format!("{kind} tells nothing of its code");
            self.say(text, self.vm.hint(), poll);
        }
    }

    /// Tells what is left to be told, and what was too long to be read to its end.
    fn tell_the_rest(&mut self, poll: &mut Poll) {
        self.live.tell(usize::MAX, poll);
        if !self.has_more {
            return;
        }
        self.lose(1, poll);
        let text = "so much was left to be read of a VM's file when the VM or the recording ended \
                    that its last part was not read: code that is told of there has no name";
        self.say(text.to_owned(), "", poll);
    }

    fn look_at(&mut self, process: &ProcessView, at_end: bool, poll: &mut Poll) {
        if self.polls == 0 {
            self.introduce(poll);
        }
        self.threads.poll(self.vm.kind, process, poll);
        self.polls = self.polls.saturating_add(1);
        self.has_more = false;
        let before = poll.len();
        let files = self.dumps.len();
        self.find_files(process, poll);
        self.read_dumps(at_end, process, poll);
        if !self.reads_a_dump(at_end) {
            self.read_map(at_end, poll);
        }
        let unusable = std::mem::take(&mut self.live.unusable);
        self.lose(unusable, poll);
        if !self.has_more {
            self.is_telling = !self.live.tell(PIECES_A_POLL, poll);
            if std::mem::take(&mut self.grew) {
                self.last_flush_after = self.last_poll.unwrap_or_default();
            }
            self.last_poll = Some(poll.began());
        }
        if self.polls == LOOKS_BEFORE_HINT && self.origin.launched.is_none() {
            self.say_what_is_missing(process, poll);
        }
        if self.dumps.len() != files || self.polls == LOOKS_BEFORE_HINT {
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
        self.look_at(process, false, poll);
        Ok(())
    }

    fn next_poll(&self) -> Duration {
        if self.has_more || self.is_telling {
            Duration::ZERO
        } else {
            self.cadence.pause()
        }
    }

    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        // Bounded by bytes, since a file may hold as many as it likes of what says
        // nothing new, and by the poll's own room.
        let until = self.bytes_read().saturating_add(MAX_BYTES_AT_END);
        loop {
            self.look_at(process, true, poll);
            let has_room = poll.len() < MAX_RECORDS_OF_A_POLL && self.bytes_read() < until;
            if !self.has_more || !has_room {
                break;
            }
        }
        self.tell_the_rest(poll);
        self.say_what_is_missing(process, poll);
        if process.is_alive() && (self.map.is_some() || !self.dumps.is_empty()) {
            let text = "the VM goes on, and writes what it tells of its code through a buffer: code \
                        that it made last may have no name, or that of the code before it";
            self.say(text.to_owned(), "", poll);
        }
        self.say_what_is_flawed(process, poll);
        self.clean_up(process);
        self.remove_map(process);
        Ok(())
    }
}

/// Whether a mapping is of code that somebody generated.
fn is_generated(mapping: &MapEntry) -> bool {
    let special: [&[u8]; 3] = [b"[vdso]", b"[vsyscall]", b"[uprobes]"];
    mapping.executable && mapping.path().is_none() && !special.contains(&&*mapping.name)
}

/// An error and what it comes from.
fn words(error: &dyn std::error::Error) -> String {
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
