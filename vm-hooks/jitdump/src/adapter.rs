//! The adapter: what a process's dump or perf map tells, as changes of its code zone.

mod clocks;
mod flawed;
mod threads;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use vmscope_records::{Arch, Stream, TimeNs, VmIdentity};
use vmscope_target::{
    Adapter, AdapterError, Cadence, Look, MAX_RECORDS_OF_A_LOOK, MapEntry, ProcessView, Root,
};

use crate::clock::DumpClock;
use crate::code::{LiveCode, Piece};
use crate::dump::Event;
use crate::family::{Launched, Ours};
use crate::find::{self, DumpMarker};
use crate::follow::{DumpFile, FileError, PerfMapFile, Progress};
use crate::litter::Litter;
use crate::vm::{Vm, VmKind};

use clocks::judge_clock;
pub(crate) use clocks::now;
use flawed::{loses_code, loses_entry};
use threads::Threads;

/// How often a quiet file is looked at, and a busy one: dumps have their own times, so
/// this is about not falling behind; of a perf map's code no more is known than that
/// it came between two looks.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
/// News in one look that are much.
const MUCH: usize = 50;

/// Pieces of code taken in one look; the next one follows at once.
const PIECES_A_LOOK: usize = 10_000;

/// So much is still read of a process's files when it, or the recording, is over: the
/// recording's end waits for it.
const MAX_BYTES_AT_END: u64 = 64 << 20;

/// Looks without a file before it is said how to get one: a VM that has just started
/// writes its file only when it compiles.
const LOOKS_BEFORE_HINT: u32 = 4;

/// A process has one dump; some libraries in one process may each write one.
const MAX_DUMPS: usize = 8;

/// Looks without a dump's head before the perf map is read in its stead: VMs write
/// dumps through a buffer.
const LOOKS_FOR_A_HEAD: u32 = 16;

/// Reads the files of one process.
pub(crate) struct FileAdapter {
    vm: Vm,
    origin: Origin,
    dumps: Vec<Dump>,
    map: Option<Map>,
    live: LiveCode,
    looks: u32,
    /// When the look before began.
    last_look: Option<TimeNs>,
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
    /// Looks at it without its head.
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
            looks: 0,
            last_look: None,
            last_flush_after: TimeNs(0),
            has_more: false,
            is_telling: false,
            threads: Threads::default(),
            grew: false,
            told: HashSet::new(),
            cadence: Cadence::new(SHORTEST_PAUSE, LONGEST_PAUSE, MUCH),
        }
    }

    /// Opens what has appeared since the last look.
    fn find_files(&mut self, process: &ProcessView, look: &mut Look) {
        for marker in find::dump_markers(process) {
            if self.dumps.len() < MAX_DUMPS && marker.is_of(process) {
                self.open_dump(process, &marker, look);
            }
        }
        // A VM may write both: then the map says nothing more, but has to go, too.
        let read = !self.reads_a_dump(false);
        if self.map.is_some() || (!read && self.files_are_ours().is_none()) {
            return;
        }
        match find::open_perf_map(process, &self.origin.map_folder, self.vm.kind) {
            Ok(Some(found)) => {
                let path = find::perf_map_path(&self.origin.map_folder, process);
                let file = found.map;
                let ours = self.files_are_ours().is_some_and(|launched| {
                    let litter = launched.litter();
                    litter.remove_map_later(process, &path, file.file())
                });
                self.say_what_stays(look);
                self.map = Some(Map {
                    file,
                    remove: ours.then_some((found.folder, found.name)),
                    flaws: 0,
                    over: false,
                    anew_since: None,
                });
            }
            Err(error) if read => self.say(words(&error), "", look),
            Ok(None) | Err(_) => {}
        }
    }

    fn open_dump(&mut self, process: &ProcessView, marker: &DumpMarker, look: &mut Look) {
        let identity = (marker.mapping.device, marker.mapping.inode);
        let is_known = |dump: &Dump| {
            dump.path == marker.path()
                || dump
                    .file
                    .file()
                    .identity()
                    .is_ok_and(|known| known == identity)
        };
        if self.dumps.iter().any(is_known) {
            return;
        }
        let file = match marker.open(process) {
            Ok(file) => file,
            Err(error) => {
                self.say(
                    format!("the VM's dump is not read: {}", words(&error)),
                    "",
                    look,
                );
                return;
            }
        };
        if let Some(launched) = self.files_are_ours() {
            let litter = launched.litter();
            litter.remove_dump(process, marker.path(), file.file());
        }
        self.say_what_stays(look);
        self.dumps.push(Dump {
            file,
            path: marker.path().to_vec(),
            clock: None,
            flaws: 0,
            over: false,
            headless: 0,
        });
    }

    /// What vmscope has turned on, where this process's files are there because of it.
    fn files_are_ours(&self) -> Option<&Arc<Launched>> {
        let launched = self.origin.launched.as_ref()?;
        self.origin.ours.files.then_some(launched)
    }

    /// Says that files stay where that may be a surprise.
    fn say_what_stays(&mut self, look: &mut Look) {
        if self.origin.ours.in_doubt {
            let text = format!(
                "the files by which {} describes its code are left where they are: its \
                 environment or a command line was changed, so they may be somebody's own",
                self.vm.identity.kind
            );
            self.say(text, "", look);
        }
    }

    /// When code that a file without times tells now was certainly not there yet. VMs
    /// write through a buffer, so that not to be in the file yet says nothing; but what
    /// comes out of it now was put in after it was emptied the last time, and that
    /// was after the look before the one that saw what came out then.
    fn absent_at(&self) -> Option<TimeNs> {
        Some(self.last_flush_after)
    }

    /// Says once what limits what this adapter can tell.
    fn say(&mut self, text: String, remedy: &str, look: &mut Look) {
        if self.told.insert(text.clone()) {
            look.limit(text, remedy);
        }
    }

    /// What was lost is counted for the time since the look before.
    fn lose(&self, count: u64, look: &mut Look) {
        if count > 0 {
            let from = self.last_look.unwrap_or(look.began());
            look.lost(Stream::Adapter, count, from);
        }
    }

    fn read_dumps(&mut self, at_end: bool, process: &ProcessView, look: &mut Look) {
        let mut events = Vec::new();
        for at in 0..self.dumps.len() {
            let Some(dump) = self.dumps.get_mut(at).filter(|dump| !dump.over) else {
                continue;
            };
            let progress = if at_end {
                dump.file.finish(PIECES_A_LOOK, &mut events)
            } else {
                dump.file.poll(PIECES_A_LOOK, &mut events)
            };
            dump.over = progress.as_ref().is_err_and(FileError::is_final);
            let flaws = dump.file.flaws().iter();
            let flaws = flaws.filter(|(flaw, _)| loses_code(*flaw));
            let flaws: u64 = flaws.map(|(_, seen)| seen.count).sum();
            let more_flaws = flaws - std::mem::replace(&mut dump.flaws, flaws);
            self.lose(more_flaws, look);
            match progress {
                Ok(progress) => self.has_more |= progress == Progress::More,
                Err(error) => self.say(words(&error), "", look),
            }
            if !self.is_of_this_machine(at, look) {
                continue;
            }
            if let Some(dump) = self.dumps.get_mut(at)
                && dump.file.header().is_none()
            {
                dump.headless = dump.headless.saturating_add(1);
            }
            self.grew |= !events.is_empty();
            for event in events.drain(..) {
                self.take(at, event, process, look);
            }
        }
    }

    /// Whether there is a dump that tells of the code, or may yet: then the perf map
    /// is not read.
    fn reads_a_dump(&self, at_end: bool) -> bool {
        let may_come = |dump: &Dump| !at_end && dump.headless < LOOKS_FOR_A_HEAD;
        let is_read = |dump: &Dump| !dump.over && (dump.file.header().is_some() || may_come(dump));
        self.dumps.iter().any(is_read)
    }

    /// Whether a dump is of code for this machine; if not, it is read no further.
    fn is_of_this_machine(&mut self, at: usize, look: &mut Look) -> bool {
        let here = Arch::of_this_machine();
        let Some(dump) = self.dumps.get_mut(at) else {
            return false;
        };
        let Some(header) = dump.file.header().filter(|header| !header.may_be_for(here)) else {
            return true;
        };
        let text = format!(
            "the dump {} is not read: it is of code for ELF machine {}, and this is {}",
            dump.file.path(),
            header.arch.elf_machine(),
            here.elf_machine()
        );
        dump.over = true;
        self.say(text, "", look);
        false
    }

    fn take(&mut self, dump: usize, event: Event, process: &ProcessView, look: &mut Look) {
        let raw = match &event {
            Event::Load(load) => load.time,
            Event::Move(moved) => moved.time,
            Event::Close => return,
        };
        let Some(dump) = self.dumps.get_mut(dump) else {
            return;
        };
        let clock = match dump.clock {
            Some(clock) => clock,
            None => {
                let arch = dump.file.header().is_some_and(|h| h.arch_timestamp);
                let clock = judge_clock(raw, arch, process);
                dump.clock = Some(clock);
                clock
            }
        };
        if clock == DumpClock::Unknown {
            let text = "the times in the VM's dump follow a clock of their own: its code is known \
                        from when it was first seen on, and what took the place of other code \
                        meanwhile is doubtful";
            self.say(text.to_owned(), "", look);
        }
        let (since, absent_at) = match clock.time(raw, look.now()) {
            Some(time) => (time, None),
            None => (look.now(), self.absent_at()),
        };
        match event {
            Event::Load(load) => {
                let piece = Piece {
                    start: load.address,
                    size: load.size,
                    name: load.name,
                    since,
                    absent_at,
                    lines: load.lines,
                };
                self.live.load(piece, self.last_look.is_none(), look);
            }
            Event::Move(moved) => {
                self.live
                    .moved(moved.from, moved.to, moved.size, since, look);
            }
            Event::Close => {}
        }
    }

    fn read_map(&mut self, at_end: bool, look: &mut Look) {
        let Some(map) = self.map.as_mut().filter(|map| !map.over) else {
            return;
        };
        let mut entries = Vec::new();
        let progress = if at_end {
            map.file.finish(PIECES_A_LOOK, &mut entries)
        } else {
            map.file.poll(PIECES_A_LOOK, &mut entries)
        };
        map.over = progress.as_ref().is_err_and(FileError::is_final);
        if matches!(progress, Ok(Progress::Rewritten)) {
            map.flaws = 0;
            let last_seen = self.last_look.unwrap_or(look.began());
            map.anew_since.get_or_insert(last_seen);
            self.live.begin_anew();
        }
        // The VM may still be writing while something comes.
        let is_quiet = at_end || entries.is_empty();
        let is_whole = is_quiet && matches!(progress, Ok(Progress::CaughtUp));
        let anew_since = map.anew_since.take_if(|_| is_whole);
        // An entry whose line was cut off is there all the same.
        let flaws = map.file.flaws().iter();
        let flaws = flaws.filter(|(flaw, _)| loses_entry(*flaw));
        let flaws: u64 = flaws.map(|(_, seen)| seen.count).sum();
        let more_flaws = flaws.saturating_sub(std::mem::replace(&mut map.flaws, flaws));
        self.lose(more_flaws, look);
        match progress {
            Ok(progress) => self.has_more |= progress != Progress::CaughtUp,
            Err(error) => self.say(words(&error), "", look),
        }
        let since = look.now();
        self.grew |= !entries.is_empty();
        for entry in entries {
            let piece = Piece {
                start: entry.start,
                size: entry.size,
                name: entry.name,
                since,
                absent_at: self.absent_at(),
                lines: Vec::new(),
            };
            self.live.load(piece, false, look);
        }
        if let Some(last_seen) = anew_since {
            self.live.end_what_was_not_told(last_seen, look.now(), look);
        }
    }

    /// What is said once, at the first look.
    fn introduce(&mut self, look: &mut Look) {
        if !self.vm.rules.is_empty() {
            look.rules(&self.vm.identity.kind, std::mem::take(&mut self.vm.rules));
        }
        for (text, remedy) in self.origin.launched.iter().flat_map(|l| l.take_said()) {
            look.limit(text, remedy);
        }
    }

    /// Why there is nothing where there is nothing.
    fn say_what_is_missing(&mut self, process: &ProcessView, look: &mut Look) {
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
            self.say(text, self.vm.hint(), look);
        }
    }

    /// How much was read of all files, in bytes.
    fn bytes_read(&self) -> u64 {
        let dumps = self.dumps.iter().map(|dump| dump.file.bytes_read());
        let map = self.map.iter().map(|map| map.file.bytes_read());
        dumps.chain(map).fold(0, u64::saturating_add)
    }

    /// Tells what is left to be told, and what was too long to be read to its end.
    fn tell_the_rest(&mut self, look: &mut Look) {
        self.live.tell(usize::MAX, look);
        if !self.has_more {
            return;
        }
        self.lose(1, look);
        let text = "so much was left to be read of a VM's file when the VM or the recording ended \
                    that its last part was not read: code that is told of there has no name";
        self.say(text.to_owned(), "", look);
    }

    /// Removes the logs that V8 writes beside a dump that vmscope asked for.
    fn clean_up(&self, process: &ProcessView) {
        if self.vm.kind != VmKind::V8 || !self.origin.ours.logs {
            return;
        }
        for dump in &self.dumps {
            let folder = dump.path.iter().rposition(|byte| *byte == b'/');
            let folder = dump.path.get(..folder.unwrap_or(0)).unwrap_or_default();
            Litter::remove_logs(process, folder);
        }
    }

    /// Removes a perf map that vmscope asked for and that was read to its end. One whose
    /// process runs another program by now may be that one's too: it goes when the
    /// recording is over.
    fn remove_map(&self, process: &ProcessView) {
        let is_over = process.is_alive() || vmscope_target::examine(process.pid()).is_err();
        if let Some(launched) = self.files_are_ours().filter(|_| is_over)
            && let Some(map) = &self.map
            && let Some((folder, name)) = &map.remove
        {
            launched.litter().remove_map(folder, name, map.file.file());
        }
    }

    fn look_at(&mut self, process: &ProcessView, at_end: bool, look: &mut Look) {
        if self.looks == 0 {
            self.introduce(look);
        }
        self.threads.look(self.vm.kind, process, look);
        self.looks = self.looks.saturating_add(1);
        self.has_more = false;
        let before = look.len();
        let files = self.dumps.len();
        self.find_files(process, look);
        self.read_dumps(at_end, process, look);
        if !self.reads_a_dump(at_end) {
            self.read_map(at_end, look);
        }
        let unusable = std::mem::take(&mut self.live.unusable);
        self.lose(unusable, look);
        if !self.has_more {
            self.is_telling = !self.live.tell(PIECES_A_LOOK, look);
            if std::mem::take(&mut self.grew) {
                self.last_flush_after = self.last_look.unwrap_or_default();
            }
            self.last_look = Some(look.began());
        }
        if self.looks == LOOKS_BEFORE_HINT && self.origin.launched.is_none() {
            self.say_what_is_missing(process, look);
        }
        if self.dumps.len() != files || self.looks == LOOKS_BEFORE_HINT {
            self.clean_up(process);
        }
        self.cadence.found(look.len() - before);
    }
}

impl Adapter for FileAdapter {
    fn identity(&self) -> VmIdentity {
        self.vm.identity.clone()
    }

    fn look(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        self.look_at(process, false, look);
        Ok(())
    }

    fn next_look(&self) -> Duration {
        if self.has_more || self.is_telling {
            Duration::ZERO
        } else {
            self.cadence.pause()
        }
    }

    fn finish(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        // Bounded by bytes, since a file may hold as many as it likes of what says
        // nothing new, and by the look's own room.
        let until = self.bytes_read().saturating_add(MAX_BYTES_AT_END);
        loop {
            self.look_at(process, true, look);
            let has_room = look.len() < MAX_RECORDS_OF_A_LOOK && self.bytes_read() < until;
            if !self.has_more || !has_room {
                break;
            }
        }
        self.tell_the_rest(look);
        self.say_what_is_missing(process, look);
        if process.is_alive() && self.map.is_some() | !self.dumps.is_empty() {
            let text = "the VM goes on, and writes what it tells of its code through a buffer: code \
                        that it made last may have no name, or that of the code before it";
            self.say(text.to_owned(), "", look);
        }
        self.say_what_is_flawed(process, look);
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
