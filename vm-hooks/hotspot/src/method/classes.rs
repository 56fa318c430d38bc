//! Class loaders of a JVM and their classes.

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::layout::{Scalar, VmStructs};

const WHAT: &str = "classes";

/// Maximum plausible number of loaders (each hidden class may have its own).
const MAX_LOADERS: usize = 1 << 18;

/// Maximum plausible number of classes.
const MAX_CLASSES: usize = 1 << 20;

/// The VM's lists of classes.
#[derive(Clone, Copy, Debug)]
pub struct ClassesLayout {
    head: Avma,
    next_loader: Scalar,
    klasses: Scalar,
    next: Scalar,
    layout_helper: Scalar,
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
        })
    }

    /// All loaders. A list that changes during the read, or is damaged, ends at the first
    /// unreadable link.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] before the first loader exists; [`AdapterError::TooMany`];
    /// errors on reading the first loader.
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

    /// `Klass*` of a loader's classes without arrays, newest first, up to the class before
    /// `until`, if met. `seen`: number of classes in previous loaders, arrays included. The
    /// list ends at an unreadable link.
    ///
    /// # Errors
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
            // Arrays have negative values; no instance has size 0.
            if self.layout_helper.read(memory, class, WHAT).unwrap_or(0) > 0 {
                found.all.push(class);
            }
            class = follow(memory, self.next, class);
        }
        Ok(found)
    }

    /// `Klass*` of all loaded classes, arrays excluded.
    ///
    /// # Errors
    /// As [`ClassesLayout::loaders`] and [`ClassesLayout::classes_of`].
    pub fn read(&self, memory: &dyn Memory) -> Result<Vec<Avma>, AdapterError> {
        let (mut classes, mut seen) = (Vec::new(), 0);
        for loader in self.loaders(memory)? {
            classes.extend(self.classes_of(memory, loader, None, &mut seen)?.all);
        }
        Ok(classes)
    }
}

/// Target of a list's link; null for an unreadable link.
fn follow(memory: &dyn Memory, field: Scalar, at: Avma) -> Avma {
    let next = field.read_address(memory, at, WHAT);
    next.unwrap_or(Avma(0))
}
