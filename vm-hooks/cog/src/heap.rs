//! Spur objects in the VM's memory.
//!
//! A header is 64 bits: class index (bits 0–21), immutable (23), format (24–28), hash (32–53), number
//! of slots (56–63). 255 slots mean: the word before the header has the number in its low 56 bits.
//! Slots follow the header and have the size of a machine word, 8 or 4 bytes.

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::Variables;

/// Bytes of an object header.
pub const HEADER: u64 = 8;

/// Class index of forwarders: objects that moved by `become:`. Slot 0 is the new place.
const FORWARDER: u32 = 8;

/// Maximum length of a chain of forwarders; the VM shortens them to one.
const MAX_FORWARDS: usize = 8;

/// Number of slots in one page of the class table, as a power of two.
const CLASS_PAGE_BITS: u32 = 10;

/// Marks a number of slots in front of the header.
const MANY_SLOTS: u64 = 255;

/// Index of the selector `doesNotUnderstand:` in the special objects.
const DOES_NOT_UNDERSTAND: u64 = 20;

/// Index of the class `Array` in the special objects.
pub const CLASS_ARRAY: u64 = 7;

/// Index of the array of special selectors in the special objects. Each selector has its number of arguments
/// behind it.
pub const SPECIAL_SELECTORS: u64 = 23;

/// Exponents of immediate floats are smaller than exponents of doubles. The difference, in their bits.
const FLOAT_OFFSET: u64 = 896 << 53;

/// Objects of a Spur memory.
#[derive(Clone, Copy)]
pub struct Heap<'m> {
    memory: &'m dyn Memory,
    hidden_roots: Avma,
    special_objects: Avma,
}

impl std::fmt::Debug for Heap<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heap")
            .field("hidden_roots", &self.hidden_roots)
            .finish_non_exhaustive()
    }
}

/// An object with a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Address of its header.
    pub at: Avma,
    /// Index of its class in the class table.
    pub class_index: u32,
    format: u32,
    slots: u64,
}

/// An object inside its pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Immediate {
    /// An integer.
    Integer(i64),
    /// A character's code point.
    Character(u64),
    /// A floating-point number; on 64-bit VMs only.
    Float(f64),
}

/// Contents of an object, as its format says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Pointers.
    Pointers,
    /// Bytes: strings, symbols.
    Bytes,
    /// A compiled method or block: literals, then bytecodes.
    Code,
    /// Words, and formats that the VM does not use.
    Other,
}

impl Object {
    /// Its contents.
    #[must_use]
    pub fn contents(&self) -> Contents {
        match self.format {
            0..=5 => Contents::Pointers,
            16..=23 => Contents::Bytes,
            24..=31 => Contents::Code,
            _ => Contents::Other,
        }
    }

    /// Number of slots: machine words.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }
}

impl<'m> Heap<'m> {
    /// Objects of the VM.
    ///
    /// # Errors
    /// A missing variable, failed reads, [`AdapterError::NotReady`] before the VM has an image.
    pub fn of(variables: &Variables, memory: &'m dyn Memory) -> Result<Self, AdapterError> {
        let root = |name| {
            let at = variables.needed(name)?;
            let root = memory.read_pointer(at);
            root.map_err(AdapterError::reading("roots of objects"))
        };
        let heap = Heap {
            memory,
            hidden_roots: root("hiddenRootsObj")?,
            special_objects: root("specialObjectsOop")?,
        };
        if heap.hidden_roots.0 == 0 || heap.special_objects.0 == 0 {
            return Err(AdapterError::NotReady { what: "image" });
        }
        Ok(heap)
    }

    /// Bytes of a machine word, 8 or 4.
    #[must_use]
    pub fn word(&self) -> u64 {
        self.memory.pointer_bytes() as u64
    }

    /// The value of a tagged integer; `None` for another object.
    #[must_use]
    pub fn integer(&self, oop: Avma) -> Option<i64> {
        if self.word() == 4 {
            let low = u32::try_from(oop.0).ok()?.cast_signed();
            return (low & 1 == 1).then_some(i64::from(low >> 1));
        }
        (oop.0 & 7 == 1).then_some(oop.0.cast_signed() >> 3)
    }

    /// The immediate object of `oop`; `None` for an address.
    #[must_use]
    pub fn immediate(&self, oop: Avma) -> Option<Immediate> {
        if let Some(integer) = self.integer(oop) {
            return Some(Immediate::Integer(integer));
        }
        let value = oop.0 >> 3;
        match (self.word(), oop.0 & 7) {
            (4, low) => (low & 3 == 2).then_some(Immediate::Character(oop.0 >> 2)),
            (_, 2) => Some(Immediate::Character(value)),
            (_, 4) => {
                // The sign is the lowest bit. Both zeros have no exponent.
                let bits = if value > 1 {
                    value + FLOAT_OFFSET
                } else {
                    value
                };
                Some(Immediate::Float(f64::from_bits(bits.rotate_right(1))))
            }
            _ => None,
        }
    }

    fn is_immediate(&self, oop: Avma) -> bool {
        let mask = if self.word() == 4 { 3 } else { 7 };
        oop.0 & mask != 0
    }

    fn header(&self, at: Avma) -> Result<u64, AdapterError> {
        (self.memory.read_u64(at)).map_err(AdapterError::reading("object"))
    }

    /// The object at `oop`, after following forwarders.
    ///
    /// # Errors
    /// An immediate object, free memory, an impossible size; failed reads.
    pub fn object(&self, oop: Avma) -> Result<Object, AdapterError> {
        let mut at = oop;
        for _ in 0..MAX_FORWARDS {
            let object = self.object_at(at)?;
            if object.class_index != FORWARDER {
                return Ok(object);
            }
            at = self.slot(&object, 0)?;
        }
        Err(AdapterError::TooMany {
            what: "chain of forwarders",
            cap: MAX_FORWARDS as u64,
        })
    }

    fn object_at(&self, at: Avma) -> Result<Object, AdapterError> {
        if self.is_immediate(at) || !at.0.is_multiple_of(HEADER) || at.0 < HEADER {
            return Err(AdapterError::Implausible {
                what: "object pointer",
                value: at.0,
                at,
            });
        }
        let header = self.header(at)?;
        let bits = |from: u32, count: u32| (header >> from) & ((1 << count) - 1);
        let mut slots = bits(56, 8);
        if slots == MANY_SLOTS {
            slots = self.header(Avma(at.0 - HEADER))? & ((1 << 56) - 1);
        }
        let object = Object {
            at,
            class_index: u32::try_from(bits(0, 22)).unwrap_or(0),
            format: u32::try_from(bits(24, 5)).unwrap_or(0),
            slots,
        };
        let bytes = slots.checked_mul(self.word());
        let end = bytes.and_then(|bytes| at.0.checked_add(HEADER)?.checked_add(bytes));
        if object.class_index == 0 || end.is_none() {
            return Err(AdapterError::Implausible {
                what: "object header",
                value: header,
                at,
            });
        }
        Ok(object)
    }

    /// The pointer in slot `index`, as it is in memory. Also of code: its literals.
    ///
    /// # Errors
    /// No such slot; failed reads.
    pub fn slot(&self, object: &Object, index: u64) -> Result<Avma, AdapterError> {
        if index >= object.slots {
            return Err(AdapterError::Implausible {
                what: "slot of an object",
                value: index,
                at: object.at,
            });
        }
        let at = Avma(object.at.0 + HEADER + index * self.word());
        (self.memory.read_pointer(at)).map_err(AdapterError::reading("object"))
    }

    /// The object in slot `index`.
    ///
    /// # Errors
    /// As [`Heap::slot`] and [`Heap::object`].
    pub fn at(&self, object: &Object, index: u64) -> Result<Object, AdapterError> {
        self.object(self.slot(object, index)?)
    }

    /// All bytes behind the header of an object with bytes or code; at most `cap`.
    ///
    /// # Errors
    /// Other contents, more bytes than `cap`; failed reads.
    pub fn bytes(&self, object: &Object, cap: usize) -> Result<Vec<u8>, AdapterError> {
        self.read(object, self.length(object)?, cap)
    }

    /// First bytes of an object with bytes or code, at most `most`; `true` for the whole object.
    ///
    /// # Errors
    /// Other contents; failed reads.
    pub fn first_bytes(
        &self,
        object: &Object,
        most: usize,
    ) -> Result<(Vec<u8>, bool), AdapterError> {
        let length = self.length(object)?;
        let shown = length.min(most as u64);
        Ok((self.read(object, shown, most)?, shown == length))
    }

    fn read(&self, object: &Object, length: u64, cap: usize) -> Result<Vec<u8>, AdapterError> {
        let at = Avma(object.at.0 + HEADER);
        (self.memory.read_vec(at, length, cap)).map_err(AdapterError::reading("object"))
    }

    /// Number of bytes of an object with bytes or code.
    fn length(&self, object: &Object) -> Result<u64, AdapterError> {
        if !matches!(object.contents(), Contents::Bytes | Contents::Code) {
            return Err(AdapterError::Implausible {
                what: "format of an object with bytes",
                value: u64::from(object.format),
                at: object.at,
            });
        }
        // The format's low bits count unused bytes of the last slot.
        let unused = u64::from(object.format) & (self.word() - 1);
        let length = object.slots.saturating_mul(self.word());
        Ok(length.saturating_sub(unused))
    }

    /// The class at `index` of the class table.
    ///
    /// # Errors
    /// No such class; failed reads.
    pub fn class_at(&self, index: u32) -> Result<Object, AdapterError> {
        let pages = self.object(self.hidden_roots)?;
        let page = self.at(&pages, u64::from(index >> CLASS_PAGE_BITS))?;
        let class = self.at(&page, u64::from(index & ((1 << CLASS_PAGE_BITS) - 1)))?;
        match class.contents() {
            Contents::Pointers => Ok(class),
            _ => Err(AdapterError::Implausible {
                what: "class",
                value: u64::from(index),
                at: class.at,
            }),
        }
    }

    /// The VM's special object at `index`.
    ///
    /// # Errors
    /// No such object; failed reads.
    pub fn special(&self, index: u64) -> Result<Object, AdapterError> {
        let all = self.object(self.special_objects)?;
        self.at(&all, index)
    }

    /// Index of the class of symbols.
    ///
    /// # Errors
    /// Failed reads.
    pub fn symbol_class(&self) -> Result<u32, AdapterError> {
        let symbol = self.special(DOES_NOT_UNDERSTAND)?;
        Ok(symbol.class_index)
    }
}
