//! Class loaders of a JVM and their classes.

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::layout::{Scalar, VmStructs};

const WHAT: &str = "classes";

/// Maximum plausible number of loaders (each hidden class may have its own).
const MAX_LOADERS: usize = 1 << 18;

/// Maximum plausible number of classes.
pub const MAX_CLASSES: usize = 1 << 20;

/// The VM's lists of classes.
#[derive(Clone, Copy, Debug)]
pub struct ClassesLayout {
    head: Avma,
    next_loader: Scalar,
    klasses: Scalar,
    next: Scalar,
    layout_helper: Scalar,
    loader: Scalar,
}

/// A class loader (`ClassLoaderData`). The VM unloads a loader's classes all together with the loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loader {
    /// Its address.
    pub at: Avma,
    /// Its newest class, head of the class list; 0 for none.
    pub newest: Avma,
}

/// Classes of a loader.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// `Klass*` of each class, newest first.
    pub all: Vec<Avma>,
    /// Whether the walk met the class `until`.
    pub has_met: bool,
    /// Whether the maximum number of classes cut the list.
    pub is_cut: bool,
}

impl ClassesLayout {
    /// Finds all fields.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`].
    pub fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        Ok(ClassesLayout {
            head: structs.static_at("ClassLoaderDataGraph", "_head")?,
            next_loader: structs.scalar("ClassLoaderData", "_next")?,
            klasses: structs.scalar("ClassLoaderData", "_klasses")?,
            next: structs.scalar("Klass", "_next_link")?,
            layout_helper: structs.scalar("Klass", "_layout_helper")?,
            loader: structs.scalar("Klass", "_class_loader_data")?,
        })
    }

    /// Loaders, newest first, up to the first loader that `is_known`. A list that changes during
    /// the read, or is damaged, ends at the first unreadable link.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] before the first loader exists; [`AdapterError::TooMany`];
    /// errors on reading the first loader.
    pub fn loaders(
        &self,
        memory: &dyn Memory,
        is_known: impl Fn(Avma) -> bool,
    ) -> Result<Vec<Loader>, AdapterError> {
        let head = memory.read_u64(self.head);
        let mut at = Avma(head.map_err(AdapterError::reading(WHAT))?);
        if at.0 == 0 {
            return Err(AdapterError::NotReady { what: WHAT });
        }
        let mut seen = FxHashSet::default();
        let mut loaders = Vec::new();
        while at.0 != 0 && !is_known(at) && seen.insert(at) {
            if seen.len() > MAX_LOADERS {
                return Err(AdapterError::TooMany {
                    what: WHAT,
                    cap: MAX_LOADERS as u64,
                });
            }
            loaders.push(self.loader_at(memory, at));
            at = follow(memory, self.next_loader, at);
        }
        Ok(loaders)
    }

    /// The loader at `at`.
    #[must_use]
    pub fn loader_at(&self, memory: &dyn Memory, at: Avma) -> Loader {
        let newest = follow(memory, self.klasses, at);
        Loader { at, newest }
    }

    /// Address of the loader of the class at `klass`; 0 if unreadable.
    #[must_use]
    pub fn loader_of(&self, memory: &dyn Memory, klass: Avma) -> Avma {
        follow(memory, self.loader, klass)
    }

    /// `Klass*` of a loader's classes without arrays, newest first, up to the class before
    /// `until`, if met, and at most `most` classes, arrays included. The list ends at an
    /// unreadable link.
    #[must_use]
    pub fn classes_of(
        &self,
        memory: &dyn Memory,
        loader: Loader,
        until: Option<Avma>,
        most: usize,
    ) -> Classes {
        let mut found = Classes::default();
        let mut met = FxHashSet::default();
        let mut class = loader.newest;
        while class.0 != 0 && met.insert(class) {
            if Some(class) == until {
                found.has_met = true;
                break;
            }
            if met.len() > most {
                found.is_cut = true;
                break;
            }
            // Arrays have negative values; no instance has size 0.
            if self.layout_helper.read(memory, class, WHAT).unwrap_or(0) > 0 {
                found.all.push(class);
            }
            class = follow(memory, self.next, class);
        }
        found
    }

    /// `Klass*` of all loaded classes, arrays excluded.
    ///
    /// # Errors
    /// As [`ClassesLayout::loaders`].
    pub fn read(&self, memory: &dyn Memory) -> Result<Vec<Avma>, AdapterError> {
        let mut classes = Vec::new();
        for loader in self.loaders(memory, |_| false)? {
            let room = MAX_CLASSES.saturating_sub(classes.len());
            classes.extend(self.classes_of(memory, loader, None, room).all);
        }
        Ok(classes)
    }
}

/// Target of a list's link; null for an unreadable link.
fn follow(memory: &dyn Memory, field: Scalar, at: Avma) -> Avma {
    let next = field.read_address(memory, at, WHAT);
    next.unwrap_or(Avma(0))
}
