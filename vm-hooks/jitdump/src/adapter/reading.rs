//! Reading on in a process's files.

use vmscope_process::{Poll, ProcessView};
use vmscope_records::Arch;

use super::clocks::judge_clock;
use super::flaws::{loses_code, loses_entry};
use super::{Dump, FileAdapter, MAX_LOADS_PER_POLL, POLLS_FOR_HEADER, error_chain};
use crate::clock::DumpClock;
use crate::code::CodeLoad;
use crate::dump::Event;
use crate::follow::{FileError, Progress};

impl FileAdapter {
    pub(super) fn read_dumps(&mut self, at_end: bool, process: &ProcessView, poll: &mut Poll) {
        let mut events = Vec::new();
        for at in 0..self.dumps.len() {
            let streams = self.streams(process);
            let Some(dump) = self.dumps.get_mut(at).filter(|dump| !dump.over) else {
                continue;
            };
            let unwritten = streams.and_then(|all| all.unwritten(process, dump.file.file()));
            dump.with_buffer = unwritten.is_some();
            dump.file.set_unwritten(unwritten.unwrap_or_default());
            let progress = if at_end {
                dump.file.finish(MAX_LOADS_PER_POLL, &mut events)
            } else {
                dump.file.poll(MAX_LOADS_PER_POLL, &mut events)
            };
            dump.over = progress.as_ref().is_err_and(FileError::is_final);
            let flaws = dump.file.flaws().iter();
            let flaws = flaws.filter(|(flaw, _)| loses_code(*flaw));
            let flaws: u64 = flaws.map(|(_, seen)| seen.count).sum();
            let more = growth(&mut dump.flaws, flaws);
            self.count_lost(more, poll);
            match progress {
                Ok(progress) => self.has_more |= progress == Progress::More,
                Err(error) => self.limit(error_chain(&error), "", poll),
            }
            if !self.is_of_this_machine(at, poll) {
                continue;
            }
            if let Some(dump) = self.dumps.get_mut(at)
                && dump.file.header().is_none()
            {
                dump.polls_without_header = dump.polls_without_header.saturating_add(1);
            }
            self.grew |= !events.is_empty();
            for event in events.drain(..) {
                self.take(at, event, process, poll);
            }
        }
    }

    /// Whether a dump describes the code, or may still begin; nobody then reads the perf map.
    pub(super) fn reads_a_dump(&self, at_end: bool) -> bool {
        let may_come = |dump: &Dump| !at_end && dump.polls_without_header < POLLS_FOR_HEADER;
        let is_read = |dump: &Dump| !dump.over && (dump.file.header().is_some() || may_come(dump));
        self.dumps.iter().any(is_read)
    }

    /// Whether a dump holds code for this machine. Other dumps are read no further.
    pub(super) fn is_of_this_machine(&mut self, at: usize, poll: &mut Poll) -> bool {
        let here = Arch::of_this_machine();
        let Some(dump) = self.dumps.get_mut(at) else {
            return false;
        };
        let Some(header) = dump.file.header().filter(|header| !header.may_be_for(here)) else {
            return true;
        };
        let text = format!(
            "jitdump {} is not read: its code is for ELF machine {}, this machine is {}",
            dump.file.path(),
            header.arch.elf_machine(),
            here.elf_machine()
        );
        dump.over = true;
        self.limit(text, "", poll);
        false
    }

    pub(super) fn take(
        &mut self,
        dump: usize,
        event: Event,
        process: &ProcessView,
        poll: &mut Poll,
    ) {
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
            let text = "the VM's jitdump uses an unknown clock: code is known from its first \
                        observation; samples where code was replaced may be doubtful";
            self.limit(text.to_owned(), "", poll);
        }
        let (since, absent_at) = match clock.time(raw, poll.now()) {
            Some(time) => (time, None),
            None => (poll.now(), self.absent_at()),
        };
        match event {
            Event::Load(load) => {
                let load = CodeLoad {
                    start: load.address,
                    size: load.size,
                    name: load.name,
                    since,
                    absent_at,
                    lines: load.lines,
                };
                self.live.load(load, self.last_poll.is_none(), poll);
            }
            Event::Move(moved) => {
                self.live
                    .moved(moved.from, moved.to, moved.size, since, poll);
            }
            Event::Close => {}
        }
    }

    pub(super) fn read_map(&mut self, at_end: bool, process: &ProcessView, poll: &mut Poll) {
        let streams = self.streams(process);
        let Some(map) = self.map.as_mut().filter(|map| !map.over) else {
            return;
        };
        let unwritten = streams.and_then(|all| all.unwritten(process, map.file.file()));
        map.with_buffer = unwritten.is_some();
        map.file.set_unwritten(unwritten.unwrap_or_default());
        let mut entries = Vec::new();
        let progress = if at_end {
            map.file.finish(MAX_LOADS_PER_POLL, &mut entries)
        } else {
            map.file.poll(MAX_LOADS_PER_POLL, &mut entries)
        };
        map.over = progress.as_ref().is_err_and(FileError::is_final);
        if matches!(progress, Ok(Progress::Rewritten)) {
            map.flaws = 0;
            let last_seen = self.last_poll.unwrap_or(poll.began());
            map.anew_since.get_or_insert(last_seen);
            self.live.begin_anew();
        }
        // The VM may still be writing while something comes.
        let is_quiet = at_end || entries.is_empty();
        let is_whole = is_quiet && matches!(progress, Ok(Progress::CaughtUp));
        let anew_since = map.anew_since.take_if(|_| is_whole);
        // An entry with a cut-off line counts.
        let flaws = map.file.flaws().iter();
        let flaws = flaws.filter(|(flaw, _)| loses_entry(*flaw));
        let flaws: u64 = flaws.map(|(_, seen)| seen.count).sum();
        let more = growth(&mut map.flaws, flaws);
        self.count_lost(more, poll);
        match progress {
            Ok(progress) => self.has_more |= progress != Progress::CaughtUp,
            Err(error) => self.limit(error_chain(&error), "", poll),
        }
        let since = poll.now();
        self.grew |= !entries.is_empty();
        for entry in entries {
            let load = CodeLoad {
                start: entry.start,
                size: entry.size,
                name: entry.name,
                since,
                absent_at: self.absent_at(),
                lines: Vec::new(),
            };
            self.live.load_line(load, poll);
        }
        if let Some(last_seen) = anew_since {
            self.live.end_missing(last_seen, poll.now(), poll);
        }
    }

    /// Bytes read from all files.
    pub(super) fn bytes_read(&self) -> u64 {
        let dumps = self.dumps.iter().map(|dump| dump.file.bytes_read());
        let map = self.map.iter().map(|map| map.file.bytes_read());
        dumps.chain(map).fold(0, u64::saturating_add)
    }
}

/// Growth since the last call.
fn growth(before: &mut u64, now: u64) -> u64 {
    now.saturating_sub(std::mem::replace(before, now))
}
