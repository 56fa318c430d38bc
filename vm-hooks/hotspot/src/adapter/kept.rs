//! Compiled methods of the code cache, kept for later samples: pc maps are made on demand, and the
//! VM frees code early.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Avma, Constituent, TimeNs};

use super::methods::Pinned;
use crate::code::{Nmethod, NmethodId};
use crate::evidence::covers;

/// Maximum bytes of kept code: three times the code of a large program. Beyond this limit, and
/// after a full report, only the identity of an nmethod is kept.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Retention of freed code in nanoseconds: samples arrive late.
const KEEP_GONE: u64 = 2_000_000_000;

/// Nanoseconds from the first sample in large code to its map, which covers the samples until then.
/// Each pause until the next map is eight times as long.
pub(super) const PAUSE: u64 = 1_000_000_000;

/// Number of sampled pcs in large code from which on a first map comes at once: such code may be hot until the program's end.
const MANY_HITS: usize = 8;

/// Minimum bytes of large code. Smaller code mostly has one map, of the whole code.
const LARGE: usize = 768;

/// A compiled method and its constituent in the recording.
#[derive(Debug)]
pub(super) struct Kept {
    pub nmethod: Nmethod,
    /// The reported constituent; `None` before the report.
    pub constituent: Option<Constituent>,
    /// Whether the reported map covers all code.
    pub is_mapped: bool,
    /// Sampled pcs, as offsets in the code, ascending.
    pub hits: Vec<u32>,
    /// Ranges that the reported map covers.
    pub covered: Vec<Range<u32>>,
    /// Number of reported maps, and earliest time of the next.
    maps: u8,
    due: TimeNs,
    /// Whether a map has come before that time.
    is_early: bool,
    /// Its own and inlined methods.
    pub methods: Vec<Pinned>,
    /// Whether `methods` is complete.
    pub are_all: bool,
    /// Whether it was found after the VM had unloaded its class: other methods may have the methods' memory.
    pub is_dead: bool,
    /// Begin of the poll whose reading found the nmethod last.
    pub seen_at: TimeNs,
    /// Time when the nmethod was found gone.
    gone_at: Option<TimeNs>,
    /// Memory use.
    bytes: usize,
}

/// All kept nmethods.
#[derive(Debug, Default)]
pub(super) struct Nmethods {
    all: FxHashMap<NmethodId, Kept>,
    /// Code ranges of nmethods without a complete map: first address, end address (exclusive).
    /// Ascending; freed nmethods included.
    places: Vec<(Avma, Avma, NmethodId)>,
    /// Highest end address among `places` up to the same index.
    reach: Vec<Avma>,
    bytes: usize,
    /// Whether `places` differs from the kept nmethods.
    is_outdated: bool,
    /// Number of nmethods refused for lack of memory.
    pub refused: u64,
}

impl Nmethods {
    pub fn get(&self, id: &NmethodId) -> Option<&Kept> {
        self.all.get(id)
    }

    /// A kept nmethod.
    pub fn get_mut(&mut self, id: &NmethodId) -> Option<&mut Kept> {
        self.all.get_mut(id)
    }

    /// Whether an nmethod must be read: new, or missing from the last reading.
    pub fn wants(&self, id: &NmethodId) -> bool {
        self.all.get(id).is_none_or(|kept| kept.gone_at.is_some())
    }

    /// Nmethods of the last reading that begin in `low..high`.
    pub fn between(&self, low: Avma, high: Avma) -> impl Iterator<Item = &Kept> {
        let there = self.all.values().filter(|kept| kept.gone_at.is_none());
        there.filter(move |kept| (low..high).contains(&kept.nmethod.blob.at))
    }

    /// Keeps an nmethod, or only its identity if memory is short.
    pub fn put(&mut self, nmethod: Nmethod) {
        if let Some(before) = self.all.remove(&nmethod.id) {
            self.bytes = self.bytes.saturating_sub(before.bytes);
        }
        let mut kept = Kept {
            constituent: None,
            is_mapped: false,
            hits: Vec::new(),
            covered: Vec::new(),
            maps: 0,
            due: TimeNs(0),
            is_early: false,
            methods: Vec::new(),
            are_all: false,
            is_dead: false,
            seen_at: TimeNs(0),
            gone_at: None,
            bytes: bytes_of(&nmethod),
            nmethod,
        };
        if self.bytes.saturating_add(kept.bytes) > MAX_BYTES {
            self.refused += 1;
            kept.is_mapped = true;
            kept.strip();
        }
        self.bytes = self.bytes.saturating_add(kept.bytes);
        let id = kept.nmethod.id;
        self.all.insert(id, kept);
        self.is_outdated = true;
    }

    /// Keeps an nmethod found between two readings at `now`, in the place of `replaced`.
    pub fn put_found(&mut self, nmethod: Nmethod, replaced: &[NmethodId], now: TimeNs) {
        let (id, blob) = (nmethod.id, nmethod.blob);
        for id in replaced {
            self.went(id, now);
        }
        self.put(nmethod);
        let Some(kept) = self.all.get_mut(&id) else {
            return;
        };
        kept.seen_at = now;
        if !kept.is_mapped {
            let place = (blob.code_begin, blob.code_end, id);
            if let Err(at) = self.places.binary_search(&place) {
                self.places.insert(at, place);
                self.reach = reach_of(&self.places);
            }
        }
    }

    /// Notes that an nmethod was found gone between two readings at `now`.
    pub fn went(&mut self, id: &NmethodId, now: TimeNs) {
        if let Some(kept) = self.all.get_mut(id) {
            kept.gone_at.get_or_insert(now);
        }
    }

    /// Drops data that a reported nmethod no longer needs.
    pub fn strip(&mut self, id: &NmethodId) {
        if let Some(kept) = self.all.get_mut(id).filter(|kept| kept.is_mapped) {
            self.bytes = self.bytes.saturating_sub(kept.bytes);
            kept.strip();
            self.bytes = self.bytes.saturating_add(kept.bytes);
            self.is_outdated = true;
        }
    }

    /// Ends a reading. `is_there` says whether the reading found an nmethod.
    pub fn age(&mut self, now: TimeNs, is_there: impl Fn(&NmethodId) -> bool) {
        let bytes = &mut self.bytes;
        let before = self.all.len();
        self.all.retain(|id, kept| {
            let stays = if is_there(id) {
                kept.gone_at = None;
                kept.seen_at = now;
                true
            } else {
                let gone_at = *kept.gone_at.get_or_insert(now);
                now.0.saturating_sub(gone_at.0) < KEEP_GONE
            };
            if !stays {
                *bytes = bytes.saturating_sub(kept.bytes);
            }
            stays
        });
        if !std::mem::take(&mut self.is_outdated) && self.all.len() == before {
            return;
        }
        self.places.clear();
        let place = |kept: &Kept| {
            let blob = &kept.nmethod.blob;
            (blob.code_begin, blob.code_end, kept.nmethod.id)
        };
        let untold = self.all.values().filter(|kept| !kept.is_mapped);
        self.places.extend(untold.map(place));
        self.places.sort_unstable();
        self.reach = reach_of(&self.places);
    }

    /// Nmethods that contain any of `addresses` (ascending) now, or contained it recently. Most
    /// nmethods with a reported map are left out.
    pub fn at(&self, addresses: &[Avma]) -> Vec<NmethodId> {
        holding(&self.places, &self.reach, addresses)
    }
}

/// Highest end address among `places`, for each prefix.
fn reach_of(places: &[(Avma, Avma, NmethodId)]) -> Vec<Avma> {
    let ends = places.iter().scan(Avma(0), |reach, (_, end, _)| {
        *reach = (*reach).max(*end);
        Some(*reach)
    });
    ends.collect()
}

/// Places with any of `addresses`, without duplicates; both lists ascend.
fn holding(
    places: &[(Avma, Avma, NmethodId)],
    reach: &[Avma],
    addresses: &[Avma],
) -> Vec<NmethodId> {
    let mut found = FxHashSet::default();
    let mut steps = 0;
    for address in addresses {
        let after = places.partition_point(|(start, _, _)| start <= address);
        let before = places[..after].iter().zip(&reach[..after]).rev();
        for ((_, end, id), _) in before.take_while(|(_, reach)| *reach > address) {
            steps += 1;
            if end > address {
                found.insert(*id);
            }
        }
        // One pass is cheaper for deeply nested ranges.
        if steps > places.len() {
            let is_hit = |(start, end, _): &&(Avma, Avma, NmethodId)| {
                let first = addresses.partition_point(|address| address < start);
                addresses.get(first).is_some_and(|address| address < end)
            };
            found.extend(places.iter().filter(is_hit).map(|(_, _, id)| *id));
            break;
        }
    }
    let mut found: Vec<NmethodId> = found.into_iter().collect();
    found.sort_unstable();
    found
}

impl Kept {
    /// Whether the last reading found the nmethod.
    pub fn is_there(&self) -> bool {
        self.gone_at.is_none()
    }

    /// Whether any of these sampled addresses lies outside the map and is no known hit.
    pub fn is_new(&self, touched: &[Avma]) -> bool {
        let is_known =
            |offset| covers(&self.covered, offset) || self.hits.binary_search(&offset).is_ok();
        self.offsets(touched).any(|offset| !is_known(offset))
    }

    /// Whether sampled pcs are outside its map.
    pub fn lacks_map(&self) -> bool {
        let mut hits = self.hits.iter();
        !self.is_mapped && hits.any(|hit| !covers(&self.covered, *hit))
    }

    /// Whether its next map need not wait any longer; an nmethod that is gone is soon forgotten.
    pub fn is_due(&self, now: TimeNs) -> bool {
        let is_early = self.maps == 0 && !self.is_early && self.hits.len() >= MANY_HITS;
        self.due <= now || is_early || !self.is_there()
    }

    /// Postpones the first map of large code: more samples will come.
    pub fn await_more(&mut self, now: TimeNs) {
        if self.due == TimeNs(0) && self.nmethod.code.len() >= LARGE {
            self.due = TimeNs(now.0.saturating_add(PAUSE));
        }
    }

    /// Counts a reported map. Maps of return addresses are cheap: they do not delay the others. Nor does an early map.
    pub fn has_map(&mut self, now: TimeNs, is_cheap: bool) {
        if self.due > now && !is_cheap {
            self.is_early = true;
            return;
        }
        if !is_cheap {
            self.maps = self.maps.saturating_add(1);
        }
        let pause = PAUSE << (3 * self.maps.min(8));
        self.due = TimeNs(now.0.saturating_add(pause));
    }

    /// Adds sampled addresses.
    pub fn hit(&mut self, touched: &[Avma]) {
        let new: Vec<u32> = self.offsets(touched).collect();
        self.hits.extend(new);
        self.hits.sort_unstable();
        self.hits.dedup();
    }

    fn offsets(&self, touched: &[Avma]) -> impl Iterator<Item = u32> {
        let begin = self.nmethod.blob.code_begin.0;
        let offsets = touched.iter().filter_map(move |at| at.0.checked_sub(begin));
        offsets.filter_map(|offset| u32::try_from(offset).ok())
    }

    fn strip(&mut self) {
        let nmethod = &mut self.nmethod;
        (nmethod.code, nmethod.constants) = Default::default();
        (nmethod.pcs, nmethod.scopes) = Default::default();
        (nmethod.metadata, nmethod.implicit) = Default::default();
        self.methods = Vec::new();
        (self.hits, self.covered) = Default::default();
        self.constituent = None;
        self.bytes = std::mem::size_of::<Kept>();
    }
}

fn bytes_of(nmethod: &Nmethod) -> usize {
    let parts = [
        nmethod.code.len(),
        nmethod.constants.len(),
        nmethod.scopes.len(),
        nmethod.implicit.len() * 8,
        nmethod.pcs.len() * 8,
        nmethod.metadata.len() * 8,
        std::mem::size_of::<Kept>(),
    ];
    parts.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_addresses_is_found_as_by_going_through_all() {
        let place = |number: i32, start: u64, end: u64| {
            let id = NmethodId {
                blob: Avma(start),
                compile_id: number,
                osr: false,
            };
            (Avma(start), Avma(end), id)
        };
        // Adjacent ranges, a reused range, and one range around all.
        let mut places: Vec<_> = (0..100)
            .map(|n| place(n, n as u64 * 32, n as u64 * 32 + 20))
            .collect();
        places.extend((0..30).map(|n| place(1000 + n, n as u64 * 70, n as u64 * 70 + 90)));
        for around in [false, true] {
            if around {
                places.push(place(2000, 10, 3100));
            }
            places.sort_unstable();
            let reach = reach_of(&places);
            for step in [1, 3, 40, 700, 3000] {
                let addresses: Vec<Avma> = (0..3300).step_by(step).map(Avma).collect();
                let is_hit = |(start, end, _): &&(Avma, Avma, NmethodId)| {
                    addresses.iter().any(|at| start <= at && at < end)
                };
                let mut all: Vec<NmethodId> =
                    places.iter().filter(is_hit).map(|(_, _, id)| *id).collect();
                all.sort_unstable();
                assert_eq!(holding(&places, &reach, &addresses), all);
            }
        }
    }
}
