//! Pc maps of sampled code. Those of optimised code are in [`super::optimised`].

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, MAX_TOUCHED_OF_A_POLL, Poll, ProcessView};
use vmscope_records::{Avma, PcMap, Stream};

use super::{Known, Reader, V8Adapter};
use crate::code::{Code, Kind};
use crate::sparkplug;

/// Maximum bytes of a table.
pub(super) const MAX_TABLE: usize = 64 << 20;

/// Maximum number of sampled addresses that wait for their map.
const MAX_WAITING: usize = 4 * MAX_TOUCHED_OF_A_POLL;

/// What is known about maps.
#[derive(Debug, Default)]
pub(super) struct Maps {
    /// Sampled addresses without a search so far.
    waiting: FxHashSet<Avma>,
    /// Sampled addresses of code whose function a later poll reads.
    later: Vec<Avma>,
    /// Whether a limit tells of damage.
    has_told: bool,
}

impl Maps {
    /// Adds sampled addresses. A failed poll leaves them to the next poll.
    pub fn touched(&mut self, poll: &mut Poll) {
        let mut too_many = 0;
        for at in poll.touched() {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.insert(*at);
            } else {
                too_many += 1;
            }
        }
        if too_many > 0 {
            poll.lost(Stream::Adapter, too_many, poll.began());
        }
    }
}

impl Maps {
    /// Keeps sampled addresses for the next poll.
    pub fn keep(&mut self, at: impl Iterator<Item = Avma>) {
        self.later.extend(at.take(MAX_WAITING));
    }

    /// Whether `is_it` accepts some sampled address that waits.
    pub fn any_waits(&self, is_it: impl Fn(Avma) -> bool) -> bool {
        self.waiting.iter().any(|at| is_it(*at))
    }

    /// Takes the sampled addresses that `is_it` accepts.
    pub fn take_waiting(&mut self, is_it: impl Fn(Avma) -> bool) -> Vec<Avma> {
        let taken: Vec<Avma> = self
            .waiting
            .iter()
            .copied()
            .filter(|at| is_it(*at))
            .collect();
        for at in &taken {
            self.waiting.remove(at);
        }
        taken
    }

    /// Sampled addresses that wait, ascending.
    pub fn waiting(&self) -> Vec<Avma> {
        let mut waiting: Vec<Avma> = self.waiting.iter().copied().collect();
        waiting.sort_unstable();
        waiting
    }
}

impl V8Adapter {
    /// Reports the maps of sampled code without a map, as far as there is time.
    pub(super) fn tell_maps(
        &mut self,
        process: &ProcessView,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let later = self.maps.later.drain(..).collect();
        let waiting = std::mem::replace(&mut self.maps.waiting, later);
        let mut hit: Vec<Avma> = waiting.iter().filter_map(|at| self.unmapped(*at)).collect();
        hit.sort_unstable();
        hit.dedup();
        for start in hit {
            if poll.spare().is_zero() {
                self.maps.waiting.insert(start);
                continue;
            }
            poll.spending(|poll| self.tell_map(start, process, reader, poll))?;
        }
        Ok(())
    }

    /// First address of the code at `at` without a map. `None` for code that never has maps.
    fn unmapped(&self, at: Avma) -> Option<Avma> {
        let (start, known) = self.known.range(..=at).next_back()?;
        let can_have = matches!(
            known.code.kind,
            Kind::Baseline | Kind::Maglev | Kind::Turbofan
        );
        (at < known.code.end && can_have && !known.is_mapped).then_some(*start)
    }

    fn tell_map(
        &mut self,
        start: Avma,
        process: &ProcessView,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let Some(known_code) = self.known.get(&start).cloned() else {
            return Ok(());
        };
        let Known { code, identity, .. } = known_code;
        let mut map = self.map(&code, process, reader, poll);
        if matches!(&map, Err(error) if !error.is_final()) {
            // The poll's pages are of different times.
            let cached = std::mem::replace(&mut reader.heap, reader.direct);
            map = self.map(&code, process, reader, poll);
            reader.heap = cached;
        }
        // V8 may have freed or moved the objects since vmscope read the list of code.
        if !code.is_still(&reader.direct)? {
            self.maps.waiting.insert(start);
            return Ok(());
        }
        let map = match map {
            Err(error) if error.is_final() => return Err(error),
            Err(AdapterError::Busy { .. }) => {
                self.maps.waiting.insert(start);
                return Ok(());
            }
            // A collection has freed the code, and V8 uses the place of its map again.
            Err(_) if !self.is_fresh(&known_code) => PcMap::None,
            // V8 may free a map before the code; then a later poll finds no code.
            Err(_) if !self.is_unmoved(process, reader)? || !self.zone.is_in_use(&identity) => {
                self.maps.waiting.insert(start);
                return Ok(());
            }
            Err(error) => {
                poll.lost(Stream::Adapter, 1, poll.began());
                if !std::mem::replace(&mut self.maps.has_told, true) {
                    let text = format!("some code has no bytecodes and lines: {}", error.in_full());
                    self.limit(&text, poll);
                }
                PcMap::None
            }
            Ok(map) => map,
        };
        let inlined = self.inlined(&code, reader, poll)?;
        if let Some(known) = self.known.get_mut(&start) {
            known.is_mapped = true;
            known.inlined = inlined.unwrap_or(0);
        }
        if map != PcMap::None {
            self.tell_again(&identity, map, poll);
        }
        Ok(())
    }

    fn map(
        &mut self,
        code: &Code,
        process: &ProcessView,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<PcMap, AdapterError> {
        match code.kind {
            Kind::Baseline => self.boundaries(code, process, reader, poll),
            _ => self.covers(code, process, reader, poll),
        }
    }

    /// Map of Sparkplug's code.
    fn boundaries(
        &mut self,
        code: &Code,
        process: &ProcessView,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<PcMap, AdapterError> {
        let whole = match self.owner(code.data, reader, poll.now())? {
            Some(info) => self.whole(info, process, reader, poll)?,
            // A later poll reads the functions of new scripts.
            None if !reader.has_new_owners && !reader.has_owners => {
                return Err(AdapterError::Busy { what: "functions" });
            }
            None => None,
        };
        let Some(set) = self.instructions(process, reader, poll)? else {
            return Ok(PcMap::None);
        };
        let what = "Sparkplug's bytecodes";
        let table = reader.heap.bytes(code.positions, MAX_TABLE, what)?;
        let bytecodes = reader.heap.bytecodes(code.data)?;
        // Another function has an equal name and place, and this listing.
        if whole.is_some_and(|whole| whole.size != 0 && whole.size != bytecodes.len()) {
            return Ok(PcMap::None);
        }
        let instructions = set.instructions(&bytecodes).map_while(Result::ok);
        let map = sparkplug::map(&table, instructions.map(|it| it.pc), code.size());
        map.map_err(|error| damaged(error, code))
    }
}

pub(super) fn damaged(error: impl std::fmt::Display, code: &Code) -> AdapterError {
    AdapterError::Damaged {
        what: "code",
        why: error.to_string(),
        at: code.start,
    }
}
