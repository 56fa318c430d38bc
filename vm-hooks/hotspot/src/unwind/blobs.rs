//! The blobs of the code cache around the addresses of a walk, remembered for a while.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, MAX_CALL_BYTES, Memory, ends_with_call};
use vmscope_records::Avma;

use crate::code::{BlobKind, CodeCache, CodeLayout, DeoptimisedFrames, FoundBlob, HeapBounds};

/// Time for which an nmethod's header is trusted: the VM may give its memory to another.
pub(super) const FRESH: Duration = Duration::from_millis(200);

/// Maximum number of blobs in memory.
const MAX_BLOBS: usize = 1 << 16;

/// Maximum number of remembered addresses of a blob, for each property.
const MAX_ADDRESSES: usize = 1 << 14;

/// Maximum bytes of a stub blob's code.
const MAX_CODE: usize = 1 << 20;

/// The part of a blob's header that unwinding needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// First address, and end (exclusive), of the code.
    pub code: Range<u64>,
    pub kind: BlobKind,
    /// Size of the frame with the return address; 0 for none.
    pub frame_bytes: u64,
    /// Address of the first instruction with a complete frame.
    pub frame_complete: u64,
    /// Begin of an nmethod's out-of-line stubs; the code's end without them.
    pub stubs: u64,
    /// Its deoptimised frames.
    pub deoptimised: Option<DeoptimisedFrames>,
}

#[derive(Debug)]
struct Known {
    piece: Piece,
    /// Begin of the blob's block.
    block: Avma,
    /// The time of the last reading; `None` if the piece is in doubt.
    read_at: Option<Instant>,
    /// Whether these addresses follow a call.
    after_calls: FxHashMap<u64, bool>,
    /// Addresses from which no path returns within an epilogue's length.
    far_from_return: FxHashSet<u64>,
    code: Option<Arc<[u8]>>,
}

impl Known {
    /// The VM changes nmethods only.
    fn is_fresh(&self) -> bool {
        let is_recent = |at: Instant| at.elapsed() < FRESH;
        self.piece.kind != BlobKind::Nmethod || self.read_at.is_some_and(is_recent)
    }
}

/// The known blobs.
#[derive(Debug)]
pub(super) struct Blobs {
    cache: CodeCache,
    heaps: Vec<HeapBounds>,
    /// By the first address of their code.
    known: BTreeMap<u64, Known>,
}

impl Blobs {
    pub fn new(layout: CodeLayout, memory: &dyn Memory) -> Result<Self, AdapterError> {
        let cache = CodeCache::new(layout);
        Ok(Blobs {
            heaps: cache.heaps(memory)?,
            cache,
            known: BTreeMap::new(),
        })
    }

    fn heap(&self, at: Avma) -> Option<&HeapBounds> {
        let mut heaps = self.heaps.iter();
        heaps.find(|heap| heap.low <= at && at < heap.reserved_end)
    }

    /// Whether an address lies in the code cache, or in memory reserved for its growth.
    pub fn holds(&self, at: Avma) -> bool {
        self.heap(at).is_some()
    }

    /// The blob with code at an address.
    pub fn at(&mut self, at: Avma, memory: &dyn Memory) -> Option<Piece> {
        if let Some(known) = self.known(at)
            && known.is_fresh()
        {
            return Some(known.piece.clone());
        }
        let heap = *self.heap(at)?;
        // The known blob mostly still has its block.
        let found = match self
            .known(at)
            .map(|known| (known.block, known.piece.clone()))
        {
            Some((block, known)) => match self.cache.blob_in(&heap, block, memory) {
                Ok(Some(found)) if piece_of(&found) == known => Ok(Some(found)),
                Ok(_) => self.cache.blob_at(&heap, at, memory),
                Err(error) => Err(error),
            },
            None => self.cache.blob_at(&heap, at, memory),
        };
        let found = match found {
            Ok(found) => found?,
            // The process has ended, but its last samples still need callers.
            Err(_) => return self.known(at).map(|known| known.piece.clone()),
        };
        let piece = piece_of(&found);
        if !piece.code.contains(&at.0) {
            return None;
        }
        self.remember(piece.clone(), found.block);
        Some(piece)
    }

    fn known(&self, at: Avma) -> Option<&Known> {
        let (_, known) = self.known.range(..=at.0).next_back()?;
        known.piece.code.contains(&at.0).then_some(known)
    }

    fn remember(&mut self, piece: Piece, block: Avma) {
        if self.known.len() >= MAX_BLOBS {
            self.known.clear();
        }
        let start = piece.code.start;
        if let Some(known) = self.known.get_mut(&start)
            && known.piece == piece
        {
            known.read_at = Some(Instant::now());
            return;
        }
        let known = Known {
            piece,
            block,
            read_at: Some(Instant::now()),
            after_calls: FxHashMap::default(),
            far_from_return: FxHashSet::default(),
            code: None,
        };
        self.known.insert(start, known);
    }

    /// Puts an nmethod at an address in doubt; returns whether one was known.
    pub fn doubt(&mut self, at: Avma) -> bool {
        let start = self.known(at).map(|known| known.piece.code.start);
        let known = start.and_then(|start| self.known.get_mut(&start));
        let known = known.filter(|known| known.piece.kind == BlobKind::Nmethod);
        known.is_some_and(|known| known.read_at.take().is_some())
    }

    /// The code of a stub blob, which the VM never changes.
    pub fn code_of(&mut self, piece: &Piece, memory: &dyn Memory) -> Option<Arc<[u8]>> {
        let known = self.known.get_mut(&piece.code.start)?;
        if known.code.is_none() {
            let length = piece.code.end.checked_sub(piece.code.start)?;
            let bytes = memory.read_vec(Avma(piece.code.start), length, MAX_CODE);
            known.code = Some(bytes.ok()?.into());
        }
        known.code.clone()
    }

    /// Whether the code at `pc` is known to be no epilogue: most samples hit the same code again.
    pub fn is_far_from_return(&self, piece: &Piece, pc: u64) -> bool {
        let known = self.known.get(&piece.code.start);
        known.is_some_and(|known| known.far_from_return.contains(&pc))
    }

    /// Remembers that the code at `pc` is no epilogue.
    pub fn note_far_from_return(&mut self, piece: &Piece, pc: u64) {
        if let Some(known) = self.known.get_mut(&piece.code.start) {
            if known.far_from_return.len() >= MAX_ADDRESSES {
                known.far_from_return.clear();
            }
            known.far_from_return.insert(pc);
        }
    }

    /// Whether a call precedes `pc`.
    pub fn is_after_call(&mut self, piece: &Piece, pc: u64, memory: &dyn Memory) -> bool {
        let Some(known) = self.known.get_mut(&piece.code.start) else {
            return false;
        };
        if let Some(is_after) = known.after_calls.get(&pc) {
            return *is_after;
        }
        let longest = MAX_CALL_BYTES as u64;
        let begin = pc.saturating_sub(longest).max(piece.code.start);
        let bytes = memory.read_vec(Avma(begin), pc.saturating_sub(begin), MAX_CALL_BYTES);
        let Ok(bytes) = bytes else {
            return false;
        };
        let is_after = ends_with_call(&bytes);
        if known.after_calls.len() >= MAX_ADDRESSES {
            known.after_calls.clear();
        }
        known.after_calls.insert(pc, is_after);
        is_after
    }
}

fn piece_of(found: &FoundBlob) -> Piece {
    let blob = &found.blob;
    let after = |offset: i32| {
        let offset = u64::try_from(offset).ok()?;
        Some(blob.code_begin.0.saturating_add(offset))
    };
    let words = u64::try_from(blob.frame_size).unwrap_or(0);
    Piece {
        code: blob.code_begin.0..blob.code_end.0,
        kind: found.kind,
        frame_bytes: words.saturating_mul(8),
        frame_complete: after(blob.frame_complete).unwrap_or(blob.code_begin.0),
        stubs: found.stubs.0,
        deoptimised: found.deoptimised,
    }
}
