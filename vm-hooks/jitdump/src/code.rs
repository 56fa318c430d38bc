//! From what a VM's files tell to changes of its code zone.
//!
//! Neither format tells when code is gone: what is put over other code ends it.

use std::collections::{BTreeMap, HashMap};

use vmscope_records::{
    Avma, ChainFrame, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind,
    ConstituentMoved, Cover, Exactness, GoneReason, Method, MethodKey, PcMap, Position, TimeNs,
};
use vmscope_target::Look;

use crate::dump::LineStart;
use crate::vm::{CodeName, VmKind};

/// More pieces of code than any VM has at a time: what a hostile file tells beyond
/// them is counted, not kept.
const MAX_LIVE: usize = 1 << 20;

/// More distinct functions get no method of their own, and so no lines.
const MAX_METHODS: usize = 1 << 20;

/// So many bytes after a source position it still holds, if no other comes; code
/// further away has no line (TRUTH.md §5).
const MAX_DISTANCE: u32 = 512;

/// V8 adds the size of an ELF header to the addresses of its source positions, where
/// `perf inject` puts the code in the file that it makes (V8's `perf-jit.cc`,
/// `kElfHeaderSize`).
const ELF_HEADER_BYTES: u64 = 0x40;

/// A piece of code as a file tells of it.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub start: Avma,
    pub size: u64,
    /// As the VM writes it.
    pub name: String,
    /// When it is known to be there.
    pub since: TimeNs,
    /// When it was not there yet; `None` where `since` is exact.
    pub absent_at: Option<TimeNs>,
    pub lines: Vec<LineStart>,
}

/// The code that is there now.
#[derive(Debug)]
pub(crate) struct LiveCode {
    kind: VmKind,
    by_start: BTreeMap<u64, Placed>,
    methods: HashMap<(String, String, u32), MethodKey>,
    /// Code that was over by then is not told: before the recording began.
    tell_from: TimeNs,
    max_live: usize,
    /// Pieces that can't be: of no size, beyond the address space, too many.
    pub unusable: u64,
    /// Times that ran backwards.
    pub disordered: u64,
}

#[derive(Debug)]
struct Placed {
    end: u64,
    key: ConstituentKey,
    since: TimeNs,
    name: Box<str>,
    has_lines: bool,
    /// What is still to be told of it: its records are held back while a file is read
    /// for the first time, since most of it may be over.
    untold: Option<Box<Constituent>>,
}

impl LiveCode {
    pub fn new(kind: VmKind, tell_from: TimeNs) -> Self {
        LiveCode {
            kind,
            by_start: BTreeMap::new(),
            methods: HashMap::new(),
            tell_from,
            max_live: MAX_LIVE,
            unusable: 0,
            disordered: 0,
        }
    }

    /// Code was put somewhere. `hold` keeps it back until [`LiveCode::tell`].
    pub fn load(&mut self, mut piece: Piece, hold: bool, look: &mut Look) {
        let start = piece.start.get();
        let end = start.checked_add(piece.size);
        let fits = piece.size != 0 && u32::try_from(piece.size).is_ok();
        let Some(end) = end.filter(|_| fits) else {
            self.unusable += 1;
            return;
        };
        // Each of V8's workers tells of all builtins again.
        let same = self.by_start.get(&start).is_some_and(|there| {
            there.end == end
                && *there.name == *piece.name
                && !there.has_lines
                && piece.lines.is_empty()
        });
        if same {
            return;
        }
        // Even where there is no room for it: the old code is not there any more.
        let since = self.make_room(start, end, piece.since, piece.absent_at, look);
        if self.by_start.len() >= self.max_live {
            self.unusable += 1;
            return;
        }
        let key = look.keys().constituent();
        let constituent = self.constituent(key, &mut piece, since, look);
        let mut placed = Placed {
            end,
            key,
            since,
            name: piece.name.into(),
            has_lines: !piece.lines.is_empty(),
            untold: None,
        };
        if hold {
            placed.untold = Some(Box::new(constituent));
        } else {
            look.code(CodeChange::Seen(constituent));
        }
        self.by_start.insert(start, placed);
    }

    /// Code was moved; what is not known to be there can't be, but ends what was where
    /// it is moved to.
    pub fn moved(&mut self, from: Avma, to: Avma, size: u64, time: TimeNs, look: &mut Look) {
        let Some(mut placed) = self.by_start.remove(&from.get()) else {
            let end = to.get().saturating_add(size);
            self.make_room(to.get(), end, time, None, look);
            self.unusable += 1;
            return;
        };
        let size = size.min(placed.end - from.get());
        let Some(end) = to.get().checked_add(size) else {
            self.unusable += 1;
            return;
        };
        let time = self.make_room(to.get(), end, time.max(placed.since), None, look);
        if let Some(mut constituent) = placed.untold.take() {
            if time <= self.tell_from {
                let map_fits = constituent.end.get() - constituent.start.get() == size;
                constituent.start = to;
                constituent.end = Avma(end);
                constituent.since = time;
                if !map_fits {
                    constituent.map = PcMap::None;
                }
                placed.untold = Some(constituent);
            } else {
                look.code(CodeChange::Seen(*constituent));
            }
        }
        if placed.untold.is_none() {
            look.code(CodeChange::Moved(ConstituentMoved {
                key: placed.key,
                last_seen: time,
                time,
                to,
            }));
        }
        placed.end = end;
        placed.since = time;
        self.by_start.insert(to.get(), placed);
    }

    /// Tells what was held back and is still there.
    pub fn tell(&mut self, look: &mut Look) {
        for placed in self.by_start.values_mut() {
            if let Some(constituent) = placed.untold.take() {
                look.code(CodeChange::Seen(*constituent));
            }
        }
    }

    /// Ends what lies in `[start, end)`, and says when what comes there can have come:
    /// not before what is there.
    fn make_room(
        &mut self,
        start: u64,
        end: u64,
        time: TimeNs,
        absent_at: Option<TimeNs>,
        look: &mut Look,
    ) -> TimeNs {
        let mut overlapped: Vec<u64> = self
            .by_start
            .range(start..end)
            .map(|(&from, _)| from)
            .collect();
        let before = self.by_start.range(..start).next_back();
        overlapped.extend(
            before
                .filter(|(_, placed)| placed.end > start)
                .map(|(&from, _)| from),
        );
        let mut latest = time;
        for from in overlapped {
            let Some(old) = self.by_start.remove(&from) else {
                continue;
            };
            self.disordered += u64::from(old.since > time);
            let gone_at = time.max(old.since);
            latest = latest.max(gone_at);
            if let Some(constituent) = old.untold {
                if gone_at <= self.tell_from {
                    continue;
                }
                look.code(CodeChange::Seen(*constituent));
            }
            look.code(CodeChange::Gone(ConstituentGone {
                key: old.key,
                last_seen: absent_at.unwrap_or(gone_at).min(gone_at),
                time: gone_at,
                reason: GoneReason::Recycled,
            }));
        }
        latest
    }

    fn constituent(
        &mut self,
        key: ConstituentKey,
        piece: &mut Piece,
        since: TimeNs,
        look: &mut Look,
    ) -> Constituent {
        let CodeName {
            name,
            kind,
            tier,
            file,
            line,
        } = self.kind.split(&piece.name);
        if !self.kind.has_lines(&tier) {
            piece.lines = Vec::new();
        }
        // Where the name does not tell, the first position does.
        let (file, line) = match piece.lines.first() {
            Some(first) if file.is_empty() => (first.file.to_string(), first.line),
            _ => (file, line),
        };
        let has_method = matches!(kind, ConstituentKind::Method | ConstituentKind::Block);
        let method = has_method
            .then(|| self.method(&name, &file, line, since, look))
            .flatten();
        let map = match method {
            Some(method) => self.covers(piece, method, &name, &file, look),
            None => PcMap::None,
        };
        Constituent {
            key,
            process: look.process(),
            since,
            absent_at: piece.absent_at.filter(|absent| *absent < since),
            start: piece.start,
            end: Avma(piece.start.get().saturating_add(piece.size)),
            kind,
            tier,
            name,
            method,
            cases: Vec::new(),
            map,
        }
    }

    fn method(
        &mut self,
        name: &str,
        file: &str,
        line: u32,
        time: TimeNs,
        look: &mut Look,
    ) -> Option<MethodKey> {
        let id = (name.to_owned(), file.to_owned(), line);
        if let Some(key) = self.methods.get(&id) {
            return Some(*key);
        }
        if self.methods.len() >= MAX_METHODS {
            return None;
        }
        let key = look.keys().method();
        look.method(Method {
            key,
            time,
            name: id.0.clone(),
            file: id.1.clone(),
            line,
            ..Method::default()
        });
        self.methods.insert(id, key);
        Some(key)
    }

    /// Source positions as a map: each holds from its address to the next, for
    /// [`MAX_DISTANCE`] at most. That is the nearest debug record, no more: instructions may
    /// have been moved between two.
    fn covers(
        &mut self,
        piece: &Piece,
        method: MethodKey,
        name: &str,
        file: &str,
        look: &mut Look,
    ) -> PcMap {
        let start = piece.start.get();
        let bias = line_bias(self.kind, piece);
        let Ok(size) = u32::try_from(piece.size) else {
            return PcMap::None;
        };
        let offset = |line: &LineStart| {
            let offset = line.address.get().wrapping_sub(start).wrapping_sub(bias);
            u32::try_from(offset).ok().filter(|offset| *offset < size)
        };
        let mut covers: Vec<Cover> = Vec::new();
        let mut chains = Vec::new();
        let mut chain_of: HashMap<ChainFrame, u32> = HashMap::new();
        let mut known = piece.lines.iter().filter_map(|l| Some((offset(l)?, l)));
        let mut next = known.next();
        while let Some((from, line)) = next {
            next = known.next();
            let to = next.as_ref().map_or(size, |(to, _)| *to);
            let to = to.min(from.saturating_add(MAX_DISTANCE));
            if to <= from || line.line == 0 {
                continue;
            }
            // Code that was inlined from another file: the dump does not say of which
            // function, so it stays this one's, with the line in that file.
            let of = if line.file.is_empty() || *line.file == *file {
                method
            } else {
                let inlined = self.method(name, &line.file, 0, piece.since, look);
                inlined.unwrap_or(method)
            };
            let frame = ChainFrame {
                method: of,
                position: Position::Line(line.line),
            };
            let chain = *chain_of.entry(frame).or_insert_with(|| {
                chains.push(vec![frame]);
                u32::try_from(chains.len() - 1).unwrap_or(u32::MAX)
            });
            match covers.last_mut() {
                Some(last) if last.end == from && last.chain == chain => last.end = to,
                _ => covers.push(Cover {
                    start: from,
                    end: to,
                    chain,
                    exactness: Exactness::Approximate,
                }),
            }
        }
        if covers.is_empty() {
            return PcMap::None;
        }
        PcMap::Covers { covers, chains }
    }
}

/// What a VM adds to the addresses of its source positions.
fn line_bias(kind: VmKind, piece: &Piece) -> u64 {
    let start = piece.start.get();
    let first = piece.lines.first().map_or(0, |line| line.address.get());
    let last = piece.lines.last().map_or(0, |line| line.address.get());
    let is_shifted = first >= start.saturating_add(ELF_HEADER_BYTES);
    let reaches_out = last >= start.saturating_add(piece.size);
    if is_shifted && (kind == VmKind::V8 || reaches_out) {
        ELF_HEADER_BYTES
    } else {
        0
    }
}

#[cfg(test)]
mod tests;
