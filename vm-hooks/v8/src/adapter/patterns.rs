//! Names of regular expressions' code: patterns that samples show.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, Memory, Poll, known};
use vmscope_records::PcMap;

use super::{Identity, Known, V8Adapter};
use crate::code::Kind;

/// Nanoseconds after which a sighting is dropped. Samples reach the adapter within a second.
const MAX_AGE: u64 = 2_000_000_000;

/// Patterns of known code.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// By [`Identity::turn`].
    names: FxHashMap<u32, String>,
    last_turn: u32,
}

impl Patterns {
    /// A number for a new lifetime of code.
    pub fn new_turn(&mut self) -> u32 {
        self.last_turn = self.last_turn.wrapping_add(1).max(1);
        self.last_turn
    }

    /// The pattern of code; `None` if no sample has shown it.
    pub fn name(&self, identity: &Identity) -> Option<&str> {
        self.names.get(&identity.turn).map(String::as_str)
    }

    fn lacks(&self, known: &Known) -> bool {
        known.code.kind == Kind::RegExp && !self.names.contains_key(&known.identity.turn)
    }
}

impl V8Adapter {
    /// Reports patterns that samples show. Samples before a collection do not count: code of another regular
    /// expression may have all places of freed code then, and freed objects keep their contents.
    pub(super) fn tell_patterns(
        &mut self,
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let died_until = self.states.died_until();
        // Sightings in unread code wait for a while: no poll reads what is no code of V8's heap.
        let now = poll.began();
        let sightings = self.frames.sightings().take(|sighting| {
            let there = self.at(sighting.pc);
            let is_read = there.is_some_and(|there| self.is_fresh(there) && !there.is_unsampled());
            let is_late = now.since(sighting.time).0 > MAX_AGE || Some(sighting.time) <= died_until;
            is_read || is_late
        });
        let vm = self.vm.clone();
        let heap = vm.heap(memory);
        let mut found: FxHashMap<Identity, Option<String>> = FxHashMap::default();
        for sighting in sightings {
            let there = self.at(sighting.pc).filter(|there| {
                let is_current = Some(sighting.time) > died_until && !there.is_unsampled();
                is_current && self.names.patterns.lacks(there)
            });
            let Some(Known { code, identity, .. }) = there else {
                continue;
            };
            if !found.contains_key(identity) && !code.is_still(&heap)? {
                continue;
            }
            let name = found.entry(*identity).or_default();
            if name.is_none() {
                *name = known(heap.pattern(sighting.object, code.object))?.flatten();
            }
        }
        if found.is_empty() || !self.states.are_as_seen(memory)? {
            return Ok(());
        }
        for (identity, name) in found {
            self.zone.lives(&identity);
            if let Some(name) = name {
                self.names.patterns.names.insert(identity.turn, name);
                self.tell_again(&identity, PcMap::None, poll);
            }
        }
        self.seek_patterns();
        Ok(())
    }

    /// Reports known code again, with a name or map.
    pub(super) fn tell_again(&self, identity: &Identity, map: PcMap, poll: &mut Poll) {
        self.zone.again(poll, identity, |identity, constituent, _| {
            self.names.describe(identity, constituent);
            constituent.map = map;
        });
    }

    /// Tells the unwinder the code that lacks a pattern since the last collection, and forgets patterns of code that is
    /// gone.
    pub(super) fn seek_patterns(&mut self) {
        let known = self.known.values();
        let all: Vec<&Known> = known.filter(|it| it.code.kind == Kind::RegExp).collect();
        let turns: FxHashSet<u32> = all.iter().map(|known| known.identity.turn).collect();
        let patterns = &self.names.patterns;
        let lacks = |known: &&Known| patterns.lacks(known) || !self.is_fresh(known);
        let sought = all.into_iter().filter(lacks);
        let sought = sought.map(|known| known.code.start.0..known.code.end.0);
        self.frames.seek(sought);
        self.names
            .patterns
            .names
            .retain(|turn, _| turns.contains(turn));
    }
}
