//! Code that samples hit, between two looks at all code.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Poll, ProcessView, SeenCode};
use vmscope_records::{Avma, GoneReason};

use super::{Known, Reader, V8Adapter, fill};
use crate::code::{self, Code};
use crate::vm::V8;

impl V8Adapter {
    /// Looks at the code of this poll's samples; returns the number of changes. Known code is checked,
    /// new code is read.
    pub(super) fn look_at_hits(
        &mut self,
        (process, vm): (&ProcessView, &V8),
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<usize, AdapterError> {
        let Some(first) = reader.isolates.first().copied() else {
            return Ok(0);
        };
        let (gone, new) = self.check(vm, reader, poll)?;
        let streams = vm.streams_at(process, &reader.direct, (reader.tables, first), &new)?;
        let mut codes = code::describe(&reader.direct, &streams)?;
        codes.retain(|code| {
            let first = new.partition_point(|at| *at < code.start);
            new.get(first).is_some_and(|at| *at <= code.end)
        });
        codes.sort_by_key(|code| code.start);
        let found = self.identify(&codes, reader, poll)?;
        let mut changes = 0;
        for known in found {
            changes += self.take_hit(known, poll);
        }
        for code in gone {
            let is_there = self.known.get(&code.start);
            if let Some(known) = is_there.filter(|known| known.code == code).cloned() {
                self.known.remove(&code.start);
                self.zone.went(poll, &known.identity, GoneReason::Freed);
                changes += 1;
            }
        }
        Ok(changes)
    }

    /// Checks the known code that samples hit. Returns code that is no longer there, and addresses
    /// (ascending) without known code.
    fn check(
        &mut self,
        vm: &V8,
        reader: &Reader<'_>,
        poll: &Poll,
    ) -> Result<(Vec<Code>, Vec<Avma>), AdapterError> {
        let (mut hit, mut new): (Vec<Known>, Vec<Avma>) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        for at in poll.touched() {
            match self.at(*at) {
                Some(known) => {
                    places.push((*at, known.code.start));
                    if hit.last().is_none_or(|last| last.code != known.code) {
                        hit.push(known.clone());
                    }
                }
                None => new.push(*at),
            }
        }
        let header = vm.layout.stream.start;
        let streams = hit.iter().map(|known| known.code.start.0);
        let streams: Vec<Avma> = streams
            .map(|start| Avma(start.saturating_sub(header)))
            .collect();
        let found = code::describe(&reader.direct, &streams)?;
        let found: FxHashMap<Avma, Code> = found.into_iter().map(|one| (one.start, one)).collect();
        let is_there = |known: &Known| found.get(&known.code.start) == Some(&known.code);
        let (there, gone): (Vec<Known>, Vec<Known>) = hit.into_iter().partition(is_there);
        let now = poll.now();
        for known in there {
            self.zone.was_there(&known.identity, now);
        }
        let gone: Vec<Code> = gone.into_iter().map(|known| known.code).collect();
        let is_gone = |start: &Avma| gone.iter().any(|code| code.start == *start);
        let again = places.into_iter().filter(|(_, start)| is_gone(start));
        new.extend(again.map(|(at, _)| at));
        new.sort_unstable();
        Ok((gone, new))
    }

    /// Known code with this pc or return address.
    fn at(&self, at: Avma) -> Option<&Known> {
        let (_, known) = self.known.range(..=at).next_back()?;
        (at <= known.code.end).then_some(known)
    }

    /// Reports code that a sample hit, in the place of what was there. Returns the number of changes.
    fn take_hit(&mut self, new: Known, poll: &mut Poll) -> usize {
        let (start, end) = (new.code.start, new.code.end);
        let before = self.known.range(..end).rev();
        let over: Vec<Known> = before
            .take_while(|(_, known)| known.code.end > start)
            .map(|(_, known)| known.clone())
            .collect();
        for known in &over {
            self.known.remove(&known.code.start);
        }
        let identity = new.identity;
        self.known.insert(start, new);
        if over.iter().any(|known| known.identity == identity) {
            self.zone.was_there(&identity, poll.now());
            return 0;
        }
        let replaced: Vec<_> = over.iter().map(|known| known.identity).collect();
        let seen = SeenCode {
            identity,
            start,
            end,
        };
        let names = &self.names;
        self.zone
            .found(poll, seen, &replaced, |identity, constituent, _| {
                fill(constituent, identity, names);
            });
        1 + replaced.len()
    }
}
