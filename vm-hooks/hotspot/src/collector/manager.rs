//! Memory managers, the JVM's sources of `GarbageCollectorMXBean`: they count the cycles and pauses
//! of Shenandoah and Z apart, which perf data do not.
//!
//! A `GCMemoryManager` is a part of the heap object. Its name, a text in libjvm, leads to it. Words
//! from the name on (`memoryManager.hpp`, JDK 11 to 25):
//!
//! ```text
//! name | bean (one word; JDK 25: two) | number of ended events
//!      | time of all ended | last begin | whether one is running
//!      | last event: index, begin, end | lock | current event
//! ```

use vmscope_process::{Memory, MemoryError};
use vmscope_records::Avma;

use super::counted::Seen;
use super::name::Kind;

/// Managers by name, with the collector's name and the kind of their events.
const MANAGERS: [(&str, &str, Kind); 5] = [
    ("Shenandoah Cycles", "Shenandoah", Kind::CYCLE),
    ("Shenandoah Pauses", "Shenandoah", Kind::CYCLE_PAUSE),
    ("ZGC Cycles", "ZGC", Kind::CYCLE),
    ("ZGC Minor Cycles", "ZGC", Kind::MINOR_CYCLE),
    ("ZGC Major Cycles", "ZGC", Kind::MAJOR_CYCLE),
];

/// Words of the heap object that may hold a manager's name; known managers are in the first 512.
const HEAP_WORDS: u64 = 2048;

/// Maximum length of a name, with its final zero.
const NAME_BYTES: usize = 24;

/// A manager.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manager {
    /// Address of the number of ended events.
    at: Avma,
}

/// Finds the managers in the heap object at `heap`; `libjvm` is the library's first and last address.
pub(super) fn find(
    memory: &dyn Memory,
    heap: Avma,
    libjvm: (Avma, Avma),
) -> Vec<(Manager, &'static str, Kind)> {
    let mut bytes = vec![0; HEAP_WORDS as usize * 8];
    let got = memory.read_partial(heap, &mut bytes).unwrap_or_default();
    let (words, _) = bytes.get(..got).unwrap_or_default().as_chunks::<8>();
    let words = (heap.0..).step_by(8).zip(words);
    let texts = words.filter_map(|(at, word)| {
        let text = Avma(u64::from_le_bytes(*word));
        let name = (libjvm.0 <= text && text < libjvm.1).then(|| name_at(memory, text))??;
        let (_, collector, kind) = MANAGERS.iter().find(|(known, ..)| *known == name)?;
        Some((Manager::of(memory, Avma(at))?, *collector, *kind))
    });
    texts.collect()
}

fn name_at(memory: &dyn Memory, at: Avma) -> Option<String> {
    let text = memory.read_c_string(at, NAME_BYTES).ok()?;
    String::from_utf8(text).ok()
}

impl Manager {
    /// The manager whose name is at `name`; `None` if the following words fit no manager.
    fn of(memory: &dyn Memory, name: Avma) -> Option<Self> {
        [2, 3].into_iter().find_map(|words| {
            let manager = Self {
                at: name.checked_add(words * 8)?,
            };
            let read = memory.read_u64s(manager.at, 7, 7).ok()?;
            let &[ended, _, _, running, last, lock, current] = read.as_slice() else {
                return None;
            };
            let are_pointers = [last, lock, current]
                .iter()
                .all(|word| *word % 8 == 0 && memory.read_u64(Avma(*word)).is_ok());
            let index = memory.read_u64(Avma(last)).ok()?;
            // The VM counts an event shortly before it shows its times.
            let fits = running & 0xff <= 1 && are_pointers && ended.wrapping_sub(index) <= 1;
            fits.then_some(manager)
        })
    }

    /// Its figures.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn seen(self, memory: &dyn Memory) -> Result<Seen, MemoryError> {
        let words = memory.read_u64s(self.at, 5, 5)?;
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let is_running = word(3) & 0xff != 0;
        let length = match is_running {
            true => None,
            false => {
                let last = memory.read_u64s(Avma(word(4)), 3, 3)?;
                let end = |at: usize| last.get(at).copied().unwrap_or_default();
                Some(end(2).saturating_sub(end(1)).cast_signed())
            }
        };
        Ok(Seen {
            begun: word(0).saturating_add(u64::from(is_running)),
            entry: word(2).cast_signed(),
            length,
            time: word(1).cast_signed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;

    use super::*;

    const LIBJVM: (Avma, Avma) = (Avma(0x7000_0000), Avma(0x7100_0000));
    const HEAP: Avma = Avma(0x5000);

    fn put(memory: &mut FakeMemory, at: u64, words: &[u64]) {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.put(Avma(at), bytes);
    }

    /// A heap with the managers of Shenandoah, whose bean takes so many words.
    fn heap(bean: usize, running: u64) -> FakeMemory {
        let mut memory = FakeMemory::new();
        for (at, name) in [(0, "Shenandoah Pauses"), (0x100, "Shenandoah Cycles")] {
            let text = [name.as_bytes(), b"\0"].concat();
            memory.put(Avma(LIBJVM.0.0 + at), text);
        }
        let mut words = vec![LIBJVM.0.0 + 0x200, 17];
        for (at, ended, name) in [(0x9000, 228, 0), (0x9800, 63, 0x100)] {
            words.push(LIBJVM.0.0 + name);
            words.extend([0].repeat(bean));
            // Padding beside the flag.
            words.extend([
                ended,
                5000,
                900,
                0xab00 | running,
                at,
                at + 0x100,
                at + 0x200,
            ]);
            put(&mut memory, at, &[ended, 300, 340]);
            put(&mut memory, at + 0x100, &[0x4321]);
            put(&mut memory, at + 0x200, &[0]);
        }
        // A name without a manager.
        words.extend([LIBJVM.0.0, 1, 2, 3]);
        put(&mut memory, HEAP.0, &words);
        memory
    }

    #[test]
    fn managers_are_found_by_their_names() {
        for bean in [1, 2] {
            for running in [0, 1] {
                let memory = heap(bean, running);
                let found = find(&memory, HEAP, LIBJVM);
                let kinds: Vec<Kind> = found.iter().map(|(.., kind)| *kind).collect();
                assert_eq!(kinds, [Kind::CYCLE_PAUSE, Kind::CYCLE]);
                let seen = found[1].0.seen(&memory).unwrap();
                let wanted = Seen {
                    begun: 63 + running,
                    entry: 900,
                    length: (running == 0).then_some(40),
                    time: 5000,
                };
                assert_eq!(seen, wanted);
            }
        }
    }

    #[test]
    fn other_words_are_no_managers() {
        assert!(find(&FakeMemory::new(), HEAP, LIBJVM).is_empty());
        assert!(find(&heap(3, 0), HEAP, LIBJVM).is_empty());
        assert!(find(&heap(1, 2), HEAP, LIBJVM).is_empty());
        assert!(find(&heap(1, 0), HEAP, (Avma(0), Avma(0))).is_empty());
    }
}
