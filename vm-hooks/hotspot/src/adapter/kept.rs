//! The compiled methods that are in the code cache, kept until a sample asks for their
//! maps: by then the VM may have thrown them away.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Avma, Constituent};

use crate::code::{Nmethod, NmethodId};

/// So much memory may be kept: some ten times what a large program's code takes.
const MAX_BYTES: usize = 512 << 20;

/// For how many readings of the code cache code is kept that is gone.
const KEEP_GONE: u8 = 4;

/// A compiled method, and how the recording knows it.
#[derive(Debug)]
pub(super) struct Kept {
    pub nmethod: Nmethod,
    /// What the recording was told; `None` before that.
    pub constituent: Option<Constituent>,
    pub is_mapped: bool,
    /// Readings since it was gone.
    gone_for: u8,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Nmethods {
    all: FxHashMap<NmethodId, Kept>,
    /// Where they are: first address, first address after. Ascending; those that are
    /// gone among them.
    places: Vec<(Avma, Avma, NmethodId)>,
    bytes: usize,
    /// How many were not kept for want of memory.
    pub refused: u64,
}

impl Nmethods {
    pub fn get(&self, id: &NmethodId) -> Option<&Kept> {
        self.all.get(id)
    }

    pub fn get_mut(&mut self, id: &NmethodId) -> Option<&mut Kept> {
        self.all.get_mut(id)
    }

    /// Those of `ids` that are kept, in no order.
    pub fn among(&mut self, ids: &[NmethodId]) -> impl Iterator<Item = &mut Kept> {
        let wanted: FxHashSet<NmethodId> = ids.iter().copied().collect();
        let all = self.all.iter_mut();
        all.filter_map(move |(id, kept)| wanted.contains(id).then_some(kept))
    }

    /// Keeps one, if there is room.
    pub fn put(&mut self, nmethod: Nmethod) {
        let bytes = bytes_of(&nmethod);
        if self.bytes.saturating_add(bytes) > MAX_BYTES {
            self.refused += 1;
            return;
        }
        self.bytes += bytes;
        let kept = Kept {
            constituent: None,
            is_mapped: false,
            gone_for: 0,
            nmethod,
        };
        self.all.insert(kept.nmethod.id, kept);
    }

    /// A reading is over: `is_there` says what it found.
    pub fn age(&mut self, is_there: impl Fn(&NmethodId) -> bool) {
        let bytes = &mut self.bytes;
        self.all.retain(|id, kept| {
            kept.gone_for = if is_there(id) { 0 } else { kept.gone_for + 1 };
            let stays = kept.gone_for <= KEEP_GONE;
            if !stays {
                *bytes = bytes.saturating_sub(bytes_of(&kept.nmethod));
            }
            stays
        });
        self.places.clear();
        let place = |kept: &Kept| {
            let blob = &kept.nmethod.blob;
            (blob.code_begin, blob.code_end, kept.nmethod.id)
        };
        self.places.extend(self.all.values().map(place));
        self.places.sort_unstable();
    }

    /// The compiled methods that hold any of `addresses` (ascending), or held them not
    /// long ago.
    pub fn at(&self, addresses: &[Avma]) -> Vec<NmethodId> {
        let mut found = Vec::new();
        let (Some(first), Some(last)) = (addresses.first(), addresses.last()) else {
            return found;
        };
        for (start, end, id) in &self.places {
            if end <= first || start > last {
                continue;
            }
            let after = addresses.partition_point(|address| address < start);
            if addresses.get(after).is_some_and(|address| address < end) {
                found.push(*id);
            }
        }
        found
    }
}

fn bytes_of(nmethod: &Nmethod) -> usize {
    let small = nmethod.pcs.len() * 16 + (nmethod.metadata.len() + nmethod.oops.len()) * 8;
    let parts = [
        nmethod.code.len(),
        nmethod.constants.len(),
        nmethod.scopes.len(),
        nmethod.relocations.len(),
        nmethod.implicit.len() * 8,
        small,
        std::mem::size_of::<Kept>(),
    ];
    parts.iter().sum()
}
