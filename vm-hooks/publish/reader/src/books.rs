//! Turns a VM's events into records. Keeps the record key of each VM id.

mod collections;
mod lifetimes;

use std::hash::Hash;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use vmscope_process::{InterpretedFrames, Pieces, Poll, ProcessView};
use vmscope_publish::event::{self as e, Event};
use vmscope_publish::zone::{Change, Zone};
use vmscope_records::{
    Avma, BytecodePc, ClassKey, CodeChange, Compilation, Constituent, ConstituentGone,
    ConstituentKey, ConstituentMoved, GoneReason, LineEntry, Method, MethodKey, PicCase, SiteKey,
    Stream, ThreadKey, Tid, TimeNs,
};

use crate::convert;
use crate::stream::{Batch, Item};
use collections::Collections;

/// Maximum number of methods, of classes and of sites. Further ids stay unknown; complaints count
/// their uses.
const MAX_NAMES: usize = 1 << 22;

/// Maximum number of PICs kept, for emitting a PIC again when its cases change.
const MAX_PICS: usize = 1 << 16;

/// Maximum number of compiling threads.
const MAX_COMPILERS: usize = 1 << 10;

/// Keys by the VM's ids.
#[derive(Debug)]
struct Keys<K>(FxHashMap<u64, K>);

impl<K> Default for Keys<K> {
    fn default() -> Self {
        Keys(FxHashMap::default())
    }
}

impl<K: Copy + Eq + Hash> Keys<K> {
    /// Makes a key for an unknown id. `None` if the id is known, or the table is full.
    fn new_key(&mut self, id: u64, key: impl FnOnce() -> K) -> Option<K> {
        if self.0.contains_key(&id) || self.0.len() >= MAX_NAMES {
            return None;
        }
        let key = key();
        self.0.insert(id, key);
        Some(key)
    }

    fn get(&self, id: u64) -> Option<K> {
        self.0.get(&id).copied()
    }
}

/// Numbers of invalid events from the VM, by kind.
#[derive(Debug, Default)]
struct Complaints {
    undecodable: u64,
    code: u64,
    maps: u64,
    unknown_ids: u64,
    order: u64,
}

/// A constituent that exists.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: ConstituentKey,
    /// First address.
    start: u64,
    size: u64,
    content: Content,
}

impl Known {
    fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.size)
    }
}

/// What the memory of a constituent holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Code that makes a frame: a method, a block.
    Framed,
    /// Code that runs in its caller's frame: an inline cache, a trampoline.
    Frameless,
    /// Data of the VM.
    Data,
}

impl Content {
    fn of(kind: e::ConstituentKind) -> Self {
        use e::ConstituentKind as Kind;
        match kind {
            Kind::Bytecodes | Kind::MethodObject => Content::Data,
            Kind::ClosedPic | Kind::OpenPic | Kind::Trampoline | Kind::Enilopmart => {
                Content::Frameless
            }
            _ => Content::Framed,
        }
    }
}

/// vmscope's knowledge of a VM.
#[derive(Debug, Default)]
pub(crate) struct Books {
    zone: Zone,
    constituents: FxHashMap<u64, Known>,
    pics: FxHashMap<u64, Constituent>,
    methods: Keys<MethodKey>,
    classes: Keys<ClassKey>,
    sites: Keys<SiteKey>,
    collections: Collections,
    compiling: FxHashMap<Tid, Compilation>,
    threads: Threads,
    /// Time until which all code is known. A loss of events sets the time, a snapshot clears it.
    certain_until: Option<TimeNs>,
    has_snapshot: bool,
    complaints: Complaints,
    has_lost_events: bool,
    too_long: u64,
    /// Shared with the unwinder.
    pub pieces: Pieces,
    /// The VM's first word about interpreted frames, shared with the unwinder.
    pub frames: Arc<OnceLock<InterpretedFrames>>,
}

/// Thread ids in vmscope's pid namespace, by thread id in the VM's namespace.
#[derive(Debug, Default)]
struct Threads {
    known: FxHashMap<u32, Tid>,
    /// The thread list was read for this batch: a VM that invents ids causes no further readings.
    is_read: bool,
}

impl Threads {
    /// The thread's id in vmscope's pid namespace. The first unknown id of a batch causes a reading of
    /// the thread list.
    fn outer(&mut self, inner: u32, process: &ProcessView) -> Option<Tid> {
        if process.inner_pid() == process.pid() {
            return (inner != 0).then_some(Tid(inner));
        }
        if !self.known.contains_key(&inner) && !std::mem::replace(&mut self.is_read, true) {
            let threads = process.threads().unwrap_or_default();
            self.known = threads
                .iter()
                .map(|one| (one.inner_tid.0, one.tid))
                .collect();
        }
        self.known.get(&inner).copied()
    }
}

impl Books {
    /// Whether all code is known.
    pub fn is_complete(&self) -> bool {
        self.has_snapshot && self.certain_until.is_none()
    }

    /// Turns a batch into records.
    pub fn take(&mut self, batch: Batch, process: &ProcessView, poll: &mut Poll) {
        self.too_long = batch.too_long;
        self.threads.is_read = false;
        let latest = poll.now();
        for item in batch.items {
            match item {
                Item::Event(time, event) => {
                    let time = TimeNs(time).min(latest);
                    poll.happened_at(Some(time));
                    self.event(time, event, process, poll);
                }
                Item::Lost { from, to, words } => {
                    let (from, to) = (TimeNs(from), TimeNs(to));
                    self.zone.lost();
                    self.certain_until.get_or_insert(from);
                    if words > 0 {
                        self.has_lost_events = true;
                        poll.happened_at(Some(to));
                        // The number of lost events is unknown.
                        poll.lost(Stream::Adapter, 1, from);
                    }
                }
                Item::Undecodable => self.complaints.undecodable += 1,
                Item::NoAnswer => poll.limit(
                    "the VM has not described what existed before vmscope attached: it has not \
                     called vmscope_poll, or has no description callback"
                        .to_owned(),
                    "call vmscope_poll at the VM's safe points",
                ),
                Item::Refused(error) => {
                    self.certain_until.get_or_insert(TimeNs(batch.read_until));
                    poll.limit(format!("the VM's events end early: {error}"), "");
                }
            }
        }
    }

    /// Emits unfinished collections, and the complaints.
    pub fn finish(&mut self, poll: &mut Poll) {
        poll.happened_at(None);
        self.collections.finish(poll);
        let Complaints {
            undecodable,
            code,
            maps,
            unknown_ids,
            order,
        } = std::mem::take(&mut self.complaints);
        let complaints = [
            (undecodable, "events can't be decoded"),
            (
                code,
                "pieces of code have impossible addresses or reuse an id",
            ),
            (
                self.overlaps(),
                "pieces of code overlap other code at the end",
            ),
            (maps, "pc maps are unordered, or leave their code"),
            (
                unknown_ids,
                "events name unknown methods, classes, sites or code",
            ),
            (
                order,
                "collections, phases or compilations end without a start",
            ),
            (
                self.too_long,
                "events are longer than the VM's shared memory allows",
            ),
        ];
        for (count, text) in complaints {
            if count > 0 {
                let text = format!("of the VM's events: {count} {text}");
                poll.limit(text, "see the VM's use of vmscope-publish");
            }
        }
        if std::mem::take(&mut self.has_lost_events) {
            poll.limit(
                "the VM overwrote events before vmscope read them".to_owned(),
                "give the VM's stream more memory",
            );
        }
    }

    /// Number of pieces of code that begin before the end of an earlier piece. Earlier overlaps may
    /// be honest: a thread publishes new code before another thread publishes the removal.
    fn overlaps(&self) -> u64 {
        let code = self
            .constituents
            .iter()
            .filter(|(_, known)| known.content != Content::Data);
        let places = code.filter_map(|(id, _)| self.zone.place(*id));
        let mut places: Vec<(u64, u64)> = places.map(|place| (place.start, place.end)).collect();
        places.sort_unstable();
        let mut end = 0;
        let overlaps = places.iter().filter(|(start, its_end)| {
            let overlaps = *start < end;
            end = end.max(*its_end);
            overlaps
        });
        overlaps.count() as u64
    }

    fn event(
        &mut self,
        time: TimeNs,
        mut event: Event<'static>,
        process: &ProcessView,
        poll: &mut Poll,
    ) {
        let change = self.zone.apply(&mut event);
        if change != Change::None {
            return self.code(time, change, &event, poll);
        }
        match &event {
            Event::Method(method) => self.method(time, method, poll),
            Event::Class(class) => self.class(class, poll),
            Event::Thread(thread) => {
                if let Some(tid) = self.threads.outer(thread.tid, process) {
                    let name = thread.name.to_string();
                    let name = (!name.is_empty()).then_some(name);
                    poll.thread(tid, name, Some(convert::role(thread.role)));
                }
            }
            Event::CompilationBegin(begin) => {
                if let Some(tid) = self.threads.outer(begin.tid, process) {
                    self.end_compilation(tid, time, poll);
                    self.begin_compilation(tid, time, begin, poll);
                }
            }
            Event::CompilationEnd(end) => {
                let tid = self.threads.outer(end.tid, process);
                if !tid.is_some_and(|tid| self.end_compilation(tid, time, poll)) {
                    self.complaints.order += 1;
                }
            }
            Event::Counter(counter) => poll.counter(
                &counter.section.to_str(),
                &counter.name.to_str(),
                &counter.unit.to_str(),
                convert::meaning(counter.meaning),
                counter.value,
            ),
            Event::Fact(fact) => poll.fact(&fact.name.to_str(), fact.value.to_string()),
            Event::Interpreter(rules) => {
                let (ranges, sources) = convert::interpreter(rules);
                poll.interpreter("publish", ranges, sources);
            }
            Event::Frames(frames) => {
                self.frames.get_or_init(|| InterpretedFrames {
                    return_address: Avma(frames.interpreted_return),
                    next: frames.next,
                });
            }
            Event::Regions(regions) => poll.rules("publish", convert::rules(regions)),
            Event::Site(site) => self.site(site, poll),
            Event::Births(births) => self.births(births, process, poll),
            Event::Survivals(survivals) => self.survivals(survivals, poll),
            Event::Deaths(deaths) => self.deaths(deaths, poll),
            Event::Lifetimes(counts) => self.lifetimes(time, counts, poll),
            event => {
                let tid = |inner| self.threads.outer(inner, process);
                let is_sound = self.collections.take(time, event, tid, poll);
                self.complaints.order += u64::from(!is_sound);
            }
        }
    }

    fn method(&mut self, time: TimeNs, method: &e::Method<'_>, poll: &mut Poll) {
        let keys = poll.keys().clone();
        let Some(key) = self.methods.new_key(method.id, || keys.method()) else {
            return;
        };
        let lines = method.lines.iter().map(|entry| LineEntry {
            from: BytecodePc(entry.bytecode),
            line: entry.line,
        });
        let listing = method.listing_lines();
        let listing = listing.map(|(at, text)| (BytecodePc(at), text.into_owned()));
        let (mut lines, mut listing): (Vec<_>, Vec<_>) = (lines.collect(), listing.collect());
        lines.sort_by_key(|entry| entry.from);
        listing.sort_by_key(|(at, _)| *at);
        poll.method(Method {
            key,
            time,
            class: method.class.to_string(),
            name: method.name.to_string(),
            file: method.file.to_string(),
            line: method.line,
            lines,
            bytecodes: method.bytecodes.to_vec(),
            listing,
        });
    }

    fn code(&mut self, time: TimeNs, change: Change, event: &Event<'_>, poll: &mut Poll) {
        match (change, event) {
            (Change::Seen { .. }, Event::Constituent(code)) => self.seen(time, code, true, poll),
            (Change::Seen { .. }, Event::Described(code)) => self.seen(time, code, false, poll),
            (Change::Gone, Event::Gone(gone)) => {
                let reason = convert::gone_reason(gone.reason);
                self.gone(gone.id, (time, time), reason, poll);
            }
            (Change::Moved, Event::Moved(moved)) => {
                self.moved(moved.id, moved.to, (time, time), poll);
            }
            (Change::Cases, Event::Cases(cases)) => {
                let new = self.cases(&cases.cases);
                if let Some(pic) = self.pics.get_mut(&cases.id) {
                    pic.cases = new;
                    poll.code(CodeChange::Seen(pic.clone()));
                }
            }
            (Change::Complete { missing }, _) => {
                let last_seen = self.certain_until.take().unwrap_or(time);
                for id in missing {
                    self.gone(id, (last_seen, time), GoneReason::Unknown, poll);
                }
                self.has_snapshot = true;
            }
            (Change::Complaint(_), _) => self.complaints.code += 1,
            _ => {}
        }
    }

    /// Takes new code, or new data about known code. With `is_new_now`, the VM made the code at
    /// `time`; otherwise a snapshot describes existing code.
    fn seen(&mut self, time: TimeNs, code: &e::Constituent<'_>, is_new_now: bool, poll: &mut Poll) {
        let known = self.constituents.get(&code.id).copied();
        if known.is_some() {
            // A snapshot reveals a move only after a loss of events.
            let last_seen = self.certain_until.unwrap_or(time);
            self.moved(code.id, code.start, (last_seen, time), poll);
        }
        let size = code.end.saturating_sub(code.start);
        let method = |id| self.methods.get(id);
        let map = convert::map(&code.map, size, method);
        self.complaints.maps += u64::from(map.is_none());
        self.complaints.unknown_ids += u64::from(code.method != 0 && method(code.method).is_none());
        let since = code.since.map(|since| TimeNs(since).min(time));
        let (since, absent_at) = match (since, is_new_now) {
            (Some(since), _) => (since, Some(since)),
            (None, true) => (time, Some(time)),
            // The VM may have made the code during a loss of events.
            (None, false) => (time, self.certain_until),
        };
        let constituent = Constituent {
            key: known.map_or_else(|| poll.keys().constituent(), |known| known.key),
            process: poll.process(),
            since,
            absent_at,
            start: Avma(code.start),
            end: Avma(code.end),
            kind: convert::kind(code.kind, &code.kind_word),
            tier: code.tier.to_string(),
            name: code.name.to_string(),
            method: method(code.method),
            cases: self.cases(&code.cases),
            map: map.unwrap_or_default(),
        };
        let known_now = Known {
            key: constituent.key,
            start: code.start,
            size,
            content: Content::of(code.kind),
        };
        if known.is_none() {
            self.put_piece(known_now);
        }
        self.constituents.insert(code.id, known_now);
        let is_pic = matches!(
            code.kind,
            e::ConstituentKind::ClosedPic | e::ConstituentKind::OpenPic
        );
        let is_same = match self.pics.get(&code.id) {
            Some(pic) => pic.cases == constituent.cases,
            None => !is_pic,
        };
        if known.is_some() && !is_new_now && is_same {
            return;
        }
        if is_pic && (self.pics.len() < MAX_PICS || self.pics.contains_key(&code.id)) {
            self.pics.insert(code.id, constituent.clone());
        }
        poll.code(CodeChange::Seen(constituent));
    }

    fn gone(
        &mut self,
        id: u64,
        (last_seen, time): (TimeNs, TimeNs),
        reason: GoneReason,
        poll: &mut Poll,
    ) {
        self.pics.remove(&id);
        if let Some(known) = self.constituents.remove(&id) {
            self.take_piece(known);
            poll.code(CodeChange::Gone(ConstituentGone {
                key: known.key,
                last_seen: last_seen.min(time),
                time,
                reason,
            }));
        }
    }

    fn moved(&mut self, id: u64, to: u64, (last_seen, time): (TimeNs, TimeNs), poll: &mut Poll) {
        let known = self.constituents.get_mut(&id);
        let Some(known) = known.filter(|known| known.start != to) else {
            return;
        };
        let before = std::mem::replace(
            known,
            Known {
                start: to,
                ..*known
            },
        );
        let (key, now) = (known.key, *known);
        self.take_piece(before);
        self.put_piece(now);
        poll.code(CodeChange::Moved(ConstituentMoved {
            key,
            last_seen: last_seen.min(time),
            time,
            to: Avma(to),
        }));
        if let Some(pic) = self.pics.get_mut(&id) {
            let size = pic.end.0 - pic.start.0;
            (pic.start, pic.end) = (Avma(to), Avma(to.saturating_add(size)));
        }
    }

    /// Tells the unwinder of code.
    fn put_piece(&self, code: Known) {
        if code.content != Content::Data {
            self.pieces
                .put(code.range(), code.content == Content::Framed);
        }
    }

    /// Tells the unwinder that code has gone, unless other code begins there.
    fn take_piece(&self, code: Known) {
        if code.content != Content::Data {
            self.pieces.take(&code.range());
        }
    }

    fn cases(&self, cases: &[e::PicCase<'_>]) -> Vec<PicCase> {
        let cases = cases.iter().map(|case| PicCase {
            class: case.class.to_string(),
            method: self.methods.get(case.method),
            target: case.target.to_string(),
        });
        cases.collect()
    }

    fn begin_compilation(
        &mut self,
        tid: Tid,
        time: TimeNs,
        begin: &e::CompilationBegin<'_>,
        poll: &mut Poll,
    ) {
        let compilation = Compilation {
            thread: ThreadKey::of_tid(tid),
            id: begin.number,
            name: begin.name.to_string(),
            tier: begin.tier.to_string(),
            osr_bci: begin.osr_bytecode,
            absent_at: Some(time),
            first_seen: time,
            last_seen: time,
            ..Compilation::default()
        };
        poll.compilation(compilation.clone());
        if self.compiling.len() < MAX_COMPILERS {
            self.compiling.insert(tid, compilation);
        }
    }

    /// Ends the thread's compilation; `false` if the thread had no compilation.
    fn end_compilation(&mut self, tid: Tid, time: TimeNs, poll: &mut Poll) -> bool {
        let Some(compilation) = self.compiling.remove(&tid) else {
            return false;
        };
        poll.compilation(Compilation {
            last_seen: time,
            gone_at: Some(time),
            ..compilation
        });
        true
    }
}

#[cfg(test)]
mod tests;
