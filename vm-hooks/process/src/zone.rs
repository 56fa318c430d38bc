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
}

#[derive(Clone, Copy, Debug)]
struct Known {
    key: ConstituentKey,
    start: Avma,
    end: Avma,
    /// Whether the latest poll found it.
    current: bool,
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
