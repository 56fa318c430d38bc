//! Sampled places in native code, collected during the recording. The recording's end needs their
//! symbols, and thus reads no sample again.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Avma, FileOffset, ModuleKey};

/// Maximum number of places: some twenty times the need of an hour beside a large program.
const MAX_PLACES: usize = 1 << 20;

/// Distinct sampled places in native code.
#[derive(Debug, Default)]
pub struct NativeHits {
    modules: FxHashMap<ModuleKey, FxHashSet<FileOffset>>,
    kernel: FxHashSet<Avma>,
    count: usize,
    is_cut: bool,
}

impl NativeHits {
    /// Adds a place in a file; callers have the place of their call.
    pub(super) fn native(&mut self, module: ModuleKey, at: FileOffset) {
        if self.has_room() && self.modules.entry(module).or_default().insert(at) {
            self.count += 1;
        }
    }

    /// Likewise in the kernel.
    pub(super) fn kernel(&mut self, at: Avma) {
        if self.has_room() && self.kernel.insert(at) {
            self.count += 1;
        }
    }

    fn has_room(&mut self) -> bool {
        self.is_cut |= self.count >= MAX_PLACES;
        !self.is_cut
    }

    /// Notes that places are missing.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Whether all sampled places are here.
    #[must_use]
    pub fn are_all(&self) -> bool {
        !self.is_cut
    }

    /// Places by module, each list ascending.
    pub fn modules(&self) -> impl Iterator<Item = (ModuleKey, Vec<FileOffset>)> {
        let modules = self.modules.iter();
        modules.map(|(module, places)| (*module, ascending(places)))
    }

    /// Places in the kernel, ascending.
    #[must_use]
    pub fn kernel_places(&self) -> Vec<Avma> {
        ascending(&self.kernel)
    }
}

fn ascending<T: Ord + Copy>(places: &FxHashSet<T>) -> Vec<T> {
    let mut places: Vec<T> = places.iter().copied().collect();
    places.sort_unstable();
    places
}
