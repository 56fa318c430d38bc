//! Code that samples hit, between two readings of all code.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, MapEntry, Poll, ProcessView, SeenCode};
use vmscope_records::{Avma, GoneReason, TimeNs};

use super::{Known, Reader, V8Adapter};
use crate::code::{self, Code};
use crate::unwind::FrameCode;
use crate::vm::V8;

/// Bits of an address within a page of V8, 256 KiB.
const PAGE_BITS: u32 = 18;

/// Pause in nanoseconds before an old list of mappings is read again for the same pages.
const PAGES_LAST: u64 = 100_000_000;

/// Pages whose mappings were read after a sample there.
#[derive(Debug, Default)]
pub(super) struct CheckedPages {
    pages: FxHashSet<u64>,
    since: TimeNs,
}

impl V8Adapter {
    /// Reads the code of waiting samples; returns the number of changes. Known code is checked, new code is
    /// read.
    pub(super) fn read_hits(
        &mut self,
        (process, vm): (&ProcessView, &V8),
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<usize, AdapterError> {
        let place = (reader.tables, reader.first()?);
        let (gone, new) = self.check(process, reader, poll)?;
        let streams = vm.streams_at(process, &reader.direct, place, &new)?;
        let mut codes = code::describe(&reader.direct, &streams)?;
        codes.retain(|code| !hits(code, &new).is_empty());
        codes.sort_by_key(|code| code.start);
        let found = self.identify((&codes, &new), reader, poll)?;
        self.check_unmoved(process, reader)?;
        let mut changes = 0;
        for known in found {
            changes += self.take_hit(known, poll);
        }
        self.keep_later(&codes, &new);
        for code in gone {
            let is_there = self.known.get(&code.start);
            if let Some(known) = is_there.filter(|known| known.code == code).cloned() {
                self.known.remove(&code.start);
                self.frames.take(code.start.0..code.end.0);
                self.zone.went(poll, &known.identity, GoneReason::Freed);
                changes += 1;
            }
        }
        Ok(changes)
    }

    /// Keeps the samples of `codes` without a function so far.
    pub(super) fn keep_later(&mut self, codes: &[Code], addresses: &[Avma]) {
        for code in codes {
            if !self.known.contains_key(&code.start) {
                self.maps.keep(hits(code, addresses).iter().copied());
            }
        }
    }

    /// Checks the known code that samples hit. Returns code that is no longer there, and addresses
    /// (ascending) whose code must be read.
    fn check(
        &mut self,
        process: &ProcessView,
        reader: &Reader<'_>,
        poll: &Poll,
    ) -> Result<(Vec<Code>, Vec<Avma>), AdapterError> {
        let (mut hit, mut new): (Vec<Known>, Vec<Avma>) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        for at in self.maps.waiting() {
            if let Some(known) = self.at(at) {
                places.push((at, known.code.start));
                if hit.last().is_none_or(|last| last.code != known.code) {
                    hit.push(known.clone());
                }
                continue;
            }
            new.push(at);
        }
        let mappings = process.mappings();
        let is_new_page = |at: &&Avma| self.is_new_page(**at, &mappings);
        let pages: Vec<u64> = new.iter().filter(is_new_page).map(page).collect();
        if !pages.is_empty() {
            // If the mappings are unreadable, the process has ended, and so says the next read.
            let _ = process.refresh();
        }
        self.checked.put(pages, poll.began());
        let mappings = process.mappings();
        new.retain(|at| is_generated(*at, &mappings));
        let present = code::present(&reader.direct, hit.iter().map(|known| &known.code))?;
        let (mut gone, mut unsure) = (Vec::new(), Vec::new());
        for known in &hit {
            let is_there = present.contains(&known.code);
            if is_there && self.is_fresh(known) && !known.is_unsampled() {
                self.zone.was_there(&known.identity, poll.now());
                continue;
            }
            unsure.push(known.code.start);
            if !is_there {
                gone.push(known.code);
            }
        }
        let again = places.into_iter();
        let again = again.filter(|(_, start)| unsure.contains(start));
        new.extend(again.map(|(at, _)| at));
        new.sort_unstable();
        Ok((gone, new))
    }

    /// Whether samples hit code that no poll has read since the last collection.
    pub(super) fn has_unread(&self, process: &ProcessView) -> bool {
        let mappings = process.mappings();
        self.maps.any_waits(|at| match self.at(at) {
            Some(known) => !self.is_fresh(known) || known.is_unsampled(),
            None if self.wasm.covers(at) => self.wasm.lacks(at, self.states.died_until()),
            None => is_generated(at, &mappings) || self.is_new_page(at, &mappings),
        })
    }

    /// Whether this address needs a new list of mappings: V8 makes pages of reserved memory
    /// executable.
    fn is_new_page(&self, at: Avma, mappings: &[MapEntry]) -> bool {
        let page = page(&at);
        let is_reserved = |entry: &MapEntry| entry.name.is_empty() && !entry.readable;
        page != 0
            && !self.checked.pages.contains(&page)
            && MapEntry::find(mappings, at).is_none_or(is_reserved)
    }

    /// Known code with this pc or return address.
    pub(super) fn at(&self, at: Avma) -> Option<&Known> {
        let (_, known) = self.known.range(..=at).next_back()?;
        (at <= known.code.end).then_some(known)
    }

    /// Reports sampled code, which replaces known code in its place. Returns the number of changes.
    fn take_hit(&mut self, new: Known, poll: &mut Poll) -> usize {
        let (start, end) = (new.code.start, new.code.end);
        let over = take_overlapping(&mut self.known, (start, end), |known| known.code.end);
        let identity = new.identity;
        let is_same = over.iter().any(|known| known.identity == identity);
        for Known { code, .. } in over.iter().filter(|one| one.code != new.code) {
            self.frames.take(code.start.0..code.end.0);
        }
        self.frames.put(&FrameCode::from(&new.code));
        self.known.insert(start, new);
        if is_same {
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
                names.describe(identity, constituent);
            });
        1 + replaced.len()
    }
}

/// Takes the pieces of code that overlap `start..end` out of `known`, which has them by their first addresses.
pub(super) fn take_overlapping<T>(
    known: &mut BTreeMap<Avma, T>,
    (start, end): (Avma, Avma),
    end_of: impl Fn(&T) -> Avma,
) -> Vec<T> {
    let before = known.range(..end).rev();
    let over = before.take_while(|(_, one)| end_of(one) > start);
    let over: Vec<Avma> = over.map(|(at, _)| *at).collect();
    over.iter().filter_map(|at| known.remove(at)).collect()
}

/// Those of `addresses` (ascending) that are pcs in `code` or return addresses to it.
pub(super) fn hits<'a>(code: &Code, addresses: &'a [Avma]) -> &'a [Avma] {
    let from = addresses.partition_point(|at| *at < code.start);
    let to = addresses.partition_point(|at| *at <= code.end);
    addresses.get(from..to).unwrap_or_default()
}

fn page(at: &Avma) -> u64 {
    at.0 >> PAGE_BITS
}

impl CheckedPages {
    fn put(&mut self, pages: Vec<u64>, now: TimeNs) {
        if now.since(self.since).0 > PAGES_LAST {
            self.since = now;
            self.pages.clear();
        }
        self.pages.extend(pages);
    }
}

/// Whether a mapping of generated code contains this address. Samples bring addresses of data, too.
fn is_generated(at: Avma, mappings: &[MapEntry]) -> bool {
    let entry = MapEntry::find(mappings, at);
    entry.is_some_and(MapEntry::is_for_generated_code)
}
