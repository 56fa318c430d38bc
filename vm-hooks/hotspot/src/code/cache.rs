//! One reading of the whole code cache.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory, MemoryError};
use vmscope_records::Avma;

use super::heap::{BlockWalk, HeapBounds, block_at, block_begin, read_heaps};
use super::layout::CodeLayout;
use super::{Blob, BlobKind, Nmethod, NmethodId};
use crate::pages::Pages;

/// Maximum length of a blob name in bytes.
const MAX_NAME: usize = 256;

/// A blob found by a reading.
#[derive(Debug)]
pub enum Found<'a> {
    /// A compiled method: only its identity and current state. [`CodeLayout::read_nmethod`]
    /// reads the rest.
    Nmethod {
        /// Its identity.
        id: NmethodId,
        /// Its blob.
        blob: Blob,
        /// Its state.
        state: i8,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// Any other blob, with name and bytes.
    Other {
        /// The blob.
        blob: Blob,
        /// Its kind.
        kind: BlobKind,
        /// The VM's name of the blob.
        name: &'a str,
        /// Its bytes.
        bytes: &'a [u8],
    },
}

/// A known nmethod now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NmethodState {
    /// Present, with the VM's state.
    Present(i8),
    /// Gone, or its block is free.
    Gone,
    /// The VM is just changing the memory.
    Unreadable,
}

/// An nmethod found by its address.
#[derive(Debug)]
pub struct FoundNmethod {
    /// Its identity.
    pub id: NmethodId,
    /// Its blob.
    pub blob: Blob,
    /// Its state.
    pub state: i8,
    /// The bytes of its block.
    pub bytes: Vec<u8>,
}

/// A blob's header, found by an address in the blob.
#[derive(Clone, Debug)]
pub struct FoundBlob {
    /// Begin of its block.
    pub block: Avma,
    /// The header.
    pub blob: Blob,
    /// Its kind.
    pub kind: BlobKind,
    /// Begin of an nmethod's out-of-line stubs; the code's end without them.
    pub stubs: Avma,
    /// Deoptimised frames of an nmethod; `None` for other blobs.
    pub deoptimised: Option<DeoptimisedFrames>,
}

/// How the frames of an nmethod look after a deoptimisation, until they execute again (HotSpot's `frame::deoptimize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeoptimisedFrames {
    /// The address to which they return.
    pub handler: Avma,
    /// Offset in the frame, in bytes from the stack pointer, of the address to which they would return.
    pub original_pc: u64,
}

/// Reader of a JVM's code cache.
#[derive(Debug)]
pub struct CodeCache {
    layout: CodeLayout,
    /// Blob names by address: string constants of the VM.
    names: FxHashMap<Avma, String>,
    buffer: Vec<u8>,
    /// Number of implausible blobs and heaps in the last reading.
    malformed: u64,
    unread: Vec<(Avma, Avma)>,
}

/// Bytes per read of a heap: a processor's cache holds them for the search of blobs.
const PIECE: u64 = 1 << 20;

/// Maximum plausible size of a blob; larger blobs are skipped.
const MAX_BLOB: u64 = 64 << 20;

/// Maximum bytes of the headers of an nmethod and its block: some ten times its size in JDK 11 to 25.
const MAX_HEADER: usize = 4096;

/// Bytes of a block's and a blob's header to read: twice an nmethod's in JDK 11 to 25.
const BLOB_HEADER: usize = 1024;

/// Maximum number of names in memory.
const MAX_NAMES: usize = 1 << 16;

impl CodeCache {
    /// A code cache with that layout.
    #[must_use]
    pub fn new(layout: CodeLayout) -> Self {
        CodeCache {
            layout,
            names: FxHashMap::default(),
            buffer: Vec::new(),
            malformed: 0,
            unread: Vec::new(),
        }
    }

    /// Layout of the VM's structures.
    #[must_use]
    pub fn layout(&self) -> &CodeLayout {
        &self.layout
    }

    /// Number of implausible blobs and heaps in the last reading.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Address ranges that the last reading omitted from wanted heaps: behind an implausible
    /// block, further block begins are unknown. First address, end address (exclusive).
    #[must_use]
    pub fn unread(&self) -> &[(Avma, Avma)] {
        &self.unread
    }

    /// Bounds of the heaps.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] during the VM's start; errors of reads.
    pub fn heaps(&self, memory: &dyn Memory) -> Result<Vec<HeapBounds>, AdapterError> {
        read_heaps(&self.layout, memory)
    }

    /// Reads all heaps in large pieces and passes their blobs to `take` by address. Later reads
    /// through `pages` return newer data.
    ///
    /// # Errors
    /// As [`CodeCache::heaps`].
    pub fn read(
        &mut self,
        pages: &Pages<'_>,
        take: impl FnMut(Found<'_>),
    ) -> Result<Vec<HeapBounds>, AdapterError> {
        self.read_some(pages, |_| true, take)
    }

    /// Likewise for the `wanted` heaps only.
    ///
    /// # Errors
    /// As [`CodeCache::heaps`].
    pub fn read_some(
        &mut self,
        pages: &Pages<'_>,
        wanted: impl Fn(&HeapBounds) -> bool,
        mut take: impl FnMut(Found<'_>),
    ) -> Result<Vec<HeapBounds>, AdapterError> {
        self.malformed = 0;
        self.unread.clear();
        let heaps = self.heaps(pages.memory())?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut blocks = 0;
        for heap in heaps.iter().filter(|heap| wanted(heap)) {
            let walk = BlockWalk { next: 0, blocks };
            blocks = self.read_heap(heap, walk, pages, &mut buffer, &mut take)?;
        }
        if u64::try_from(buffer.capacity()).is_ok_and(|bytes| bytes <= 2 * PIECE) {
            self.buffer = buffer;
        }
        Ok(heaps)
    }

    /// States of nmethods.
    ///
    /// # Errors
    /// Final errors of reads.
    pub fn states_of(
        &self,
        nmethods: &[(NmethodId, Blob)],
        memory: &dyn Memory,
    ) -> Result<Vec<NmethodState>, MemoryError> {
        let layout = &self.layout;
        let header = layout.heaps.block_bytes;
        let begin = |blob: &Blob| Avma(blob.at.0.wrapping_sub(header));
        let addresses: Vec<Avma> = nmethods.iter().map(|(_, blob)| begin(blob)).collect();
        let length = header.saturating_add(layout.nmethod.bytes);
        let length = usize::try_from(length).unwrap_or(0).min(MAX_HEADER);
        let mut buffer = Vec::new();
        let are_read = memory.read_each(&addresses, length, &mut buffer)?;
        let header = usize::try_from(header).unwrap_or(usize::MAX);
        let state = |bytes: &[u8], (id, blob): &(NmethodId, Blob)| {
            let block = layout.heaps.block(bytes);
            let is_used = block.is_some_and(|block| block.is_used);
            let nmethod = bytes.get(header..).unwrap_or_default();
            match is_used && Nmethod::identify(layout, blob, nmethod) == Some(*id) {
                true => NmethodState::Present(Nmethod::state_of(layout, nmethod)),
                false => NmethodState::Gone,
            }
        };
        let read = buffer.chunks(length.max(1)).zip(are_read);
        let states = read
            .zip(nmethods)
            .map(|((bytes, is_read), of)| match is_read {
                true => state(bytes, of),
                false => NmethodState::Unreadable,
            });
        Ok(states.collect())
    }

    /// The finished nmethod in whose block `at` lies; `None` for other code and free memory, and
    /// while the VM changes the block.
    ///
    /// # Errors
    /// Errors of reads.
    pub fn nmethod_at(
        &mut self,
        heap: &HeapBounds,
        at: Avma,
        pages: &Pages<'_>,
    ) -> Result<Option<FoundNmethod>, AdapterError> {
        let reading = AdapterError::reading("code heap");
        let header = self.layout.heaps.block_bytes;
        let block = block_at(&self.layout.heaps, heap, at, pages.memory()).map_err(&reading)?;
        let Some((begin, length)) = block.filter(|(_, length)| *length > header) else {
            return Ok(None);
        };
        let begin = Avma(begin.0.wrapping_add(header));
        let most = usize::try_from(MAX_BLOB).unwrap_or(0);
        let bytes = pages.memory().read_vec(begin, length - header, most);
        let bytes = bytes.map_err(&reading)?;
        Ok(match self.found(begin, &bytes, pages)? {
            Some(Found::Nmethod {
                id, blob, state, ..
            }) => Some(FoundNmethod {
                id,
                blob,
                state,
                bytes,
            }),
            _ => None,
        })
    }

    /// The header of the blob in whose block `at` lies; `None` for free memory, and while the VM
    /// changes the block.
    ///
    /// # Errors
    /// Errors of reads.
    pub fn blob_at(
        &mut self,
        heap: &HeapBounds,
        at: Avma,
        memory: &dyn Memory,
    ) -> Result<Option<FoundBlob>, MemoryError> {
        match block_begin(heap, at, memory)? {
            Some(block) => self.blob_in(heap, block, memory),
            None => Ok(None),
        }
    }

    /// The header of the blob in the block that begins at `block`; `None` as for
    /// [`CodeCache::blob_at`].
    ///
    /// # Errors
    /// Errors of reads.
    pub fn blob_in(
        &mut self,
        heap: &HeapBounds,
        block: Avma,
        memory: &dyn Memory,
    ) -> Result<Option<FoundBlob>, MemoryError> {
        let mut bytes = [0; BLOB_HEADER];
        let got = memory.read_partial(block, &mut bytes)?;
        let bytes = bytes.get(..got).unwrap_or_default();
        let header = self.layout.heaps.block_bytes;
        let length = self.layout.heaps.used_bytes(bytes, heap);
        let (Some(room), Some(bytes)) = (
            length.and_then(|length| length.checked_sub(header)),
            usize::try_from(header)
                .ok()
                .and_then(|header| bytes.get(header..)),
        ) else {
            return Ok(None);
        };
        let begin = Avma(block.0.wrapping_add(header));
        let within = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = bytes.get(..within).unwrap_or_default();
        let Some(blob) = Blob::parse(&self.layout.blob, begin, bytes, room) else {
            return Ok(None);
        };
        let Some(name) = self.name_of(&blob, memory)? else {
            return Ok(None);
        };
        let kind = Blob::kind_of(name);
        let stubs = match kind {
            BlobKind::Nmethod => self.layout.nmethod.stub_offset.unsigned_of(bytes),
            _ => None,
        };
        let deopt = self
            .layout
            .nmethod
            .deopt
            .filter(|_| kind == BlobKind::Nmethod);
        let stubs = stubs.map(|offset| Avma(begin.0.saturating_add(offset)));
        Ok(Some(FoundBlob {
            stubs: stubs.unwrap_or(blob.code_end).min(blob.code_end),
            deoptimised: deopt.and_then(|deopt| deopt.frames(begin, bytes)),
            block,
            blob,
            kind,
        }))
    }

    fn read_heap(
        &mut self,
        heap: &HeapBounds,
        mut walk: BlockWalk,
        pages: &Pages<'_>,
        buffer: &mut Vec<u8>,
        take: &mut impl FnMut(Found<'_>),
    ) -> Result<usize, AdapterError> {
        let mut piece = PIECE;
        while walk.next < heap.used() {
            let begin = walk.next;
            let wanted = piece.min(heap.used().saturating_sub(begin));
            let wanted_bytes = usize::try_from(wanted).unwrap_or(0);
            // The buffer only grows: zeroing costs as much time as reading.
            if buffer.len() < wanted_bytes {
                buffer.resize(wanted_bytes, 0);
            }
            let buffer = buffer.get_mut(..wanted_bytes).unwrap_or_default();
            let low = heap.low.0.wrapping_add(begin);
            let read = pages.memory().read_into(Avma(low), buffer);
            read.map_err(AdapterError::reading("code heap"))?;
            pages.renew();
            let blocks = walk.blocks(&self.layout.heaps, heap, buffer);
            for block in blocks.found {
                let at = Avma(low.wrapping_add(block.at as u64));
                let bytes = buffer.get(block.at..block.end).unwrap_or_default();
                if let Some(found) = self.found(at, bytes, pages)? {
                    take(found);
                } else {
                    self.malformed += 1;
                }
            }
            if blocks.wants > MAX_BLOB {
                self.malformed += 1;
                walk.next = walk.next.saturating_add(blocks.wants);
                continue;
            }
            // The next piece begins with the cut-off block.
            piece = PIECE.max(blocks.wants);
            let is_stuck = walk.next == begin && piece.min(heap.used() - begin) <= wanted;
            if is_stuck || !blocks.is_sound {
                self.malformed += 1;
                let from = heap.low.0.saturating_add(walk.next);
                self.unread.push((Avma(from), heap.high));
                break;
            }
        }
        Ok(walk.blocks)
    }

    fn found<'a>(
        &'a mut self,
        at: Avma,
        bytes: &'a [u8],
        pages: &Pages<'_>,
    ) -> Result<Option<Found<'a>>, AdapterError> {
        let room = bytes.len() as u64;
        let Some(blob) = Blob::parse(&self.layout.blob, at, bytes, room) else {
            return Ok(None);
        };
        let reading = AdapterError::reading("code blob");
        if self.name_of(&blob, pages).map_err(reading)?.is_none() {
            return Ok(None);
        }
        let name = self.names.get(&blob.name_at).map_or("", String::as_str);
        let bytes = bytes.get(..blob.size as usize).unwrap_or_default();
        Ok(match Blob::kind_of(name) {
            BlobKind::Nmethod => {
                Nmethod::identify(&self.layout, &blob, bytes).map(|id| Found::Nmethod {
                    id,
                    state: Nmethod::state_of(&self.layout, bytes),
                    blob,
                    bytes,
                })
            }
            kind => Some(Found::Other {
                blob,
                kind,
                name,
                bytes,
            }),
        })
    }
}

impl CodeCache {
    /// The VM's name of a blob; `None` while the VM is just creating the blob.
    fn name_of(&mut self, blob: &Blob, memory: &dyn Memory) -> Result<Option<&str>, MemoryError> {
        let at = blob.name_at;
        if !self.names.contains_key(&at) {
            let name = match memory.read_c_string(at, MAX_NAME) {
                Ok(name) => String::from_utf8_lossy(&name).into_owned(),
                Err(error) if error.is_final() => return Err(error),
                Err(_) => return Ok(None),
            };
            if self.names.len() >= MAX_NAMES {
                self.names.clear();
            }
            self.names.insert(at, name);
        }
        Ok(self.names.get(&at).map(String::as_str))
    }
}

impl CodeLayout {
    /// Reads the nmethod in `blob`, whose bytes are `bytes`.
    ///
    /// # Errors
    /// [`AdapterError::Implausible`] for parts outside their bounds; errors of reads.
    pub fn read_nmethod(
        &self,
        blob: Blob,
        bytes: &[u8],
        memory: &dyn Memory,
    ) -> Result<Nmethod, AdapterError> {
        Nmethod::read(self, blob, bytes, memory)
    }
}
