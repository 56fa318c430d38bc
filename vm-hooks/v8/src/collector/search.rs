//! Heap and tracer of a V8 of an unknown version, by what they hold.
//!
//! A heap's members hold the heap's address in their first or second word. Other addresses inside the isolate
//! have few such members. The tracer is the member with two events: each has a type, a state, and times of V8's clock
//! (V8's `heap/gc-tracer.h`, 10.2 to 14.6).

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory, read_words};
use vmscope_records::{Avma, TimeNs};

use super::{STATE, TYPE};
use crate::isolate::Isolate;
use crate::spaces::ADDRESSES;
use crate::versions::CollectorFields;

/// Bytes of an isolate that contain its heap's members.
const ISOLATE_BYTES: usize = 0x1_6000;

/// Minimum number of members that hold the heap's address. Node.js has 30.
const LEAST_MEMBERS: usize = 12;

/// Bytes of a tracer with both events.
const TRACER_BYTES: usize = 0xa00;

/// Possible offsets of an event's begin, and distances of the previous event from the current one.
const BEGINS: RangeInclusive<usize> = 24..=64;
const DISTANCES: RangeInclusive<usize> = 0x400..=TRACER_BYTES - 0x80;

/// Number of types and of states of events.
const TYPES: u32 = 6;
const STATES: u32 = 4;

/// Places of the heap and its tracer in `isolate`, of a process that lives in this time.
///
/// # Errors
/// [`AdapterError::NotReady`] before the second collection; failed reads.
pub fn find(
    isolate: Isolate,
    memory: &dyn Memory,
    lifetime: &RangeInclusive<TimeNs>,
) -> Result<CollectorFields, AdapterError> {
    let reading = AdapterError::reading("collector");
    let mut bytes = vec![0; ISOLATE_BYTES];
    let length = memory.read_partial(isolate.0, &mut bytes);
    bytes.truncate(length.map_err(&reading)?);
    let end = isolate.0.0.wrapping_add(bytes.len() as u64);
    let own = isolate.0.0..end;
    let (words, _) = bytes.as_chunks::<8>();
    let words = (own.start..).step_by(8).zip(words);
    let members = words.map(|(at, word)| (at, u64::from_le_bytes(*word)));
    let members = members.filter(|(_, object)| {
        ADDRESSES.contains(object) && object.is_multiple_of(8) && !own.contains(object)
    });
    let members: Vec<(u64, u64)> = members.collect();
    let objects: Vec<Avma> = members.iter().map(|(_, object)| Avma(*object)).collect();
    let heads = read_words::<2>(memory, &objects).map_err(&reading)?;
    let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
    for word in heads.iter().flatten().flatten().copied() {
        if own.contains(&word) && word != own.start && word.is_multiple_of(8) {
            *counts.entry(word).or_default() += 1;
        }
    }
    let not_ready = || AdapterError::NotReady {
        what: "second collection",
    };
    let heap = counts.into_iter().max_by_key(|(_, count)| *count);
    let heap = heap.filter(|(_, count)| *count >= LEAST_MEMBERS);
    let (heap, _) = heap.ok_or_else(not_ready)?;
    let is_own = |head: Option<[u64; 2]>| head.is_some_and(|[first, _]| first == heap);
    for ((at, object), head) in members.into_iter().zip(heads) {
        if at < heap || !is_own(head) {
            continue;
        }
        let mut tracer = vec![0; TRACER_BYTES];
        let length = memory.read_partial(Avma(object), &mut tracer);
        tracer.truncate(length.map_err(&reading)?);
        if let Some((begin, previous, has_milliseconds)) = events(&tracer, lifetime) {
            return Ok(CollectorFields {
                heap: heap - isolate.0.0,
                tracer: at - heap,
                previous: previous as u64,
                begin: begin as u64,
                has_milliseconds,
                counts: None,
                figures: None,
            });
        }
    }
    Err(not_ready())
}

/// Offset of an event's begin, distance of the previous event, and whether times are milliseconds.
fn events(tracer: &[u8], lifetime: &RangeInclusive<TimeNs>) -> Option<(usize, usize, bool)> {
    let half = |at: usize| {
        let bytes = tracer.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let has_pair = |at: usize, has_milliseconds: bool| {
        let time = |at: usize| {
            let bytes = tracer.get(at..)?.first_chunk::<8>()?;
            time(u64::from_le_bytes(*bytes), has_milliseconds)
        };
        let times = time(at).zip(time(at + 8));
        times.is_some_and(|(begin, end)| {
            begin <= end && lifetime.contains(&begin) && lifetime.contains(&end)
        })
    };
    let is_event = |at: usize| {
        let numbers = half(at + TYPE).zip(half(at + STATE));
        numbers.is_some_and(|(kind, state)| kind < TYPES && state < STATES)
    };
    for has_milliseconds in [false, true] {
        let begins = BEGINS.step_by(8);
        let begin = begins
            .into_iter()
            .find(|begin| is_event(0) && has_pair(*begin, has_milliseconds));
        let Some(begin) = begin else { continue };
        let previous = DISTANCES
            .step_by(8)
            .find(|distance| is_event(*distance) && has_pair(distance + begin, has_milliseconds));
        if let Some(previous) = previous {
            return Some((begin, previous, has_milliseconds));
        }
    }
    None
}

/// A time of V8's clock, which is `CLOCK_MONOTONIC`: microseconds, or milliseconds in floating point.
pub(super) fn time(value: u64, has_milliseconds: bool) -> Option<TimeNs> {
    if !has_milliseconds {
        return value.checked_mul(1000).map(TimeNs);
    }
    let ns = f64::from_bits(value) * 1e6;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked before"
    )]
    (0.0..1e18).contains(&ns).then_some(TimeNs(ns as u64))
}
