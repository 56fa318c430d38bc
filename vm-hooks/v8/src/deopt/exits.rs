//! Exits of optimised code: calls behind its instructions by which V8 leaves it, one for each entry. A frame that V8 deoptimises
//! returns to the exit of its call, until it executes again (V8's `deoptimizer.cc`, 10.2 to 14.6).

use rustc_hash::FxHashMap;
use vmscope_process::AdapterError;
use vmscope_records::Avma;

use super::{Entries, MAX_TABLE, Safepoints, WHAT};
use crate::code::{Code, Kind};
use crate::object::Heap;

/// Begin of an exit, `call [r13 + NUMBER]`, and its bytes.
const CALL: [u8; 3] = [0x41, 0xff, 0x55];
const BYTES: u32 = 4;

/// The exits of a piece of optimised code, as offsets in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exits {
    /// The first exit, or the code's end.
    begin: u32,
    /// Exits of calls, ascending, each with the call's return address.
    calls: Vec<(u32, u32)>,
}

impl Exits {
    /// Reads the exits of Maglev's or TurboFan's code; those of an unknown form have no calls.
    ///
    /// # Errors
    /// Data of another form; failed reads.
    pub fn read(heap: &Heap<'_>, code: &Code) -> Result<Self, AdapterError> {
        let table = Entries::read(heap, code)?;
        let begin = table.exits;
        let count = u32::try_from(table.entries.len()).unwrap_or(u32::MAX);
        let room = code.size().saturating_sub(begin) / BYTES;
        let at = Avma(code.start.0.wrapping_add(begin.into()));
        let length = BYTES.saturating_mul(count.min(room));
        let bytes = heap.memory.read_vec(at, length.into(), MAX_TABLE);
        let bytes = bytes.map_err(AdapterError::reading(WHAT))?;
        let (exits, _) = bytes.as_chunks::<{ BYTES as usize }>();
        if count > room || !exits.iter().all(|exit| exit.starts_with(&CALL)) {
            let calls = Vec::new();
            return Ok(Exits { begin, calls });
        }
        // The last number of an entry is the call's return address in TurboFan's code, in Maglev's the exit.
        let returns = match code.kind {
            Kind::Maglev => {
                let calls = Safepoints::read(heap, code)?.unwrap_or_default();
                let by_number = calls.into_iter().map(|(at, number)| (number, at));
                by_number.collect::<FxHashMap<usize, u32>>()
            }
            _ => FxHashMap::default(),
        };
        let calls = (begin..).step_by(BYTES as usize).zip(&table.entries);
        let calls = calls.enumerate().skip(table.checks);
        let calls = calls.filter_map(|(number, (exit, entry))| {
            let at = match code.kind {
                Kind::Maglev => *returns.get(&number).filter(|_| entry.exit == exit)?,
                _ => entry.exit,
            };
            (0 < at && at <= begin).then_some((exit, at))
        });
        Ok(Exits {
            begin,
            calls: calls.collect(),
        })
    }

    /// Gives the exits of calls the places of their calls in `pieces`, which are ascending, each with start, end, place and
    /// error: a frame that returns to an exit is in the call. Other exits get no piece.
    pub fn take_places<P: Copy>(&self, pieces: &mut Vec<(u32, u32, P, u8)>) {
        let place = |at: u32| {
            let before = pieces.partition_point(|piece| piece.0 < at);
            let &(_, end, place, error) = pieces.get(before.checked_sub(1)?)?;
            (at <= end).then_some((place, error))
        };
        // A return address is looked up by the byte before it.
        let of_call = |&(exit, at): &(u32, u32)| {
            let (place, error) = place(at)?;
            Some((exit.checked_sub(1)?, exit, place, error))
        };
        let of_calls: Vec<_> = self.calls.iter().filter_map(of_call).collect();
        let end = of_calls.first().map_or(self.begin, |first| first.0);
        let end = end.min(self.begin);
        pieces.retain(|piece| piece.0 < end);
        if let Some(last) = pieces.last_mut() {
            last.1 = last.1.min(end);
        }
        pieces.extend(of_calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_of_calls_have_the_places_of_their_calls() {
        let exits = Exits {
            begin: 100,
            calls: vec![(104, 20), (108, 50), (112, 95)],
        };
        let mut pieces = vec![(10, 20, 'a', 0), (20, 40, 'b', 3), (90, 130, 'c', 0)];
        exits.take_places(&mut pieces);
        let expected = [
            (10, 20, 'a', 0),
            (20, 40, 'b', 3),
            (90, 100, 'c', 0),
            (103, 104, 'a', 0),
            (111, 112, 'c', 0),
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn a_first_exit_of_a_call_takes_the_byte_before() {
        let exits = Exits {
            begin: 100,
            calls: vec![(100, 15)],
        };
        let mut pieces = vec![(10, 20, 'a', 0), (20, 120, 'b', 0)];
        exits.take_places(&mut pieces);
        assert_eq!(
            pieces,
            [(10, 20, 'a', 0), (20, 99, 'b', 0), (99, 100, 'a', 0)]
        );
        let mut none: Vec<(u32, u32, char, u8)> = Vec::new();
        exits.take_places(&mut none);
        assert_eq!(none, []);
    }
}
