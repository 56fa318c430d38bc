//! Snapshots with overwritten parts, for fuzzing.

use std::collections::HashMap;
use std::sync::Arc;

use vmscope_records::Avma;

use super::snapshot::{PAGE_BYTES, Page, Snapshot, read_pages};
use crate::{Memory, MemoryError, ProcessView};

/// Bytes of a patch in a fuzzer's input.
const PATCH: usize = 12;

/// Maximum number of patches of an input.
const MAX_PATCHES: usize = 64;

/// A snapshot that inputs overwrite in parts.
#[derive(Debug)]
pub struct Patchable {
    snapshot: Snapshot,
    /// Index of each page.
    places: Arc<HashMap<u64, usize>>,
    pages: Arc<[(Avma, Page)]>,
}

impl Patchable {
    /// Parses a snapshot ([`Snapshot::to_bytes`]).
    ///
    /// # Errors
    /// As [`Snapshot::from_bytes`].
    pub fn new(bytes: &[u8]) -> Result<Self, super::SnapshotError> {
        let mut snapshot = Snapshot::from_bytes(bytes)?;
        let pages = std::mem::take(&mut snapshot.pages);
        let places = pages.iter().enumerate();
        let places = places.map(|(place, (at, _))| (at.0, place)).collect();
        Ok(Patchable {
            snapshot,
            places: Arc::new(places),
            pages: pages.into(),
        })
    }

    /// The process after an input's first 64 patches. A patch has 12 bytes: page (2), offset and width
    /// (2), value (8).
    #[must_use]
    pub fn process(&self, patches: &[u8]) -> ProcessView {
        let mut memory = Patched {
            places: Arc::clone(&self.places),
            pages: Arc::clone(&self.pages),
            own: HashMap::new(),
        };
        let (patches, _) = patches.as_chunks::<PATCH>();
        for patch in patches.iter().take(MAX_PATCHES) {
            memory.apply(patch);
        }
        self.snapshot.process_with(Arc::new(memory))
    }
}

/// Memory of a snapshot; `own` has the overwritten pages.
#[derive(Debug)]
struct Patched {
    places: Arc<HashMap<u64, usize>>,
    pages: Arc<[(Avma, Page)]>,
    own: HashMap<usize, Page>,
}

impl Patched {
    fn apply(&mut self, patch: &[u8; PATCH]) {
        let [a, b, c, d, value @ ..] = *patch;
        let count = self.pages.len().max(1);
        let place = usize::from(u16::from_le_bytes([a, b])) % count;
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
                let to = usize::try_from(value >> 12).unwrap_or(0) % count;
                let page = self.pages.get(to).map_or(0, |(at, _)| at.0);
                value = page + value % PAGE_BYTES as u64;
                8
            }
        };
        let Some((_, page)) = self.pages.get(place) else {
            return;
        };
        let page = self.own.entry(place).or_insert_with(|| page.clone());
        let to = page.iter_mut().skip(offset).zip(value.to_le_bytes());
        to.take(width).for_each(|(to, byte)| *to = byte);
    }
}

impl Memory for Patched {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        read_pages(at, buffer, |page_at, take| {
            let place = self.places.get(&page_at);
            let page = place.and_then(|place| match self.own.get(place) {
                Some(page) => Some(page),
                None => self.pages.get(*place).map(|(_, page)| page),
            });
            if let Some(page) = page {
                take(page);
            }
        })
    }
}
