//! Turns snapshots of a code zone into timed changes.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind,
    ConstituentMoved, GoneReason, PcMap, TimeNs,
};

use crate::Poll;

/// Contents of a code zone at the last poll, with their keys; most adapters derive changes from it.
///
/// `I` identifies one lifetime of a piece of code in the VM, independent of its address: HotSpot's
/// compile id, Cog's method with its address if methods never move. Code with a known identity is
/// the same code, moved if its address differs; code with another identity is new, even at an old
/// address.
///
/// Times: a poll takes a while. Code found by it existed at some time during the poll. It is
/// *known* to exist from the end of the poll (`since`), did not exist at the start of the previous
/// poll (`absent_at`), and existed until the start of the last poll that found it (`last_seen`).
#[derive(Clone, Debug)]
pub struct CodeZone<I> {
    known: FxHashMap<I, Known>,
    /// Start of the last poll; `None` before the first.
    last_poll: Option<TimeNs>,
    /// Time up to which no code disappeared.
    whole_until: Option<TimeNs>,
    /// Last time at which executed code may have disappeared; `None` for VMs without such times.
    died_until: Option<TimeNs>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    key: ConstituentKey,
    start: Avma,
    end: Avma,
    /// Whether the latest poll found it.
    current: bool,
    /// Time at which it was found between two polls.
    seen_at: Option<TimeNs>,
    /// Whether it executed after code last disappeared.
    lives: bool,
}

/// A piece of code found by a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCode<I> {
    /// Identity of its lifetime.
    pub identity: I,
    /// First address.
    pub start: Avma,
    /// First address after the code.
    pub end: Avma,
}

impl<I> Default for CodeZone<I> {
    fn default() -> Self {
        Self {
            known: FxHashMap::default(),
            last_poll: None,
            whole_until: None,
            died_until: None,
        }
    }
}

impl<I: Clone + Eq + Hash> CodeZone<I> {
    /// A zone before its first poll.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares that no code of the last poll disappeared before `time`, known without reading
    /// code.
    pub fn is_whole_at(&mut self, time: TimeNs) {
        self.whole_until = self.whole_until.max(Some(time));
    }

    /// Declares that executed code disappears at certain times only, such as collections, the last of
    /// which ended at `time` and began after `whole_until`, and that code which no poll sees may take its
    /// place. So code counts up to the last poll that saw it, or up to `whole_until` if it lived
    /// ([`CodeZone::lives`]); new code counts from these times on. Returns whether the time is new.
    pub fn dies_until(&mut self, time: TimeNs, whole_until: TimeNs) -> bool {
        if Some(time) <= self.died_until {
            return false;
        }
        for known in self.known.values_mut() {
            if std::mem::take(&mut known.lives) {
                known.seen_at = known.seen_at.max(Some(whole_until));
            }
        }
        self.died_until = Some(time);
        true
    }

    /// Declares that code executed after the last time of [`CodeZone::dies_until`]. A poll may also see dead
    /// code, whose place no other code has taken yet.
    pub fn lives(&mut self, identity: &I) {
        if let Some(known) = self.known.get_mut(identity) {
            known.lives = true;
        }
    }

    /// Whether code executed after the last time of [`CodeZone::dies_until`].
    pub fn is_in_use(&self, identity: &I) -> bool {
        self.known.get(identity).is_some_and(|known| known.lives)
    }

    /// Time up to which new code was absent, or unknown code may have had its place.
    fn absent_at(&self, replaced_at: Option<TimeNs>) -> Option<TimeNs> {
        self.last_poll.max(self.died_until).max(replaced_at)
    }

    /// Declares that code of the last poll was still there at `time`.
    pub fn was_there(&mut self, identity: &I, time: TimeNs) {
        if let Some(known) = self.known.get_mut(identity) {
            known.seen_at = Some(time);
        }
    }

    /// Reports the end of code, found between two polls.
    pub fn went(&mut self, poll: &mut Poll, identity: &I, reason: GoneReason) {
        if let Some(known) = self.known.remove(identity) {
            self.report_gone(&known, (poll.now(), reason), poll);
        }
    }

    /// Reports the end of code that no poll saw since code last disappeared ([`CodeZone::dies_until`]): the
    /// process has ended, and no later poll tells whether the code was still there.
    pub fn ends(&mut self, poll: &mut Poll) {
        let mut unseen: Vec<(I, Known)> = Vec::new();
        for (identity, known) in &self.known {
            if self.last_seen(known) <= self.died_until {
                unseen.push((identity.clone(), *known));
            }
        }
        unseen.sort_by_key(|(_, known)| (known.start, known.key));
        for (identity, _) in unseen {
            self.went(poll, &identity, GoneReason::Unknown);
        }
    }

    fn last_seen(&self, known: &Known) -> Option<TimeNs> {
        self.last_poll.max(self.whole_until).max(known.seen_at)
    }

    /// Reports that code was found gone at `time`; returns the time at which it was last seen.
    fn report_gone(
        &self,
        known: &Known,
        (time, reason): (TimeNs, GoneReason),
        poll: &mut Poll,
    ) -> Option<TimeNs> {
        let last_seen = self.last_seen(known);
        let time = match self.died_until {
            Some(_) => last_seen.unwrap_or(time),
            None => time,
        };
        poll.code(CodeChange::Gone(ConstituentGone {
            key: known.key,
            last_seen: last_seen.unwrap_or(poll.began()),
            time,
            reason,
        }));
        last_seen
    }

    /// Reports code found between two polls. It takes the place of the known code `replaced`, all of
    /// which overlaps it. `describe`: see [`CodeZone::update`].
    pub fn found(
        &mut self,
        poll: &mut Poll,
        code: SeenCode<I>,
        replaced: &[I],
        describe: impl FnOnce(&I, &mut Constituent, &mut Poll),
    ) {
        let now = poll.now();
        let mut replaced_at = None;
        for identity in replaced {
            if let Some(known) = self.known.remove(identity) {
                let found = (now, GoneReason::Recycled);
                replaced_at = replaced_at.max(self.report_gone(&known, found, poll));
            }
        }
        let absent_at = self.absent_at(replaced_at);
        let known = Known {
            key: poll.keys().constituent(),
            start: code.start,
            end: code.end,
            current: true,
            seen_at: Some(now),
            lives: false,
        };
        self.known.insert(code.identity.clone(), known);
        let mut constituent = new_constituent(&known, (absent_at, now), poll);
        describe(&code.identity, &mut constituent, poll);
        poll.code(CodeChange::Seen(constituent));
    }

    /// Reports code of the last poll once more, with more details. `describe`: see [`CodeZone::update`].
    pub fn again(
        &self,
        poll: &mut Poll,
        identity: &I,
        describe: impl FnOnce(&I, &mut Constituent, &mut Poll),
    ) {
        if let Some(known) = self.known.get(identity) {
            let mut constituent = new_constituent(known, (None, poll.now()), poll);
            describe(identity, &mut constituent, poll);
            poll.code(CodeChange::Seen(constituent));
        }
    }

    /// Compares the zone's current contents with the last poll and emits the difference into
    /// `poll`: removals, moves, then new code, each in order of addresses. Returns the number of
    /// changes.
    ///
    /// `describe` completes a new constituent (kind, name, method, map …); key, addresses and times
    /// are set. `reason` gives the reason of a removal, except for code replaced at the same
    /// address, which is [`GoneReason::Recycled`].
    ///
    /// The first of several pieces with one identity counts (no sound VM has those).
    pub fn update(
        &mut self,
        poll: &mut Poll,
        seen: impl IntoIterator<Item = SeenCode<I>>,
        mut describe: impl FnMut(&I, &mut Constituent, &mut Poll),
        mut reason: impl FnMut(&I) -> GoneReason,
    ) -> usize {
        let now = poll.now();
        for known in self.known.values_mut() {
            known.current = false;
        }
        let mut moved = Vec::new();
        let mut new: Vec<(I, Known)> = Vec::new();
        for code in seen {
            if let Some(known) = self.known.get_mut(&code.identity) {
                if !known.current && known.start != code.start {
                    moved.push((known.key, code.start));
                }
                if !known.current {
                    (known.start, known.end) = (code.start, code.end);
                }
                known.current = true;
                continue;
            }
            let known = Known {
                key: poll.keys().constituent(),
                start: code.start,
                end: code.end,
                current: true,
                seen_at: None,
                lives: false,
            };
            self.known.insert(code.identity.clone(), known);
            new.push((code.identity, known));
        }
        let mut gone: Vec<(I, Known)> = Vec::new();
        self.known.retain(|identity, known| {
            if !known.current {
                gone.push((identity.clone(), *known));
            }
            known.current
        });
        gone.sort_by_key(|(_, known)| (known.start, known.key));
        moved.sort_by_key(|(key, to)| (*to, *key));
        new.sort_by_key(|(_, known)| (known.start, known.key));
        let changes = gone.len() + moved.len() + new.len();

        // New code was absent while other code had its place.
        let mut replaced_at = vec![None; new.len()];
        for (identity, known) in gone {
            let after = new.partition_point(|(_, other)| other.start < known.end);
            let before = new.iter().zip(&mut replaced_at).take(after).rev();
            let over: Vec<&mut Option<TimeNs>> = before
                .take_while(|((_, other), _)| other.end > known.start)
                .map(|(_, replaced_at)| replaced_at)
                .collect();
            let reason = match over.is_empty() {
                true => reason(&identity),
                false => GoneReason::Recycled,
            };
            let last_seen = self.report_gone(&known, (now, reason), poll);
            for replaced_at in over {
                *replaced_at = (*replaced_at).max(last_seen);
            }
        }
        let last_seen = self.last_poll.max(self.whole_until.take());
        let last_seen = last_seen.unwrap_or(poll.began());
        for (key, to) in moved {
            poll.code(CodeChange::Moved(ConstituentMoved {
                key,
                last_seen,
                time: now,
                to,
            }));
        }
        for ((identity, known), replaced_at) in new.into_iter().zip(replaced_at) {
            let absent_at = self.absent_at(replaced_at);
            let mut constituent = new_constituent(&known, (absent_at, now), poll);
            describe(&identity, &mut constituent, poll);
            poll.code(CodeChange::Seen(constituent));
        }
        self.last_poll = Some(poll.began());
        changes
    }

    /// Key and addresses of code from the last poll.
    #[must_use]
    pub fn get(&self, identity: &I) -> Option<(ConstituentKey, Avma, Avma)> {
        let known = self.known.get(identity)?;
        Some((known.key, known.start, known.end))
    }

    /// Identity of a constituent from the last poll.
    #[must_use]
    pub fn identity(&self, key: ConstituentKey) -> Option<&I> {
        let mut known = self.known.iter();
        known.find_map(|(identity, known)| (known.key == key).then_some(identity))
    }

    /// Number of pieces in the last poll.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether the last poll found none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// A constituent without kind and name, with the last time certainly before it and the first
/// certainly in it.
fn new_constituent(
    known: &Known,
    (absent_at, since): (Option<TimeNs>, TimeNs),
    poll: &Poll,
) -> Constituent {
    Constituent {
        key: known.key,
        process: poll.process(),
        since,
        absent_at,
        start: known.start,
        end: known.end,
        kind: ConstituentKind::Method,
        tier: String::new(),
        name: String::new(),
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use vmscope_records::{ProcessKey, Record};

    use super::*;
    use crate::KeySource;

    /// New code ends the code in its place, as of the last sighting of the latter, whether a poll
    /// finds the new code or a look between two polls.
    #[test]
    fn new_code_replaces_what_it_overlaps() {
        let time = Arc::new(AtomicU64::new(10));
        let clock = Arc::clone(&time);
        let keys = KeySource::new();
        let poll = || {
            let clock = Arc::clone(&clock);
            let now = move || TimeNs(clock.load(Ordering::Relaxed));
            Poll::new(keys.clone(), ProcessKey(1), Arc::new(now))
        };
        let code = |identity: u32, start: u64, end: u64| SeenCode {
            identity,
            start: Avma(start),
            end: Avma(end),
        };
        let mut zone = CodeZone::new();
        let mut first = poll();
        let all = [code(1, 0, 10), code(2, 10, 20), code(3, 20, 30)];
        zone.update(&mut first, all, |_, _, _| {}, |_| GoneReason::Unloaded);
        zone.was_there(&2, TimeNs(14));
        time.store(20, Ordering::Relaxed);
        let mut between = poll();
        zone.found(&mut between, code(4, 0, 20), &[1, 2], |_, _, _| {});
        time.store(30, Ordering::Relaxed);
        let mut last = poll();
        zone.was_there(&4, TimeNs(26));
        let all = [code(5, 10, 15), code(6, 20, 25)];
        zone.update(&mut last, all, |_, _, _| {}, |_| GoneReason::Unloaded);
        time.store(40, Ordering::Relaxed);
        zone.went(&mut last, &6, GoneReason::Unloaded);
        zone.went(&mut last, &6, GoneReason::Unloaded);
        let mut gone = Vec::new();
        let mut came = Vec::new();
        for record in between.finish().into_iter().chain(last.finish()) {
            match record {
                Record::Constituent(one) => came.push((one.start, one.absent_at, one.since)),
                Record::ConstituentGone(one) => gone.push((one.last_seen, one.time, one.reason)),
                _ => {}
            }
        }
        let new = |at, absent, since| (Avma(at), Some(TimeNs(absent)), TimeNs(since));
        assert_eq!(came, [new(0, 14, 20), new(10, 26, 30), new(20, 10, 30)]);
        let recycled = |seen, time| (TimeNs(seen), TimeNs(time), GoneReason::Recycled);
        let unloaded = (TimeNs(30), TimeNs(40), GoneReason::Unloaded);
        let before = [recycled(10, 20), recycled(14, 20)];
        let after = [recycled(26, 30), recycled(10, 30), unloaded];
        assert_eq!(gone, [&before[..], &after[..]].concat());
    }

    /// Executed code dies at certain times only: between the last poll that saw it and the last of these
    /// times, code that no poll saw may have had its place.
    #[test]
    fn executed_code_dies_at_certain_times() {
        let time = Arc::new(AtomicU64::new(10));
        let clock = Arc::clone(&time);
        let clock = Arc::new(move || TimeNs(clock.load(Ordering::Relaxed)));
        let poll = || Poll::new(KeySource::new(), ProcessKey(1), clock.clone());
        let code = |identity: u32| SeenCode {
            identity,
            start: Avma(0),
            end: Avma(10),
        };
        // Last time of life, last time of deaths, time of a check; end of the old code.
        let cases = [
            (0, 14, None, 10),
            (0, 14, Some(18), 18),
            (0, 22, Some(18), 18),
            (13, 14, None, 13),
        ];
        for (whole, died, seen, expected) in cases {
            for is_known in [true, false] {
                time.store(10, Ordering::Relaxed);
                let mut zone = CodeZone::new();
                let known = is_known.then(|| code(1));
                zone.update(&mut poll(), known, |_, _, _| {}, |_| GoneReason::Freed);
                if whole != 0 {
                    zone.lives(&1);
                }
                zone.dies_until(TimeNs(died), TimeNs(whole.max(13)));
                // Nobody saw the code between this time and the next one.
                zone.dies_until(TimeNs(died), TimeNs(died));
                if let Some(seen) = seen {
                    zone.was_there(&1, TimeNs(seen));
                }
                time.store(30, Ordering::Relaxed);
                let mut end = poll();
                zone.clone().ends(&mut end);
                let mut ended = end.finish().into_iter();
                let is_unseen = is_known && seen.is_none_or(|seen| seen <= died);
                let is_end = |record| matches!(record, Record::ConstituentGone(gone) if gone.time.0 == expected);
                assert_eq!(ended.any(is_end), is_unseen);
                let mut poll = poll();
                zone.found(&mut poll, code(2), &[1], |_, _, _| {});
                for record in poll.finish() {
                    match record {
                        Record::ConstituentGone(gone) => {
                            assert_eq!((gone.last_seen.0, gone.time.0), (expected, expected));
                        }
                        Record::Constituent(new) => {
                            let absent_at = if is_known { died.max(expected) } else { died };
                            assert_eq!(new.absent_at, Some(TimeNs(absent_at)));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
