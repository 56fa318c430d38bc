//! All executable mappings of a recording: the addresses of files' code, and memory for
//! generated code. Their times only matter while samples are placed, and are not kept.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vmscope_records::{Avma, FileOffset, Mapping, ModuleKey, ProcessKey};

/// Maximum number of mappings of one file: programs may map files again and again.
const MAX_OF_FILE: usize = 64;

/// The most pieces of a process's memory.
const MAX_ANONYMOUS: usize = 1 << 16;

/// A piece of a file, mapped executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The process of the address space.
    pub process: ProcessKey,
    /// Start address.
    pub start: Avma,
    /// End address, exclusive.
    pub end: Avma,
    /// The file offset of `start`.
    pub offset: FileOffset,
}

/// All executable mappings of a recording.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// In recording order, without duplicates.
    files: FxHashMap<ModuleKey, Vec<Extent>>,
    /// Ranges, start to end, disjoint and not adjacent.
    anonymous: FxHashMap<ProcessKey, BTreeMap<u64, u64>>,
}

impl Extents {
    /// Takes a mapping; `of_file` for a file with code.
    pub(super) fn note(&mut self, mapping: &Mapping, of_file: bool) {
        if !mapping.executable || mapping.start >= mapping.end {
            return;
        }
        let Some(module) = mapping.module.filter(|_| of_file) else {
            return self.note_anonymous(mapping.process, mapping.start.0, mapping.end.0);
        };
        let extents = self.files.entry(module).or_default();
        let extent = Extent {
            process: mapping.process,
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
        };
        if extents.len() < MAX_OF_FILE && !extents.contains(&extent) {
            extents.push(extent);
        }
    }

    /// The number of ranges.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let anonymous = self.anonymous.values().map(BTreeMap::len);
        anonymous.sum::<usize>() + self.files.values().map(Vec::len).sum::<usize>()
    }

    /// Drops ended processes.
    pub(super) fn forget(&mut self, gone: &FxHashSet<ProcessKey>) {
        self.anonymous.retain(|process, _| !gone.contains(process));
        for extents in self.files.values_mut() {
            extents.retain(|extent| !gone.contains(&extent.process));
        }
    }

    fn note_anonymous(&mut self, process: ProcessKey, mut start: u64, mut end: u64) {
        let pieces = self.anonymous.entry(process).or_default();
        while let Some((&from, &to)) = pieces.range(..=end).next_back() {
            if to < start {
                break;
            }
            pieces.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        if pieces.len() < MAX_ANONYMOUS {
            pieces.insert(start, end);
        }
    }

    /// The mappings of a file, in recording order.
    #[must_use]
    pub fn of_file(&self, module: ModuleKey) -> &[Extent] {
        self.files.get(&module).map_or(&[], Vec::as_slice)
    }

    /// The first address of a file offset; `None` without a mapping.
    #[must_use]
    pub fn address(&self, module: ModuleKey, offset: FileOffset) -> Option<(Extent, Avma)> {
        self.of_file(module).iter().find_map(|extent| {
            let inside = offset.0.checked_sub(extent.offset.0)?;
            let size = extent.end.0 - extent.start.0;
            (inside < size).then(|| (*extent, Avma(extent.start.0 + inside)))
        })
    }

    /// A process's executable memory without files, ascending: start and end addresses.
    pub fn anonymous(&self, process: ProcessKey) -> impl Iterator<Item = (Avma, Avma)> + '_ {
        let pieces = self.anonymous.get(&process).into_iter().flatten();
        pieces.map(|(&start, &end)| (Avma(start), Avma(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::TimeNs;

    fn mapping(start: u64, end: u64, offset: u64, module: Option<u32>) -> Mapping {
        Mapping {
            process: ProcessKey(1),
            time: TimeNs(0),
            start: Avma(start),
            end: Avma(end),
            offset: FileOffset(offset),
            module: module.map(ModuleKey),
            name: String::new(),
            executable: true,
        }
    }

    #[test]
    fn memory_of_no_file_is_one_piece_where_it_touches() {
        let mut extents = Extents::default();
        for (start, end) in [(10, 20), (40, 50), (20, 30), (29, 41), (60, 70)] {
            extents.note(&mapping(start, end, 0, None), false);
        }
        let pieces: Vec<(u64, u64)> = extents
            .anonymous(ProcessKey(1))
            .map(|(start, end)| (start.0, end.0))
            .collect();
        assert_eq!(pieces, [(10, 50), (60, 70)]);
    }

    #[test]
    fn a_place_of_a_file_has_the_first_address_that_it_had() {
        let mut extents = Extents::default();
        extents.note(&mapping(0x1000, 0x2000, 0x400, Some(7)), true);
        extents.note(&mapping(0x9000, 0xa000, 0x400, Some(7)), true);
        let address = |offset| {
            let found = extents.address(ModuleKey(7), FileOffset(offset));
            found.map(|(_, address)| address.0)
        };
        assert_eq!(address(0x410), Some(0x1010));
        assert_eq!(address(0x3ff), None);
        assert_eq!(address(0x1400), None);
    }
}
