//! Conversion of a VM's file contents into changes of its code zone.
//!
//! Neither format reports removals: new code at the same addresses ends old code.

mod lines;
mod sampled;

use std::collections::{BTreeMap, HashMap};

use vmscope_process::{Pieces, Poll};
use vmscope_records::{
    Avma, ChainFrame, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind,
    ConstituentMoved, Cover, GoneReason, Method, MethodKey, PcMap, TimeNs,
};

use crate::dump::LineStart;
use crate::vm::{CodeName, VmKind};
use sampled::{MAX_UNSAMPLED, Replaced, Sampled};

/// Maximum number of live code pieces, above any VM's number: further pieces of a hostile file are
/// counted only.
const MAX_LIVE: usize = 1 << 20;

/// Maximum number of distinct functions; further functions have no method record, and no lines.
const MAX_METHODS: usize = 1 << 20;

/// Approximate maximum memory in bytes: names of live code, names of functions, and held-back
/// pieces may each take this much.
const MAX_BYTES: usize = 256 << 20;

/// A piece of code as described by a file.
#[derive(Clone, Debug)]
pub(crate) struct CodeLoad {
    pub start: Avma,
    pub size: u64,
    /// As the VM writes it.
    pub name: String,
    /// First time at which the code is known to be present.
    pub since: TimeNs,
    /// Last time at which the code was certainly absent; `None` if `since` is exact.
    pub absent_at: Option<TimeNs>,
    pub lines: Vec<LineStart>,
}

/// The code that is there now.
#[derive(Debug)]
pub(crate) struct LiveCode {
    kind: VmKind,
    by_start: BTreeMap<u64, LiveEntry>,
    methods: HashMap<(String, String, u32), MethodKey>,
    /// Begin of the recording: code with an earlier end is not emitted.
    emit_from: TimeNs,
    max_live: usize,
    max_bytes: usize,
    live_bytes: usize,
    method_bytes: usize,
    held: HeldBack,
    /// Where code is, if unwinding needs it.
    pieces: Option<Pieces>,
    sampled: Sampled,
    /// Emitted code of a perf map; beyond `max_unsampled`, code is emitted once sampled.
    unsampled: usize,
    pub max_unsampled: usize,
    /// Which reading of a file that is written anew has told of it last.
    edition: u32,
    /// Pieces that can't be: of no size, beyond the address space, too many.
    pub unusable: u64,
    /// Times that ran backwards.
    pub disordered: u64,
    /// Code without a method of its own, beyond the maximum number of methods.
    pub without_method: u64,
}

/// What is held back.
#[derive(Clone, Copy, Debug, Default)]
struct HeldBack {
    count: usize,
    bytes: usize,
    /// Address at which [`LiveCode::emit_held`] continues.
    from: u64,
}

#[derive(Debug)]
struct LiveEntry {
    end: u64,
    since: TimeNs,
    name: Box<str>,
    has_lines: bool,
    edition: u32,
    told: Told,
}

/// State of a code piece's record.
#[derive(Debug)]
enum Told {
    As(ConstituentKey),
    /// Held back during a file's first reading, since the VM may have removed most of this code.
    Held(Box<Constituent>),
    /// Nothing: no sample hit it yet.
    Not {
        absent_at: TimeNs,
    },
}

impl Told {
    fn held(&self) -> Option<&Constituent> {
        match self {
            Told::Held(constituent) => Some(constituent),
            Told::As(_) | Told::Not { .. } => None,
        }
    }
}

impl LiveEntry {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }
}

/// What a constituent takes in memory, roughly.
fn bytes_of(constituent: &Constituent) -> usize {
    let map = match &constituent.map {
        PcMap::Covers { covers, chains } => {
            let chain = size_of::<Vec<ChainFrame>>() + size_of::<ChainFrame>();
            covers.len() * size_of::<Cover>() + chains.len() * chain
        }
        _ => 0,
    };
    size_of::<Constituent>() + constituent.name.len() + map
}

impl LiveCode {
    pub fn new(kind: VmKind, emit_from: TimeNs) -> Self {
        LiveCode {
            kind,
            by_start: BTreeMap::new(),
            methods: HashMap::new(),
            emit_from,
            max_live: MAX_LIVE,
            max_bytes: MAX_BYTES,
            live_bytes: 0,
            method_bytes: 0,
            held: HeldBack::default(),
            pieces: None,
            sampled: Sampled::default(),
            unsampled: 0,
            max_unsampled: MAX_UNSAMPLED,
            edition: 0,
            unusable: 0,
            disordered: 0,
            without_method: 0,
        }
    }

    /// The pieces of code, kept up to date from now on.
    pub fn pieces(&mut self) -> Pieces {
        let pieces = self.pieces.get_or_insert_with(|| {
            let pieces = Pieces::default();
            for (start, entry) in &self.by_start {
                pieces.put(*start..entry.end, true);
            }
            pieces
        });
        pieces.clone()
    }

    /// Code was put somewhere. `hold` keeps it back until [`LiveCode::emit_held`].
    pub fn load(&mut self, load: CodeLoad, hold: bool, poll: &mut Poll) {
        let Some((mut load, end)) = self.place(load, poll) else {
            return;
        };
        let (start, since, has_lines) = (load.start.get(), load.since, !load.lines.is_empty());
        let name = std::mem::take(&mut load.name).into_boxed_str();
        let constituent = self.constituent(
            CodeLoad {
                name: name.to_string(),
                ..load
            },
            poll,
        );
        let told = if hold && self.held.bytes < self.max_bytes {
            Told::Held(Box::new(constituent))
        } else {
            let key = constituent.key;
            poll.code(CodeChange::Seen(constituent));
            Told::As(key)
        };
        self.put(
            start,
            LiveEntry {
                end,
                since,
                name,
                has_lines,
                edition: self.edition,
                told,
            },
        );
    }

    /// A line of a perf map; `absent_at` is required.
    pub fn load_line(&mut self, load: CodeLoad, poll: &mut Poll) {
        let (start, end) = (load.start.get(), load.start.get().saturating_add(load.size));
        let is_sampled = self.sampled.is_in(start, end);
        let Some(absent_at) = load
            .absent_at
            .filter(|_| self.unsampled >= self.max_unsampled && !is_sampled)
        else {
            self.unsampled += 1;
            return self.load(load, false, poll);
        };
        let Some((load, end)) = self.place(load, poll) else {
            return;
        };
        self.put(
            start,
            LiveEntry {
                end,
                since: load.since,
                name: load.name.into(),
                has_lines: false,
                edition: self.edition,
                told: Told::Not { absent_at },
            },
        );
    }

    /// Makes room for code, and returns its end; `None` for known, impossible or excess code.
    fn place(&mut self, mut load: CodeLoad, poll: &mut Poll) -> Option<(CodeLoad, u64)> {
        let start = load.start.get();
        let end = start.checked_add(load.size);
        let fits = load.size != 0 && u32::try_from(load.size).is_ok();
        let Some(end) = end.filter(|_| fits) else {
            self.unusable += 1;
            return None;
        };
        // Each of V8's workers tells of all builtins again.
        let same = self.by_start.get_mut(&start).filter(|there| {
            there.end == end
                && *there.name == *load.name
                && !there.has_lines
                && load.lines.is_empty()
        });
        if let Some(there) = same {
            there.edition = self.edition;
            return None;
        }
        // New code ends the old code even if there is no memory for the new.
        load.since = self.make_room(start, end, load.since, load.absent_at, poll);
        if self.by_start.len() >= self.max_live || self.live_bytes >= self.max_bytes {
            self.unusable += 1;
            return None;
        }
        Some((load, end))
    }

    /// Moves code, which ends older code at the new address. Unknown code can't be moved, but ends the
    /// older code, too.
    pub fn moved(&mut self, from: Avma, to: Avma, size: u64, time: TimeNs, poll: &mut Poll) {
        let Some(mut entry) = self.take(from.get()) else {
            let end = to.get().saturating_add(size);
            self.make_room(to.get(), end, time, None, poll);
            self.unusable += 1;
            return;
        };
        let size = size.min(entry.end - from.get());
        let Some(end) = to.get().checked_add(size) else {
            self.unusable += 1;
            return;
        };
        let time = self.make_room(to.get(), end, time.max(entry.since), None, poll);
        entry.told = match entry.told {
            Told::Held(mut constituent) if time <= self.emit_from => {
                let map_fits = constituent.end.get() - constituent.start.get() == size;
                constituent.start = to;
                constituent.end = Avma(end);
                constituent.since = time;
                if !map_fits {
                    constituent.map = PcMap::None;
                }
                Told::Held(constituent)
            }
            Told::Held(constituent) => {
                let key = constituent.key;
                poll.code(CodeChange::Seen(*constituent));
                Told::As(key)
            }
            other => other,
        };
        if let Told::As(key) = entry.told {
            poll.code(CodeChange::Moved(ConstituentMoved {
                key,
                last_seen: time,
                time,
                to,
            }));
        }
        entry.end = end;
        entry.since = time;
        self.put(to.get(), entry);
    }

    /// Emits at most `at_most` pieces of held-back, live code; returns whether no piece
    /// remains.
    pub fn emit_held(&mut self, at_most: usize, poll: &mut Poll) -> bool {
        let mut left = at_most;
        let mut from = std::mem::take(&mut self.held.from);
        while self.held.count > 0 && left > 0 {
            for (start, entry) in self.by_start.range_mut(from..) {
                let Some(key) = entry.told.held().map(|constituent| constituent.key) else {
                    continue;
                };
                if let Told::Held(constituent) = std::mem::replace(&mut entry.told, Told::As(key)) {
                    self.held.count = self.held.count.saturating_sub(1);
                    let bytes = bytes_of(&constituent);
                    self.held.bytes = self.held.bytes.saturating_sub(bytes);
                    poll.code(CodeChange::Seen(*constituent));
                }
                left -= 1;
                if left == 0 {
                    self.held.from = *start;
                    break;
                }
            }
            // Meanwhile moved code may lie before the first address of this pass.
            if std::mem::take(&mut from) == 0 {
                break;
            }
        }
        self.held.count == 0
    }

    /// Begins to read a rewritten file: code that the file no longer names is gone.
    pub fn begin_anew(&mut self) {
        self.edition = self.edition.wrapping_add(1);
    }

    /// Ends code without a report since [`LiveCode::begin_anew`]; this code was present at least
    /// until `last_seen`.
    pub fn end_missing(&mut self, last_seen: TimeNs, time: TimeNs, poll: &mut Poll) {
        let of_old = |(start, entry): (&u64, &LiveEntry)| {
            (entry.edition != self.edition).then_some((*start, entry.since))
        };
        let gone: Vec<(u64, TimeNs)> = self.by_start.iter().filter_map(of_old).collect();
        for (start, since) in gone {
            let time = time.max(since);
            let last_seen = last_seen.clamp(since, time);
            self.end(start, last_seen, time, GoneReason::Unknown, poll);
        }
    }

    fn put(&mut self, start: u64, entry: LiveEntry) {
        self.live_bytes = self.live_bytes.saturating_add(entry.bytes());
        if let Some(constituent) = entry.told.held() {
            self.held.count += 1;
            self.held.bytes = self.held.bytes.saturating_add(bytes_of(constituent));
        }
        if let Some(pieces) = &self.pieces {
            pieces.put(start..entry.end, true);
        }
        self.by_start.insert(start, entry);
    }

    fn take(&mut self, start: u64) -> Option<LiveEntry> {
        let entry = self.by_start.remove(&start)?;
        if let Some(pieces) = &self.pieces {
            pieces.take(&(start..entry.end));
        }
        self.live_bytes = self.live_bytes.saturating_sub(entry.bytes());
        if let Some(constituent) = entry.told.held() {
            self.held.count = self.held.count.saturating_sub(1);
            self.held.bytes = self.held.bytes.saturating_sub(bytes_of(constituent));
        }
        Some(entry)
    }

    /// Ends the piece at `start`; skips held-back code that ended before the recording
    /// began.
    fn end(
        &mut self,
        start: u64,
        last_seen: TimeNs,
        time: TimeNs,
        reason: GoneReason,
        poll: &mut Poll,
    ) {
        let Some(old) = self.take(start) else {
            return;
        };
        let key = match old.told {
            Told::As(key) => key,
            _ if time <= self.emit_from => return,
            Told::Held(constituent) => {
                let key = constituent.key;
                poll.code(CodeChange::Seen(*constituent));
                key
            }
            Told::Not { absent_at } => {
                let replaced = Replaced {
                    start,
                    end: old.end,
                    name: old.name,
                    since: old.since,
                    absent_at,
                    last_seen,
                    gone_at: time,
                    reason,
                };
                let is_kept = self.sampled.keep(replaced, self.max_bytes);
                self.unusable += u64::from(!is_kept);
                return;
            }
        };
        poll.code(CodeChange::Gone(ConstituentGone {
            key,
            last_seen,
            time,
            reason,
        }));
    }

    /// Ends what lies in `[start, end)`, and says when what comes there can have come:
    /// not before what is there.
    fn make_room(
        &mut self,
        start: u64,
        end: u64,
        time: TimeNs,
        absent_at: Option<TimeNs>,
        poll: &mut Poll,
    ) -> TimeNs {
        let mut overlapped: Vec<u64> = self
            .by_start
            .range(start..end)
            .map(|(&from, _)| from)
            .collect();
        let before = self.by_start.range(..start).next_back();
        overlapped.extend(
            before
                .filter(|(_, entry)| entry.end > start)
                .map(|(&from, _)| from),
        );
        let mut latest = time;
        for from in overlapped {
            let Some(since) = self.by_start.get(&from).map(|old| old.since) else {
                continue;
            };
            self.disordered += u64::from(since > time);
            let gone_at = time.max(since);
            latest = latest.max(gone_at);
            let last_seen = absent_at.unwrap_or(gone_at).min(gone_at);
            self.end(from, last_seen, gone_at, GoneReason::Recycled, poll);
        }
        latest
    }

    fn constituent(&mut self, mut load: CodeLoad, poll: &mut Poll) -> Constituent {
        let (key, since) = (poll.keys().constituent(), load.since);
        let CodeName {
            name,
            kind,
            tier,
            class,
            file,
            line,
        } = self.kind.split(&load.name);
        if !self.kind.has_lines(&tier) {
            load.lines = Vec::new();
        }
        // A name without a place takes the first source position.
        let (file, line) = match load.lines.first() {
            Some(first) if file.is_empty() => (first.file.to_string(), first.line),
            _ => (file, line),
        };
        let has_method = matches!(kind, ConstituentKind::Method | ConstituentKind::Block);
        let method = has_method
            .then(|| {
                let own = name.strip_prefix(&class);
                let own = own.and_then(|rest| rest.strip_prefix('.'));
                let described = Method {
                    time: since,
                    name: own.unwrap_or(&name).to_owned(),
                    class,
                    file: file.clone(),
                    line,
                    ..Method::default()
                };
                self.method(described, poll)
            })
            .flatten();
        let map = match method {
            Some(method) => self.covers(&load, method, &name, &file, poll),
            None => PcMap::None,
        };
        Constituent {
            key,
            process: poll.process(),
            since,
            absent_at: load.absent_at.filter(|absent| *absent < since),
            start: load.start,
            end: Avma(load.start.get().saturating_add(load.size)),
            kind,
            tier,
            name,
            method,
            cases: Vec::new(),
            map,
        }
    }

    /// The key of a method, which is emitted if it is new.
    fn method(&mut self, method: Method, poll: &mut Poll) -> Option<MethodKey> {
        let full = format!("{}.{}", method.class, method.name);
        let id = (full, method.file.clone(), method.line);
        if let Some(key) = self.methods.get(&id) {
            return Some(*key);
        }
        if self.methods.len() >= MAX_METHODS || self.method_bytes >= self.max_bytes {
            self.without_method += 1;
            return None;
        }
        self.method_bytes += size_of_val(&id) + id.0.len() + id.1.len();
        let key = poll.keys().method();
        poll.method(Method { key, ..method });
        self.methods.insert(id, key);
        Some(key)
    }
}

#[cfg(test)]
mod tests;
