//! Positions of return addresses by the records alone: a call's record is exact, so a caller needs no
//! search. Callers are looked up inside the call, one byte before the return address.

use std::ops::Range;

use rustc_hash::FxHashMap;
use vmscope_records::Exactness;

use super::full::{CALL_BYTES, is_after_call};
use super::{Map, NamedBy, Piece, covers};
use crate::code::{Nmethod, PcDesc};

/// Record of the call that returns to `offset`.
fn record_at(nmethod: &Nmethod, offset: u32) -> Option<&PcDesc> {
    let pc = i32::try_from(offset).ok()?;
    let found = nmethod.pcs.binary_search_by_key(&pc, |record| record.pc);
    let record = nmethod.pcs.get(found.ok()?)?;
    let is_inside = usize::try_from(offset).is_ok_and(|at| at <= nmethod.code.len());
    (is_inside && is_after_call(nmethod, record)).then_some(record)
}

/// Divides sampled addresses into return addresses with a call's record, and all others.
pub fn split(nmethod: &Nmethod, hits: &[u32]) -> (Vec<u32>, Vec<u32>) {
    hits.iter()
        .partition(|hit| record_at(nmethod, **hit).is_some())
}

/// Cuts off what lies before `end`, and moves `end` on. Returns whether anything is left.
fn cut(range: &mut Range<u32>, end: &mut u32) -> bool {
    range.start = range.start.max(*end);
    *end = range.end.max(*end);
    range.start < range.end
}

impl Map {
    /// Whether the map covers return addresses with records only.
    #[must_use]
    pub fn is_of_records(&self) -> bool {
        self.covered.iter().all(|range| range.len() <= CALL_BYTES)
    }

    /// Adds return addresses (ascending) with records that the map does not cover.
    pub(super) fn add_recorded(&mut self, nmethod: &Nmethod, returns: &[u32]) {
        let new: Vec<u32> = (returns.iter().copied())
            .filter(|at| !covers(&self.covered, *at))
            .collect();
        let mut numbers: FxHashMap<u32, Option<u32>> = FxHashMap::default();
        for at in new {
            // The pcs behind the call's begin.
            let end = at.saturating_add(1);
            let own = Range {
                start: end.saturating_sub(CALL_BYTES as u32),
                end,
            };
            self.covered.push(own.clone());
            let scope = record_at(nmethod, at).map(|record| record.scope);
            let number = scope.and_then(|scope| {
                *numbers.entry(scope).or_insert_with(|| {
                    let chain = nmethod
                        .chain(scope)
                        .ok()
                        .filter(|chain| !chain.is_empty())?;
                    self.chains.push(chain);
                    u32::try_from(self.chains.len() - 1).ok()
                })
            });
            let Some(chain) = number else {
                continue;
            };
            self.pieces.push(Piece {
                start: own.start,
                end: own.end,
                chain,
                exactness: Exactness::Exact,
                named_by: NamedBy::Record,
            });
        }
        // A byte before a record may only look like a call: then the pieces reach into others.
        self.covered.sort_unstable_by_key(|range| range.end);
        let mut end = 0;
        self.covered.retain_mut(|range| cut(range, &mut end));
        self.pieces.sort_unstable_by_key(|piece| piece.end);
        let mut end = 0;
        self.pieces.retain_mut(|piece| {
            let mut range = piece.start..piece.end;
            let is_left = cut(&mut range, &mut end);
            piece.start = range.start;
            is_left
        });
    }
}
