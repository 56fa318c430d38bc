//! Index of all classes of a JVM, their methods, and their lifetimes. An interpreted frame
//! shows only a bytecode address, and new classes soon reuse the addresses of unloaded ones.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use vmscope_process::{AdapterError, Memory};
use vmscope_records::{Avma, ConstituentKey, TimeNs};

use super::methods::Pinned;
use crate::method::{ClassesLayout, MethodLayout};
use crate::pages::Pages;

/// Maximum number of indexed methods.
const MAX_METHODS: usize = 4 << 20;

/// Minimum number of classes for recognition of a loader by a selection: class lists of this
/// size are never equal by chance.
const MANY: usize = 64;

/// The selection has the newest classes, perhaps incomplete at the last walk …
const NEWEST: usize = 16;

/// … and, in turns, every n-th of the rest.
const TURNS: usize = 16;

/// Begin of a lifetime, as observed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// Last time certainly before; 0 if unknown.
    pub absent_at: TimeNs,
    /// First time certainly present.
    pub since: TimeNs,
}

/// A method of a loaded class.
#[derive(Debug)]
pub(super) struct Entry {
    pub method: Avma,
    /// Data of the method, if read.
    pub pinned: Option<Pinned>,
    /// Keys of its bytecodes and its object, once reported.
    pub told: Option<[ConstituentKey; 2]>,
    /// First and last address of its bytecodes; equal for a method without bytecodes.
    pub start: u64,
    pub end: u64,
}

/// A class, loaded now or earlier.
#[derive(Debug)]
pub(super) struct Class {
    /// Hash of its name and its methods.
    fingerprint: u64,
    pub times: Times,
    pub entries: Vec<Entry>,
}

/// Position in the index.
pub(super) type Place = (Avma, usize);

/// Classes of a loader at the last walk.
#[derive(Debug)]
struct Loaded {
    /// Newest class, array classes included.
    newest: Avma,
    /// Newest first.
    classes: Vec<Avma>,
    /// Whether the walk found all classes of the previous walk.
    is_same: bool,
}

/// All loaded classes.
#[derive(Debug, Default)]
pub(super) struct BytecodeIndex {
    /// Loaders by `ClassLoaderData*`.
    loaders: FxHashMap<Avma, Loaded>,
    /// Number of walks.
    walks: usize,
    /// Classes by `Klass*`.
    classes: FxHashMap<Avma, Class>,
    /// Bytecodes by first address: end address (exclusive), position.
    ranges: BTreeMap<u64, (u64, Place)>,
    /// Methods by `Method*`, including methods without bytecodes.
    methods: FxHashMap<Avma, Place>,
}

/// Result of a walk over all classes.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Classes unloaded.
    pub dead: Vec<Class>,
    /// Methods of new classes.
    pub new: Vec<Place>,
}

impl Class {
    /// Whether any method read was replaced. Reloading a class may reproduce names and addresses.
    fn is_replaced(&self, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        let mut pinned = self.entries.iter().filter_map(|one| one.pinned.as_ref());
        pinned.any(|(method, known)| known.is_replaced(layout, memory, *method))
    }
}

impl BytecodeIndex {
    /// Walks over all classes. Afterwards the caller reports the lifetimes of new classes with
    /// [`BytecodeIndex::seen`]. If classes `may_have_gone`, the walk compares each loader's
    /// classes with the previous walk.
    ///
    /// # Errors
    /// Final errors of [`ClassesLayout::read`].
    pub fn walk(
        &mut self,
        (classes, layout): (&ClassesLayout, &MethodLayout),
        pages: &Pages<'_>,
        may_have_gone: bool,
    ) -> Result<Walked, AdapterError> {
        self.walks = self.walks.wrapping_add(1);
        let mut there: FxHashMap<Avma, Loaded> = FxHashMap::default();
        let mut seen = 0;
        pages.renew();
        let loaders = classes.loaders(pages)?;
        // The newest class is the newest data read from a loader.
        pages.renew();
        let memory: &dyn Memory = pages;
        for loader in loaders {
            let known = self.loaders.get(&loader.at);
            let known = known.filter(|known| !may_have_gone || self.is_same(known, layout, memory));
            let until = known.map(|known| known.newest);
            let found = classes.classes_of(memory, loader, until, &mut seen)?;
            let known = known.map_or(&[][..], |known| &known.classes);
            let mut all = found.all;
            if found.has_met {
                seen = seen.saturating_add(known.len());
                all.extend_from_slice(known);
            } else if !may_have_gone {
                // The walk did not reach the list's end.
                let new: FxHashSet<Avma> = all.iter().copied().collect();
                all.extend(known.iter().filter(|klass| !new.contains(klass)));
            }
            let loaded = Loaded {
                newest: loader.newest,
                classes: all,
                is_same: found.has_met,
            };
            there.insert(loader.at, loaded);
        }
        let mut walked = Walked::default();
        for (at, was) in std::mem::take(&mut self.loaders) {
            if may_have_gone {
                self.bury(&was, there.get(&at), (layout, memory), &mut walked.dead);
            } else {
                there.entry(at).or_insert(was);
            }
        }
        for loaded in there.values() {
            for klass in &loaded.classes {
                self.add(*klass, (layout, memory), &mut walked.new)?;
            }
        }
        self.loaders = there;
        Ok(walked)
    }

    /// Whether a selection shows that a loader's classes are unchanged.
    fn is_same(&self, known: &Loaded, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        let classes = known.classes.iter().enumerate();
        let turn = self.walks % TURNS;
        let mut some = classes.filter(|(index, _)| *index < NEWEST || index % TURNS == turn);
        known.classes.len() >= MANY && some.all(|(_, klass)| self.is_there(*klass, layout, memory))
    }

    /// Whether the class at `klass` is unchanged; true for an unknown class.
    fn is_there(&self, klass: Avma, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        self.classes.get(&klass).is_none_or(|was| {
            fingerprint(layout, memory, klass).is_none_or(|(now, _)| was.fingerprint == now)
                && !was.is_replaced(layout, memory)
        })
    }

    /// Moves a loader's unloaded classes to `dead`.
    fn bury(
        &mut self,
        was: &Loaded,
        now: Option<&Loaded>,
        (layout, memory): (&MethodLayout, &dyn Memory),
        dead: &mut Vec<Class>,
    ) {
        if now.is_some_and(|now| now.is_same) {
            return;
        }
        let now = now.map_or(&[][..], |now| &now.classes);
        let present: FxHashSet<Avma> = now.iter().copied().collect();
        for klass in &was.classes {
            if !present.contains(klass) || !self.is_there(*klass, layout, memory) {
                dead.extend(self.remove(*klass));
            }
        }
    }

    /// Adds a new class.
    fn add(
        &mut self,
        klass: Avma,
        (layout, memory): (&MethodLayout, &dyn Memory),
        new: &mut Vec<Place>,
    ) -> Result<(), AdapterError> {
        if self.classes.contains_key(&klass) || self.methods.len() >= MAX_METHODS {
            return Ok(());
        }
        // Leaves out classes that disappear during the read.
        let Some((fingerprint, methods)) = fingerprint(layout, memory, klass) else {
            return Ok(());
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
            new.push(place);
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
        Ok(())
    }

    fn remove(&mut self, klass: Avma) -> Option<Class> {
        let class = self.classes.remove(&klass)?;
        for entry in &class.entries {
            // Another method may have the address range already.
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

    /// Method whose bytecodes include `at`, or whose object is at `at`.
    pub fn find(&self, at: Avma) -> Option<Place> {
        let before = self.ranges.range(..=at.0).next_back();
        if let Some((_, (end, place))) = before
            && at.0 < *end
        {
            return Some(*place);
        }
        self.methods.get(&at).copied()
    }

    /// Sets the lifetime of the class at a position.
    pub fn seen(&mut self, (klass, _): Place, times: Times) {
        if let Some(class) = self.classes.get_mut(&klass) {
            class.times = times;
        }
    }

    /// Entry and lifetime of a position.
    pub fn get_mut(&mut self, (klass, number): Place) -> Option<(&mut Entry, Times)> {
        let class = self.classes.get_mut(&klass)?;
        let times = class.times;
        class.entries.get_mut(number).map(|entry| (entry, times))
    }
}

/// Hash of a class's name and methods, and its methods; `None` if unreadable.
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
