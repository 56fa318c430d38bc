//! Methods of a class: declared methods, and selection by name as for its objects.

use vmscope_process::{AdapterError, Memory, read_words};
use vmscope_records::Avma;

use super::MethodLayout;
use crate::layout::{Scalar, VmStructs};

const WHAT: &str = "class's methods";

/// Maximum length of a superclass chain.
const MAX_SUPERS: usize = 64;

/// A class's method arrays: `Array<Method*>`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassMethods {
    array: Scalar,
    length: Scalar,
    data: u64,
    /// Default methods from interfaces (`InstanceKlass::_default_methods`).
    defaults: Option<Scalar>,
    super_klass: Option<Scalar>,
}

impl ClassMethods {
    /// Finds all fields.
    pub fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        Ok(ClassMethods {
            array: structs.scalar("InstanceKlass", "_methods")?,
            // Every array of the VM begins with its length.
            length: structs.scalar("Array<int>", "_length")?,
            data: structs.offset("Array<Method*>", "_data")?,
            defaults: structs.optional_scalar("InstanceKlass", "_default_methods"),
            super_klass: structs.optional_scalar("Klass", "_super"),
        })
    }

    /// Methods in the array behind `field` of `klass`; empty for a null pointer.
    fn read(
        &self,
        memory: &dyn Memory,
        klass: Avma,
        field: Scalar,
    ) -> Result<Vec<u64>, AdapterError> {
        let array = field.read_address(memory, klass, WHAT)?;
        if array.0 == 0 {
            return Ok(Vec::new());
        }
        let count = self.length.read(memory, array, WHAT)?.cast_unsigned();
        if count > u64::from(u16::MAX) {
            return Err(AdapterError::Implausible {
                what: "number of methods of a class",
                value: count,
                at: array,
            });
        }
        let data = Avma(array.0.wrapping_add(self.data));
        memory
            .read_u64s(data, count, usize::from(u16::MAX))
            .map_err(AdapterError::reading(WHAT))
    }
}

impl MethodLayout {
    /// Methods (`Method*`) declared by the class at `klass`; empty if the tables lack the
    /// fields.
    ///
    /// # Errors
    /// [`AdapterError::Implausible`] above 65,535 methods; errors of [`MethodLayout::read`].
    pub fn methods_of(&self, memory: &dyn Memory, klass: Avma) -> Result<Vec<Avma>, AdapterError> {
        let Some(methods) = self.class_methods else {
            return Ok(Vec::new());
        };
        let found = methods.read(memory, klass, methods.array)?;
        Ok(found.into_iter().map(Avma).collect())
    }

    /// Addresses of each class's name and of its array of methods, by few system calls; `None` for unreadable classes.
    /// A class that is redefined has another array.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn pointers_of(
        &self,
        memory: &dyn Memory,
        classes: &[Avma],
    ) -> Result<Vec<Option<[Avma; 2]>>, AdapterError> {
        let name = self.klass_name.offset;
        let array = self
            .class_methods
            .map_or(name, |methods| methods.array.offset);
        let places = classes
            .iter()
            .flat_map(|klass| [name, array].map(|offset| Avma(klass.0.wrapping_add(offset))));
        let words = read_words(memory, &places.collect::<Vec<_>>());
        let words = words.map_err(AdapterError::reading(WHAT))?;
        let pair = |pair: &[Option<[u64; 1]>; 2]| {
            let [[name], [array]] = [pair[0]?, pair[1]?];
            Some([Avma(name), Avma(array)])
        };
        Ok(words.as_chunks().0.iter().map(pair).collect())
    }

    /// The method (`Method*`) of this name and signature for objects of the class at `klass`:
    /// its own, inherited, or an interface's default. Name and signature are symbol addresses,
    /// unique per text in the VM.
    ///
    /// # Errors
    /// As [`MethodLayout::methods_of`].
    pub fn method_named(
        &self,
        memory: &dyn Memory,
        klass: Avma,
        name_and_signature: (Avma, Avma),
    ) -> Result<Option<Avma>, AdapterError> {
        let Some(methods) = self.class_methods else {
            return Ok(None);
        };
        let mut at = klass;
        for _ in 0..MAX_SUPERS {
            if at.0 == 0 {
                break;
            }
            let declared = methods.read(memory, at, methods.array)?;
            if let Some(found) = self.named(memory, &declared, name_and_signature)? {
                return Ok(Some(found));
            }
            at = match methods.super_klass {
                Some(field) => field.read_address(memory, at, WHAT)?,
                None => Avma(0),
            };
        }
        match methods.defaults {
            Some(field) if klass.0 != 0 => {
                let defaults = methods.read(memory, klass, field)?;
                self.named(memory, &defaults, name_and_signature)
            }
            _ => Ok(None),
        }
    }

    /// Method of this name and signature among `methods`, which the VM sorts by the address of the
    /// name (`Method::sort_methods`).
    fn named(
        &self,
        memory: &dyn Memory,
        methods: &[u64],
        (name, signature): (Avma, Avma),
    ) -> Result<Option<Avma>, AdapterError> {
        let mut range = 0..methods.len();
        while !range.is_empty() {
            let middle = range.start + range.len() / 2;
            let Some(method) = methods.get(middle) else {
                break;
            };
            if self.name_of(memory, Avma(*method))? < name {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        for method in methods.iter().skip(range.start).copied().map(Avma) {
            if self.name_of(memory, method)? != name {
                break;
            }
            if self.signature_of(memory, method)? == signature {
                return Ok(Some(method));
            }
        }
        Ok(None)
    }
}
