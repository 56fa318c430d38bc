//! The history of code zones while it is being told.
//!
//! What is told of a constituent later (a move, its end) changes what was to happen to its
//! placements; what has happened already placements as it was. An event of a time that is over
//! is applied at once, and counted: samples of that time were placed without it.

use super::history::{Code, CodeIndex, Layer, Placement, PlacementIndex, Step, Steps, ZoneEvent};
use super::now::Zones;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vmscope_records::{ProcessKey, TimeNs};

/// The events that are still to come, and what is known of each placement.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// By time, step, and the order in which their constituents were told: at equal times
    /// a whole recording is read in that order, too.
    pending: BTreeMap<(TimeNs, Step, u64), PlacementIndex>,
    /// Of each placement of the zones, what is to happen to it.
    plans: Vec<Plan>,
    /// The placements of each constituent, in the order of its moves.
    placements: FxHashMap<CodeIndex, Vec<PlacementIndex>>,
    /// Stays that may come before they are seen, as long as they have not come.
    expected: FxHashMap<(ProcessKey, Layer), Vec<PlacementIndex>>,
    /// Stays whose place may be used again.
    free: Vec<PlacementIndex>,
    /// Constituents told so far, and their moves.
    told: u64,
    /// Events of times that were over.
    pub late: u64,
}

/// What is to happen to a placement, or has.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    steps: Steps,
    order: u64,
    start: u64,
}

/// Moves of one constituent that keep their order among those of others.
const MOVES: u64 = 1 << 16;

impl Growing {
    /// Takes what is known of the constituents that were `told`, in the order in which
    /// that happened. All events before `settled` were applied.
    pub fn update(&mut self, zones: &mut Zones, code: &Code, told: &[CodeIndex], settled: TimeNs) {
        let mut changed: FxHashSet<(ProcessKey, Layer)> = FxHashSet::default();
        for &index in told {
            let mut number = 0;
            let first = self.placements.get(&index).and_then(|all| all.first());
            let first = first.and_then(|placement| self.plans.get(*placement as usize));
            let order = match first {
                Some(plan) => plan.order,
                None => {
                    self.told += 1;
                    self.told * MOVES
                }
            };
            code.each_placement_of(index, |placement, steps| {
                let place = (index, number);
                if self.plan(
                    zones,
                    place,
                    order + number as u64,
                    (placement, steps),
                    settled,
                ) {
                    changed.insert((placement.process, placement.layer));
                }
                number += 1;
            });
        }
        for place in changed {
            self.expect(zones, place);
        }
    }

    /// Plans one placement; whether it may come before it is seen.
    fn plan(
        &mut self,
        zones: &mut Zones,
        (code, number): (CodeIndex, usize),
        order: u64,
        (placement, steps): (Placement, Steps),
        settled: TimeNs,
    ) -> bool {
        let known = self
            .placements
            .get(&code)
            .and_then(|all| all.get(number))
            .copied();
        let plan = |index: PlacementIndex| self.plans.get(index as usize).copied();
        let before = known.and_then(plan).unwrap_or_default();
        let same = known.filter(|_| before.start == placement.start);
        if let Some(old) = known {
            self.unplan(old, before);
            if same.is_none() && zones.is_there(old) {
                // Its moves were told in another order.
                self.late += 1;
                self.pending
                    .insert((settled, Step::Leaves, before.order), old);
            }
        }
        let order = if same.is_some() { before.order } else { order };
        let Some(index) = same.or_else(|| zones.add(placement, self.free.pop())) else {
            return false;
        };
        self.note(
            code,
            number,
            index,
            Plan {
                steps,
                order,
                start: placement.start,
            },
        );
        let fades = steps.at(Step::Fades);
        if same.is_some() {
            let is_firm = fades.is_some_and(|fades| fades >= settled);
            zones.restate(index, placement.fades_at_once, is_firm);
        }
        let is_over = steps.at(Step::Leaves).is_some_and(|time| time < settled);
        for (time, step) in steps.iter() {
            let happened = time < settled && before.steps.iter().any(|old| old == (time, step));
            if happened {
                continue;
            }
            if time < settled && step != Step::Fades {
                // What samples' registers point to is told when one does.
                let is_late = placement.layer == Layer::Code || zones.missed_in(&placement, time);
                self.late += u64::from(is_late);
                // What is over, or has another in its place, does not come any more.
                let comes = matches!(step, Step::Is | Step::MayBe);
                if comes && (is_over || zones.is_superseded(&placement)) {
                    continue;
                }
            }
            self.pending.insert((time, step, order), index);
        }
        if placement.maybe && same.is_none() {
            let all = self
                .expected
                .entry((placement.process, placement.layer))
                .or_default();
            all.push(index);
        }
        placement.maybe && same.is_none()
    }

    fn note(&mut self, code: CodeIndex, number: usize, index: PlacementIndex, plan: Plan) {
        let all = self.placements.entry(code).or_default();
        match all.get_mut(number) {
            Some(slot) => *slot = index,
            None => all.push(index),
        }
        if self.plans.len() <= index as usize {
            self.plans.resize(index as usize + 1, Plan::default());
        }
        if let Some(slot) = self.plans.get_mut(index as usize) {
            *slot = plan;
        }
    }

    fn unplan(&mut self, placement: PlacementIndex, plan: Plan) {
        for (time, step) in plan.steps.iter() {
            let key = (time, step, plan.order);
            if self.pending.get(&key) == Some(&placement) {
                self.pending.remove(&key);
            }
        }
    }

    /// Tells a zone which placements may come before they are seen.
    fn expect(&mut self, zones: &mut Zones, place: (ProcessKey, Layer)) {
        let Some(mut all) = self.expected.remove(&place) else {
            return;
        };
        all.retain(|&index| {
            let plan = self.plans.get(index as usize);
            let comes = plan.is_some_and(|plan| {
                let time = plan.steps.at(Step::MayBe);
                let key = time.map(|time| (time, Step::MayBe, plan.order));
                key.is_some_and(|key| self.pending.get(&key) == Some(&index))
            });
            comes || zones.is_maybe(index)
        });
        zones.expect(place.0, place.1, &all);
        self.expected.insert(place, all);
    }

    /// When the next event is.
    pub fn next_time(&self) -> Option<TimeNs> {
        self.pending.first_key_value().map(|((time, ..), _)| *time)
    }

    /// The next event.
    pub fn take_next(&mut self) -> Option<ZoneEvent> {
        let ((time, step, _), placement) = self.pending.pop_first()?;
        Some(ZoneEvent {
            time,
            step,
            placement,
        })
    }

    /// Constituents of which nothing is there and nothing will come, as far as is told.
    pub fn departed(&self, zones: &Zones) -> Vec<CodeIndex> {
        let mut needed: FxHashSet<PlacementIndex> = self.pending.values().copied().collect();
        needed.extend(zones.inherited());
        let is_needed =
            |placement: &PlacementIndex| needed.contains(placement) || zones.is_there(*placement);
        let departed = self
            .placements
            .iter()
            .filter(|(_, placements)| !placements.iter().any(is_needed));
        departed.map(|(code, _)| *code).collect()
    }

    /// Forgets a constituent that has [departed](Self::departed).
    pub fn forget(&mut self, code: CodeIndex) {
        self.free
            .extend(self.placements.remove(&code).unwrap_or_default());
    }

    /// Forgets that placements were expected that have come or gone: before their places are
    /// used for others.
    pub fn forget_expected(&mut self, zones: &mut Zones) {
        let places: Vec<(ProcessKey, Layer)> = self.expected.keys().copied().collect();
        for place in places {
            self.expect(zones, place);
        }
        self.expected.retain(|_, all| !all.is_empty());
    }

    /// How many constituents are known.
    pub fn len(&self) -> usize {
        self.placements.len()
    }
}
