//! Reads between two readings of the whole code cache: of code at sampled addresses, and of code that
//! may die.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, Poll, cpu_time};
use vmscope_records::{Avma, GoneReason};

use super::super::describe::{KnownFrom, describe};
use super::super::methods::Methods;
use super::{CodeId, DEAD, NOT_INSTALLED, Zone, is_living, seen_code};
use crate::code::{Blob, FoundNmethod, HeapBounds, Nmethod, NmethodId, NmethodState};
use crate::pages::Pages;

/// Maximum number of nmethods that one poll finds by sampled addresses: many times the samples of
/// a poll's pause on a few processors. The next reading finds the rest.
const MAX_HIT: usize = 256;

/// Minimum pause between two comparisons of nmethods without new calls, as a multiple of their CPU
/// time.
const COMPARE_FACTOR: u32 = 300;

impl Zone {
    /// Reads the code at sampled addresses, and reports new code at once: until the next reading of
    /// the whole code cache, the VM may have freed the code. Known code is compared.
    ///
    /// # Errors
    /// Final errors of reads.
    pub fn read_hit(
        &mut self,
        touched: &[Avma],
        pages: &Pages<'_>,
        methods: &mut Methods,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let mut found: FxHashMap<NmethodId, FoundNmethod> = FxHashMap::default();
        let mut known: FxHashSet<NmethodId> = FxHashSet::default();
        let mut unknown: Vec<Avma> = Vec::new();
        let never_dies = self.signs.is_some_and(|signs| signs.are_deaths);
        for at in touched {
            match self.code_at(*at) {
                Some(CodeId::Routine(..)) => {}
                Some(CodeId::Nmethod(id)) => {
                    known.insert(id);
                }
                None => unknown.push(*at),
            }
        }
        if !never_dies {
            let known: Vec<NmethodId> = known.into_iter().collect();
            let time = poll.now();
            let mut gone: FxHashSet<NmethodId> = FxHashSet::default();
            for (id, state) in self.states_of(&known, pages)? {
                match state {
                    NmethodState::Present(_) => self.known.was_there(&CodeId::Nmethod(id), time),
                    NmethodState::Gone | NmethodState::Unreadable => {
                        gone.insert(id);
                    }
                }
            }
            let is_gone = |at: &&Avma| match self.code_at(**at) {
                Some(CodeId::Nmethod(id)) => gone.contains(&id),
                _ => false,
            };
            unknown.extend(touched.iter().filter(is_gone));
        }
        for at in unknown {
            let holds = |heap: &&HeapBounds| heap.low <= at && at < heap.reserved_end;
            let Some(heap) = self.heaps.iter().find(holds) else {
                continue;
            };
            if found.len() >= MAX_HIT {
                break;
            }
            match self.cache.nmethod_at(heap, at, pages) {
                Ok(Some(nmethod))
                    if nmethod.state != NOT_INSTALLED && !self.dead.contains(&nmethod.id) =>
                {
                    found.insert(nmethod.id, nmethod);
                }
                Err(error) if error.is_final() => return Err(error),
                _ => {}
            }
        }
        found.retain(|id, _| self.nmethods.wants(id));
        if found.is_empty() {
            return Ok(());
        }
        // What the new code refers to is newer than earlier reads.
        pages.renew();
        for (id, nmethod) in found {
            let layout = self.cache.layout();
            match layout.read_nmethod(nmethod.blob, &nmethod.bytes, pages) {
                // The VM is just unloading the method: the next reading finds out.
                Ok(nmethod) if nmethod.method.0 == 0 => {}
                Ok(nmethod) => self.take_found(id, nmethod, pages, methods, poll),
                Err(error) if error.is_final() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Compares nmethods without new calls, and reports the end of those that are dead or gone. The
    /// VM may give their memory to other code before the next reading.
    ///
    /// # Errors
    /// Final errors of reads.
    pub fn read_not_entrant(
        &mut self,
        pages: &Pages<'_>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        if self.not_entrant.is_empty() || Instant::now() < self.compare_not_before {
            return Ok(());
        }
        let before = cpu_time();
        let time = poll.now();
        let mut gone: FxHashSet<CodeId> = FxHashSet::default();
        for (id, state) in self.states_of(&self.not_entrant, pages)? {
            let identity = CodeId::Nmethod(id);
            match state {
                NmethodState::Present(state) if state < DEAD => {
                    self.known.was_there(&identity, time);
                    continue;
                }
                NmethodState::Unreadable => continue,
                NmethodState::Present(_) => {
                    self.dead.insert(id);
                }
                NmethodState::Gone => {}
            }
            self.known.went(poll, &identity, GoneReason::Unloaded);
            self.nmethods.went(&id, poll.began());
            gone.insert(identity);
        }
        if !gone.is_empty() {
            self.covered
                .retain(|(.., identity)| !gone.contains(identity));
            self.not_entrant
                .retain(|id| !gone.contains(&CodeId::Nmethod(*id)));
        }
        let pause = cpu_time()
            .saturating_sub(before)
            .saturating_mul(COMPARE_FACTOR);
        self.compare_not_before = Instant::now() + pause;
        Ok(())
    }

    fn states_of(
        &self,
        ids: &[NmethodId],
        pages: &Pages<'_>,
    ) -> Result<Vec<(NmethodId, NmethodState)>, AdapterError> {
        let blob = |id: &NmethodId| Some((*id, self.nmethods.get(id)?.nmethod.blob));
        let known: Vec<(NmethodId, Blob)> = ids.iter().filter_map(blob).collect();
        let states = self.cache.states_of(&known, pages.memory());
        let states = states.map_err(AdapterError::reading("code heap"))?;
        Ok(known.into_iter().map(|(id, _)| id).zip(states).collect())
    }

    /// Reports an nmethod found between two readings, in the place of what it overlaps.
    fn take_found(
        &mut self,
        id: NmethodId,
        nmethod: Nmethod,
        pages: &Pages<'_>,
        methods: &mut Methods,
        poll: &mut Poll,
    ) {
        let seen = seen_code(CodeId::Nmethod(id), &nmethod.blob);
        let after = self
            .covered
            .partition_point(|(start, ..)| *start < seen.end);
        let before = self.covered.get(..after).unwrap_or_default().iter().rev();
        // Code does not overlap other code.
        let count = before.take_while(|(_, end, _)| *end > seen.start).count();
        let place = (seen.start, seen.end, seen.identity);
        let replaced = self.covered.splice(after - count..after, [place]);
        let replaced: Vec<CodeId> = replaced.map(|(.., identity)| identity).collect();
        let gone = replaced.iter().filter_map(|identity| match identity {
            CodeId::Nmethod(id) => Some(*id),
            CodeId::Routine(..) => None,
        });
        let gone: Vec<NmethodId> = gone.collect();
        self.nmethods.put_found(nmethod, &gone, poll.began());
        self.came += 1;
        let (nmethods, cache) = (&mut self.nmethods, &self.cache);
        self.known
            .found(poll, seen, &replaced, |_, constituent, poll| {
                if let Some(kept) = nmethods.get_mut(&id) {
                    describe(kept, constituent, KnownFrom::Memory(pages), methods, poll);
                    // Its class may have died before its methods were read.
                    if !is_living(cache, &kept.nmethod, pages) {
                        describe(kept, constituent, KnownFrom::Nothing, methods, poll);
                    }
                }
            });
    }
}
