//! Index of classes, their methods, and their lifetimes. An interpreted frame shows a bytecode's
//! address and the method's, and new classes soon reuse the addresses of unloaded ones.
//!
//! A JVM may have tens of thousands of classes. The index has classes with sampled methods, and
//! all classes of young loaders with few classes: such classes may be gone when their samples
//! arrive.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use vmscope_process::{AdapterError, Memory};
use vmscope_records::{Avma, ConstituentKey, TimeNs};

use super::methods::Pinned;
use crate::method::{ClassesLayout, Loader, MAX_CLASSES, MethodLayout};
use crate::pages::Pages;

/// Maximum number of indexed methods.
const MAX_METHODS: usize = 4 << 20;

/// Maximum number of classes of a young loader.
const FEW: usize = 64;

/// Number of newest loaders in which each walk looks for new classes.
const RECENT: usize = 256;

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
    /// See [`MethodLayout::pointers_of`].
    pointers: Option<[Avma; 2]>,
    pub times: Times,
    pub entries: Vec<Entry>,
}

/// Position in the index.
pub(super) type Place = (Avma, usize);

/// A loader at the last walk.
#[derive(Debug)]
struct Loaded {
    /// Newest class, array classes included.
    newest: Avma,
    /// Indexed classes.
    classes: Vec<Avma>,
    /// Whether these are all its classes.
    is_young: bool,
}

/// The indexed classes.
#[derive(Debug, Default)]
pub(super) struct BytecodeIndex {
    /// All loaders by `ClassLoaderData*`.
    loaders: FxHashMap<Avma, Loaded>,
    /// The newest loaders, newest first.
    recent: Vec<Avma>,
    /// Classes by `Klass*`.
    classes: FxHashMap<Avma, Class>,
    /// Bytecodes by first address: end address (exclusive), position.
    ranges: BTreeMap<u64, (u64, Place)>,
    /// Methods by `Method*`, including methods without bytecodes.
    methods: FxHashMap<Avma, Place>,
    /// Number of the walk.
    turn: usize,
}

/// Result of a walk over the loaders.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Indexed classes that were unloaded.
    pub dead: Vec<Class>,
    /// Methods of new classes of young loaders.
    pub new: Vec<Place>,
}

/// Result of a search for a method's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampled {
    /// The class is in the index now.
    New(Avma),
    /// The class may be newer than the last walk.
    AfterWalk,
    /// The address holds no method of a class outside the index.
    Nothing,
}

/// Layouts of classes and methods.
pub(super) type Layouts<'l> = (&'l ClassesLayout, &'l MethodLayout);

impl Class {
    /// Whether any method read was replaced. Reloading a class may reproduce names and addresses.
    fn is_replaced(&self, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        let mut pinned = self.entries.iter().filter_map(|one| one.pinned.as_ref());
        pinned.any(|(method, known)| known.is_replaced(layout, memory, *method))
    }
}

impl BytecodeIndex {
    /// Walks over the loaders. Afterwards the caller reports the lifetimes of new classes with
    /// [`BytecodeIndex::seen`]. Unless classes `may_have_gone`, the walk visits only new loaders
    /// and the newest of the known ones.
    ///
    /// # Errors
    /// Final errors of [`ClassesLayout::loaders`] and of reads.
    pub fn walk(
        &mut self,
        layouts: Layouts<'_>,
        pages: &Pages<'_>,
        may_have_gone: bool,
    ) -> Result<Walked, AdapterError> {
        let is_first = self.loaders.is_empty();
        self.turn = self.turn.wrapping_add(1);
        pages.renew();
        let is_known = |at| !may_have_gone && self.loaders.contains_key(&at);
        let mut found = layouts.0.loaders(pages, is_known)?;
        // The newest class is the newest data read from a loader.
        pages.renew();
        let mut recent: Vec<Avma> = found.iter().map(|loader| loader.at).take(RECENT).collect();
        let mut walked = Walked::default();
        if may_have_gone {
            let there: FxHashSet<Avma> = found.iter().map(|loader| loader.at).collect();
            let is_gone = |at: &Avma, _: &mut Loaded| !there.contains(at);
            let gone: Vec<(Avma, Loaded)> = self.loaders.extract_if(is_gone).collect();
            let classes = gone.into_iter().flat_map(|(_, was)| was.classes);
            walked
                .dead
                .extend(classes.filter_map(|klass| self.remove(klass)));
        } else {
            let room = RECENT.saturating_sub(recent.len());
            recent.extend(self.recent.iter().take(room));
            for at in &self.recent {
                let loader = layouts.0.loader_at(pages, *at);
                let was = self.loaders.get(at);
                if was.is_some_and(|was| was.is_young && was.newest != loader.newest) {
                    found.push(loader);
                }
            }
        }
        for loader in found {
            let was = self.loaders.remove(&loader.at).unwrap_or(Loaded {
                newest: Avma(0),
                classes: Vec::new(),
                is_young: !is_first,
            });
            let loaded =
                self.renewed((was, loader), (layouts, pages, may_have_gone), &mut walked)?;
            self.loaders.insert(loader.at, loaded);
        }
        self.recent = recent;
        Ok(walked)
    }

    /// A loader after a walk: without its unloaded classes, and with the new classes of a young
    /// loader.
    fn renewed(
        &mut self,
        (mut was, loader): (Loaded, Loader),
        (layouts, memory, may_have_gone): (Layouts<'_>, &Pages<'_>, bool),
        walked: &mut Walked,
    ) -> Result<Loaded, AdapterError> {
        let (classes, layout) = layouts;
        let newest = std::mem::replace(&mut was.newest, loader.newest);
        if !was.is_young && was.classes.is_empty() {
            return Ok(was);
        }
        // Another loader may take an unloaded loader's address, and another class the newest
        // class's address.
        let (until, most) = match (was.is_young, may_have_gone) {
            (true, true) => (None, FEW),
            (true, false) => (Some(newest), FEW),
            (false, _) => (Some(newest), MAX_CLASSES),
        };
        let found = classes.classes_of(memory, loader, until, most);
        if may_have_gone {
            let are_listed = found.has_met || found.is_cut;
            let listed: FxHashSet<Avma> = found.all.iter().copied().collect();
            let mut there = Vec::with_capacity(was.classes.len());
            let unchanged = self.unchanged(&was.classes, layout, memory.memory())?;
            for klass in was.classes {
                let is_listed = are_listed || listed.contains(&klass);
                let is_there =
                    || unchanged.contains(&klass) || self.is_there(klass, layout, memory);
                if is_listed && is_there() {
                    there.push(klass);
                } else {
                    walked.dead.extend(self.remove(klass));
                }
            }
            was.classes = there;
        }
        was.is_young &= !found.is_cut && found.all.len() + was.classes.len() <= FEW;
        if was.is_young {
            for klass in found.all {
                if self.add(klass, (layout, memory), &mut walked.new)? {
                    was.classes.push(klass);
                }
            }
        }
        Ok(was)
    }

    /// Adds the class of the method at `method`, if its loader is known.
    ///
    /// # Errors
    /// Final errors of reads.
    pub fn sampled(
        &mut self,
        method: Avma,
        (classes, layout): Layouts<'_>,
        memory: &dyn Memory,
    ) -> Result<Sampled, AdapterError> {
        let klass = match layout.holder(memory, method) {
            Ok(Some(klass)) if !self.classes.contains_key(&klass) => klass,
            Err(error) if error.is_final() => return Err(error),
            _ => return Ok(Sampled::Nothing),
        };
        let loader = classes.loader_of(memory, klass);
        // The walk has found all living classes of a young loader: this class is newer, or unloaded, and
        // another loader has its loader's address.
        if self
            .loaders
            .get(&loader)
            .is_none_or(|loaded| loaded.is_young)
        {
            return Ok(Sampled::AfterWalk);
        }
        if !self.add(klass, (layout, memory), &mut Vec::new())? {
            return Ok(Sampled::Nothing);
        }
        if let Some(loaded) = self.loaders.get_mut(&loader) {
            loaded.classes.push(klass);
        }
        Ok(Sampled::New(klass))
    }

    /// Takes back a class that [`BytecodeIndex::sampled`] added.
    pub fn take_back(&mut self, klass: Avma) {
        self.remove(klass);
        for loaded in self.loaders.values_mut() {
            loaded.classes.retain(|one| *one != klass);
        }
    }

    /// Unchanged classes of a loader with many classes: their pointers to name and methods are equal. A new loader at
    /// the loader's address would have to place all its classes likewise. Each walk leaves out [`FEW`] other classes,
    /// for a whole comparison.
    fn unchanged(
        &self,
        classes: &[Avma],
        layout: &MethodLayout,
        memory: &dyn Memory,
    ) -> Result<FxHashSet<Avma>, AdapterError> {
        if classes.len() <= FEW {
            return Ok(FxHashSet::default());
        }
        let turns = classes.len().div_ceil(FEW);
        let mut unchanged = FxHashSet::default();
        let found = layout.pointers_of(memory, classes)?;
        for (number, (klass, pointers)) in classes.iter().zip(found).enumerate() {
            let was = self.classes.get(klass).and_then(|class| class.pointers);
            if number % turns != self.turn % turns && pointers.is_some() && pointers == was {
                unchanged.insert(*klass);
            }
        }
        Ok(unchanged)
    }

    /// Whether the class at `klass` is unchanged; true for an unknown class.
    fn is_there(&self, klass: Avma, layout: &MethodLayout, memory: &dyn Memory) -> bool {
        self.classes.get(&klass).is_none_or(|was| {
            fingerprint(layout, memory, klass).is_none_or(|(now, _)| was.fingerprint == now)
                && !was.is_replaced(layout, memory)
        })
    }

    /// Adds a class. Returns whether it is new.
    fn add(
        &mut self,
        klass: Avma,
        (layout, memory): (&MethodLayout, &dyn Memory),
        new: &mut Vec<Place>,
    ) -> Result<bool, AdapterError> {
        if self.classes.contains_key(&klass) || self.methods.len() >= MAX_METHODS {
            return Ok(false);
        }
        // Leaves out classes that disappear during the read.
        let Some((fingerprint, methods)) = fingerprint(layout, memory, klass) else {
            return Ok(false);
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
        let pointers = layout.pointers_of(memory, &[klass])?;
        let class = Class {
            fingerprint,
            pointers: pointers.first().copied().flatten(),
            times: Times::default(),
            entries,
        };
        self.classes.insert(klass, class);
        Ok(true)
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

    /// Sets a class's lifetime.
    pub fn seen(&mut self, klass: Avma, times: Times) {
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

#[cfg(test)]
mod tests {
    use vmscope_process::MemoryError;
    use vmscope_process::testing::FakeMemory;

    use super::*;
    use crate::jvm::Jvm;
    use crate::snapshot_files::snapshot;
    use crate::testing::walk;

    /// Memory with further bytes.
    struct With<'m> {
        memory: &'m dyn Memory,
        at: Avma,
        bytes: Vec<u8>,
    }

    impl Memory for With<'_> {
        fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
            let within = at.0.checked_sub(self.at.0);
            let within = within.and_then(|offset| self.bytes.get(usize::try_from(offset).ok()?..));
            let Some(bytes) = within.filter(|bytes| !bytes.is_empty()) else {
                return self.memory.read_partial(at, buffer);
            };
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        }
    }

    #[test]
    fn classes_with_their_pointers_are_read_again_in_turns() {
        let snapshot = snapshot("jdk17");
        let process = snapshot.process();
        let jvm = Jvm::open(&process, &Pages::new(process.memory())).unwrap();
        let layout = &jvm.methods;
        let mut memory = FakeMemory::new();
        let classes: Vec<Avma> = (1..=3 * FEW as u64)
            .map(|number| Avma(number << 16))
            .collect();
        for klass in &classes {
            memory.put(*klass, vec![7; 0x1000]);
        }
        let mut index = BytecodeIndex::default();
        for (klass, pointers) in classes
            .iter()
            .zip(layout.pointers_of(&memory, &classes).unwrap())
        {
            assert!(pointers.is_some());
            let class = Class {
                fingerprint: 0,
                pointers,
                times: Times::default(),
                entries: Vec::new(),
            };
            index.classes.insert(*klass, class);
        }
        let mut compared: FxHashMap<Avma, u32> = FxHashMap::default();
        for turn in 0..3 {
            index.turn = turn;
            let unchanged = index.unchanged(&classes, layout, &memory).unwrap();
            assert_eq!(unchanged.len(), 2 * FEW);
            for klass in classes.iter().filter(|klass| !unchanged.contains(klass)) {
                *compared.entry(*klass).or_default() += 1;
            }
        }
        assert_eq!(compared.len(), classes.len(), "each once in three walks");
        let changed = [classes[1], classes[3]];
        memory.put(changed[0], vec![8; 0x1000]);
        memory.remove(changed[1], 0x1000);
        let unchanged = index
            .unchanged(&classes[..2 * FEW], layout, &memory)
            .unwrap();
        assert_eq!(unchanged.len(), FEW - 2);
        assert!(unchanged.is_disjoint(&FxHashSet::from_iter(changed)));
        let few = index.unchanged(&classes[..FEW], layout, &memory).unwrap();
        assert!(
            few.is_empty(),
            "a small loader's classes may all be replaced"
        );
    }

    /// The memory of an unloaded class names a loader; a young loader has the same address now.
    #[test]
    fn a_class_that_no_walk_found_in_a_young_loader_is_not_indexed() {
        let snapshot = snapshot("jdk17");
        let process = snapshot.process();
        let pages = Pages::new(process.memory());
        let jvm = Jvm::open(&process, &pages).unwrap();
        let classes = ClassesLayout::of(&jvm.structs).unwrap();
        let layouts = (&classes, &jvm.methods);
        let compiled = walk(&process, process.memory()).unwrap().nmethods;
        let method = compiled.first().unwrap().nmethod.method;
        // The snapshot lacks the class's array of methods: a length, and the methods' addresses.
        let pointer = |at: Avma, class, field| {
            let offset = jvm.structs.offset(class, field).unwrap();
            Avma(pages.read_u64(Avma(at.0 + offset)).unwrap())
        };
        let constants = pointer(
            pointer(method, "Method", "_constMethod"),
            "ConstMethod",
            "_constants",
        );
        let klass = pointer(constants, "ConstantPool", "_pool_holder");
        let memory = With {
            memory: &pages,
            at: pointer(klass, "InstanceKlass", "_methods"),
            bytes: [1, method.0].map(u64::to_le_bytes).concat(),
        };
        let loader = classes.loader_of(&memory, klass);
        let mut index = BytecodeIndex::default();
        for (loaded, found) in [
            (None, Sampled::AfterWalk),
            (Some(true), Sampled::AfterWalk),
            (Some(false), Sampled::New(klass)),
        ] {
            if let Some(is_young) = loaded {
                let loaded = Loaded {
                    newest: Avma(0),
                    classes: Vec::new(),
                    is_young,
                };
                index.loaders.insert(loader, loaded);
            }
            let sampled = index.sampled(method, layouts, &memory).unwrap();
            assert_eq!(sampled, found);
        }
    }
}
