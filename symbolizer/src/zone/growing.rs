//! The history of code zones while it is being told.
//!
//! What is told of a constituent later (a move, its end) changes what was to happen to its
//! stays; what has happened already stays as it was. An event of a time that is over
//! is applied at once, and counted: samples of that time were placed without it.

use super::history::{Code, CodeIndex, Layer, Stay, StayIndex, Step, Steps, ZoneEvent};
use super::now::Zones;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vmscope_records::{ProcessKey, TimeNs};

/// The events that are still to come, and what is known of each stay.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// By time, step, and the order in which their constituents were told: at equal times
    /// a whole recording is read in that order, too.
    pending: BTreeMap<(TimeNs, Step, u64), StayIndex>,
    /// Of each stay of the zones, what is to happen to it.
    plans: Vec<Plan>,
    /// The stays of each constituent, in the order of its moves.
    stays: FxHashMap<CodeIndex, Vec<StayIndex>>,
    /// Stays that may come before they are seen, as long as they have not come.
    expected: FxHashMap<(ProcessKey, Layer), Vec<StayIndex>>,
    /// Stays whose place may be used again.
    free: Vec<StayIndex>,
    /// Constituents told so far, and their moves.
    told: u64,
    /// Events of times that were over.
    pub late: u64,
}

/// What is to happen to a stay, or has.
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
            let first = self.stays.get(&index).and_then(|all| all.first());
            let first = first.and_then(|stay| self.plans.get(*stay as usize));
            let order = match first {
                Some(plan) => plan.order,
                None => {
                    self.told += 1;
                    self.told * MOVES
                }
            };
            code.each_stay_of(index, |stay, steps| {
                let place = (index, number);
                if self.plan(zones, place, order + number as u64, (stay, steps), settled) {
                    changed.insert((stay.process, stay.layer));
                }
                number += 1;
            });
        }
        for place in changed {
            self.expect(zones, place);
        }
    }

    /// Plans one stay; whether it may come before it is seen.
    fn plan(
        &mut self,
        zones: &mut Zones,
        (code, number): (CodeIndex, usize),
        order: u64,
        (stay, steps): (Stay, Steps),
        settled: TimeNs,
    ) -> bool {
        let known = self
            .stays
            .get(&code)
            .and_then(|all| all.get(number))
            .copied();
        let plan = |index: StayIndex| self.plans.get(index as usize).copied();
        let before = known.and_then(plan).unwrap_or_default();
        let same = known.filter(|_| before.start == stay.start);
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
        let Some(index) = same.or_else(|| zones.add(stay, self.free.pop())) else {
            return false;
        };
        self.note(
            code,
            number,
            index,
            Plan {
                steps,
                order,
                start: stay.start,
            },
        );
        let fades = steps.at(Step::Fades);
        if same.is_some() {
            let is_firm = fades.is_some_and(|fades| fades >= settled);
            zones.restate(index, stay.fades_at_once, is_firm);
        }
        let is_over = steps.at(Step::Leaves).is_some_and(|time| time < settled);
        for (time, step) in steps.iter() {
            let happened = time < settled && before.steps.iter().any(|old| old == (time, step));
            if happened {
                continue;
            }
            if time < settled && step != Step::Fades {
                // What samples' registers point to is told when one does.
                let is_late = stay.layer == Layer::Code || zones.missed_in(&stay, time);
                self.late += u64::from(is_late);
                // What is over, or has another in its place, does not come any more.
                let comes = matches!(step, Step::Is | Step::MayBe);
                if comes && (is_over || zones.is_superseded(&stay)) {
                    continue;
                }
            }
            self.pending.insert((time, step, order), index);
        }
        if stay.maybe && same.is_none() {
            let all = self.expected.entry((stay.process, stay.layer)).or_default();
            all.push(index);
        }
        stay.maybe && same.is_none()
    }

    fn note(&mut self, code: CodeIndex, number: usize, index: StayIndex, plan: Plan) {
        let all = self.stays.entry(code).or_default();
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

    fn unplan(&mut self, stay: StayIndex, plan: Plan) {
        for (time, step) in plan.steps.iter() {
            let key = (time, step, plan.order);
            if self.pending.get(&key) == Some(&stay) {
                self.pending.remove(&key);
            }
        }
    }

    /// Tells a zone which stays may come before they are seen.
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
        let ((time, step, _), stay) = self.pending.pop_first()?;
        Some(ZoneEvent { time, step, stay })
    }

    /// Constituents of which nothing is there and nothing will come, as far as is told.
    pub fn departed(&self, zones: &Zones) -> Vec<CodeIndex> {
        let mut needed: FxHashSet<StayIndex> = self.pending.values().copied().collect();
        needed.extend(zones.inherited());
        let is_needed = |stay: &StayIndex| needed.contains(stay) || zones.is_there(*stay);
        let departed = self
            .stays
            .iter()
            .filter(|(_, stays)| !stays.iter().any(is_needed));
        departed.map(|(code, _)| *code).collect()
    }

    /// Forgets a constituent that has [departed](Self::departed).
    pub fn forget(&mut self, code: CodeIndex) {
        self.free
            .extend(self.stays.remove(&code).unwrap_or_default());
    }

    /// Forgets that stays were expected that have come or gone: before their places are
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
        self.stays.len()
    }
}
