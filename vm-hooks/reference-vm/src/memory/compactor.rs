//! Later phases of a full collection: slide live objects of old space together, preserving order.

use super::object::{self, WORD};
use super::view::{Object, walk};
use super::{Format, Heap, Oop, Roots};
use std::ops::Range;

/// Which words of old space live, and how many live words lie before each block of 64 words.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// A bit per word.
    bits: Vec<u64>,
    /// A number per 64 bits.
    preceding: Vec<usize>,
}

const BLOCK: usize = 64;

impl Marks {
    /// Ensures enough mark memory for `bytes` bytes of heap.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        let blocks = bytes.div_ceil(BLOCK * WORD);
        let bits = blocks.saturating_sub(self.bits.len());
        let preceding = blocks.saturating_sub(self.preceding.len());
        self.bits.try_reserve(bits).is_ok() && self.preceding.try_reserve(preceding).is_ok()
    }

    /// Resets the bitmap: `bytes` bytes without marks.
    fn clear(&mut self, bytes: usize) {
        self.bits.clear();
        self.bits.resize(bytes.div_ceil(BLOCK * WORD), 0);
    }

    /// These words live.
    fn set(&mut self, words: Range<usize>) {
        let mut next = words.start;
        while next < words.end {
            let end = words.end.min((next / BLOCK + 1) * BLOCK);
            let ones = u64::MAX >> (BLOCK - (end - next));
            self.bits[next / BLOCK] |= ones << (next % BLOCK);
            next = end;
        }
    }

    /// Counts the live words before each block. Returns the total.
    fn count(&mut self) -> usize {
        let mut count = 0;
        self.preceding.clear();
        self.preceding.extend(self.bits.iter().map(|bits| {
            let preceding = count;
            count += bits.count_ones() as usize;
            preceding
        }));
        count
    }

    /// New position of a live word: the number of live words before it.
    #[inline]
    fn place(&self, word: usize) -> usize {
        let below = (1 << (word % BLOCK)) - 1;
        let inside = self.bits[word / BLOCK] & below;
        self.preceding[word / BLOCK] + inside.count_ones() as usize
    }

    /// First word at or after `word` with the given state: live or dead.
    fn find(&self, word: usize, lives: bool) -> Option<usize> {
        let mut block = word / BLOCK;
        let mut skip = u64::MAX << (word % BLOCK);
        while let Some(&bits) = self.bits.get(block) {
            let found = if lives { bits } else { !bits } & skip;
            if found != 0 {
                return Some(block * BLOCK + found.trailing_zeros() as usize);
            }
            skip = u64::MAX;
            block += 1;
        }
        None
    }

    /// Maximal ranges of live words, separated by dead words.
    fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = self.find(next, true)?;
            next = self.find(start, false).unwrap_or(self.bits.len() * BLOCK);
            Some(start..next)
        })
    }
}

/// New places of old space's live objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Start of the moved area; objects at lower addresses keep their place.
    first_moved: usize,
    /// End of old space's objects after compaction.
    free: usize,
}

impl Heap {
    /// Notes which words of old space live. All live objects are marked.
    pub(super) fn plan(&mut self) -> Plan {
        let start = self.old.start();
        self.marks.clear(self.old.used());
        for object in self.old_objects() {
            if object.header().is_marked() {
                let first = (object.start() - start) / WORD;
                self.marks.set(first..first + object.size() / WORD);
            }
        }
        let live = self.marks.count();
        let dense = self.marks.find(0, false).unwrap_or(live);
        Plan {
            first_moved: start + dense * WORD,
            free: start + live * WORD,
        }
    }

    /// Replaces all references to moving objects, and clears all marks. Dead objects in survivor
    /// space become bytes objects, and so contain no references.
    pub(super) fn update_references(&mut self, plan: Plan, roots: &mut dyn Roots) {
        roots.visit(&mut |root| *root = self.planned(plan, *root));
        for index in 0..self.mourners.len() {
            self.mourners[index] = self.planned(plan, self.mourners[index]);
        }
        self.update_remembered_set(plan);
        for object in self.permanent_objects() {
            self.update_object(plan, object);
        }
        for object in self.survivors() {
            let header = object.header();
            if header.is_marked() {
                self.update_object(plan, object);
                object.set_header(header.with_mark(false));
            } else {
                object.set_header(header.with_format(Format::BYTES));
            }
        }
        let start = self.old.start();
        for run in self.marks.runs() {
            // SAFETY: live objects lie without gaps in a range of live words.
            for object in unsafe { walk(start + run.start * WORD, start + run.end * WORD) } {
                self.update_object(plan, object);
                object.set_header(object.header().with_mark(false));
            }
        }
    }

    /// Dead objects leave the remembered set.
    fn update_remembered_set(&mut self, plan: Plan) {
        let mut remembered = std::mem::take(&mut self.remembered);
        remembered.retain_mut(|oop| {
            // SAFETY: the remembered set contains only objects, still at their old places.
            let object = unsafe { Object::new(*oop) };
            let lives = !self.old.contains(*oop) || object.header().is_marked();
            if lives {
                *oop = self.planned(plan, *oop);
            }
            lives
        });
        self.remembered = remembered;
    }

    #[inline]
    fn update_object(&self, plan: Plan, object: Object) {
        object.update(0..object.reference_count(), |value| {
            self.planned(plan, value)
        });
    }

    /// New value of a reference after compaction.
    #[inline]
    pub(super) fn planned(&self, plan: Plan, oop: Oop) -> Oop {
        if !self.old.contains(oop) || oop.address() < plan.first_moved {
            return oop;
        }
        let start = self.old.start();
        let place = self.marks.place((oop.address() - start) / WORD);
        Oop::from_address(start + place * WORD)
    }

    /// Moves old space's live objects to their new addresses (references are already updated).
    pub(super) fn compact(&mut self, plan: Plan) {
        let start = self.old.start();
        let mut target = start;
        for run in self.marks.runs() {
            let from = start + run.start * WORD;
            let bytes = run.len() * WORD;
            if from != target {
                // SAFETY: live objects move down in old space, over dead and moved ones.
                unsafe { object::slide(from, target, bytes) };
            }
            target += bytes;
        }
        debug_assert_eq!(target, plan.free);
        self.old.set_free(plan.free);
    }
}
