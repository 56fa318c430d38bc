//! From snapshots of a code zone to what changed in it, with honest times.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind,
    ConstituentMoved, GoneReason, PcMap, TimeNs,
};

use crate::Poll;

/// What a code zone held at the last poll, and under which keys: what most adapters
/// need to tell changes.
///
/// `I` is what makes one life of a piece of code in the VM's eyes, whatever its
/// address: HotSpot's compile id, Cog's method together with its place if that never
/// moves. Code with an identity that was there before is the same code, moved if its
/// address differs; code with a new one is new, also at an old address.
///
/// Times: a poll reads for a while. What it finds was there at some time in it, so is
/// *known* to be there from its end on (`since`), was not there at the beginning of
/// the last poll (`absent_at`), and is known to have been there until the beginning
/// of the last poll that found it (`last_seen`).
#[derive(Clone, Debug)]
pub struct CodeZone<I> {
    known: FxHashMap<I, Known>,
    /// When the last poll began; `None` before the first.
    last_poll: Option<TimeNs>,
    /// Up to when nothing is gone that it found.
    whole_until: Option<TimeNs>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    key: ConstituentKey,
    start: Avma,
    end: Avma,
    /// The number of the poll that saw it last is that of the newest one.
    current: bool,
}

/// A piece of code that a poll found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCode<I> {
    /// Which life of which code.
    pub identity: I,
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
}

impl<I> Default for CodeZone<I> {
    fn default() -> Self {
        Self {
            known: FxHashMap::default(),
            last_poll: None,
            whole_until: None,
        }
    }
}

impl<I: Clone + Eq + Hash> CodeZone<I> {
    /// A zone that was never looked at.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing that the last poll found was gone at `time`: the VM shows that without a
    /// look at its code.
    pub fn is_whole_at(&mut self, time: TimeNs) {
        self.whole_until = self.whole_until.max(Some(time));
    }

    /// Compares all that is in the zone now with what was there at the last poll, and
    /// tells `poll` the difference: first what is gone, then what moved, then what is
    /// new, each in the order of addresses. Answers how many changes that were.
    ///
    /// `describe` fills in what is known about a new constituent (kind, name, method,
    /// map …); key, addresses and times are there already. `reason` says why one is
    /// gone; where its place was taken by new code that is told as
    /// [`GoneReason::Recycled`] without asking.
    ///
    /// Of two pieces with one identity, which no sound VM has, the first counts.
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

        let last_seen = self.last_poll.max(self.whole_until.take());
        let last_seen = last_seen.unwrap_or(poll.began());
        for (identity, known) in gone {
            let after = new.partition_point(|(_, other)| other.start < known.end);
            let taken = after.checked_sub(1).and_then(|at| new.get(at));
            let taken = taken.is_some_and(|(_, other)| other.end > known.start);
            poll.code(CodeChange::Gone(ConstituentGone {
                key: known.key,
                last_seen,
                time: now,
                reason: if taken {
                    GoneReason::Recycled
                } else {
                    reason(&identity)
                },
            }));
        }
        for (key, to) in moved {
            poll.code(CodeChange::Moved(ConstituentMoved {
                key,
                last_seen,
                time: now,
                to,
            }));
        }
        for (identity, known) in new {
            let mut constituent = Constituent {
                key: known.key,
                process: poll.process(),
                since: now,
                absent_at: self.last_poll,
                start: known.start,
                end: known.end,
                kind: ConstituentKind::Method,
                tier: String::new(),
                name: String::new(),
                method: None,
                cases: Vec::new(),
                map: PcMap::None,
            };
            describe(&identity, &mut constituent, poll);
            poll.code(CodeChange::Seen(constituent));
        }
        self.last_poll = Some(poll.began());
        changes
    }

    /// The key and the addresses of a piece of code that the last poll found.
    #[must_use]
    pub fn get(&self, identity: &I) -> Option<(ConstituentKey, Avma, Avma)> {
        let known = self.known.get(identity)?;
        Some((known.key, known.start, known.end))
    }

    /// The identity of a constituent that the last poll found.
    #[must_use]
    pub fn identity(&self, key: ConstituentKey) -> Option<&I> {
        let mut known = self.known.iter();
        known.find_map(|(identity, known)| (known.key == key).then_some(identity))
    }

    /// How many pieces of code the last poll found.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether it found none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}
