//! Names of classes, methods and blocks, as Smalltalk programmers write them: `Class>>selector`,
//! `Class class>>selector`, `[] in Class>>selector`.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory, known};
use vmscope_records::Avma;

use crate::Variables;
use crate::heap::{CLASS_ARRAY, Contents, Heap, Object};

/// Longest name in bytes.
const MAX_NAME: usize = 1024;

/// Maximum depth of blocks in blocks.
const MAX_DEPTH: usize = 16;

/// Places to look at in a class, for its name or its sole instance.
const MAX_SLOTS: u64 = 64;

/// Usual place of a class's name, and of a metaclass's sole instance.
const USUAL_NAME: u64 = 6;
const USUAL_INSTANCE: u64 = 5;

/// Shown for a name that can't be read.
const UNKNOWN: &str = "?";

/// Where classes have their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassLayout {
    /// Slot of a class's name.
    pub name: u64,
    /// Slot of a metaclass's sole instance.
    pub instance: u64,
    /// Number of slots of a metaclass.
    pub metaclass_slots: u64,
}

/// The name of a method or block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodName {
    /// Its class, or that of the method around a block; empty if unknown.
    pub class: String,
    /// Its selector; empty if unknown.
    pub selector: String,
    /// Number of blocks around it, itself included: 0 for a method.
    pub depth: usize,
}

impl MethodName {
    /// The class in records. Of a block, each block around the code stands in front.
    #[must_use]
    pub fn class_with_blocks(&self) -> String {
        format!("{}{}", "[] in ".repeat(self.depth), self.class)
    }
}

impl std::fmt::Display for MethodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |name: &str| match name {
            "" => UNKNOWN.to_owned(),
            name => name.to_owned(),
        };
        for _ in 0..self.depth {
            f.write_str("[] in ")?;
        }
        write!(f, "{}>>{}", part(&self.class), part(&self.selector))
    }
}

impl ClassLayout {
    /// As the VM's variables say, else as the class `Array` shows, else the usual one.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn of(
        variables: &Variables,
        heap: &Heap<'_>,
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let number = |name| variables.number(memory, name);
        let told = (
            number("classNameIndex")?,
            number("thisClassIndex")?,
            number("metaclassNumSlots")?,
        );
        if let (Some(name), Some(instance), Some(metaclass_slots)) = told
            && name < MAX_SLOTS
            && instance < MAX_SLOTS
            && metaclass_slots > instance
        {
            return Ok(ClassLayout {
                name,
                instance,
                metaclass_slots,
            });
        }
        match Self::of_array(heap) {
            Err(error) if error.is_final() => Err(error),
            layout => Ok(layout.unwrap_or(ClassLayout {
                name: USUAL_NAME,
                instance: USUAL_INSTANCE,
                metaclass_slots: USUAL_INSTANCE + 1,
            })),
        }
    }

    /// The class `Array` has its name in the slot with the bytes `Array`, and its metaclass has it in the
    /// slot of the sole instance.
    fn of_array(heap: &Heap<'_>) -> Result<Self, AdapterError> {
        let array = heap.special(CLASS_ARRAY)?;
        let metaclass = heap.class_at(array.class_index)?;
        let slot_with = |object: &Object, is_it: &dyn Fn(&Object) -> bool| {
            let slots = 0..object.slots().min(MAX_SLOTS);
            let mut slots = slots.filter_map(|slot| Some((slot, heap.at(object, slot).ok()?)));
            slots.find_map(|(slot, object)| is_it(&object).then_some(slot))
        };
        let is_name = |name: &Object| {
            heap.bytes(name, MAX_NAME)
                .is_ok_and(|name| name == b"Array")
        };
        let is_bytes = |name: &Object| name.contents() == Contents::Bytes;
        let name = slot_with(&array, &is_name).or_else(|| slot_with(&array, &is_bytes));
        let instance = slot_with(&metaclass, &|instance| instance.at == array.at);
        Ok(ClassLayout {
            name: name.unwrap_or(USUAL_NAME),
            instance: instance.unwrap_or(USUAL_INSTANCE),
            metaclass_slots: metaclass.slots(),
        })
    }
}

/// Reads names; keeps those of classes.
#[derive(Debug)]
pub struct Names<'m> {
    heap: Heap<'m>,
    classes: ClassLayout,
    symbol_class: Option<u32>,
    of_classes: FxHashMap<Avma, String>,
}

impl<'m> Names<'m> {
    /// Names in `heap`.
    #[must_use]
    pub fn new(heap: Heap<'m>, classes: ClassLayout) -> Self {
        Names {
            symbol_class: heap.symbol_class().ok(),
            heap,
            classes,
            of_classes: FxHashMap::default(),
        }
    }

    /// The objects.
    #[must_use]
    pub fn heap(&self) -> &Heap<'m> {
        &self.heap
    }

    /// The text of a selector.
    ///
    /// # Errors
    /// No symbol; failed reads.
    pub fn selector(&self, oop: Avma) -> Result<String, AdapterError> {
        let symbol = self.heap.object(oop)?;
        match self.symbol_class {
            Some(class) if class != symbol.class_index => Err(AdapterError::Implausible {
                what: "selector",
                value: u64::from(symbol.class_index),
                at: symbol.at,
            }),
            _ => self.text(&symbol),
        }
    }

    /// Whether an object is a symbol.
    #[must_use]
    pub fn is_symbol(&self, object: &Object) -> bool {
        self.symbol_class == Some(object.class_index) && object.contents() == Contents::Bytes
    }

    /// A string's text: UTF-8, else Latin-1. A string with control characters is none.
    ///
    /// # Errors
    /// The object is no string, or longer than 1,024 bytes; failed reads.
    pub fn text(&self, string: &Object) -> Result<String, AdapterError> {
        let bytes = match string.contents() {
            Contents::Bytes => self.heap.bytes(string, MAX_NAME)?,
            _ => Vec::new(),
        };
        if bytes.is_empty() || bytes.iter().any(u8::is_ascii_control) {
            return Err(AdapterError::Implausible {
                what: "name",
                value: bytes.len() as u64,
                at: string.at,
            });
        }
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| {
            let bytes = error.into_bytes();
            bytes.into_iter().map(char::from).collect()
        }))
    }

    /// Name of a class. A metaclass is `Class class`.
    ///
    /// # Errors
    /// No class; failed reads.
    pub fn class(&mut self, class: &Object) -> Result<String, AdapterError> {
        if let Some(name) = self.of_classes.get(&class.at) {
            return Ok(name.clone());
        }
        let is_meta = class.slots() == self.classes.metaclass_slots;
        let of_name = match is_meta {
            true => self.heap.at(class, self.classes.instance)?,
            false => *class,
        };
        let name = self.heap.at(&of_name, self.classes.name)?;
        let name = self.text(&name)?;
        let name = if is_meta {
            format!("{name} class")
        } else {
            name
        };
        self.of_classes.insert(class.at, name.clone());
        Ok(name)
    }

    /// The name of the class at `index` of the class table.
    ///
    /// # Errors
    /// No class; failed reads.
    pub fn class_at(&mut self, index: u32) -> Result<String, AdapterError> {
        let class = self.heap.class_at(index)?;
        self.class(&class)
    }

    /// The name of a compiled method or block. `header` is the method's header, which generated code
    /// replaces in the object.
    ///
    /// The last literal of a method is the binding of its class, of a block the code around it. The
    /// literal before is the selector, or an object with method properties.
    ///
    /// # Errors
    /// No compiled code; failed reads. Parts that can't be read are empty.
    pub fn method(
        &mut self,
        code: &Object,
        header: i64,
        header_of: &dyn Fn(&Object) -> Result<i64, AdapterError>,
    ) -> Result<MethodName, AdapterError> {
        let (mut code, mut header) = (*code, header);
        for depth in 0..MAX_DEPTH {
            if code.contents() != Contents::Code {
                return Err(AdapterError::Implausible {
                    what: "compiled method",
                    value: header.cast_unsigned(),
                    at: code.at,
                });
            }
            let literals = literals(header);
            let last = match literals {
                0 => None,
                last => known(self.heap.at(&code, last))?,
            };
            let Some(last) = last.filter(|last| last.contents() == Contents::Code) else {
                let class = match last {
                    Some(binding) => known(self.bound_class(&binding))?,
                    None => None,
                };
                let selector = match literals {
                    0 | 1 => None,
                    _ => known(self.selector_of(&code, literals - 1))?,
                };
                return Ok(MethodName {
                    class: class.unwrap_or_default(),
                    selector: selector.unwrap_or_default(),
                    depth,
                });
            };
            header = header_of(&last)?;
            code = last;
        }
        Err(AdapterError::TooMany {
            what: "blocks around a block",
            cap: MAX_DEPTH as u64,
        })
    }

    /// The class in slot 1 of an association.
    fn bound_class(&mut self, binding: &Object) -> Result<String, AdapterError> {
        let class = self.heap.at(binding, 1)?;
        self.class(&class)
    }

    /// The selector in a literal. Method properties in the literal have the selector in slot 1.
    fn selector_of(&self, code: &Object, literal: u64) -> Result<String, AdapterError> {
        let oop = self.heap.slot(code, literal)?;
        let object = self.heap.object(oop)?;
        match object.contents() {
            Contents::Pointers => self.selector(self.heap.slot(&object, 1)?),
            _ => self.selector(oop),
        }
    }
}

/// Number of literals of a method with this header.
#[must_use]
pub fn literals(header: i64) -> u64 {
    header.cast_unsigned() & 0x7fff
}
