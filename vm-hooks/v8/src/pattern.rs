//! Patterns of regular expressions. Their machine code does not refer to them, but its last argument, on the
//! stack, is the regular expression, whose data refer to pattern, flags and code (V8's `regexp-macro-assembler.h`
//! and `regexp-data`, 10.2 to 13.6).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vmscope_process::AdapterError;
use vmscope_records::{Avma, TimeNs};

use crate::object::{Heap, Tagged};

/// Words at the begin of a regular expression's data that hold its pattern and code.
const DATA_WORDS: u64 = 16;

/// Offset of the data in a `JSRegExp`, as a number of words.
const DATA: usize = 3;

/// Possible indices of the pattern in the data, a `FixedArray` or since V8 13 a `RegExpData`. The flags follow.
const SOURCE: [usize; 2] = [2, 3];

/// Offset of the code in a `CodeWrapper`, to which data of V8 12 refer.
const WRAPPED: u64 = 8;

/// Maximum number of a pattern's characters in its name.
const MAX_PATTERN: u64 = 500;

/// Letters of V8's flags in V8's order, each with its bit.
const FLAGS: [(char, i32); 9] = [
    ('d', 1 << 7),
    ('g', 1),
    ('i', 1 << 1),
    ('l', 1 << 6),
    ('m', 1 << 2),
    ('s', 1 << 5),
    ('u', 1 << 4),
    ('v', 1 << 8),
    ('y', 1 << 3),
];

/// A regular expression in the frame of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Time of the sample.
    pub time: TimeNs,
    /// The sampled pc.
    pub pc: Avma,
    /// The object, unchecked: the code may be a function's.
    pub object: Tagged,
}

/// Maximum number of sightings; later ones are dropped, since code that lacks its pattern is seen again.
const MAX_SIGHTINGS: usize = 64;

/// Sightings, from the unwinder to the adapter's thread. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Sightings(Arc<Mutex<Vec<Sighting>>>);

impl Sightings {
    /// Adds a sighting.
    pub fn put(&self, sighting: Sighting) {
        let mut all = self.lock();
        if all.len() < MAX_SIGHTINGS {
            all.push(sighting);
        }
    }

    /// Takes all sightings that `is_over` accepts, and leaves the others.
    pub fn take(&self, is_over: impl Fn(&Sighting) -> bool) -> Vec<Sighting> {
        let mut all = self.lock();
        all.extract_if(.., |sighting| is_over(sighting)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sighting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heap<'_> {
    /// Pattern of `object`, a regular expression or its data, as in a program: `/a+b/g`. `None` for other
    /// objects, and without the machine code `code`.
    ///
    /// # Errors
    /// Failed reads.
    pub fn pattern(&self, object: Tagged, code: Tagged) -> Result<Option<String>, AdapterError> {
        let own = self.words(object)?;
        if let Some(pattern) = self.pattern_in(&own, code)? {
            return Ok(Some(pattern));
        }
        match own.get(DATA) {
            Some(data) if data.address().is_some() => self.pattern_in(&self.words(*data)?, code),
            _ => Ok(None),
        }
    }

    /// The first words of an object; fewer if memory ends.
    fn words(&self, object: Tagged) -> Result<Vec<Tagged>, AdapterError> {
        let what = "regular expression";
        let at = self.at(object, 0, what)?;
        let mut bytes = [0; 8 * DATA_WORDS as usize];
        let read = self.memory.read_partial(at, &mut bytes);
        let length = read.map_err(AdapterError::reading(what))?;
        let (words, _) = bytes.get(..length).unwrap_or_default().as_chunks::<8>();
        let words = words.iter().map(|word| Tagged(u64::from_le_bytes(*word)));
        Ok(words.collect())
    }

    fn pattern_in(&self, data: &[Tagged], code: Tagged) -> Result<Option<String>, AdapterError> {
        if !data.contains(&code) && !self.fields(data, WRAPPED)?.contains(&Some(code)) {
            return Ok(None);
        }
        for index in SOURCE {
            let (Some(source), Some(flags)) = (data.get(index), data.get(index + 1)) else {
                continue;
            };
            let Some(flags) = flags.small_integer() else {
                continue;
            };
            if source.address().is_some() && self.is_string(*source)? {
                let mut source_text = self.string(*source, MAX_PATTERN)?;
                if self.string_length(*source)? > MAX_PATTERN {
                    source_text.push('…');
                }
                let flags = FLAGS.iter().filter(|(_, bit)| flags & bit != 0);
                let flags: String = flags.map(|(letter, _)| letter).collect();
                return Ok(Some(format!("/{source_text}/{flags}")));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;

    use super::*;
    use crate::debug::Debug;
    use crate::versions::Layout;

    /// Maps: strings share one, all other objects share another.
    const STRINGS: u64 = 0x1000;
    const OTHERS: u64 = 0x1100;
    const CODE: Tagged = Tagged(0x2001);

    /// Memory with a pattern at 0x3001, and an object of these words at 0x4001.
    fn memory(layout: &Layout, pattern: &str, objects: &[(u64, &[u64])]) -> FakeMemory {
        let mut memory = FakeMemory::new();
        for (map, number) in [(STRINGS, 8_u16), (OTHERS, 0x400)] {
            let mut bytes = vec![0; 0x40];
            let at = layout.string.instance_type as usize;
            bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
            memory.put(Avma(map), bytes);
        }
        let mut text = vec![0; layout.string.first as usize];
        text[..8].copy_from_slice(&(STRINGS | 1).to_le_bytes());
        let at = layout.string.length as usize;
        text[at..at + 4].copy_from_slice(&(pattern.len() as u32).to_le_bytes());
        text.extend(pattern.bytes());
        memory.put(Avma(0x3000), text);
        for (at, words) in objects {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            memory.put(Avma(*at), bytes.collect());
        }
        memory
    }

    fn pattern(text: &str, objects: &[(u64, &[u64])]) -> Option<String> {
        let layout = Layout::new((12, 4), &Debug::default()).unwrap();
        let memory = memory(&layout, text, objects);
        let (memory, layout) = (&memory, &layout);
        Heap { memory, layout }
            .pattern(Tagged(0x4001), CODE)
            .unwrap()
    }

    const fn small(number: u64) -> u64 {
        number << 32
    }

    #[test]
    fn a_pattern_is_found_by_its_code() {
        let other = OTHERS | 1;
        let expression: &[u64] = &[other, 0, 0, 0x5001, 0x3001, small(1)];
        let array: &[u64] = &[
            other,
            small(9),
            small(2),
            0x3001,
            small(3),
            CODE.0,
            small(0),
        ];
        let wrapped: &[u64] = &[
            other,
            small(9),
            small(2),
            0x3001,
            small(0),
            small(0),
            0x6001,
        ];
        let wrapper: &[u64] = &[other, CODE.0];
        let data: &[u64] = &[other, small(2), 0x3001, small(1 << 8), 0, CODE.0];
        // V8 10 and 11; 12; 13.
        let found = pattern("a+", &[(0x4000, expression), (0x5000, array)]);
        assert_eq!(found.as_deref(), Some("/a+/gi"));
        let objects = [(0x4000, expression), (0x5000, wrapped), (0x6000, wrapper)];
        assert_eq!(pattern("a+", &objects).as_deref(), Some("/a+/"));
        assert_eq!(pattern("b", &[(0x4000, data)]).as_deref(), Some("/b/v"));
        let long = pattern(&"x".repeat(501), &[(0x4000, data)]).unwrap();
        assert_eq!(long, format!("/{}…/v", "x".repeat(500)));
    }

    #[test]
    fn other_objects_have_no_pattern() {
        let other = OTHERS | 1;
        let expression: &[u64] = &[other, 0, 0, 0x5001];
        // Other code; no string; no flags; no data.
        for data in [
            [other, small(9), small(2), 0x3001, small(3), 0x2101],
            [other, small(9), small(2), 0x5001, small(3), CODE.0],
            [other, small(9), small(2), 0x3001, 0x3001, CODE.0],
            [0; 6],
        ] {
            assert_eq!(pattern("a", &[(0x4000, expression), (0x5000, &data)]), None);
        }
        assert_eq!(pattern("a", &[(0x4000, &[other])]), None);
    }

    #[test]
    fn sightings_wait_for_their_poll_without_growing() {
        let sightings = Sightings::default();
        let sighting = |time| Sighting {
            time: TimeNs(time),
            pc: Avma(1),
            object: Tagged(1),
        };
        for time in 0..1000 {
            sightings.clone().put(sighting(time));
        }
        assert_eq!(sightings.take(|it| it.time < TimeNs(2)).len(), 2);
        assert_eq!(sightings.take(|_| true).len(), MAX_SIGHTINGS - 2);
        assert_eq!(sightings.take(|_| true), []);
    }
}
