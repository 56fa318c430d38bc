//! State of an isolate with its collector: V8's activity, numbers of collections, V8's two newest
//! collections (`GCTracer`).

pub(crate) mod learn;
pub mod search;

use vmscope_process::{AdapterError, Memory, read_words};
use vmscope_records::{Avma, TimeNs};

use crate::isolate::{Isolate, Tables};
use crate::versions::{CollectorFields, FigureFields, MarkingField, PauseFields};

/// Bytes of each piece that a look reads. An event with its times fits, and a ring.
const PIECE: usize = 232;

/// Pieces of a look. Counters and current event are read again at its end.
const PIECES: usize = 12;

/// Elements of a ring: bytes and milliseconds each. First element's index and number of elements
/// follow.
const RING: usize = 10;

/// Reads of an isolate's own address: offset of the word that repeats it.
const SELF: usize = 8;

/// Fields of an event, which begins after its tracer's first word.
const TYPE: usize = 8;
const STATE: usize = 12;
const REASON: usize = 16;

/// Fields of an event, from the begin's offset: end; objects before and after; memory after. Sizes
/// are in bytes.
const END: usize = 8;
const OBJECTS: usize = 24;
const MEMORY_AFTER: usize = 48;

/// Places of one isolate.
#[derive(Clone, Debug)]
pub struct Collector {
    /// The isolate.
    pub isolate: Isolate,
    /// Its number in the process: 0 for the main thread's.
    pub number: u32,
    /// Its heap.
    pub heap: Avma,
    mark: Mark,
    /// Begin of the newest mark-compact that looks have seen.
    newest_move: TimeNs,
    pieces: [Avma; PIECES],
    begin: usize,
    has_milliseconds: bool,
    has_state: bool,
    has_counts: bool,
    figures: Option<FigureFields>,
}

/// A value that tells an isolate from a later one at its address.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// Address of the isolate's number: V8 uses each number once.
    Number(Avma),
    /// Where the number is unknown, address of the pointer to its tracer, and the tracer.
    Tracer(Avma, Avma),
}

impl Mark {
    fn address(self) -> Avma {
        match self {
            Mark::Number(at) | Mark::Tracer(at, _) => at,
        }
    }
}

/// Kind of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of young objects.
    Scavenge,
    /// Of all objects.
    MarkCompact,
}

/// A collection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its kind.
    pub kind: Kind,
    /// Number of its cause.
    pub reason: u32,
    /// Begin of the pause.
    pub begin: TimeNs,
    /// End of the pause.
    pub end: TimeNs,
    /// Bytes of objects at begin and end.
    pub objects: (u64, u64),
    /// Bytes of memory after it.
    pub memory: u64,
    /// Bytes of surviving young objects, where their place is known.
    pub survived: Option<u64>,
    /// Whether marking came before the pause.
    pub is_incremental: bool,
    /// Begin of that marking, where V8 keeps it with the event.
    pub marking: Option<TimeNs>,
}

/// Durations of ended pauses in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pauses {
    /// Of all pauses since the isolate's start.
    Sum(u64),
    /// Of the newest scavenges, of the newest mark-compacts after marking, and of others.
    Rings(Box<[Ring; 3]>),
    /// Of a V8 of an unknown version.
    Unknown,
}

/// Durations of the newest pauses of a kind in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// Number of all pauses, modulo 10: index of the next duration.
    pub position: usize,
    /// Durations.
    pub durations: [u64; RING],
}

impl Ring {
    /// Number of pauses since an earlier ring, modulo 10, and their duration.
    #[must_use]
    pub fn since(&self, before: &Ring) -> (u64, u64) {
        let more = (self.position + RING - before.position) % RING;
        let newest = (1..=more).map(|back| (self.position + RING - back) % RING);
        let newest = newest.filter_map(|at| self.durations.get(at));
        let sum = newest.fold(0, |sum: u64, one| sum.saturating_add(*one));
        (more as u64, sum)
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Pauses::Sum(0)
    }
}

/// One isolate at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// V8's activity, by its number; `None` if V8 does not tell it.
    pub state: Option<u32>,
    /// Whether V8 marks objects while JavaScript runs.
    pub is_marking: bool,
    /// Number of mark-compacts since the isolate's start, the present one included.
    pub mark_compacts: u32,
    /// Number of collections, likewise.
    pub collections: u32,
    /// Whether the places of V8's counters are unknown: both numbers are 0 then.
    pub is_uncounted: bool,
    /// A number that changes with each mark-compact; without counters, with each collection, at its end, and `None`
    /// meanwhile.
    pub moves: Option<u32>,
    /// Durations of ended pauses.
    pub pauses: Pauses,
    /// Newest begin of marking, where V8 keeps it apart from events.
    pub marking: Option<TimeNs>,
    /// The newest ended collections, oldest first, at most two.
    pub events: Vec<Event>,
    /// Whether a collection is in progress.
    pub has_open: bool,
}

/// V8's number for its activity during a collection.
const COLLECTING: u32 = 1;

impl Look {
    /// Whether V8 has stopped JavaScript for a collection.
    #[must_use]
    pub fn is_collecting(&self) -> bool {
        self.state == Some(COLLECTING)
    }

    /// Whether V8 collects or marks objects, and so changes numbers of a collection.
    #[must_use]
    pub fn is_in_collection(&self) -> bool {
        self.has_open || self.is_collecting()
    }

    /// The last mark-compact; `None` during a collection, or if V8 no longer knows it. Without counters, any
    /// collection counts as a mark-compact: V8 may have forgotten a mark-compact before it.
    #[must_use]
    pub fn last_mark_compact(&self) -> Option<&Event> {
        let events = self.events.iter().filter(|_| !self.is_in_collection());
        let events = events.filter(|event| self.is_uncounted || event.kind == Kind::MarkCompact);
        events.max_by_key(|event| event.end)
    }
}

impl Collector {
    /// Places in `isolate` by `fields`. `order`: its number where V8's own is unknown.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] while the isolate starts; an implausible heap, for a V8 with another
    /// layout; failed reads.
    pub fn find(
        fields: CollectorFields,
        tables: &Tables,
        (isolate, order): (Isolate, u32),
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let figures = fields.figures;
        let at = |base: Avma, offset: u64| Avma(base.0.wrapping_add(offset));
        let reading = AdapterError::reading("collector");
        let (heap, tracer) = heap(isolate, fields, memory)?;
        let tracer_at = at(heap, fields.tracer);
        let mark = figures.map_or(Mark::Tracer(tracer_at, tracer), |figures| {
            Mark::Number(at(heap, figures.number))
        });
        let number = match mark {
            Mark::Number(at) => memory.read_u32(at),
            Mark::Tracer(..) => Ok(order),
        };
        let state = tables.state(isolate, memory)?;
        let marking = "heap_is_marking_flag_address";
        let marking = tables.reference(isolate, marking, memory)?;
        let counts = fields.counts.map_or(isolate.0, |counts| at(heap, counts));
        let pauses = match figures.map(|figures| figures.pauses) {
            Some(PauseFields::Sum(offset)) => [at(heap, offset); 3],
            Some(PauseFields::Rings(offsets)) => offsets.map(|offset| at(tracer, offset)),
            None => [isolate.0; 3],
        };
        Ok(Collector {
            isolate,
            number: number.map_err(&reading)?,
            heap,
            mark,
            newest_move: TimeNs(0),
            pieces: [
                isolate.0,
                counts,
                state.unwrap_or(isolate.0),
                marking.unwrap_or(isolate.0),
                pauses[0],
                pauses[1],
                pauses[2],
                match figures.map(|figures| figures.marking) {
                    Some(MarkingField::Tracer(offset)) => at(tracer, offset),
                    Some(MarkingField::Event(_)) | None => tracer,
                },
                tracer,
                at(tracer, fields.previous),
                counts,
                tracer,
            ],
            begin: usize::try_from(fields.begin).unwrap_or(0),
            has_milliseconds: fields.has_milliseconds,
            has_state: state.is_some(),
            has_counts: fields.counts.is_some(),
            figures,
        })
    }

    /// Sets the offset of V8's counters in a heap ([`learn`]).
    pub(crate) fn set_counts(&mut self, offset: u64) {
        let at = Avma(self.heap.0.wrapping_add(offset));
        let [_, counts, .., counts_after, _] = &mut self.pieces;
        (*counts, *counts_after) = (at, at);
        self.has_counts = true;
    }

    /// Whether the places of V8's counters are known.
    #[must_use]
    pub fn has_counts(&self) -> bool {
        self.has_counts
    }

    /// Whether V8 tells its activity.
    #[must_use]
    pub fn has_state(&self) -> bool {
        self.has_state
    }

    /// Whether the isolate still exists: a new worker may take its address.
    #[must_use]
    pub fn is_same(&self, memory: &dyn Memory) -> bool {
        let mark = memory.read_u64(self.mark.address());
        mark.is_ok_and(|mark| self.has_mark(mark))
    }

    fn has_mark(&self, word: u64) -> bool {
        match self.mark {
            Mark::Number(_) => word as u32 == self.number,
            Mark::Tracer(_, tracer) => word == tracer.0,
        }
    }

    /// Looks at all isolates at once. `None` for isolates that have ended, or began or ended a
    /// collection meanwhile. A new isolate at the address of an ended isolate gets `None`, too.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn look(
        all: &[&Collector],
        memory: &dyn Memory,
    ) -> Result<Vec<Option<Look>>, AdapterError> {
        let places: Vec<Avma> = all.iter().flat_map(|one| one.pieces).collect();
        let mut bytes = Vec::new();
        let read = memory.read_each(&places, PIECE, &mut bytes);
        let read = read.map_err(AdapterError::reading("collector"))?;
        let (pieces, _) = bytes.as_chunks::<PIECE>();
        let each = pieces.chunks(PIECES).zip(read.chunks(PIECES));
        // Marks come last. Equal marks prove that all pieces belong to the same isolate.
        let marks = marks(all, memory)?;
        let looks = all.iter().zip(each).zip(marks);
        let looks = looks.map(|((one, (pieces, read)), mark)| {
            let is_read = read.iter().all(|is_read| *is_read);
            let is_same = mark.is_some_and(|mark| one.has_mark(mark));
            (is_read && is_same).then(|| one.understand(pieces))?
        });
        Ok(looks.collect())
    }

    fn understand(&self, pieces: &[[u8; PIECE]]) -> Option<Look> {
        let [
            isolate,
            counts,
            state,
            is_marking,
            pauses,
            incremental,
            others,
            marking,
            current,
            previous,
            counts_after,
            current_after,
        ] = pieces
        else {
            return None;
        };
        let is_whole = word(isolate, SELF)? == self.isolate.0.0
            && word(current, 0)? == self.heap.0
            && word(counts, 0) == word(counts_after, 0)
            && current == current_after;
        if !is_whole {
            return None;
        }
        let mut events: Vec<Event> = [previous, current]
            .into_iter()
            .filter_map(|event| self.event(event))
            .collect();
        events.sort_by_key(|event| event.begin);
        // At a begin, V8 copies the current event before it writes a new one.
        events.dedup_by_key(|event| event.begin);
        let is_open = |event: &&[u8; PIECE]| half(event, STATE) == Some(ATOMIC);
        let [mark_compacts, collections] = match self.has_counts {
            true => [half(counts, 0)?, half(counts, 4)?],
            false => [0; 2],
        };
        let mut look = Look {
            state: half(state, 0).filter(|_| self.has_state),
            is_marking: is_marking.first() == Some(&1),
            mark_compacts,
            collections,
            is_uncounted: !self.has_counts,
            moves: None,
            pauses: match self.figures.map(|figures| figures.pauses) {
                Some(PauseFields::Sum(_)) => Pauses::Sum(word(pauses, 0)?.checked_mul(1000)?),
                Some(PauseFields::Rings(_)) => Pauses::Rings(Box::new([
                    self.ring(pauses)?,
                    self.ring(incremental)?,
                    self.ring(others)?,
                ])),
                None => Pauses::Unknown,
            },
            marking: match self.figures.map(|figures| figures.marking) {
                Some(MarkingField::Tracer(_)) => self.time(word(marking, 0)?),
                Some(MarkingField::Event(_)) | None => None,
            },
            events,
            has_open: [previous, current].iter().any(is_open),
        };
        look.moves = self.moves(&look);
        Some(look)
    }

    /// See [`Look::moves`].
    fn moves(&self, look: &Look) -> Option<u32> {
        if self.figures.is_some() {
            return Some(look.mark_compacts);
        }
        // The search may have found other numbers than V8's counters.
        let newest = (self.newest_move(&look.events).0 / 1000) as u32;
        let is_known = self.has_counts || !look.is_in_collection();
        is_known.then(|| look.mark_compacts.wrapping_add(newest))
    }

    /// Remembers the newest mark-compact of a look, which V8 forgets after two other collections.
    pub(crate) fn remember(&mut self, look: &Look) {
        self.newest_move = self.newest_move(&look.events);
    }

    /// Begin of the newest mark-compact, of `events` or earlier; without counters, of the newest collection.
    fn newest_move(&self, events: &[Event]) -> TimeNs {
        let is_move = |event: &&Event| !self.has_counts || event.kind == Kind::MarkCompact;
        let newest = events.iter().rfind(is_move);
        newest.map_or(self.newest_move, |event| event.begin.max(self.newest_move))
    }

    fn ring(&self, bytes: &[u8; PIECE]) -> Option<Ring> {
        let [first, count] = [0, 4].map(|at| half(bytes, RING * 16 + at));
        let (first, count) = (first? as usize, count? as usize);
        if first >= RING || count > RING {
            return None;
        }
        let mut durations = [0; RING];
        for (at, duration) in durations.iter_mut().enumerate().take(count) {
            *duration = self.time(word(bytes, at * 16 + 8)?)?.0;
        }
        Some(Ring {
            position: (first + count) % RING,
            durations,
        })
    }

    /// An event; `None` before the end of its pause.
    fn event(&self, bytes: &[u8; PIECE]) -> Option<Event> {
        let field = |offset: usize| word(bytes, self.begin + offset);
        let begin = self.time(field(0)?)?;
        let end = self.time(field(END)?)?;
        if begin.0 == 0 || end.0 < begin.0 {
            return None;
        }
        let number = half(bytes, TYPE)?;
        let word_at = |offset: u64| word(bytes, usize::try_from(offset).ok()?);
        let marking = match self.figures.map(|figures| figures.marking) {
            Some(MarkingField::Event(offset)) => word_at(offset),
            Some(MarkingField::Tracer(_)) | None => None,
        };
        let survived = match self.figures {
            Some(figures) => Some(word_at(figures.survived)?),
            None => None,
        };
        Some(Event {
            kind: kind_of(number)?,
            reason: half(bytes, REASON)?,
            begin,
            end,
            objects: (field(OBJECTS)?, field(OBJECTS + 8)?),
            memory: field(MEMORY_AFTER)?,
            survived,
            is_incremental: number == INCREMENTAL,
            marking: marking.and_then(|marking| self.time(marking)),
        })
    }

    /// A time of V8's clock, which is `CLOCK_MONOTONIC`.
    fn time(&self, value: u64) -> Option<TimeNs> {
        search::time(value, self.has_milliseconds)
    }
}

/// Maximum distance of the heap from its place in the checked release of V8, in bytes: releases with the
/// same numbers differ by patches of Node.js. The greatest distance seen is 48 (Node.js 22.0.0).
const MAX_SHIFT: u64 = 256;

/// The heap of an isolate, and its tracer. A tracer's first word is its heap's address.
fn heap(
    isolate: Isolate,
    fields: CollectorFields,
    memory: &dyn Memory,
) -> Result<(Avma, Avma), AdapterError> {
    let reading = AdapterError::reading("collector");
    let usual = isolate.0.0.wrapping_add(fields.heap);
    let first = usual.wrapping_sub(MAX_SHIFT);
    let count = MAX_SHIFT / 8 * 2 + 1;
    let tracers = Avma(first.wrapping_add(fields.tracer));
    let tracers = memory.read_u64s(tracers, count, count as usize);
    let tracers: Vec<Avma> = tracers.map_err(&reading)?.into_iter().map(Avma).collect();
    let own = read_words(memory, &tracers).map_err(&reading)?;
    let places = (first..).step_by(8).map(Avma);
    let mut found = places
        .zip(tracers.iter().zip(own))
        .filter(|(heap, (_, own))| *own == Some([heap.0]));
    if let Some((heap, (tracer, _))) = found.next() {
        return Ok((heap, *tracer));
    }
    // The word at the usual place is 0 while the isolate starts.
    match tracers.get(tracers.len() / 2) {
        Some(tracer) if tracer.0 != 0 => Err(AdapterError::Implausible {
            what: "collector",
            value: tracer.0,
            at: Avma(usual.wrapping_add(fields.tracer)),
        }),
        _ => Err(AdapterError::NotReady { what: "collector" }),
    }
}

/// State of an event during its pause.
const ATOMIC: u32 = 2;

/// Type of a mark-compact that ends marking beside JavaScript.
const INCREMENTAL: u32 = 2;

/// Kind by an event's type: minor mark-sweeps have others, which Node.js does not use.
fn kind_of(number: u32) -> Option<Kind> {
    match number {
        0 => Some(Kind::Scavenge),
        1 | INCREMENTAL => Some(Kind::MarkCompact),
        _ => None,
    }
}

/// Words at the collectors' marks; `None` for unreadable ones.
fn marks(all: &[&Collector], memory: &dyn Memory) -> Result<Vec<Option<u64>>, AdapterError> {
    let places: Vec<Avma> = all.iter().map(|one| one.mark.address()).collect();
    let words = read_words(memory, &places).map_err(AdapterError::reading("isolate"))?;
    Ok(words
        .into_iter()
        .map(|word| word.map(|[word]| word))
        .collect())
}

fn word(bytes: &[u8; PIECE], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

fn half(bytes: &[u8; PIECE], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// V8's word for a cause (`GarbageCollectionReason`); empty if unknown. V8 never renumbers causes.
#[must_use]
pub fn cause(reason: u32) -> &'static str {
    match reason {
        1 => "allocation failure",
        2 => "allocation limit",
        3 => "context disposal",
        4 => "counters extension",
        5 => "debugger",
        6 => "deserialize",
        7 => "external memory pressure",
        8 => "finalize incremental marking via stack guard",
        9 => "finalize incremental marking via task",
        10 => "full hash-table",
        11 => "heap profiler",
        12 => "task",
        13 => "last resort",
        14 => "low memory notification",
        15 => "make heap iterable",
        16 => "memory pressure",
        17 => "memory reducer",
        18 => "runtime",
        19 => "sampling profiler",
        20 => "snapshot creator",
        21 => "testing",
        22 => "external finalize",
        23 => "global allocation limit",
        24 => "measure memory",
        25 => "background allocation failure",
        26 => "finalize concurrent minor mark-sweep",
        27 => "C++ heap allocation failure",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
