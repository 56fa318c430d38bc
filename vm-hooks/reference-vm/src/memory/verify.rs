//! The check of the whole heap.

use super::classes::FORWARDER;
use super::view::{Object, walk};
use super::{Format, Heap, Oop, Roots};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashSet;

/// Knowledge about the heap during verification.
struct Verifier<'h> {
    heap: &'h Heap,
    /// All objects.
    areas: [Area; 4],
    remembered: FxHashSet<Oop>,
}

/// Memory of objects without gaps.
struct Area {
    /// First address.
    start: usize,
    /// A bit for each eight bytes: whether an object begins there.
    begins: FixedBitSet,
}

impl Area {
    /// Bytes for a bit.
    const UNIT: usize = 8;

    fn of(objects: impl Iterator<Item = Object>) -> Self {
        let mut area = Area {
            start: 0,
            begins: FixedBitSet::new(),
        };
        for object in objects {
            let at = object.oop().address();
            if area.begins.is_empty() {
                area.start = at;
            }
            area.begins.grow_and_insert((at - area.start) / Area::UNIT);
        }
        area
    }

    fn has(&self, oop: Oop) -> bool {
        let offset = oop.address().checked_sub(self.start);
        offset.is_some_and(|offset| {
            offset.is_multiple_of(Area::UNIT) && self.begins.contains(offset / Area::UNIT)
        })
    }
}

impl Heap {
    /// Checks all objects: valid headers, valid references, and a complete remembered set.
    ///
    /// # Errors
    /// Describes the first defect found.
    pub fn verify(&mut self, roots: &mut dyn Roots) -> Result<(), String> {
        let verifier = Verifier {
            areas: [
                // Most references are to old objects.
                Area::of(self.old_objects()),
                Area::of(self.permanent_objects()),
                Area::of(self.eden_objects()),
                Area::of(self.survivors()),
            ],
            remembered: self.remembered.iter().copied().collect(),
            heap: self,
        };
        verifier.check_remembered_set()?;
        for object in verifier.heap.all_objects() {
            verifier.check(object)?;
        }
        let mut result = Ok(());
        roots.visit(&mut |root| {
            if let Err(complaint) = verifier.check_reference(*root) {
                result = Err(format!("a root: {complaint}"));
            }
        });
        result?;
        for &mourner in &verifier.heap.mourners {
            let checked = verifier.check_reference(mourner);
            checked.map_err(|complaint| format!("the mourn queue: {complaint}"))?;
        }
        Ok(())
    }

    fn eden_objects(&self) -> impl Iterator<Item = Object> + use<> {
        // SAFETY: objects lie there without gaps, and nobody changes them meanwhile.
        unsafe { walk(self.new_space.eden_start, self.eden.free) }
    }

    fn all_objects(&self) -> impl Iterator<Item = Object> + use<> {
        self.eden_objects()
            .chain(self.survivors())
            .chain(self.old_objects())
            .chain(self.permanent_objects())
    }
}

impl Verifier<'_> {
    fn check_remembered_set(&self) -> Result<(), String> {
        if self.remembered.len() != self.heap.remembered.len() {
            return Err("the remembered set has an object twice".to_owned());
        }
        for &oop in &self.heap.remembered {
            self.check_reference(oop)?;
            if self.heap.is_new(oop) {
                return Err(format!("{oop:?} is remembered, but new"));
            }
        }
        Ok(())
    }

    fn check(&self, object: Object) -> Result<(), String> {
        let oop = object.oop();
        let header = object.header();
        let class_index = header.class_index();
        if class_index == FORWARDER || header.format() == Format::FORWARDER {
            return Err(format!("{oop:?} is a forwarder"));
        }
        if header.is_marked() || header.is_grey() {
            return Err(format!("{oop:?} is still marked"));
        }
        if header.is_remembered() != self.remembered.contains(&oop) {
            return Err(format!("{oop:?} has a wrong remembered bit"));
        }
        let must_be_remembered = !self.heap.is_new(oop);
        let mut result = Ok(());
        object.visit(0..object.reference_count(), |value| {
            let unwritten = value == Oop::NONE && header.format().is_method();
            let checked = if unwritten {
                Ok(())
            } else if must_be_remembered && self.heap.is_new(value) && !header.is_remembered() {
                Err(format!(
                    "refers to {value:?}, which is new, but is not remembered"
                ))
            } else {
                self.check_reference(value)
            };
            if let Err(complaint) = checked {
                result = Err(format!("{oop:?} of class {class_index}: {complaint}"));
            }
        });
        result
    }

    /// Checks that a reference is an object or immediate value.
    fn check_reference(&self, oop: Oop) -> Result<(), String> {
        if !oop.is_pointer() || self.areas.iter().any(|area| area.has(oop)) {
            Ok(())
        } else {
            Err(format!("{oop:?} is not an object"))
        }
    }
}
