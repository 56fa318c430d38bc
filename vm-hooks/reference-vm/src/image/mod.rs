//! The loader's output in permanent space: classes, methods, symbols and globals.

pub mod builder;
mod classes;
mod loader;

use rustc_hash::FxHashMap;

use crate::compiler::CompiledCode;
use crate::memory::header::Format;
use crate::memory::{Heap, Oop, classes as known, object};

pub use loader::LoadError;

/// Slots of every class object before its class-instance variables, as `Behavior` declares them.
pub const CLASS_SLOTS: usize = 5;

/// A class or metaclass.
#[derive(Debug)]
pub struct Class {
    /// The class object.
    pub oop: Oop,
    /// Index of the superclass; 0 for the root.
    pub superclass: u32,
    /// For classes, index of the metaclass. For metaclasses, index of the class.
    pub other: u32,
    /// Whether this is a metaclass.
    pub meta: bool,
    /// Name; of a metaclass with ` class`.
    pub name: String,
    /// Instance variables, with the inherited ones.
    pub instance_variables: Vec<String>,
    /// Format of the instances.
    pub format: Format,
    /// Class variables by name: their Associations.
    pub class_variables: FxHashMap<String, Oop>,
    /// Methods by selector.
    pub methods: FxHashMap<Oop, Oop>,
}

/// A method or block in memory.
#[derive(Debug)]
pub struct Method {
    /// The object.
    pub oop: Oop,
    /// Number, from 1 on. Never reused.
    pub id: u64,
    /// Class name.
    pub class: String,
    /// Selector; of blocks `[] in selector`.
    pub name: String,
    /// Source file.
    pub file: String,
    /// First line.
    pub line: u32,
    /// The compiler's output.
    pub code: CompiledCode,
}

/// Classes, methods, symbols and globals.
#[derive(Debug, Default)]
pub struct Image {
    /// Classes by index.
    pub classes: Vec<Option<Class>>,
    /// Indices by name.
    by_name: FxHashMap<String, u32>,
    /// Symbols by text.
    symbols: FxHashMap<Vec<u8>, Oop>,
    /// Associations of globals, by name.
    pub globals: FxHashMap<String, Oop>,
    /// All methods and blocks; index = id − 1.
    pub methods: Vec<Method>,
    /// Places in `methods` by address.
    by_address: FxHashMap<Oop, usize>,
    /// Names of classes whose instances are allocated in old space.
    pub pretenured: Vec<String>,
    /// How many of `methods` are published.
    pub published: usize,
}

impl Method {
    /// pc of the first bytecode: 1-based, from the method's first slot (Cog's numbering).
    #[must_use]
    pub fn first_pc(&self) -> u32 {
        let literals = builder::literals_of(self.oop);
        u32::try_from(8 * (literals + 1) + 1).unwrap_or(u32::MAX)
    }

    /// Name for reports: `Class>>selector`, of a block `[] in Class>>selector`.
    #[must_use]
    pub fn title(&self) -> String {
        match self.name.rsplit_once(" in ") {
            Some((blocks, selector)) => format!("{blocks} in {}>>{selector}", self.class),
            None => format!("{}>>{}", self.class, self.name),
        }
    }
}

/// The permanent space is full: the machine has no memory.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system has no memory for classes and methods")]
pub struct NoMemory;

impl Image {
    /// The class with this index.
    #[must_use]
    pub fn class(&self, index: u32) -> Option<&Class> {
        self.classes.get(index as usize)?.as_ref()
    }

    /// The class with this index, mutable.
    pub fn class_mut(&mut self, index: u32) -> Option<&mut Class> {
        self.classes.get_mut(index as usize)?.as_mut()
    }

    /// Index of a class by name.
    #[must_use]
    pub fn class_named(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Finds a method or block by address.
    #[must_use]
    pub fn method(&self, oop: Oop) -> Option<&Method> {
        self.methods.get(*self.by_address.get(&oop)?)
    }

    /// Finds a method by selector, searching upwards from a class.
    #[must_use]
    pub fn lookup(&self, selector: Oop, class: u32) -> Option<Oop> {
        let mut index = class;
        while let Some(class) = self.class(index) {
            if let Some(method) = class.methods.get(&selector) {
                return Some(*method);
            }
            index = class.superclass;
        }
        None
    }

    /// The symbol with this text.
    ///
    /// # Errors
    ///
    /// If the system has no memory.
    pub fn symbol(&mut self, heap: &mut Heap, text: &[u8]) -> Result<Oop, NoMemory> {
        if let Some(symbol) = self.symbols.get(text) {
            return Ok(*symbol);
        }
        let symbol = permanent_bytes(heap, known::SYMBOL, text)?;
        self.symbols.insert(text.to_vec(), symbol);
        Ok(symbol)
    }

    /// Returns a global's Association; creates missing Associations.
    ///
    /// # Errors
    ///
    /// If the system has no memory.
    pub fn global(&mut self, heap: &mut Heap, name: &str) -> Result<Oop, NoMemory> {
        if let Some(association) = self.globals.get(name) {
            return Ok(*association);
        }
        let association = self.association(heap, name)?;
        self.globals.insert(name.to_owned(), association);
        Ok(association)
    }

    /// Creates an Association with a symbol as key.
    pub(crate) fn association(&mut self, heap: &mut Heap, name: &str) -> Result<Oop, NoMemory> {
        let key = self.symbol(heap, name.as_bytes())?;
        let association = permanent(heap, known::ASSOCIATION, Format::FIXED, 2)?;
        heap.store(association, 0, key);
        Ok(association)
    }
}

/// A permanent object.
pub(crate) fn permanent(
    heap: &mut Heap,
    class: u32,
    format: Format,
    slots: usize,
) -> Result<Oop, NoMemory> {
    heap.allocate_permanent(class, format, slots)
        .ok_or(NoMemory)
}

/// A permanent object of bytes.
#[allow(unsafe_code, reason = "fills the bytes of a new object")]
pub(crate) fn permanent_bytes(heap: &mut Heap, class: u32, text: &[u8]) -> Result<Oop, NoMemory> {
    let format = Format::with_bytes(Format::BYTES, text.len());
    let oop = permanent(heap, class, format, text.len().div_ceil(8))?;
    // SAFETY: a new object with room for the text; no other code knows the address.
    unsafe { object::bytes_mut(oop) }.copy_from_slice(text);
    Ok(oop)
}
