//! All classes of a JVM, by their loaders.

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::layout::{Scalar, VmStructs};

const WHAT: &str = "classes";

/// More loaders than this are not believed (each hidden class may have one).
const MAX_LOADERS: usize = 1 << 18;

/// More classes than this are not believed.
const MAX_CLASSES: usize = 1 << 20;

/// Where the VM keeps its classes.
#[derive(Clone, Copy, Debug)]
pub struct ClassesLayout {
    head: Avma,
    next_loader: Scalar,
    klasses: Scalar,
    next: Scalar,
    layout_helper: Scalar,
}

/// What a class loader has loaded (`ClassLoaderData`): all its classes go when it does,
/// none before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loader {
    /// Where the VM keeps it.
    pub at: Avma,
    /// The newest class, which leads to the one before; 0 for none.
    pub newest: Avma,
}

/// Classes of a loader.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// Their `Klass*`, the newest first.
    pub all: Vec<Avma>,
    /// Whether the one was met that they were asked for until.
    pub has_met: bool,
}

impl ClassesLayout {
    /// Polls everything up.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`].
    pub fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        Ok(ClassesLayout {
            head: structs.static_at("ClassLoaderDataGraph", "_head")?,
            next_loader: structs.scalar("ClassLoaderData", "_next")?,
            klasses: structs.scalar("ClassLoaderData", "_klasses")?,
            next: structs.scalar("Klass", "_next_link")?,
            layout_helper: structs.scalar("Klass", "_layout_helper")?,
        })
    }

    /// The loaders that there are. A list that is changed meanwhile, or that is damaged,
    /// ends where it can't be followed.
    ///
    /// # Errors
    ///
    /// [`AdapterError::NotReady`] before there are any; [`AdapterError::TooMany`];
    /// what reading fails with, of the first one.
    pub fn loaders(&self, memory: &dyn Memory) -> Result<Vec<Loader>, AdapterError> {
        let head = memory.read_u64(self.head);
        let mut at = Avma(head.map_err(AdapterError::reading(WHAT))?);
        if at.0 == 0 {
            return Err(AdapterError::NotReady { what: WHAT });
        }
        let mut seen = FxHashSet::default();
        let mut loaders = Vec::new();
        while at.0 != 0 && seen.insert(at) {
            if seen.len() > MAX_LOADERS {
                return Err(AdapterError::TooMany {
                    what: WHAT,
                    cap: MAX_LOADERS as u64,
                });
            }
            let newest = follow(memory, self.klasses, at);
            loaders.push(Loader { at, newest });
            at = follow(memory, self.next_loader, at);
        }
        Ok(loaders)
    }

    /// The classes of a loader, without arrays: their `Klass*`, the newest first, from its
    /// newest to the one before `until`, if that is met. `seen`: how many there were of
    /// loaders before, arrays too. A list that can't be followed ends there.
    ///
    /// # Errors
    ///
    /// [`AdapterError::TooMany`].
    pub fn classes_of(
        &self,
        memory: &dyn Memory,
        loader: Loader,
        until: Option<Avma>,
        seen: &mut usize,
    ) -> Result<Classes, AdapterError> {
        let mut found = Classes::default();
        let mut met = FxHashSet::default();
        let mut class = loader.newest;
        while class.0 != 0 && met.insert(class) {
            if Some(class) == until {
                found.has_met = true;
                break;
            }
            *seen += 1;
            if *seen > MAX_CLASSES {
                return Err(AdapterError::TooMany {
                    what: WHAT,
                    cap: MAX_CLASSES as u64,
                });
            }
            // Arrays' are negative; no instance has the size 0.
            if self.layout_helper.read(memory, class, WHAT).unwrap_or(0) > 0 {
                found.all.push(class);
            }
            class = follow(memory, self.next, class);
        }
        Ok(found)
    }

    /// The classes that are loaded, without arrays: their `Klass*`.
    ///
    /// # Errors
    ///
    /// As [`ClassesLayout::loaders`] and [`ClassesLayout::classes_of`].
    pub fn read(&self, memory: &dyn Memory) -> Result<Vec<Avma>, AdapterError> {
        let (mut classes, mut seen) = (Vec::new(), 0);
        for loader in self.loaders(memory)? {
            classes.extend(self.classes_of(memory, loader, None, &mut seen)?.all);
        }
        Ok(classes)
    }
}

/// Where a link of a list leads to; nowhere, where it can't be read.
fn follow(memory: &dyn Memory, field: Scalar, at: Avma) -> Avma {
    let next = field.read_address(memory, at, WHAT);
    next.unwrap_or(Avma(0))
}
