//! The class builder.

use super::{CLASS_SLOTS, Class, Image, NoMemory, permanent, permanent_bytes};
use crate::memory::header::Format;
use crate::memory::{Heap, Oop, classes as known};
use crate::syntax::{ClassDefinition, ClassKind};

/// Reasons why a class definition fails.
#[derive(Debug, thiserror::Error)]
pub enum ClassError {
    /// The superclass does not exist.
    #[error("the superclass {0} is not defined")]
    NoSuperclass(String),
    /// Two instance variables share a name.
    #[error("the instance variable {0} exists already")]
    Duplicate(String),
    /// The definition would change a class with instances or subclasses.
    #[error("the class {0} exists with other variables")]
    Changed(String),
    /// Instance variables required by the VM are missing.
    #[error("the class {0} must have the instance variables {1}")]
    Known(String, String),
    /// Instances store bytes, so the class can't have instance variables.
    #[error("the class {0} has bytes, and can't have instance variables")]
    Bytes(String),
    /// Too many classes.
    #[error("there are too many classes")]
    TooMany,
    /// No memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

impl Image {
    /// Defines a class with its metaclass. Accepts a repeated identical definition.
    pub(super) fn define_class(
        &mut self,
        heap: &mut Heap,
        definition: &ClassDefinition,
    ) -> Result<(), ClassError> {
        let name = &definition.name;
        let superclass = match &definition.superclass {
            None => 0,
            Some(above) => {
                (self.class_named(above)).ok_or_else(|| ClassError::NoSuperclass(above.clone()))?
            }
        };
        let inherited = self.class(superclass);
        let mut variables =
            inherited.map_or_else(Vec::new, |class| class.instance_variables.clone());
        for variable in &definition.instance_variables {
            if variables.contains(variable) {
                return Err(ClassError::Duplicate(variable.clone()));
            }
            variables.push(variable.clone());
        }
        let inherited = inherited.map_or(Format::EMPTY, |class| class.format);
        let format = instance_format(inherited, definition.kind, variables.len());
        if format.is_bytes() && !variables.is_empty() {
            return Err(ClassError::Bytes(name.clone()));
        }
        if let Some(index) = self.class_named(name) {
            let class = self.class(index);
            let is_same = class.is_some_and(|class| {
                class.superclass == superclass
                    && class.instance_variables == variables
                    && class.format == format
            });
            if !is_same {
                return Err(ClassError::Changed(name.clone()));
            }
        } else {
            check_known(name, &variables)?;
            self.make_class(heap, name, superclass, variables, format)?;
        }
        let index = self.class_named(name).unwrap_or(0);
        for variable in &definition.class_variables {
            let association = self.association(heap, variable)?;
            if let Some(class) = self.class_mut(index) {
                let variables = &mut class.class_variables;
                variables.entry(variable.clone()).or_insert(association);
            }
        }
        Ok(())
    }

    fn make_class(
        &mut self,
        heap: &mut Heap,
        name: &str,
        superclass: u32,
        instance_variables: Vec<String>,
        format: Format,
    ) -> Result<(), ClassError> {
        let known = known::KNOWN.iter().find(|known| known.1 == name);
        let meta_index = self.next_index()?;
        let index = match known {
            Some((index, ..)) => *index,
            None => meta_index + 1,
        };
        let super_meta = self
            .class(superclass)
            .map_or(known::CLASS, |class| class.other);
        let meta_variables = match self.class(super_meta) {
            Some(class) => class.instance_variables.clone(),
            // The root's metaclass comes before the class Class.
            None => behavior_variables(),
        };
        let super_class_oop = self.class(superclass).map_or(heap.nil(), |class| class.oop);
        let super_meta_oop = self.class(super_meta).map_or(heap.nil(), |class| class.oop);
        let meta_name = format!("{name} class");
        let meta = Class {
            oop: permanent(heap, known::METACLASS, Format::FIXED, CLASS_SLOTS)?,
            superclass: super_meta,
            other: index,
            meta: true,
            name: meta_name,
            format: Format::FIXED,
            instance_variables: meta_variables,
            class_variables: Default::default(),
            methods: Default::default(),
        };
        let slots = meta.instance_variables.len();
        let class = Class {
            oop: permanent(heap, meta_index, Format::FIXED, slots)?,
            superclass,
            other: meta_index,
            meta: false,
            name: name.to_owned(),
            format,
            instance_variables,
            class_variables: Default::default(),
            methods: Default::default(),
        };
        self.fill(heap, &meta, meta_index, super_meta_oop)?;
        self.fill(heap, &class, index, super_class_oop)?;
        let association = self.global(heap, name)?;
        heap.store(association, 1, class.oop);
        // Class-side methods use this Association as their last literal. No program can write its
        // name.
        let association = self.global(heap, &meta.name)?;
        heap.store(association, 1, meta.oop);
        self.by_name.insert(name.to_owned(), index);
        heap.set_fixed_fields(index, class.instance_variables.len());
        if self.pretenured.iter().any(|pretenured| pretenured == name) {
            heap.pretenure_class(index, true);
        }
        if name == "Class" {
            // The root's metaclass inherits from Class. Class did not exist when the root was
            // created.
            let root = self.class(known::OBJECT).map(|root| root.other);
            if let Some(root) = root.and_then(|root| self.class(root)) {
                heap.store(root.oop, 0, class.oop);
            }
        }
        self.put(meta_index, meta);
        self.put(index, class);
        Ok(())
    }

    /// The first index of a free pair of class indices.
    fn next_index(&self) -> Result<u32, ClassError> {
        let next = self.classes.len().max(known::FIRST_FREE as usize);
        let next = u32::try_from(next).unwrap_or(u32::MAX);
        if next >= crate::memory::header::MAX_CLASS_INDEX - 2 {
            return Err(ClassError::TooMany);
        }
        Ok(next)
    }

    fn put(&mut self, index: u32, class: Class) {
        let index = index as usize;
        if self.classes.len() <= index {
            self.classes.resize_with(index + 1, || None);
        }
        if let Some(place) = self.classes.get_mut(index) {
            *place = Some(class);
        }
    }

    /// Fills a class object's slots.
    fn fill(
        &mut self,
        heap: &mut Heap,
        class: &Class,
        index: u32,
        superclass: Oop,
    ) -> Result<(), NoMemory> {
        let name = match class.meta {
            true => permanent_bytes(heap, known::STRING, class.name.as_bytes())?,
            false => self.symbol(heap, class.name.as_bytes())?,
        };
        let count = class.instance_variables.len();
        let names = permanent(heap, known::ARRAY, Format::INDEXED, count)?;
        for (at, variable) in class.instance_variables.iter().enumerate() {
            let variable = self.symbol(heap, variable.as_bytes())?;
            heap.store(names, at, variable);
        }
        let format = i64::from(class.format.0) << 16 | i64::try_from(count).unwrap_or(0);
        let (format, number) = (Oop::small(format), Oop::small(i64::from(index)));
        for (at, value) in [superclass, format, number, name, names]
            .into_iter()
            .enumerate()
        {
            heap.store(class.oop, at, value);
        }
        set_class_hash(class.oop, index);
        Ok(())
    }

    /// Defines class-instance variables: `Foo class instanceVariableNames: 'x'`.
    pub(super) fn define_class_variables(
        &mut self,
        heap: &mut Heap,
        name: &str,
        names: &[String],
    ) -> Result<(), ClassError> {
        let unknown = || ClassError::NoSuperclass(name.to_owned());
        let index = self.class_named(name).ok_or_else(unknown)?;
        let meta_index = self.class(index).ok_or_else(unknown)?.other;
        let has_subclasses = self
            .classes
            .iter()
            .flatten()
            .any(|class| class.superclass == index);
        let meta = self.class(meta_index).ok_or_else(unknown)?;
        let inherited = self.class(meta.superclass);
        let mut variables =
            inherited.map_or_else(behavior_variables, |class| class.instance_variables.clone());
        for variable in names {
            if variables.contains(variable) {
                return Err(ClassError::Duplicate(variable.clone()));
            }
            variables.push(variable.clone());
        }
        if variables == meta.instance_variables {
            return Ok(());
        }
        if has_subclasses || !meta.methods.is_empty() {
            return Err(ClassError::Changed(format!("{name} class")));
        }
        // A larger class object replaces the old class object.
        let slots = variables.len();
        let oop = permanent(heap, meta_index, Format::FIXED, slots)?;
        let class = self.class(index).ok_or_else(unknown)?;
        let old = class.oop;
        for at in 0..CLASS_SLOTS {
            heap.store(oop, at, crate::interpreter::objects::slot(old, at));
        }
        set_class_hash(oop, index);
        let association = self.global(heap, name)?;
        heap.store(association, 1, oop);
        if let Some(class) = self.class_mut(index) {
            class.oop = oop;
        }
        if let Some(meta) = self.class_mut(meta_index) {
            meta.instance_variables = variables;
        }
        Ok(())
    }
}

/// A class's identity hash equals its class index: `basicNew` reads the index there.
#[allow(unsafe_code, reason = "writes the header of a class object")]
fn set_class_hash(class: Oop, index: u32) {
    use crate::memory::object;
    // SAFETY: a permanent object.
    let header = unsafe { object::header(class) };
    // SAFETY: likewise; only the hash changes.
    unsafe { object::set_header(class, header.with_hash(index)) };
}

/// The instance variables of every class object.
fn behavior_variables() -> Vec<String> {
    let behavior = known::KNOWN.iter().find(|known| known.0 == known::BEHAVIOR);
    let names = behavior.map_or(&[] as &[&str], |known| known.2);
    names.iter().map(|&name| name.to_owned()).collect()
}

fn instance_format(inherited: Format, kind: ClassKind, fields: usize) -> Format {
    match kind {
        ClassKind::VariableByte => Format::BYTES,
        ClassKind::Weak => Format::WEAK,
        ClassKind::Ephemeron => Format::EPHEMERON,
        ClassKind::Variable if fields == 0 => Format::INDEXED,
        ClassKind::Variable => Format::FIXED_AND_INDEXED,
        // Instances inherit the superclass's indexed format.
        ClassKind::Normal => match inherited {
            Format::EMPTY | Format::FIXED if fields == 0 => Format::EMPTY,
            Format::EMPTY => Format::FIXED,
            Format::INDEXED if fields > 0 => Format::FIXED_AND_INDEXED,
            other => other,
        },
    }
}

/// Checks the instance variables that the VM reads.
fn check_known(name: &str, variables: &[String]) -> Result<(), ClassError> {
    let Some((_, _, fields)) = known::KNOWN.iter().find(|known| known.1 == name) else {
        return Ok(());
    };
    let are_there = variables.len() >= fields.len()
        && variables
            .iter()
            .zip(*fields)
            .all(|(variable, field)| variable == field);
    if are_there {
        Ok(())
    } else {
        Err(ClassError::Known(name.to_owned(), fields.join(" ")))
    }
}
