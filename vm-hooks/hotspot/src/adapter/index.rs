//! All classes of a JVM with their methods, and when each was there: an interpreted
//! frame shows only the address of the bytecode that it executes, and where a class is
//! unloaded, another is soon.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use vmscope_process::{AdapterError, Memory};
use vmscope_records::{Avma, ConstituentKey, TimeNs};

use super::methods::Pinned;
use crate::method::{ClassesLayout, MethodLayout};
use crate::pages::Pages;

/// More methods than this are not indexed.
const MAX_METHODS: usize = 4 << 20;

/// A loader of at least so many classes is known again by some of them: its list, and that
/// of another in its place, can't be alike by chance.
const MANY: usize = 64;

/// Those are its newest ones, which may have been half made at the last walk …
const NEWEST: usize = 16;

/// … and one of so many others, in turns.
const TURNS: usize = 16;

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

/// The classes of a loader as the last walk found them.
#[derive(Debug)]
struct Loaded {
    /// The newest one's, arrays too.
    newest: Avma,
    /// The newest first.
    classes: Vec<Avma>,
    /// Whether that walk found the ones of the walk before among them.
    is_same: bool,
}

/// The classes that are loaded.
#[derive(Debug, Default)]
pub(super) struct BytecodeIndex {
    /// By their `ClassLoaderData*`.
    loaders: FxHashMap<Avma, Loaded>,
    /// How many walks there were.
    walks: usize,
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
    /// [`BytecodeIndex::seen`]; where classes `may_have_gone`, it is checked that each
    /// loader's are still those that they were.
    ///
    /// # Errors
    ///
    /// As [`ClassesLayout::read`]; what is final.
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
        // A loader's newest class is the newest thing that is read of it.
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
                // The list could not be followed to its end.
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

    /// Whether a loader's classes are those that they were, as far as some of them show.
    fn is_same(&self, known: &Loaded, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        let classes = known.classes.iter().enumerate();
        let turn = self.walks % TURNS;
        let mut some = classes.filter(|(index, _)| *index < NEWEST || index % TURNS == turn);
        known.classes.len() >= MANY && some.all(|(_, klass)| self.is_there(*klass, layout, memory))
    }

    /// Whether the class at `klass` is the one that it was; one that is not known may be.
    fn is_there(&self, klass: Avma, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        self.classes.get(&klass).is_none_or(|was| {
            fingerprint(layout, memory, klass).is_none_or(|(now, _)| was.fingerprint == now)
                && !was.is_replaced(layout, memory)
        })
    }

    /// Moves the classes of a loader that are gone to `dead`.
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

    /// Takes a class that is not known yet.
    fn add(
        &mut self,
        klass: Avma,
        (layout, memory): (&MethodLayout, &dyn Memory),
        new: &mut Vec<Place>,
    ) -> Result<(), AdapterError> {
        if self.classes.contains_key(&klass) || self.methods.len() >= MAX_METHODS {
            return Ok(());
        }
        // What goes meanwhile is left out.
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
