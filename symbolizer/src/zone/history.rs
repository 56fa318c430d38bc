//! What happened to the code zones of a recording, in the order of its times.

use rustc_hash::FxHashMap;
use vmscope_records::{
    Constituent, ConstituentGone, ConstituentKey, ConstituentKind, ConstituentMoved, PcMap,
    ProcessKey, TimeNs,
};

/// Index of a constituent in [`Code::constituents`].
pub(crate) type CodeIndex = u32;

/// Index of a placement in [`History::placements`].
pub(crate) type PlacementIndex = u32;

/// All constituents of a recording, each once, with the newest that is known of it.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub constituents: Vec<Constituent>,
    by_key: FxHashMap<ConstituentKey, CodeIndex>,
    moves: FxHashMap<CodeIndex, Vec<ConstituentMoved>>,
    gone: FxHashMap<CodeIndex, ConstituentGone>,
    /// Indices that are nobody's any more.
    free: Vec<CodeIndex>,
}

/// What an address is asked for: the same memory may hold a constituent of each, and none
/// of them takes another's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Layer {
    /// What executes.
    Code,
    /// Bytecodes that an interpreter reads.
    Bytecodes,
    /// A VM's objects of methods.
    Methods,
}

impl Layer {
    /// All of them.
    pub const ALL: [Layer; 3] = [Layer::Code, Layer::Bytecodes, Layer::Methods];

    fn of(kind: &ConstituentKind) -> Self {
        match kind {
            ConstituentKind::Bytecodes => Layer::Bytecodes,
            ConstituentKind::MethodObject => Layer::Methods,
            _ => Layer::Code,
        }
    }
}

/// A constituent's placement at one place; never empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub code: CodeIndex,
    pub process: ProcessKey,
    pub layer: Layer,
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// From when on it was there.
    pub from: TimeNs,
    /// Whether it may have been there before it was seen.
    pub maybe: bool,
    /// Whether it may be gone as soon as it was seen.
    pub fades_at_once: bool,
}

/// What happens to a placement. The order is the order at equal times: what was there
/// leaves before what is there comes, and only what has come can fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// It is not there any more.
    Leaves,
    /// From here on it is there.
    Is,
    /// From here on it may be gone.
    Fades,
    /// From here on it may be there.
    MayBe,
}

/// A step of a placement at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ZoneEvent {
    pub time: TimeNs,
    pub step: Step,
    pub placement: PlacementIndex,
}

/// All placements, and what happens to them.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// In the order in which their constituents were told.
    pub placements: Vec<Placement>,
    /// In time order.
    pub events: Vec<ZoneEvent>,
}

/// The times of a placement.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// From when on it may have been there.
    maybe: TimeNs,
    /// From when on it was.
    from: TimeNs,
    /// From when on it may be gone; `None` where its end is not told.
    fades: Option<TimeNs>,
    /// When it is gone.
    until: Option<TimeNs>,
}

/// What happens to a placement: each step once, in the order of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    steps: [Option<(TimeNs, Step)>; 4],
}

impl Steps {
    /// Of a placement with these times. Times that run backwards leave what is certain out.
    fn of(times: Times) -> (Self, PlacementTimes) {
        let mut all = Steps::default();
        let mut slots = all.steps.iter_mut();
        let mut add = |time, step| {
            if let Some(slot) = slots.next() {
                *slot = Some((time, step));
            }
        };
        let ended_by = |time: TimeNs| times.until.is_some_and(|until| until <= time);
        let maybe = times.maybe < times.from && !ended_by(times.maybe);
        if maybe {
            add(times.maybe, Step::MayBe);
        }
        // Code whose end is not told ends when other code is seen in its place,
        // and that may have been so since it may be there.
        let fades = times.fades.unwrap_or(times.from).max(times.from);
        if !ended_by(times.from) {
            add(times.from, Step::Is);
            if fades > times.from && !ended_by(fades) {
                add(fades, Step::Fades);
            }
        }
        if let Some(until) = times.until.filter(|&until| until > times.maybe) {
            add(until, Step::Leaves);
        }
        let known = PlacementTimes {
            from: times.from,
            maybe,
            fades_at_once: fades == times.from,
        };
        (all, known)
    }

    /// The steps.
    pub fn iter(&self) -> impl Iterator<Item = (TimeNs, Step)> + '_ {
        self.steps.iter().flatten().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// When it is there, or may be gone, or leaves.
    pub fn at(&self, step: Step) -> Option<TimeNs> {
        self.iter().find(|(_, s)| *s == step).map(|(time, _)| time)
    }
}

/// What a placement says of its times itself.
struct PlacementTimes {
    from: TimeNs,
    maybe: bool,
    fades_at_once: bool,
}

/// Hands every placement of a constituent to `visit`, with what happens to it, by its moves
/// (in the order of their times) and its end.
fn each_placement(
    (code, constituent): (CodeIndex, &Constituent),
    moves: &[&ConstituentMoved],
    gone: Option<&ConstituentGone>,
    mut visit: impl FnMut(Placement, Steps),
) {
    let size = constituent.end.0.saturating_sub(constituent.start.0);
    let mut put = |start: u64, times: Times| {
        let (steps, known) = Steps::of(times);
        let placement = Placement {
            code,
            process: constituent.process,
            layer: Layer::of(&constituent.kind),
            start,
            end: start.saturating_add(size),
            from: known.from,
            maybe: known.maybe,
            fades_at_once: known.fades_at_once,
        };
        let is_empty = placement.start >= placement.end;
        visit(placement, if is_empty { Steps::default() } else { steps });
    };
    let mut start = constituent.start.0;
    let mut times = Times {
        maybe: constituent.absent_at.unwrap_or(constituent.since),
        from: constituent.since,
        fades: None,
        until: None,
    };
    for moved in moves {
        times.fades = Some(moved.last_seen);
        times.until = Some(moved.time);
        put(start, times);
        start = moved.to.0;
        times = Times {
            maybe: moved.last_seen,
            from: moved.time,
            fades: None,
            until: None,
        };
    }
    if let Some(gone) = gone {
        times.fades = Some(gone.last_seen);
        times.until = Some(gone.time);
    }
    put(start, times);
}

impl History {
    fn put(&mut self, placement: Placement, steps: Steps) {
        let Ok(index) = PlacementIndex::try_from(self.placements.len()) else {
            return;
        };
        if steps.is_empty() {
            return;
        }
        let event = |(time, step)| ZoneEvent {
            time,
            step,
            placement: index,
        };
        self.events.extend(steps.iter().map(event));
        self.placements.push(placement);
    }
}

impl Code {
    /// Takes a constituent, or what more is known of one.
    pub fn seen(&mut self, constituent: Constituent) {
        if let Some(&index) = self.by_key.get(&constituent.key) {
            if let Some(known) = self.constituents.get_mut(index as usize) {
                // It was there since it was first seen, at the place it had then.
                let (since, absent_at) = (known.since, known.absent_at);
                let (start, end) = (known.start, known.end);
                *known = Constituent {
                    since,
                    absent_at,
                    start,
                    end,
                    ..constituent
                };
            }
            return;
        }
        if let Some(index) = self.free.pop() {
            self.by_key.insert(constituent.key, index);
            if let Some(slot) = self.constituents.get_mut(index as usize) {
                *slot = constituent;
            }
            return;
        }
        let Ok(index) = CodeIndex::try_from(self.constituents.len()) else {
            return;
        };
        self.by_key.insert(constituent.key, index);
        self.constituents.push(constituent);
    }

    /// Takes a move.
    pub fn moved(&mut self, moved: ConstituentMoved) {
        if let Some(&index) = self.by_key.get(&moved.key) {
            self.moves.entry(index).or_default().push(moved);
        }
    }

    /// Takes an end.
    pub fn gone(&mut self, gone: ConstituentGone) {
        if let Some(&index) = self.by_key.get(&gone.key) {
            self.gone.insert(index, gone);
        }
    }

    /// All placements and events.
    pub fn history(&self) -> History {
        let count = self.constituents.len();
        let mut history = History {
            placements: Vec::with_capacity(count),
            events: Vec::with_capacity(count),
        };
        for (constituent, code) in self.constituents.iter().zip(0..) {
            self.placements_of(code, constituent, |placement, steps| {
                history.put(placement, steps)
            });
        }
        history.events.sort_unstable();
        history
    }

    /// Hands every placement of one constituent to `visit`, as far as it is known.
    pub fn each_placement_of(&self, code: CodeIndex, visit: impl FnMut(Placement, Steps)) {
        if let Some(constituent) = self.constituents.get(code as usize) {
            self.placements_of(code, constituent, visit);
        }
    }

    fn placements_of(
        &self,
        code: CodeIndex,
        constituent: &Constituent,
        visit: impl FnMut(Placement, Steps),
    ) {
        let mut moves: Vec<&ConstituentMoved> =
            self.moves.get(&code).into_iter().flatten().collect();
        moves.sort_by_key(|moved| moved.time);
        each_placement((code, constituent), &moves, self.gone.get(&code), visit);
    }

    /// The index of a constituent.
    pub fn index_of(&self, key: ConstituentKey) -> Option<CodeIndex> {
        self.by_key.get(&key).copied()
    }

    /// Forgets a constituent, whose index may be another's from now on.
    pub fn forget(&mut self, code: CodeIndex) {
        let Some(known) = self.constituents.get_mut(code as usize) else {
            return;
        };
        self.by_key.remove(&known.key);
        known.name = String::new();
        known.tier = String::new();
        known.cases = Vec::new();
        known.map = PcMap::None;
        known.method = None;
        // It has no placement any more either.
        known.end = known.start;
        self.moves.remove(&code);
        self.gone.remove(&code);
        self.free.push(code);
    }

    /// Forgets which bytecodes a constituent's code is of.
    pub fn strip(&mut self, code: CodeIndex) {
        if let Some(known) = self.constituents.get_mut(code as usize) {
            known.map = PcMap::None;
            known.method = None;
        }
    }

    /// Forgets what only finding constituents needs; when code moved and went, views show.
    pub fn forget_keys(&mut self) {
        self.by_key = FxHashMap::default();
    }

    /// The end of a constituent, where it is told.
    pub fn gone_of(&self, code: CodeIndex) -> Option<&ConstituentGone> {
        self.gone.get(&code)
    }
}
