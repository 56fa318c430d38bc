//! Address spaces: mappings of all processes at one time.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{
    Avma, FileOffset, Mapping, ModuleKey, Process, ProcessKey, Ranges, TimeNs, Unmapping,
};

/// The mapping of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapped {
    /// File and offset.
    File(ModuleKey, FileOffset),
    /// Anonymous memory.
    Anonymous,
}

/// What lies in a piece of an address space.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The file offset of address 0, wrapped around.
    base: u64,
    module: Option<ModuleKey>,
}

/// The meaning of a process record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// A new address space.
    New,
    /// A forked process replaced its program before other records of it: inherited mappings are
    /// gone.
    Anew,
    /// A known process again, perhaps with a better name.
    Again,
}

/// An address space.
#[derive(Debug, Default)]
struct Space {
    /// When it began; `None` if unknown.
    since: Option<TimeNs>,
    /// Whether it inherited its parent's mappings.
    forked: bool,
    /// Parent and child share them until one changes.
    pieces: Arc<Ranges<Piece>>,
}

/// All address spaces of a recording, moved forward in time record by record.
#[derive(Debug, Default)]
pub(crate) struct Spaces(FxHashMap<ProcessKey, Space>);

impl Spaces {
    /// Begins a process; a `forked` one inherits its parent's mappings.
    pub fn begin(&mut self, process: &Process, forked: bool) -> Beginning {
        let parent = process.parent.filter(|_| forked);
        let inherited = parent.and_then(|parent| self.0.get(&parent));
        let inherited = inherited.map(|parent| Arc::clone(&parent.pieces));
        let space = self.0.entry(process.key).or_default();
        let known = space.since.is_some();
        if known && !(space.forked && process.parent.is_none()) {
            return Beginning::Again;
        }
        space.since = Some(process.time);
        space.forked = forked;
        if known {
            space.pieces = Arc::default();
            return Beginning::Anew;
        }
        // This process made its earlier mappings itself.
        if space.pieces.is_empty() {
            space.pieces = inherited.unwrap_or_default();
        }
        Beginning::New
    }

    /// Whether a mapping is new in an address space that began earlier. Mappings of a process's
    /// beginning may come late, and a protection change repeats a known mapping.
    pub fn is_new(&self, mapping: &Mapping) -> bool {
        let Some(space) = self.0.get(&mapping.process) else {
            return false;
        };
        if space.since.is_none_or(|since| mapping.time <= since) {
            return false;
        }
        let (start, end) = (mapping.start.0, mapping.end.0);
        let mut overlapping = space.pieces.overlapping(start, end);
        let same = |piece: &Piece| {
            piece.module.is_some() && piece.module == mapping.module && piece.base == mapping.base()
        };
        start < end && !overlapping.any(same)
    }

    /// Adds a mapping, which replaces all that it overlaps.
    pub fn map(&mut self, mapping: &Mapping) {
        let (start, end) = (mapping.start.0, mapping.end.0);
        if start >= end {
            return;
        }
        let pieces = Arc::make_mut(&mut self.0.entry(mapping.process).or_default().pieces);
        let (base, module) = (mapping.base(), mapping.module);
        pieces.put(start, end, Piece { base, module });
    }

    /// Unmaps a range.
    pub fn unmap(&mut self, unmapping: &Unmapping) {
        let (start, end) = (unmapping.start.0, unmapping.end.0);
        if start < end {
            let space = self.0.entry(unmapping.process).or_default();
            Arc::make_mut(&mut space.pieces).cut(start, end);
        }
    }

    /// The number of address spaces.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Drops an ended process, which gets no more samples.
    pub fn forget(&mut self, process: ProcessKey) {
        self.0.remove(&process);
    }

    /// The present mapping of an address.
    pub fn lookup(&self, process: ProcessKey, address: Avma) -> Option<Mapped> {
        let piece = self.0.get(&process)?.pieces.at(address.0)?;
        Some(match piece.module {
            Some(module) => Mapped::File(module, FileOffset(piece.base.wrapping_add(address.0))),
            None => Mapped::Anonymous,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::{Pid, TimeNs};

    const PROCESS: ProcessKey = ProcessKey(1);

    fn map(spaces: &mut Spaces, start: u64, end: u64, offset: u64, module: u32) {
        spaces.map(&Mapping {
            process: PROCESS,
            time: TimeNs(0),
            start: Avma(start),
            end: Avma(end),
            offset: FileOffset(offset),
            module: Some(ModuleKey(module)),
            name: String::new(),
            executable: true,
        });
    }

    fn at(spaces: &Spaces, address: u64) -> Option<(u32, u64)> {
        match spaces.lookup(PROCESS, Avma(address))? {
            Mapped::File(module, offset) => Some((module.0, offset.0)),
            Mapped::Anonymous => None,
        }
    }

    #[test]
    fn a_mapping_cuts_what_it_overlaps() {
        let mut spaces = Spaces::default();
        map(&mut spaces, 100, 200, 1000, 1);
        map(&mut spaces, 140, 160, 0, 2);
        assert_eq!(at(&spaces, 139), Some((1, 1039)));
        assert_eq!(at(&spaces, 140), Some((2, 0)));
        assert_eq!(at(&spaces, 159), Some((2, 19)));
        assert_eq!(at(&spaces, 160), Some((1, 1060)));
        map(&mut spaces, 90, 150, 500, 3);
        assert_eq!(at(&spaces, 149), Some((3, 559)));
        assert_eq!(at(&spaces, 150), Some((2, 10)));
        assert_eq!(at(&spaces, 89), None);
        assert_eq!(at(&spaces, 200), None);
    }

    #[test]
    fn unmapping_leaves_the_rest() {
        let mut spaces = Spaces::default();
        map(&mut spaces, 0, 100, 0, 1);
        let (start, end) = (Avma(10), Avma(20));
        spaces.unmap(&Unmapping {
            process: PROCESS,
            time: TimeNs(0),
            start,
            end,
        });
        assert_eq!(at(&spaces, 9), Some((1, 9)));
        assert_eq!(at(&spaces, 10), None);
        assert_eq!(at(&spaces, 20), Some((1, 20)));
    }

    #[test]
    fn a_fork_shares_and_an_exec_does_not() {
        let mut spaces = Spaces::default();
        map(&mut spaces, 0, 100, 0, 1);
        let child = |key, parent| Process {
            key: ProcessKey(key),
            time: TimeNs(0),
            pid: Pid(key),
            parent: Some(ProcessKey(parent)),
            name: String::new(),
        };
        spaces.begin(&child(2, 1), true);
        spaces.begin(&child(3, 1), false);
        map(&mut spaces, 0, 100, 0, 7);
        let module_at = |key| spaces.lookup(ProcessKey(key), Avma(5));
        assert_eq!(
            module_at(2),
            Some(Mapped::File(ModuleKey(1), FileOffset(5)))
        );
        assert_eq!(module_at(3), None);
        assert_eq!(at(&spaces, 5), Some((7, 5)));
    }
}
