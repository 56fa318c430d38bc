//! Executable mappings of an address space, kept for reads after the process's exit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vmscope_process::{MapEntry, ModuleFile, ProcessView};

/// Files with code per process; the largest processes have some hundreds.
const MAX_FILES: usize = 1024;

/// Anonymous mappings per process; their addresses are useless after the exit.
const MAX_ANONYMOUS: usize = 16;

/// Memory limit in bytes of all lists, names included: several thousand processes with several
/// hundred libraries each.
const MAX_BYTES: usize = 64 << 20;

/// Size of an entry without its name.
const ENTRY_BYTES: usize = size_of::<Mapped>() + 32;

/// An executable mapping and its file.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    pub entry: MapEntry,
    /// Opened when the mapping was reported; `None` for anonymous memory and unreadable files.
    pub file: Option<Arc<ModuleFile>>,
}

/// Executable mappings of an address space in report order; of repeated mappings, the newest.
#[derive(Debug)]
pub(super) struct MappedCode {
    list: Vec<Mapped>,
    bytes: usize,
    budget: Budget,
}

/// Bytes of all lists together.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

/// Result of [`MappedCode::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    New,
    /// Known, or irrelevant.
    Known,
    NoRoom,
}

impl MappedCode {
    pub fn new(budget: Budget) -> Self {
        MappedCode {
            list: Vec::new(),
            bytes: 0,
            budget,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mapped> {
        self.list.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a mapping.
    pub fn take(&mut self, mapped: Mapped) -> Taken {
        let entry = &mapped.entry;
        let is_file = entry.path().is_some();
        let same = |other: &Mapped| {
            let other = &other.entry;
            if is_file {
                (other.device, other.inode, other.offset, &other.name)
                    == (entry.device, entry.inode, entry.offset, &entry.name)
            } else {
                other.path().is_none() && other.start == entry.start
            }
        };
        // Repeated mappings are mostly the latest ones.
        if let Some(known) = self.list.iter_mut().rev().find(|other| same(other)) {
            let news = is_file && known.file.is_none() && mapped.file.is_some();
            known.entry.start = mapped.entry.start;
            known.entry.end = mapped.entry.end;
            known.file = known.file.take().or(mapped.file);
            return if news { Taken::New } else { Taken::Known };
        }
        let alike = |other: &&Mapped| other.entry.path().is_some() == is_file;
        let max = if is_file { MAX_FILES } else { MAX_ANONYMOUS };
        let bytes = ENTRY_BYTES + entry.name.len();
        if self.list.iter().filter(alike).count() >= max || !self.budget.take(bytes) {
            return if is_file { Taken::NoRoom } else { Taken::Known };
        }
        self.bytes += bytes;
        self.list.push(mapped);
        Taken::New
    }

    /// Gives the open files to a view.
    pub fn keep_in(&self, view: &ProcessView) {
        for mapped in &self.list {
            if let (Some(path), Some(file)) = (mapped.entry.path(), &mapped.file) {
                let numbers = (mapped.entry.device, mapped.entry.inode);
                view.keep(path, Some(numbers), Arc::clone(file));
            }
        }
    }

    /// Whether `maps` (ascending) fit this program: at least one file has its known address. After an
    /// exec, files have other addresses.
    pub fn is_seen_in(&self, maps: &[MapEntry]) -> bool {
        let mut files = self.list.iter().filter(|one| one.entry.path().is_some());
        let is_there = |mapped: &Mapped| {
            let told = &mapped.entry;
            let after = maps.partition_point(|entry| entry.start <= told.start);
            let there = after.checked_sub(1).and_then(|at| maps.get(at));
            let there = there.filter(|entry| entry.contains(told.start));
            // overlayfs may report different numbers or names in the two places.
            there.is_some_and(|there| {
                there.path() == told.path()
                    || (there.device, there.inode) == (told.device, told.inode)
            })
        };
        self.is_empty() || files.any(is_there)
    }
}

impl Clone for MappedCode {
    /// Counts the copy even beyond the limit: a copy precedes a change, which [`MappedCode::take`]
    /// bounds.
    fn clone(&self) -> Self {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
        MappedCode {
            list: self.list.clone(),
            bytes: self.bytes,
            budget: self.budget.clone(),
        }
    }
}

impl Drop for MappedCode {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Budget {
    /// Reserves bytes within [`MAX_BYTES`].
    fn take(&self, bytes: usize) -> bool {
        let fits = self.0.load(Ordering::Relaxed).saturating_add(bytes) <= MAX_BYTES;
        if fits {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }

    pub fn has_room(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MAX_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::{Avma, FileOffset};

    fn file(start: u64, inode: u64, name: &str) -> Mapped {
        let entry = MapEntry {
            start: Avma(start),
            end: Avma(start + 0x1000),
            offset: FileOffset(0),
            device: 1,
            inode,
            name: name.as_bytes().to_vec(),
            readable: true,
            writable: false,
            executable: true,
        };
        Mapped { entry, file: None }
    }

    #[test]
    fn what_is_mapped_for_ever_takes_no_more_room() {
        let budget = Budget::default();
        let mut code = MappedCode::new(budget.clone());
        assert_eq!(code.take(file(0x1000, 1, "/lib/a.so")), Taken::New);
        assert_eq!(code.take(file(0x5000, 1, "/lib/a.so")), Taken::Known);
        for at in 0..100_000 {
            assert_ne!(code.take(file(at << 12, 0, "")), Taken::NoRoom);
        }
        assert_eq!(code.iter().count(), 1 + MAX_ANONYMOUS);
        let mut no_room = 0;
        for inode in 2..3000 {
            no_room += usize::from(code.take(file(0, inode, "/tmp/x")) == Taken::NoRoom);
        }
        assert_eq!(no_room, 2998 - (MAX_FILES - 1));
        let copy = code.clone();
        let one = copy.bytes;
        assert_eq!(budget.0.load(Ordering::Relaxed), 2 * one);
        drop((code, copy));
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn another_program_is_told_apart() {
        let mut code = MappedCode::new(Budget::default());
        let told = file(0x4000_0000, 7, "/usr/bin/vm");
        let same = [told.entry.clone()];
        let moved = [file(0x5000_0000, 7, "/usr/bin/vm").entry];
        assert!(
            code.is_seen_in(&same) && code.is_seen_in(&moved),
            "nothing is known"
        );
        code.take(told);
        assert!(code.is_seen_in(&same));
        assert!(!code.is_seen_in(&moved));
    }
}
