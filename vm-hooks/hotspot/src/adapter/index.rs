//! All classes of a JVM with their methods, and when each was there: an interpreted
//! frame shows only the address of the bytecode that it executes, and where a class is
//! unloaded, another is soon.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use vmscope_records::{Avma, ConstituentKey, TimeNs};
use vmscope_target::{AdapterError, Memory};

use super::methods::Pinned;
use crate::method::{ClassesLayout, MethodLayout};

/// More methods than this are not indexed.
const MAX_METHODS: usize = 4 << 20;

/// When something was there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// It certainly was not there yet; 0 where nobody knows.
    pub absent_at: TimeNs,
    /// It certainly was there.
    pub since: TimeNs,
}

/// A method of a class that is loaded.
#[derive(Debug)]
pub(super) struct Entry {
    pub method: Avma,
    /// What is known of it, if it was read.
    pub pinned: Option<Pinned>,
    /// Its bytecodes and its object in the recording, if it was told.
    pub told: Option<[ConstituentKey; 2]>,
    /// Its bytecodes; none where both are the same.
    pub start: u64,
    pub end: u64,
}

/// A class that is loaded, or was.
#[derive(Debug)]
pub(super) struct Class {
    /// Of its name and its methods.
    fingerprint: u64,
    pub times: Times,
    pub entries: Vec<Entry>,
}

/// A place in the index.
pub(super) type Place = (Avma, usize);

/// The classes that are loaded.
#[derive(Debug, Default)]
pub(super) struct BytecodeIndex {
    /// By their `Klass*`.
    classes: FxHashMap<Avma, Class>,
    /// Bytecodes by their first address: first address after, and whose.
    ranges: BTreeMap<u64, (u64, Place)>,
    /// By `Method*`, those without bytecodes too.
    methods: FxHashMap<Avma, Place>,
}

/// What a walk over all classes found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Classes that are gone.
    pub dead: Vec<Class>,
    /// Methods of classes that were not there the last time.
    pub new: Vec<Place>,
}

impl Class {
    /// Whether any of the methods that were read is another now: a class that is loaded
    /// anew may have its name, and all its methods' places.
    fn is_replaced(&self, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        let mut pinned = self.entries.iter().filter_map(|one| one.pinned.as_ref());
        pinned.any(|(method, known)| known.is_replaced(layout, memory, *method))
    }
}

impl BytecodeIndex {
    /// Goes through all classes. When those that are new were there is to be told by
    /// [`BytecodeIndex::seen`]; where classes `may_have_gone`, it is checked that each is
    /// still the one it was.
    ///
    /// # Errors
    ///
    /// As [`ClassesLayout::read`]; what is final.
    pub fn walk(
        &mut self,
        (classes, layout): (&ClassesLayout, &MethodLayout),
        memory: &dyn Memory,
        may_have_gone: bool,
    ) -> Result<Walked, AdapterError> {
        let there = classes.read(memory)?;
        let mut walked = Walked::default();
        if may_have_gone {
            let present: FxHashSet<Avma> = there.iter().copied().collect();
            let known: Vec<Avma> = self.classes.keys().copied().collect();
            for klass in known {
                let Some(was) = self.classes.get(&klass) else {
                    continue;
                };
                let is_same = present.contains(&klass)
                    && fingerprint(layout, memory, klass)
                        .is_none_or(|(now, _)| was.fingerprint == now)
                    && !was.is_replaced(layout, memory);
                if !is_same {
                    walked.dead.extend(self.remove(klass));
                }
            }
        }
        for klass in there {
            if self.classes.contains_key(&klass) || self.methods.len() >= MAX_METHODS {
                continue;
            }
            // What goes meanwhile is left out.
            let Some((fingerprint, methods)) = fingerprint(layout, memory, klass) else {
                continue;
            };
            let mut entries = Vec::with_capacity(methods.len());
            for method in methods {
                let (start, end) = match layout.bytecode_range(memory, method) {
                    Ok((at, size)) => (at.0, at.0.saturating_add(size)),
                    Err(error) if error.is_final() => return Err(error),
                    Err(_) => continue,
                };
                let place = (klass, entries.len());
                if start < end {
                    self.ranges.insert(start, (end, place));
                }
                self.methods.insert(method, place);
                walked.new.push(place);
                entries.push(Entry {
                    method,
                    pinned: None,
                    told: None,
                    start,
                    end,
                });
            }
            let class = Class {
                fingerprint,
                times: Times::default(),
                entries,
            };
            self.classes.insert(klass, class);
        }
        Ok(walked)
    }

    fn remove(&mut self, klass: Avma) -> Option<Class> {
        let class = self.classes.remove(&klass)?;
        for entry in &class.entries {
            // Another may have its place already.
            let range = self.ranges.get(&entry.start);
            if range.is_some_and(|(_, (of, _))| *of == klass) {
                self.ranges.remove(&entry.start);
            }
            let place = self.methods.get(&entry.method);
            if place.is_some_and(|(of, _)| *of == klass) {
                self.methods.remove(&entry.method);
            }
        }
        Some(class)
    }

    /// The method that the bytecode at `at` belongs to, or whose object is there.
    pub fn find(&self, at: Avma) -> Option<Place> {
        let before = self.ranges.range(..=at.0).next_back();
        if let Some((_, (end, place))) = before
            && at.0 < *end
        {
            return Some(*place);
        }
        self.methods.get(&at).copied()
    }

    /// When the class at a place was there.
    pub fn seen(&mut self, (klass, _): Place, times: Times) {
        if let Some(class) = self.classes.get_mut(&klass) {
            class.times = times;
        }
    }

    /// What is at a place, and when it was there.
    pub fn get_mut(&mut self, (klass, number): Place) -> Option<(&mut Entry, Times)> {
        let class = self.classes.get_mut(&klass)?;
        let times = class.times;
        class.entries.get_mut(number).map(|entry| (entry, times))
    }
}

/// What a class is known by, and its methods; `None` where it can't be read.
fn fingerprint(
    layout: &MethodLayout,
    memory: &dyn Memory,
    klass: Avma,
) -> Option<(u64, Vec<Avma>)> {
    let name = layout.class(memory, klass).ok()?;
    let methods = layout.methods_of(memory, klass).ok()?;
    let mut hasher = FxHasher::default();
    (&name, &methods).hash(&mut hasher);
    Some((hasher.finish(), methods))
}
