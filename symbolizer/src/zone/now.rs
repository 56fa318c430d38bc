//! The code zones of all processes at one time.

use super::history::{CodeIndex, Stay, StayIndex, Step, ZoneEvent};
use super::overlaps::{Cover, Overlaps};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vmscope_records::{Avma, ProcessKey};

/// Who claims an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// One constituent; the offset from its start.
    One(CodeIndex, u32),
    /// Two that can't both have been there.
    Doubtful,
}

/// Addresses of a process whose claims are not what they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub process: ProcessKey,
    pub start: u64,
    /// The first address after them.
    pub end: u64,
}

/// What a stay is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// It may have come already.
    Maybe,
    /// It is there.
    Firm,
    /// It was there, and may be gone.
    Fading,
}

/// The zones of all processes at one time.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    stays: Vec<Stay>,
    /// Of each stay.
    states: Vec<State>,
    by_process: FxHashMap<ProcessKey, Zone>,
    /// How much was inherited in all.
    inherited: usize,
}

/// What all forks of a recording hand on, at most, in constituents: a hostile one may
/// fork as often as it likes.
const MAX_INHERITED: usize = 1 << 22;

/// The zone of a process at one time.
#[derive(Debug, Default)]
struct Zone {
    /// What is there, by first address, not overlapping: its end, and which.
    firm: BTreeMap<u64, (u64, StayIndex)>,
    /// What may have come already.
    maybe: Overlaps,
    /// What was there in its parent when it was forked, and where nothing of its own is.
    inherited: BTreeMap<u64, (u64, StayIndex)>,
}

impl Zones {
    /// Empty zones, for stays of which some may come before they are seen.
    pub fn new(stays: Vec<Stay>) -> Self {
        let mut ends: FxHashMap<ProcessKey, Vec<u64>> = FxHashMap::default();
        for stay in stays.iter().filter(|stay| stay.maybe) {
            let ends = ends.entry(stay.process).or_default();
            ends.extend([stay.start, stay.end]);
        }
        let zone = |ends| Zone {
            firm: BTreeMap::new(),
            maybe: Overlaps::new(ends),
            inherited: BTreeMap::new(),
        };
        Zones {
            states: vec![State::Absent; stays.len()],
            stays,
            by_process: ends
                .into_iter()
                .map(|(process, ends)| (process, zone(ends)))
                .collect(),
            inherited: 0,
        }
    }

    /// Brings the zone forward by one event. Returns where that changed anything.
    pub fn apply(&mut self, event: ZoneEvent) -> Option<Changed> {
        let index = event.stay;
        let stay = *self.stays.get(index as usize)?;
        let state = *self.states.get(index as usize)?;
        let zone = self.by_process.entry(stay.process).or_default();
        let (mut start, mut end) = (stay.start, stay.end);
        let next = match (event.step, state) {
            (Step::MayBe, State::Absent) => {
                zone.maybe.add(start, end, index);
                State::Maybe
            }
            (Step::Is, State::Absent | State::Maybe) => {
                if state == State::Maybe {
                    zone.maybe.remove(start, end, index);
                }
                (start, end) = put(&mut zone.firm, &mut self.states, &stay, index);
                if stay.fades_at_once {
                    State::Fading
                } else {
                    State::Firm
                }
            }
            (Step::Fades, State::Firm) => State::Fading,
            (Step::Leaves, State::Maybe) => {
                zone.maybe.remove(start, end, index);
                State::Absent
            }
            (Step::Leaves, State::Firm | State::Fading) => {
                zone.firm.remove(&start);
                State::Absent
            }
            _ => return None,
        };
        if let Some(slot) = self.states.get_mut(index as usize) {
            *slot = next;
        }
        // What fades is doubtful only where something else may be.
        if event.step == Step::Fades && zone.maybe.is_empty() {
            return None;
        }
        let process = stay.process;
        Some(Changed {
            process,
            start,
            end,
        })
    }

    /// `child` is forked: it has the code that `parent` has now. Code of which more is not
    /// known than that it may be there is not handed on.
    pub fn fork(&mut self, parent: ProcessKey, child: ProcessKey) {
        let Some(from) = self.by_process.get(&parent) else {
            return;
        };
        let mut all = from.inherited.clone();
        all.extend(from.firm.iter().map(|(&start, &there)| (start, there)));
        self.inherited = self.inherited.saturating_add(all.len());
        if !all.is_empty() && self.inherited <= MAX_INHERITED {
            self.by_process.entry(child).or_default().inherited = all;
        }
    }

    /// Who claims `address` in `process` now.
    pub fn lookup(&self, process: ProcessKey, address: Avma) -> Option<Claim> {
        let zone = self.by_process.get(&process)?;
        let one = match find(&zone.firm, address.0) {
            Some(firm) => {
                let fades = self.states.get(firm as usize) == Some(&State::Fading);
                if fades && zone.maybe.at(address.0) != Cover::Nobody {
                    return Some(Claim::Doubtful);
                }
                firm
            }
            None => match zone.maybe.at(address.0) {
                Cover::Nobody => find(&zone.inherited, address.0)?,
                Cover::One(maybe) => maybe,
                Cover::Several => return Some(Claim::Doubtful),
            },
        };
        let stay = self.stays.get(one as usize)?;
        let offset = u32::try_from(address.0.checked_sub(stay.start)?).ok()?;
        Some(Claim::One(stay.code, offset))
    }
}

/// Which of these ranges `address` lies in.
fn find(ranges: &BTreeMap<u64, (u64, StayIndex)>, address: u64) -> Option<StayIndex> {
    let (_, &(end, stay)) = ranges.range(..=address).next_back()?;
    (address < end).then_some(stay)
}

/// Puts a stay into a zone. Whatever it overlaps is not there any more, told or not:
/// half a method is no method. Returns the addresses that this concerns.
fn put(
    zone: &mut BTreeMap<u64, (u64, StayIndex)>,
    states: &mut [State],
    stay: &Stay,
    index: StayIndex,
) -> (u64, u64) {
    let (mut start, mut end) = (stay.start, stay.end);
    // From the last that begins before the end backwards, as far as they reach in.
    while let Some((&from, &(to, other))) = zone.range(..stay.end).next_back() {
        if to <= stay.start {
            break;
        }
        zone.remove(&from);
        if let Some(state) = states.get_mut(other as usize) {
            *state = State::Absent;
        }
        start = start.min(from);
        end = end.max(to);
    }
    zone.insert(stay.start, (stay.end, index));
    (start, end)
}
