//! Snapshots of real JVMs with some of their memory overwritten.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use vmscope_hotspot::testing::{PAGE_BYTES, Snapshot};
use vmscope_records::Avma;
use vmscope_process::{Memory, MemoryError, ProcessView};

/// A snapshot; `places` has the index of each page.
pub struct Real {
    pub snapshot: Snapshot,
    places: HashMap<u64, usize>,
}

fn real(compressed: &[u8]) -> Arc<Real> {
    let bytes = zstd::decode_all(compressed).expect("a snapshot is stored whole");
    let snapshot = Snapshot::from_bytes(&bytes).expect("likewise");
    let pages = snapshot.pages.iter().enumerate();
    let places = pages.map(|(place, (at, _))| (at.0, place)).collect();
    Arc::new(Real { snapshot, places })
}

static REAL: LazyLock<[Arc<Real>; 2]> = LazyLock::new(|| {
    [
        real(include_bytes!(
            "../../../tests/snapshots/jdk17.snapshot.zst"
        )),
        real(include_bytes!(
            "../../../tests/snapshots/jdk25.snapshot.zst"
        )),
    ]
});

/// Memory of a snapshot; `own` has the overwritten pages.
pub struct Patched {
    real: Arc<Real>,
    own: HashMap<usize, Vec<u8>>,
}

impl Patched {
    /// By the fuzzer's input: a byte that says which snapshot, then patches of 12 bytes:
    /// page (2), offset in it and width (2), value (8).
    pub fn by(input: &[u8]) -> Option<ProcessView> {
        let (which, patches) = input.split_first()?;
        let real = Arc::clone(&REAL[usize::from(which % 2)]);
        let mut memory = Patched {
            real: Arc::clone(&real),
            own: HashMap::new(),
        };
        let (patches, _) = patches.as_chunks::<12>();
        patches
            .iter()
            .take(64)
            .for_each(|patch| memory.apply(patch));
        Some(real.snapshot.process_with(Arc::new(memory)))
    }

    fn apply(&mut self, patch: &[u8; 12]) {
        let [a, b, c, d, value @ ..] = *patch;
        let pages = &self.real.snapshot.pages;
        let place = usize::from(u16::from_le_bytes([a, b])) % pages.len();
        let where_and_how = usize::from(u16::from_le_bytes([c, d]));
        let offset = where_and_how % PAGE_BYTES;
        let mut value = u64::from_le_bytes(value);
        let width = match where_and_how / PAGE_BYTES {
            0..4 => 1,
            4..6 => 2,
            6..10 => 4,
            10..12 => 8,
            // A valid pointer.
            _ => {
                let to = usize::try_from(value >> 12).unwrap_or(0) % pages.len();
                value = pages[to].0.0 + value % PAGE_BYTES as u64;
                8
            }
        };
        let page = self
            .own
            .entry(place)
            .or_insert_with(|| pages[place].1.to_vec());
        let to = page.iter_mut().skip(offset).zip(value.to_le_bytes());
        to.take(width).for_each(|(to, byte)| *to = byte);
    }
}

impl Memory for Patched {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let mut done = 0;
        while done < buffer.len() {
            let Some(from) = at.0.checked_add(done as u64) else {
                break;
            };
            let within = usize::try_from(from % PAGE_BYTES as u64).expect("small");
            let Some(place) = self.real.places.get(&(from - within as u64)) else {
                break;
            };
            let page = match self.own.get(place) {
                Some(page) => page,
                None => &*self.real.snapshot.pages[*place].1,
            };
            let length = (PAGE_BYTES - within).min(buffer.len() - done);
            buffer[done..done + length].copy_from_slice(&page[within..within + length]);
            done += length;
        }
        Ok(done)
    }
}
