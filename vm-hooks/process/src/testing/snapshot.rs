//! A snapshot: memory pages of a VM that a reader read, and the process's mappings and symbols.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vmscope_records::{Avma, FileOffset, Pid};

use crate::{MapEntry, Memory, MemoryError, ProcessView, Symbol, SymbolKind};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// First bytes of a snapshot; the last is the format version.
const MAGIC: &[u8] = b"vmscope snapshot 2\n";

/// Maximum plausible number of entries of a kind.
const MAX_ENTRIES: u32 = 1 << 20;

/// Bytes of a page.
pub(super) type Page = Box<[u8]>;

/// Memory that keeps every page read from another memory.
pub struct KeepingMemory {
    memory: Arc<dyn Memory>,
    kept: Mutex<BTreeMap<u64, Option<Page>>>,
}

impl std::fmt::Debug for KeepingMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeepingMemory").finish_non_exhaustive()
    }
}

impl KeepingMemory {
    /// An empty store.
    #[must_use]
    pub fn new(memory: Arc<dyn Memory>) -> Self {
        KeepingMemory {
            memory,
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Page>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pages read so far, by address.
    #[must_use]
    pub fn pages(&self) -> Vec<(Avma, Page)> {
        let kept = self.kept();
        let pages = kept.iter();
        pages
            .filter_map(|(at, page)| Some((Avma(*at), page.clone()?)))
            .collect()
    }
}

impl Memory for KeepingMemory {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let mut kept = self.kept();
        read_pages(at, buffer, |page_at, take| {
            let page = kept.entry(page_at).or_insert_with(|| {
                let mut bytes = vec![0; PAGE_BYTES];
                let read = self.memory.read_into(Avma(page_at), &mut bytes);
                read.is_ok().then(|| bytes.into())
            });
            take(page.as_deref().unwrap_or_default())
        })
    }
}

/// Copies from pages up to the first missing (empty) page. `page_at` passes a page to a
/// consumer.
pub(super) fn read_pages(
    at: Avma,
    buffer: &mut [u8],
    mut page_at: impl FnMut(u64, &mut dyn FnMut(&[u8])),
) -> Result<usize, MemoryError> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let Some(from) = at.0.checked_add(done as u64) else {
            break;
        };
        let within = from % PAGE_BYTES as u64;
        let mut length = 0;
        page_at(from - within, &mut |page: &[u8]| {
            let piece = page.get(usize::try_from(within).unwrap_or(0)..);
            for (into, byte) in rest.iter_mut().zip(piece.unwrap_or_default()) {
                *into = *byte;
                length += 1;
            }
        });
        if length == 0 {
            break;
        }
        done += length;
    }
    Ok(done)
}

/// Data kept of a process with a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Path of the module with the VM.
    pub module: String,
    /// Mappings of the module, and of anonymous memory.
    pub mappings: Vec<MapEntry>,
    /// The module's symbols with run-time addresses.
    pub symbols: Vec<Symbol>,
    /// Pages of [`PAGE_BYTES`], by address.
    pub pages: Vec<(Avma, Page)>,
}

/// Error in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Wrong first bytes.
    #[error("no snapshot, or a snapshot of another format: decompress it, or make it anew")]
    Magic,
    /// Cut off, or an invalid part.
    #[error("a torn snapshot: it ends at {at} in the middle of something")]
    Torn {
        /// Offset.
        at: usize,
    },
}

impl Snapshot {
    /// The process as a [`ProcessView`] with the kept memory.
    #[must_use]
    pub fn process(&self) -> ProcessView {
        self.process_with(Arc::new(SnapshotMemory {
            pages: self.pages.iter().cloned().collect(),
        }))
    }

    /// Likewise with another memory.
    #[must_use]
    pub fn process_with(&self, memory: Arc<dyn Memory>) -> ProcessView {
        ProcessView::fake(Pid(1), memory, self.mappings.clone())
            .with_symbols(&self.module, self.symbols.clone())
            .called("", &self.module)
    }

    /// Overwrites bytes from `at` on, and adds missing pages. `pages` must be in ascending order.
    pub fn write(&mut self, at: Avma, bytes: &[u8]) {
        for (place, byte) in (at.0..).zip(bytes) {
            let within = place % PAGE_BYTES as u64;
            let begin = Avma(place - within);
            let page = self.pages.binary_search_by_key(&begin, |page| page.0);
            let page = page.unwrap_or_else(|missing| {
                let new = vec![0; PAGE_BYTES].into();
                self.pages.insert(missing, (begin, new));
                missing
            });
            let page = self.pages.get_mut(page).map(|(_, page)| page);
            let within = usize::try_from(within).unwrap_or(0);
            if let Some(into) = page.and_then(|page| page.get_mut(within)) {
                *into = *byte;
            }
        }
    }

    /// Bytes of the snapshot: little-endian numbers, texts after their lengths, pages last.
    /// They compress well.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let text = |out: &mut Vec<u8>, text: &[u8]| {
            number(out, text.len());
            out.extend_from_slice(text);
        };
        text(&mut out, self.module.as_bytes());
        number(&mut out, self.mappings.len());
        for entry in &self.mappings {
            for value in [entry.start.0, entry.end.0, entry.offset.0] {
                out.extend_from_slice(&value.to_le_bytes());
            }
            let flags = [entry.readable, entry.writable, entry.executable];
            out.extend(flags.map(u8::from));
            text(&mut out, &entry.name);
        }
        number(&mut out, self.symbols.len());
        for symbol in &self.symbols {
            for value in [symbol.address.0, symbol.size] {
                out.extend_from_slice(&value.to_le_bytes());
            }
            out.push(u8::from(symbol.kind == SymbolKind::Function));
            text(&mut out, symbol.name.as_bytes());
        }
        number(&mut out, self.pages.len());
        for (at, page) in &self.pages {
            out.extend_from_slice(&at.0.to_le_bytes());
            out.extend_from_slice(page);
        }
        out
    }

    /// Parses the output of [`Snapshot::to_bytes`].
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::Magic)?;
        let mut input = Input { rest };
        input.snapshot().ok_or(SnapshotError::Torn {
            at: bytes.len() - input.rest.len(),
        })
    }
}

fn number(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
}

struct Input<'a> {
    rest: &'a [u8],
}

impl Input<'_> {
    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.first_chunk().copied()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn count(&mut self) -> Option<u32> {
        let count = u32::from_le_bytes(self.take(4)?.first_chunk().copied()?);
        (count <= MAX_ENTRIES).then_some(count)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.count()?).ok()?;
        self.take(length).map(<[u8]>::to_vec)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take(1)?.first().map(|byte| *byte != 0)
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        let string = |text: Vec<u8>| String::from_utf8(text).ok();
        let module = string(self.text()?)?;
        let mappings = (0..self.count()?)
            .map(|_| {
                Some(MapEntry {
                    start: Avma(self.u64()?),
                    end: Avma(self.u64()?),
                    offset: FileOffset(self.u64()?),
                    readable: self.flag()?,
                    writable: self.flag()?,
                    executable: self.flag()?,
                    name: self.text()?,
                    device: 0,
                    inode: MapEntry::UNKNOWN_INODE,
                })
            })
            .collect::<Option<_>>()?;
        let symbols = (0..self.count()?)
            .map(|_| {
                Some(Symbol {
                    address: Avma(self.u64()?),
                    size: self.u64()?,
                    kind: match self.flag()? {
                        true => SymbolKind::Function,
                        false => SymbolKind::Object,
                    },
                    name: string(self.text()?)?,
                })
            })
            .collect::<Option<_>>()?;
        let pages = (0..self.count()?)
            .map(|_| Some((Avma(self.u64()?), self.take(PAGE_BYTES)?.into())))
            .collect::<Option<_>>()?;
        self.rest.is_empty().then_some(Snapshot {
            module,
            mappings,
            symbols,
            pages,
        })
    }
}

/// Memory of a snapshot.
#[derive(Debug)]
struct SnapshotMemory {
    pages: BTreeMap<Avma, Page>,
}

impl Memory for SnapshotMemory {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        read_pages(at, buffer, |page_at, take| {
            if let Some(page) = self.pages.get(&Avma(page_at)) {
                take(page);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeMemory;

    fn snapshot() -> Snapshot {
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x5000), vec![7; 0x2000]);
        let keeping = KeepingMemory::new(Arc::new(memory));
        assert_eq!(
            keeping.read_u64(Avma(0x5ff8)).ok(),
            Some(0x0707_0707_0707_0707)
        );
        assert!(keeping.read_u64(Avma(0x4ffc)).is_err());
        Snapshot {
            module: "/jvm/libjvm.so".to_owned(),
            mappings: Vec::new(),
            symbols: vec![Symbol {
                name: "gHotSpotVMTypes".to_owned(),
                address: Avma(0x5010),
                size: 8,
                kind: SymbolKind::Object,
            }],
            pages: keeping.pages(),
        }
    }

    #[test]
    fn what_was_read_is_kept_and_no_more() {
        let snapshot = snapshot();
        assert_eq!(snapshot.pages.len(), 1);
        let process = snapshot.process();
        assert_eq!(process.memory().read_u8(Avma(0x5fff)).ok(), Some(7));
        assert!(process.memory().read_u8(Avma(0x6000)).is_err());
    }

    #[test]
    fn bytes_are_read_back_and_torn_ones_refused() {
        let snapshot = snapshot();
        let bytes = snapshot.to_bytes();
        assert_eq!(Snapshot::from_bytes(&bytes), Ok(snapshot));
        for length in (0..bytes.len()).step_by(3) {
            assert!(Snapshot::from_bytes(&bytes[..length]).is_err());
        }
        assert_eq!(Snapshot::from_bytes(b"other"), Err(SnapshotError::Magic));
    }
}
