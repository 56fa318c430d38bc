//! One reading of the code cache: which code is there. Reports come later.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, CodeZone, SeenCode};
use vmscope_records::{Avma, ConstituentKind};

use super::super::budget::Budget;
use super::super::describe::{outermost, routines_of};
use super::super::figures::Counts;
use super::super::kept::Nmethods;
use super::{
    CodeId, DEAD, MAX_NOT_ENTRANT, NOT_ENTRANT, NOT_INSTALLED, Other, READINGS, Zone, seen_code,
};
use crate::code::{Blob, BlobKind, CodeLayout, Found, HeapBounds, NmethodId};
use crate::pages::Pages;
use crate::stubs::{DISPATCH_STUBS, DispatchStubs, Routine};

/// Code of one reading.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// All code: of this reading, or of earlier readings where this reading skipped or lost a part.
    pub seen: Vec<SeenCode<CodeId>>,
    /// Kinds and names of new routines.
    pub routines: FxHashMap<CodeId, (ConstituentKind, String)>,
    pub counts: Counts,
    /// See [`DEAD`].
    pub dead: FxHashSet<NmethodId>,
    /// See [`NOT_ENTRANT`].
    pub not_entrant: Vec<NmethodId>,
    /// New nmethods whose methods the VM has unloaded.
    pub unloaded: FxHashSet<NmethodId>,
    /// Memory of vtable and itable stubs.
    pub dispatch_in: Vec<(Avma, Avma)>,
    /// Number of nmethods that the VM freed during their reads, or that exceed the budget.
    pub torn: u64,
    /// Number of unreadable ranges of the code cache.
    pub unread: usize,
    /// Whether the reading has all code.
    pub is_whole: bool,
}

/// Takes the code that a walk over the code cache finds.
struct Taker<'z> {
    layout: &'z CodeLayout,
    /// Memory of nmethods' data outside the code cache.
    elsewhere: &'z Budget<'z>,
    nmethods: &'z mut Nmethods,
    others: &'z mut FxHashMap<Avma, Other>,
    known: &'z CodeZone<CodeId>,
    dead_before: &'z FxHashSet<NmethodId>,
    codelets: &'z [Routine],
    stubs: &'z [(Avma, String)],
    dispatch: &'z DispatchStubs,
    is_first: bool,
    has_sweeper: bool,
    reading: Reading,
    /// First addresses of all nmethods, and of the code of other blobs.
    nmethods_at: Vec<Avma>,
    others_at: FxHashSet<Avma>,
    failure: Option<AdapterError>,
}

impl Taker<'_> {
    fn take(&mut self, found: Found<'_>) {
        match found {
            Found::Nmethod {
                id,
                state,
                blob,
                bytes,
            } => self.take_nmethod(id, state, (blob, bytes)),
            Found::Other {
                blob,
                kind,
                name,
                bytes,
            } => self.take_other(blob, kind, name, bytes),
        }
    }

    fn take_nmethod(&mut self, id: NmethodId, state: i8, (blob, bytes): (Blob, &[u8])) {
        let reading = &mut self.reading;
        self.nmethods_at.push(blob.at);
        if state >= DEAD {
            reading.dead.insert(id);
            let was_alive = self.known.get(&CodeId::Nmethod(id)).is_some();
            if self.is_first || was_alive || self.dead_before.contains(&id) {
                reading.counts.used += u64::from(blob.size);
                return;
            }
        } else if state == NOT_ENTRANT
            && self.has_sweeper
            && reading.not_entrant.len() < MAX_NOT_ENTRANT
        {
            reading.not_entrant.push(id);
        }
        if self.nmethods.wants(&id) {
            if state == NOT_INSTALLED {
                return;
            }
            let read = self.layout.read_nmethod(blob, bytes, self.elsewhere);
            if self.elsewhere.is_spent() {
                reading.torn += 1;
                return;
            }
            match read {
                // The VM unloaded the method, but has not reused the nmethod's memory yet.
                Ok(mut nmethod) if nmethod.method.0 == 0 && self.layout.tells_methods() => {
                    nmethod.method = outermost(&nmethod).unwrap_or(nmethod.method);
                    reading.unloaded.insert(id);
                    self.nmethods.put(nmethod);
                    if let Some(kept) = self.nmethods.get_mut(&id) {
                        kept.is_dead = true;
                    }
                }
                Ok(nmethod) => self.nmethods.put(nmethod),
                Err(error) if error.is_final() => self.failure = Some(error),
                // The VM freed the nmethod during the read.
                Err(_) => {
                    reading.torn += 1;
                    return;
                }
            }
        }
        reading.counts.used += u64::from(blob.size);
        if let Some(kept) = self.nmethods.get(&id) {
            reading.counts.method(&kept.nmethod);
        }
        reading.seen.push(seen_code(CodeId::Nmethod(id), &blob));
    }

    fn take_other(&mut self, blob: Blob, kind: BlobKind, name: &str, bytes: &[u8]) {
        let reading = &mut self.reading;
        reading.counts.used += u64::from(blob.size);
        reading.counts.others += 1;
        self.others_at.insert(blob.code_begin);
        let has_dispatch = name == DISPATCH_STUBS;
        // The VM adds stubs to such a blob.
        let other = self.others.get(&blob.code_begin);
        let other = other.filter(|(end, name, _)| {
            !has_dispatch && *end == blob.code_end && *name == blob.name_at
        });
        if let Some((_, _, parts)) = other {
            reading.seen.extend(parts.iter().filter_map(seen_routine));
            return;
        }
        let found = match has_dispatch {
            true => {
                reading.dispatch_in.push((blob.code_begin, blob.code_end));
                let code = blob.code_begin.0.wrapping_sub(blob.at.0);
                let code = usize::try_from(code).ok();
                let code = code.and_then(|code| bytes.get(code..));
                let stubs = self
                    .dispatch
                    .within(blob.code_begin, code.unwrap_or_default());
                let stubs = stubs.into_iter();
                stubs.map(|stub| (ConstituentKind::Stub, stub)).collect()
            }
            false => routines_of(&blob, kind, name, self.codelets, self.stubs),
        };
        let mut parts = Vec::new();
        for (kind, routine) in found {
            let identity = CodeId::Routine(routine.start, routine.end);
            parts.push(identity);
            reading.routines.insert(identity, (kind, routine.name));
        }
        reading.seen.extend(parts.iter().filter_map(seen_routine));
        let other = (blob.code_end, blob.name_at, parts);
        self.others.insert(blob.code_begin, other);
    }
}

impl Zone {
    /// Reads the code cache. `has_sweeper`: whether the VM frees code between collections.
    ///
    /// # Errors
    /// Failed reads of the code cache; final errors.
    pub(super) fn read(
        &mut self,
        pages: &Pages<'_>,
        (is_last, has_sweeper): (bool, bool),
    ) -> Result<Reading, AdapterError> {
        let skipped = if is_last || self.readings.is_multiple_of(READINGS) {
            Vec::new()
        } else {
            std::mem::take(&mut self.without_methods)
        };
        self.readings = self.readings.wrapping_add(1);
        let layout = self.cache.layout().clone();
        let elsewhere = Budget::new(pages, self.max_elsewhere);
        let mut taker = Taker {
            layout: &layout,
            elsewhere: &elsewhere,
            nmethods: &mut self.nmethods,
            others: &mut self.others,
            known: &self.known,
            dead_before: &self.dead,
            codelets: &self.codelets,
            stubs: &self.stubs,
            dispatch: &self.dispatch,
            is_first: self.heaps.is_empty(),
            has_sweeper,
            reading: Reading::default(),
            nmethods_at: Vec::new(),
            others_at: FxHashSet::default(),
            failure: None,
        };
        let wanted = |heap: &HeapBounds| !skipped.contains(heap);
        let read = self
            .cache
            .read_some(pages, wanted, |found| taker.take(found));
        let Taker {
            mut reading,
            mut nmethods_at,
            others_at,
            failure,
            ..
        } = taker;
        self.heaps = read?;
        if let Some(error) = failure {
            return Err(error);
        }
        let unread = self.cache.unread();
        reading.unread = unread.len();
        reading.is_whole = unread.is_empty() && !elsewhere.is_spent();
        // Unread ranges keep their earlier contents.
        for (low, high) in unread {
            for kept in self.nmethods.between(*low, *high) {
                let blob = &kept.nmethod.blob;
                nmethods_at.push(blob.at);
                reading.counts.used += u64::from(blob.size);
                reading.counts.method(&kept.nmethod);
                let identity = CodeId::Nmethod(kept.nmethod.id);
                reading.seen.push(seen_code(identity, blob));
            }
        }
        let skipped = skipped.iter().map(|heap| (heap.low, heap.high));
        let skipped: Vec<(Avma, Avma)> = skipped.chain(unread.iter().copied()).collect();
        let is_skipped = |at: Avma| (skipped.iter()).any(|(low, high)| *low <= at && at < *high);
        self.others
            .retain(|at, _| others_at.contains(at) || is_skipped(*at));
        for (low, high) in &skipped {
            for (at, (end, _, parts)) in &self.others {
                if low <= at && at < high && !others_at.contains(at) {
                    reading.counts.used += end.0.saturating_sub(at.0);
                    reading.counts.others += 1;
                    reading.seen.extend(parts.iter().filter_map(seen_routine));
                }
            }
        }
        nmethods_at.sort_unstable();
        let has_methods = |heap: &&HeapBounds| {
            let first = nmethods_at.partition_point(|at| *at < heap.low);
            nmethods_at.get(first).is_some_and(|at| *at < heap.high)
        };
        let without = self.heaps.iter().filter(|heap| !has_methods(heap));
        self.without_methods = without.copied().collect();
        Ok(reading)
    }
}

fn seen_routine(identity: &CodeId) -> Option<SeenCode<CodeId>> {
    match *identity {
        CodeId::Routine(start, end) => Some(SeenCode {
            identity: *identity,
            start,
            end,
        }),
        CodeId::Nmethod(_) => None,
    }
}
