//! All classes of a JVM, by their loaders.

use rustc_hash::FxHashSet;
use vmscope_records::Avma;
use vmscope_target::{AdapterError, Memory};

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

impl ClassesLayout {
    /// Looks everything up.
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

    /// The classes that are loaded, without arrays: their `Klass*`. A list that is
    /// changed meanwhile, or that is damaged, ends where it can't be followed.
    ///
    /// # Errors
    ///
    /// [`AdapterError::NotReady`] before there are any; [`AdapterError::TooMany`];
    /// what reading fails with, of the first loader.
    pub fn read(&self, memory: &dyn Memory) -> Result<Vec<Avma>, AdapterError> {
        let mut loader = Avma(
            memory
                .read_u64(self.head)
                .map_err(AdapterError::reading(WHAT))?,
        );
        if loader.0 == 0 {
            return Err(AdapterError::NotReady { what: WHAT });
        }
        let too_many = |cap: usize| AdapterError::TooMany {
            what: WHAT,
            cap: cap as u64,
        };
        let follow = |field: Scalar, at: Avma| {
            let next = field.read_address(memory, at, WHAT);
            next.unwrap_or(Avma(0))
        };
        let (mut loaders, mut seen) = (FxHashSet::default(), FxHashSet::default());
        let mut classes = Vec::new();
        while loader.0 != 0 && loaders.insert(loader) {
            if loaders.len() > MAX_LOADERS {
                return Err(too_many(MAX_LOADERS));
            }
            let mut class = follow(self.klasses, loader);
            while class.0 != 0 && seen.insert(class) {
                if seen.len() > MAX_CLASSES {
                    return Err(too_many(MAX_CLASSES));
                }
                // Arrays' are negative; no instance has the size 0.
                if self.layout_helper.read(memory, class, WHAT).unwrap_or(0) > 0 {
                    classes.push(class);
                }
                class = follow(self.next, class);
            }
            loader = follow(self.next_loader, loader);
        }
        Ok(classes)
    }
}
