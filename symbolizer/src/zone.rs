//! The code zone, as it was at a time (DESIGN.md §5, TRUTH.md §7).
//!
//! An adapter that polls knows of a constituent that it was there from one look
//! ([`Constituent::since`]) to another ([`ConstituentGone::last_seen`]); around
//! those it *may* have been there. A sample that only one constituent can claim is
//! given to it; one that two can claim is doubtful and given to nobody.
//!
//! The zone is brought forward in time, so a lookup costs the same however often
//! addresses were reused, and memory grows with the constituents alone.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vmscope_records::{
    Avma, Constituent, ConstituentGone, ConstituentKey, ConstituentMoved, ProcessKey, TimeNs,
};

/// Index of a constituent in [`Code::constituents`].
pub(crate) type CodeIndex = u32;

/// All constituents of a recording, each once, with the newest that is known of it.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub constituents: Vec<Constituent>,
    by_key: FxHashMap<ConstituentKey, CodeIndex>,
    moves: Vec<(CodeIndex, ConstituentMoved)>,
    gone: FxHashMap<CodeIndex, ConstituentGone>,
}

/// What happens to the zone at a time. The order is the order at equal times: what
/// was there leaves before what is there comes, and only what has come can fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ZoneEvent {
    /// It is not there any more.
    Leaves { code: CodeIndex, start: u64 },
    /// From here on it is there.
    Is { code: CodeIndex, start: u64 },
    /// From here on it may be gone.
    Fades { code: CodeIndex, start: u64 },
    /// From here on it may be there.
    MayBe { code: CodeIndex, start: u64 },
}

/// A constituent's stay at one place.
#[derive(Clone, Copy, Debug)]
struct Stay {
    code: CodeIndex,
    start: u64,
    /// From when on it may have been there.
    maybe: TimeNs,
    /// From when on it was.
    from: TimeNs,
    /// From when on it may be gone; `None` where its end is not told.
    fades: Option<TimeNs>,
    /// When it is gone.
    until: Option<TimeNs>,
}

impl Stay {
    /// Its events. Times that run backwards leave what is certain out.
    fn put(self, events: &mut Vec<(TimeNs, ZoneEvent)>) {
        let (code, start) = (self.code, self.start);
        let ended_by = |time: TimeNs| self.until.is_some_and(|until| until <= time);
        if self.maybe < self.from && !ended_by(self.maybe) {
            events.push((self.maybe, ZoneEvent::MayBe { code, start }));
        }
        if !ended_by(self.from) {
            events.push((self.from, ZoneEvent::Is { code, start }));
            // Code whose end is not told ends when other code is seen in its place,
            // and that may have been so since it may be there.
            let fades = self.fades.unwrap_or(self.from).max(self.from);
            if !ended_by(fades) {
                events.push((fades, ZoneEvent::Fades { code, start }));
            }
        }
        if let Some(until) = self.until.filter(|&until| until > self.maybe) {
            events.push((until, ZoneEvent::Leaves { code, start }));
        }
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
        let Ok(index) = CodeIndex::try_from(self.constituents.len()) else {
            return;
        };
        self.by_key.insert(constituent.key, index);
        self.constituents.push(constituent);
    }

    /// Takes a move.
    pub fn moved(&mut self, moved: ConstituentMoved) {
        if let Some(&index) = self.by_key.get(&moved.key) {
            self.moves.push((index, moved));
        }
    }

    /// Takes an end.
    pub fn gone(&mut self, gone: ConstituentGone) {
        if let Some(&index) = self.by_key.get(&gone.key) {
            self.gone.insert(index, gone);
        }
    }

    /// All events, in time order.
    pub fn events(&self) -> Vec<(TimeNs, ZoneEvent)> {
        let mut moves: FxHashMap<CodeIndex, Vec<&ConstituentMoved>> = FxHashMap::default();
        for (index, moved) in &self.moves {
            moves.entry(*index).or_default().push(moved);
        }
        let mut events = Vec::with_capacity(4 * self.constituents.len());
        for (constituent, code) in self.constituents.iter().zip(0..) {
            let mut stay = Stay {
                code,
                start: constituent.start.0,
                maybe: constituent.absent_at.unwrap_or(constituent.since),
                from: constituent.since,
                fades: None,
                until: None,
            };
            let mut steps = moves.remove(&code).unwrap_or_default();
            steps.sort_by_key(|moved| moved.time);
            for moved in steps {
                let (fades, until) = (Some(moved.last_seen), Some(moved.time));
                Stay {
                    fades,
                    until,
                    ..stay
                }
                .put(&mut events);
                stay.start = moved.to.0;
                stay.maybe = moved.last_seen;
                stay.from = moved.time;
            }
            if let Some(gone) = self.gone.get(&code) {
                stay.fades = Some(gone.last_seen);
                stay.until = Some(gone.time);
            }
            stay.put(&mut events);
        }
        events.sort_unstable();
        events
    }
}

/// Who claims an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// One constituent; the offset from its start.
    One(CodeIndex, u32),
    /// Two that can't both have been there.
    Doubtful,
}

/// A constituent where it lies now.
#[derive(Clone, Copy, Debug)]
struct Placed {
    end: u64,
    code: CodeIndex,
    fading: bool,
}

/// The zones of all processes at one time.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    by_process: FxHashMap<ProcessKey, Zone>,
}

/// The zone of a process at one time: constituents by first address, not overlapping.
#[derive(Debug, Default)]
struct Zone {
    /// What is there.
    firm: BTreeMap<u64, Placed>,
    /// What may have come already.
    maybe: BTreeMap<u64, Placed>,
}

impl Zones {
    /// Brings the zone forward by one event.
    pub fn apply(&mut self, event: ZoneEvent, code_table: &Code) {
        let (ZoneEvent::Leaves { code, start }
        | ZoneEvent::Fades { code, start }
        | ZoneEvent::MayBe { code, start }
        | ZoneEvent::Is { code, start }) = event;
        let Some(constituent) = code_table.constituents.get(code as usize) else {
            return;
        };
        let size = constituent.end.0.saturating_sub(constituent.start.0);
        let placed = Placed {
            end: start.saturating_add(size),
            code,
            fading: false,
        };
        let Zone { firm, maybe } = self.by_process.entry(constituent.process).or_default();
        let is_it = |zone: &BTreeMap<u64, Placed>| zone.get(&start).is_some_and(|p| p.code == code);
        match event {
            ZoneEvent::MayBe { .. } => put(maybe, start, placed),
            ZoneEvent::Is { .. } => {
                if is_it(maybe) {
                    maybe.remove(&start);
                }
                put(firm, start, placed);
            }
            ZoneEvent::Fades { .. } => {
                if let Some(there) = firm.get_mut(&start).filter(|there| there.code == code) {
                    there.fading = true;
                }
            }
            ZoneEvent::Leaves { .. } => {
                for zone in [firm, maybe] {
                    if is_it(zone) {
                        zone.remove(&start);
                    }
                }
            }
        }
    }

    /// Who claims `address` in `process` now.
    pub fn lookup(&self, process: ProcessKey, address: Avma) -> Option<Claim> {
        let zone = self.by_process.get(&process)?;
        let firm = find(&zone.firm, address.0);
        let maybe = match firm {
            Some((_, placed)) if !placed.fading => None,
            _ => find(&zone.maybe, address.0),
        };
        match (firm, maybe) {
            (Some(_), Some(_)) => Some(Claim::Doubtful),
            (Some((start, placed)), None) | (None, Some((start, placed))) => {
                let offset = u32::try_from(address.0 - start).ok()?;
                Some(Claim::One(placed.code, offset))
            }
            (None, None) => None,
        }
    }
}

/// Puts a constituent into a zone. Whatever it overlaps is not there any more, told
/// or not.
fn put(zone: &mut BTreeMap<u64, Placed>, start: u64, placed: Placed) {
    if start >= placed.end {
        return;
    }
    let before = zone
        .range(..start)
        .next_back()
        .map(|(&from, there)| (from, there.end));
    if let Some((from, end)) = before
        && end > start
    {
        zone.remove(&from);
    }
    while let Some((&from, _)) = zone.range(start..placed.end).next() {
        zone.remove(&from);
    }
    zone.insert(start, placed);
}

fn find(zone: &BTreeMap<u64, Placed>, address: u64) -> Option<(u64, Placed)> {
    let (&start, &placed) = zone.range(..=address).next_back()?;
    (address < placed.end).then_some((start, placed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::{ConstituentKind, GoneReason, PcMap};

    const PROCESS: ProcessKey = ProcessKey(1);

    fn constituent(
        key: u64,
        since: u64,
        absent_at: Option<u64>,
        start: u64,
        end: u64,
    ) -> Constituent {
        Constituent {
            key: ConstituentKey(key),
            process: PROCESS,
            since: TimeNs(since),
            absent_at: absent_at.map(TimeNs),
            start: Avma(start),
            end: Avma(end),
            kind: ConstituentKind::Method,
            tier: String::new(),
            name: format!("m{key}"),
            method: None,
            cases: Vec::new(),
            map: PcMap::None,
        }
    }

    fn gone(key: u64, last_seen: u64, time: u64) -> ConstituentGone {
        let (last_seen, time) = (TimeNs(last_seen), TimeNs(time));
        ConstituentGone {
            key: ConstituentKey(key),
            last_seen,
            time,
            reason: GoneReason::Freed,
        }
    }

    /// Who is at `address` at `time`: the key, `None`, or doubt.
    fn who(code: &Code, time: u64, address: u64) -> Result<Option<u64>, ()> {
        let mut zones = Zones::default();
        for (at, event) in code.events() {
            if at.0 <= time {
                zones.apply(event, code);
            }
        }
        match zones.lookup(PROCESS, Avma(address)) {
            None => Ok(None),
            Some(Claim::Doubtful) => Err(()),
            Some(Claim::One(index, _)) => Ok(Some(code.constituents[index as usize].key.0)),
        }
    }

    #[test]
    fn a_place_that_is_reused_between_two_looks_is_doubtful_meanwhile() {
        let mut code = Code::default();
        code.seen(constituent(1, 10, None, 100, 200));
        code.gone(gone(1, 20, 30));
        code.seen(constituent(2, 30, Some(20), 150, 250));
        assert_eq!(who(&code, 5, 160), Ok(None));
        assert_eq!(who(&code, 15, 160), Ok(Some(1)));
        assert_eq!(who(&code, 25, 160), Err(()), "both may have been there");
        assert_eq!(
            who(&code, 25, 120),
            Ok(Some(1)),
            "only the old one reaches there"
        );
        assert_eq!(
            who(&code, 25, 220),
            Ok(Some(2)),
            "only the new one reaches there"
        );
        assert_eq!(who(&code, 30, 160), Ok(Some(2)));
        assert_eq!(who(&code, 30, 120), Ok(None));
    }

    #[test]
    fn a_moved_constituent_is_at_its_old_place_before_and_its_new_one_after() {
        let mut code = Code::default();
        code.seen(constituent(1, 10, None, 100, 200));
        code.moved(ConstituentMoved {
            key: ConstituentKey(1),
            last_seen: TimeNs(20),
            time: TimeNs(30),
            to: Avma(400),
        });
        assert_eq!(who(&code, 15, 150), Ok(Some(1)));
        assert_eq!(who(&code, 15, 450), Ok(None));
        assert_eq!(who(&code, 25, 150), Ok(Some(1)));
        assert_eq!(who(&code, 25, 450), Ok(Some(1)));
        assert_eq!(who(&code, 35, 150), Ok(None));
        assert_eq!(who(&code, 35, 450), Ok(Some(1)));
    }

    #[test]
    fn code_that_is_overwritten_without_notice_is_gone() {
        let mut code = Code::default();
        code.seen(constituent(1, 10, None, 100, 200));
        code.seen(constituent(2, 20, None, 50, 150));
        assert_eq!(who(&code, 15, 120), Ok(Some(1)));
        assert_eq!(who(&code, 20, 120), Ok(Some(2)));
        assert_eq!(who(&code, 20, 180), Ok(None), "half a method is no method");
    }

    #[test]
    fn code_that_one_look_saw_may_be_gone_right_after_it() {
        let mut code = Code::default();
        code.seen(constituent(1, 10, Some(5), 100, 200));
        code.gone(gone(1, 10, 20));
        code.seen(constituent(2, 20, Some(10), 100, 200));
        assert_eq!(
            who(&code, 10, 150),
            Err(()),
            "both may be there after the look"
        );
        assert_eq!(who(&code, 15, 150), Err(()));
        assert_eq!(who(&code, 20, 150), Ok(Some(2)));
    }

    #[test]
    fn code_whose_end_is_not_told_ends_where_other_code_may_begin() {
        let mut code = Code::default();
        code.seen(constituent(1, 10, None, 100, 200));
        code.seen(constituent(2, 30, Some(20), 100, 200));
        assert_eq!(who(&code, 15, 150), Ok(Some(1)));
        assert_eq!(who(&code, 25, 150), Err(()));
        assert_eq!(who(&code, 30, 150), Ok(Some(2)));
    }

    #[test]
    fn times_that_run_backwards_leave_nothing_behind() {
        let mut code = Code::default();
        code.seen(constituent(1, 30, None, 100, 200));
        code.gone(gone(1, 40, 20));
        code.seen(constituent(2, 30, None, 300, 400));
        code.gone(gone(2, 30, 30));
        code.seen(constituent(3, 50, Some(20), 500, 600));
        code.gone(gone(3, 50, 40));
        assert_eq!(who(&code, 60, 150), Ok(None));
        assert_eq!(who(&code, 60, 350), Ok(None));
        assert_eq!(who(&code, 30, 550), Ok(Some(3)), "it may have been there");
        assert_eq!(who(&code, 60, 550), Ok(None));
    }

    #[test]
    fn more_known_later_changes_the_map_not_the_time() {
        let mut code = Code::default();
        code.seen(constituent(1, 10, None, 100, 200));
        let mut again = constituent(1, 50, Some(40), 100, 200);
        again.name = "better".into();
        code.seen(again);
        assert_eq!(who(&code, 15, 120), Ok(Some(1)));
        assert_eq!(code.constituents[0].name, "better");
    }
}
