//! The history of code zones while a recording is made.
//!
//! A later record of a constituent (a move, an end) changes the pending events of its
//! placements; applied events remain. An event of a settled time is applied at once and
//! counted: earlier samples ignore it.

use super::history::{Code, CodeId, Layer, Placement, PlacementId, Step, Steps, ZoneEvent};
use super::now::Zones;
use crate::ids::IndexVec;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vmscope_records::{ProcessKey, TimeNs};

/// The pending events and the known placements.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// By time, kind, and the order of the constituents' records: a finished recording has the
    /// same order at equal times.
    pending: BTreeMap<(TimeNs, Step, u64), PlacementId>,
    /// The events of each placement.
    plans: IndexVec<PlacementId, Plan>,
    /// Placements by constituent, in the order of moves.
    placements: FxHashMap<CodeId, Vec<PlacementId>>,
    /// Early placements: code that may come before an adapter sees it.
    expected: FxHashMap<(ProcessKey, Layer), Vec<PlacementId>>,
    /// Free placement indices.
    free: Vec<PlacementId>,
    /// Counts the constituents.
    constituents: u64,
    /// Events of settled times.
    pub late: u64,
}

/// The events of a placement, pending or applied.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    steps: Steps,
    order: u64,
    start: u64,
}

/// So many moves of one constituent keep their order among the moves of others.
const MOVES: u64 = 1 << 16;

impl Growing {
    /// Takes the records of the `told` constituents, in recording order. All events before
    /// `settled` were applied.
    pub fn update(&mut self, zones: &mut Zones, code: &Code, told: &[CodeId], settled: TimeNs) {
        let mut changed: FxHashSet<(ProcessKey, Layer)> = FxHashSet::default();
        for &index in told {
            let mut number = 0;
            let first = self.placements.get(&index).and_then(|all| all.first());
            let first = first.map(|placement| &self.plans[*placement]);
            let order = match first {
                Some(plan) => plan.order,
                None => {
                    self.constituents += 1;
                    self.constituents * MOVES
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

    /// Plans one placement. Returns whether the zone's list of early placements grows.
    fn plan(
        &mut self,
        zones: &mut Zones,
        (code, number): (CodeId, usize),
        order: u64,
        (placement, steps): (Placement, Steps),
        settled: TimeNs,
    ) -> bool {
        let known = self
            .placements
            .get(&code)
            .and_then(|all| all.get(number))
            .copied();
        let before = known.map_or_else(Plan::default, |index| self.plans[index]);
        let same = known.filter(|_| before.start == placement.start);
        if let Some(old) = known {
            self.unplan(old, before);
            if same.is_none() && zones.is_there(old) {
                // The moves came in another order.
                self.late += 1;
                self.pending
                    .insert((settled, Step::Leaves, before.order), old);
            }
        }
        let order = if same.is_some() { before.order } else { order };
        let index = same.unwrap_or_else(|| zones.add(placement, self.free.pop()));
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
                // Adapters emit data records when a sample's register points to the data.
                let is_late = placement.layer == Layer::Code || zones.missed_in(&placement, time);
                self.late += u64::from(is_late);
                // Ended or replaced code comes no more.
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

    fn note(&mut self, code: CodeId, number: usize, index: PlacementId, plan: Plan) {
        let all = self.placements.entry(code).or_default();
        match all.get_mut(number) {
            Some(slot) => *slot = index,
            None => all.push(index),
        }
        *self.plans.slot(index, Plan::default()) = plan;
    }

    fn unplan(&mut self, placement: PlacementId, plan: Plan) {
        for (time, step) in plan.steps.iter() {
            let key = (time, step, plan.order);
            if self.pending.get(&key) == Some(&placement) {
                self.pending.remove(&key);
            }
        }
    }

    /// Updates a zone's list of placements that may come before an adapter sees them.
    fn expect(&mut self, zones: &mut Zones, place: (ProcessKey, Layer)) {
        let Some(mut all) = self.expected.remove(&place) else {
            return;
        };
        all.retain(|&index| {
            let plan = &self.plans[index];
            let time = plan.steps.at(Step::MayBe);
            let key = time.map(|time| (time, Step::MayBe, plan.order));
            let comes = key.is_some_and(|key| self.pending.get(&key) == Some(&index));
            comes || zones.is_maybe(index)
        });
        zones.expect(place.0, place.1, &all);
        self.expected.insert(place, all);
    }

    /// The time of the next event.
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

    /// Constituents without present code and without pending events.
    pub fn departed(&self, zones: &Zones) -> Vec<CodeId> {
        let mut needed: FxHashSet<PlacementId> = self.pending.values().copied().collect();
        needed.extend(zones.inherited());
        let is_needed =
            |placement: &PlacementId| needed.contains(placement) || zones.is_there(*placement);
        let departed = self
            .placements
            .iter()
            .filter(|(_, placements)| !placements.iter().any(is_needed));
        departed.map(|(code, _)| *code).collect()
    }

    /// Forgets a constituent that has [departed](Self::departed).
    pub fn forget(&mut self, code: CodeId) {
        self.free
            .extend(self.placements.remove(&code).unwrap_or_default());
    }

    /// Drops expected placements that have come or gone, before other placements get their
    /// indices.
    pub fn forget_expected(&mut self, zones: &mut Zones) {
        let places: Vec<(ProcessKey, Layer)> = self.expected.keys().copied().collect();
        for place in places {
            self.expect(zones, place);
        }
        self.expected.retain(|_, all| !all.is_empty());
    }

    /// The number of known constituents.
    pub fn len(&self) -> usize {
        self.placements.len()
    }
}
