//! The events of a recording's code zones, in time order.

use rustc_hash::FxHashMap;
use vmscope_records::{
    Constituent, ConstituentGone, ConstituentKey, ConstituentKind, ConstituentMoved, PcMap,
    ProcessKey, TimeNs,
};

use crate::ids::IndexVec;
pub(crate) use crate::ids::{CodeId, PlacementId};
/// All constituents of a recording: the newest record of each.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub constituents: IndexVec<CodeId, Constituent>,
    by_key: FxHashMap<ConstituentKey, CodeId>,
    moves: FxHashMap<CodeId, Vec<ConstituentMoved>>,
    gone: FxHashMap<CodeId, ConstituentGone>,
    /// Free indices.
    free: Vec<CodeId>,
}

/// A zone has three layers: one address may hold a constituent in each layer, and a new
/// constituent replaces older ones of its own layer only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Layer {
    /// Executable code.
    Code,
    /// Bytecodes that an interpreter reads.
    Bytecodes,
    /// A VM's method objects.
    Methods,
}

impl Layer {
    /// All layers.
    pub const ALL: [Layer; 3] = [Layer::Code, Layer::Bytecodes, Layer::Methods];

    fn of(kind: &ConstituentKind) -> Self {
        match kind {
            ConstituentKind::Bytecodes => Layer::Bytecodes,
            ConstituentKind::MethodObject => Layer::Methods,
            _ => Layer::Code,
        }
    }
}

/// A constituent at one range of addresses; never empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub code: CodeId,
    pub process: ProcessKey,
    pub layer: Layer,
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The first time that an adapter saw it.
    pub from: TimeNs,
    /// Whether the code may precede its first sighting.
    pub maybe: bool,
    /// Whether it fades right after the first sighting.
    pub fades_at_once: bool,
}

/// A kind of zone event. Events of equal times happen in this order: old code leaves before
/// new code comes, and only present code fades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The code is gone.
    Leaves,
    /// The code is present.
    Is,
    /// The code may be gone.
    Fades,
    /// The code may be present.
    MayBe,
}

/// An event of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ZoneEvent {
    pub time: TimeNs,
    pub step: Step,
    pub placement: PlacementId,
}

/// All placements and their events.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// In the order of their constituents' records.
    pub placements: IndexVec<PlacementId, Placement>,
    /// In time order.
    pub events: Vec<ZoneEvent>,
}

/// When a placement begins and ends.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Earliest possible time of presence.
    maybe: TimeNs,
    /// Earliest certain time of presence.
    from: TimeNs,
    /// Latest certain time of presence; `None` without a record of the end.
    fades: Option<TimeNs>,
    /// Earliest certain time of absence.
    until: Option<TimeNs>,
}

/// The events of a placement: each kind once, in time order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    steps: [Option<(TimeNs, Step)>; 4],
}

impl Steps {
    /// Makes the events of a placement. Times that contradict each other drop the certain events.
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
        // Without a record of its end, code ends when other code appears at its addresses.
        // Other code may replace it at the earliest possible time.
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

    /// All events.
    pub fn iter(&self) -> impl Iterator<Item = (TimeNs, Step)> + '_ {
        self.steps.iter().flatten().copied()
    }

    /// Whether the placement has no events.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The time of an event.
    pub fn at(&self, step: Step) -> Option<TimeNs> {
        self.iter().find(|(_, s)| *s == step).map(|(time, _)| time)
    }
}

/// The times that a placement itself holds.
struct PlacementTimes {
    from: TimeNs,
    maybe: bool,
    fades_at_once: bool,
}

/// Hands every placement of a constituent with its events to `visit`. `moves` are in time
/// order.
fn each_placement(
    (code, constituent): (CodeId, &Constituent),
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
        if steps.is_empty() {
            return;
        }
        let index = self.placements.push(placement);
        let event = |(time, step)| ZoneEvent {
            time,
            step,
            placement: index,
        };
        self.events.extend(steps.iter().map(event));
    }
}

impl Code {
    /// Takes a record of a constituent, new or known.
    pub fn seen(&mut self, constituent: Constituent) {
        if let Some(&index) = self.by_key.get(&constituent.key) {
            self.constituents[index].update(constituent);
            return;
        }
        let key = constituent.key;
        let index = match self.free.pop() {
            Some(free) => {
                self.constituents[free] = constituent;
                free
            }
            None => self.constituents.push(constituent),
        };
        self.by_key.insert(key, index);
    }

    /// Takes a record of a move.
    pub fn moved(&mut self, moved: ConstituentMoved) {
        if let Some(&index) = self.by_key.get(&moved.key) {
            self.moves.entry(index).or_default().push(moved);
        }
    }

    /// Takes a record of an end.
    pub fn gone(&mut self, gone: ConstituentGone) {
        if let Some(&index) = self.by_key.get(&gone.key) {
            self.gone.insert(index, gone);
        }
    }

    /// All placements and events.
    pub fn history(&self) -> History {
        let count = self.constituents.len();
        let mut history = History {
            placements: Vec::with_capacity(count).into(),
            events: Vec::with_capacity(count),
        };
        for (code, constituent) in self.constituents.enumerated() {
            self.placements_of(code, constituent, |placement, steps| {
                history.put(placement, steps)
            });
        }
        history.events.sort_unstable();
        history
    }

    /// Hands every known placement of one constituent to `visit`.
    pub fn each_placement_of(&self, code: CodeId, visit: impl FnMut(Placement, Steps)) {
        self.placements_of(code, &self.constituents[code], visit);
    }

    fn placements_of(
        &self,
        code: CodeId,
        constituent: &Constituent,
        visit: impl FnMut(Placement, Steps),
    ) {
        let mut moves: Vec<&ConstituentMoved> =
            self.moves.get(&code).into_iter().flatten().collect();
        moves.sort_by_key(|moved| moved.time);
        each_placement((code, constituent), &moves, self.gone.get(&code), visit);
    }

    /// The index of a constituent.
    pub fn index_of(&self, key: ConstituentKey) -> Option<CodeId> {
        self.by_key.get(&key).copied()
    }

    /// Forgets a constituent. Another constituent may get its index.
    pub fn forget(&mut self, code: CodeId) {
        let known = &mut self.constituents[code];
        self.by_key.remove(&known.key);
        known.name = String::new();
        known.tier = String::new();
        known.cases = Vec::new();
        known.map = PcMap::None;
        known.method = None;
        // An empty range has no placement.
        known.end = known.start;
        self.moves.remove(&code);
        self.gone.remove(&code);
        self.free.push(code);
    }

    /// Forgets the map and the method of a constituent.
    pub fn strip(&mut self, code: CodeId) {
        let known = &mut self.constituents[code];
        known.map = PcMap::None;
        known.method = None;
    }

    /// Drops the index by key. Views still need moves and ends.
    pub fn forget_keys(&mut self) {
        self.by_key = FxHashMap::default();
    }

    /// A constituent's end, if recorded.
    pub fn gone_of(&self, code: CodeId) -> Option<&ConstituentGone> {
        self.gone.get(&code)
    }
}
