//! Constant pool of a class, in the VM's form (`constantPool.hpp`).

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use super::text::{array_or_class, decode_utf8};
use crate::layout::encodings::pool_tag as tag;
use crate::layout::{Missing, Scalar, VmStructs, Wanted};
use crate::method::{MethodLayout, class_name};

const WHAT: &str = "constant pool";

/// Maximum length of names and descriptors in bytes; the rest is cut off, which bounds a
/// listing.
const MAX_NAME: usize = 4096;

/// Maximum length of string constants.
const MAX_TEXT: usize = 1024;

/// Consequence of missing classes.
const LESS_CERTAIN: &str = "bytecodes of JIT code are less certain";

/// Field offsets of a constant pool and its cache.
#[derive(Clone, Debug)]
pub struct PoolLayout {
    pub(super) methods: MethodLayout,
    tags: Scalar,
    tags_data: u64,
    length: Scalar,
    cache: Scalar,
    /// Slots of the resolved references; `Array<u2>`.
    reference_map: Option<Scalar>,
    map_length: Option<Scalar>,
    map_data: u64,
    /// `Array<Klass*>`: length, first element.
    resolved_klasses: Option<(Scalar, Scalar, u64)>,
    pub(super) fields: Option<Entries>,
    pub(super) calls: Option<Entries>,
    pub(super) sites: Option<Entries>,
    /// Optional fields missing from the tables.
    pub missing: Vec<Missing>,
}

/// Cache entries, indexed by rewritten operands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entries {
    /// `ConstantPoolCacheEntry`s behind the cache's header, for fields and methods alike.
    Cache {
        length: Scalar,
        data: u64,
        bytes: u64,
        indices: Scalar,
        f1: Option<Scalar>,
        f2: Option<Scalar>,
        flags: Option<Scalar>,
        /// `is_field_entry_shift`, `is_vfinal_shift`.
        shifts: Option<(u32, u32)>,
    },
    /// Separate arrays: fields (JDK 22 on), methods (23 on), call sites (21 on).
    Array {
        array: Scalar,
        length: Scalar,
        data: u64,
        bytes: u64,
        pool_index: Scalar,
    },
}

impl PoolLayout {
    /// Finds all fields.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`]. If only the fields for names of fields or methods are
    /// missing, listings show numbers instead.
    pub fn of(structs: &VmStructs, methods: MethodLayout) -> Result<Self, AdapterError> {
        let in_cache = |name| structs.optional_scalar("ConstantPoolCache", name);
        let data_of = |array: &str| structs.optional_offset(array, "_data");
        let entry = |name| structs.optional_scalar("ConstantPoolCacheEntry", name);
        let shift = |name: &str| {
            let name = format!("ConstantPoolCacheEntry::{name}");
            u32::try_from(structs.constant(&name)?).ok()
        };
        let cache = || {
            Some(Entries::Cache {
                length: in_cache("_length")?,
                data: structs.optional_size_of("ConstantPoolCache")?,
                bytes: structs.optional_size_of("ConstantPoolCacheEntry")?,
                indices: entry("_indices")?,
                f1: entry("_f1"),
                f2: entry("_f2"),
                flags: entry("_flags"),
                shifts: shift("is_field_entry_shift").zip(shift("is_vfinal_shift")),
            })
        };
        let array = |field, element: &str| {
            let name = format!("Array<{element}>");
            Some(Entries::Array {
                array: in_cache(field)?,
                length: array_length(structs)?,
                data: data_of(&name)?,
                bytes: structs.optional_size_of(element)?,
                pool_index: structs.optional_scalar(element, "_cpool_index")?,
            })
        };
        let reference_map = in_cache("_reference_map");
        let mut wanted = Wanted::new(structs);
        Ok(PoolLayout {
            methods,
            tags: structs.scalar("ConstantPool", "_tags")?,
            tags_data: structs.offset("Array<u1>", "_data")?,
            length: structs.scalar("ConstantPool", "_length")?,
            cache: structs.scalar("ConstantPool", "_cache")?,
            reference_map: reference_map.filter(|_| data_of("Array<u2>").is_some()),
            map_length: array_length(structs),
            map_data: data_of("Array<u2>").unwrap_or_default(),
            resolved_klasses: wanted.or_none(resolved_klasses(structs), LESS_CERTAIN),
            fields: array("_resolved_field_entries", "ResolvedFieldEntry").or_else(cache),
            calls: array("_resolved_method_entries", "ResolvedMethodEntry").or_else(cache),
            sites: array("_resolved_indy_entries", "ResolvedIndyEntry").or_else(cache),
            missing: wanted.missing,
        })
    }

    /// Field offsets of methods.
    #[must_use]
    pub fn methods(&self) -> &MethodLayout {
        &self.methods
    }
}

fn resolved_klasses(structs: &VmStructs) -> Result<(Scalar, Scalar, u64), AdapterError> {
    let array = structs.scalar("ConstantPool", "_resolved_klasses")?;
    let data = structs.offset("Array<Klass*>", "_data")?;
    Ok((array, structs.scalar("Array<int>", "_length")?, data))
}

/// Every array of the VM begins with its length.
fn array_length(structs: &VmStructs) -> Option<Scalar> {
    structs.optional_scalar("Array<int>", "_length")
}

/// Constant pool of one class. It reads on demand: use memory with a page cache
/// ([`crate::pages::Pages`]).
#[derive(Clone, Copy)]
pub struct ConstantPoolView<'m> {
    pub(super) layout: &'m PoolLayout,
    pub(super) memory: &'m dyn Memory,
    pool: Avma,
    tags: Avma,
    length: u64,
    pub(super) cache: Option<Avma>,
}

impl std::fmt::Debug for ConstantPoolView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConstantPoolView")
            .field("pool", &self.pool)
            .field("length", &self.length)
            .field("is_rewritten", &self.is_rewritten())
            .finish_non_exhaustive()
    }
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// An `int`.
    Integer(i32),
    /// A `long`.
    Long(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A string: its first 1,024 bytes, and whether the string is complete.
    String(String, bool),
    /// A class in Java's form (`long[][]`, `java.lang.String`).
    Class(String),
    /// A method type: its descriptor.
    MethodType(String),
    /// A method handle: class, name and descriptor.
    MethodHandle(String, String, String),
    /// A dynamic constant: name and descriptor.
    Dynamic(String, String),
}

impl<'m> ConstantPoolView<'m> {
    /// The pool at `pool` ([`crate::method::MethodInfo::constants`]).
    ///
    /// # Errors
    /// Errors of the memory read; [`AdapterError::Implausible`] if no pool is there.
    pub fn read(
        layout: &'m PoolLayout,
        memory: &'m dyn Memory,
        pool: Avma,
    ) -> Result<Self, AdapterError> {
        let length = layout.length.read(memory, pool, WHAT)?;
        if !(0..=i64::from(u16::MAX) + 1).contains(&length) {
            return Err(AdapterError::Implausible {
                what: WHAT,
                value: length.cast_unsigned(),
                at: pool,
            });
        }
        let cache = layout.cache.read_address(memory, pool, WHAT)?;
        Ok(ConstantPoolView {
            layout,
            memory,
            pool,
            tags: layout.tags.read_address(memory, pool, WHAT)?,
            length: length.cast_unsigned(),
            cache: (cache.0 != 0).then_some(cache),
        })
    }

    /// Whether the class is linked: linking replaces the operands' class-file numbers with the
    /// VM's.
    #[must_use]
    pub fn is_rewritten(&self) -> bool {
        self.cache.is_some()
    }

    /// Number of slots. Slot 0 is unused.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Tag of slot `index` (`JVM_CONSTANT_*`).
    pub(super) fn tag(&self, index: u16) -> Option<u8> {
        if u64::from(index) >= self.length {
            return None;
        }
        let at = self.tags.0.checked_add(self.layout.tags_data)?;
        let at = at.checked_add(u64::from(index))?;
        self.memory.read_u8(Avma(at)).ok()
    }

    fn slot(&self, index: u16) -> Option<u64> {
        let methods = &self.layout.methods;
        (u64::from(index) < self.length)
            .then(|| methods.pool_slot(self.memory, self.pool, index.into()).ok())
            .flatten()
    }

    /// The two 16-bit slot numbers in a slot.
    pub(super) fn pair(&self, index: u16) -> Option<(u16, u16)> {
        let [a, b, c, d, ..] = self.slot(index)?.to_le_bytes();
        Some((u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
    }

    /// Name or descriptor in a slot.
    pub(super) fn symbol(&self, index: u16) -> Option<String> {
        (self.tag(index)? == tag::UTF8).then_some(())?;
        self.symbol_at(index, MAX_NAME).map(|(text, _)| text)
    }

    fn symbol_at(&self, index: u16, most: usize) -> Option<(String, bool)> {
        let at = self.symbol_address(index)?;
        let methods = &self.layout.methods;
        let (bytes, is_whole) = methods.symbol_bytes(self.memory, at, most).ok()?;
        Some((decode_utf8(bytes), is_whole))
    }

    /// Class in a slot, in the VM's form (`[Ljava/lang/String;`).
    pub(super) fn class(&self, index: u16) -> Option<String> {
        match self.tag(index)? {
            tag::CLASS | tag::UNRESOLVED_CLASS | tag::UNRESOLVED_CLASS_IN_ERROR => {
                self.symbol(self.pair(index)?.1)
            }
            _ => None,
        }
    }

    /// Resolved `Klass*` of the class in slot `index`; `None` before resolution.
    #[must_use]
    pub fn resolved_class(&self, index: u16) -> Option<Avma> {
        let (array, length, data) = self.layout.resolved_klasses?;
        let is_class = matches!(self.tag(index)?, tag::CLASS | tag::UNRESOLVED_CLASS);
        let number = self.pair(index).filter(|_| is_class)?.0;
        let array = array.read_address(self.memory, self.pool, WHAT).ok()?;
        let length = length.read(self.memory, array, WHAT).ok()?;
        (i64::from(number) < length).then_some(())?;
        let at = array.0.checked_add(data)?;
        let at = at.checked_add(8 * u64::from(number))?;
        let class = self.memory.read_u64(Avma(at)).ok()?;
        (class != 0).then_some(Avma(class))
    }

    /// Address of the symbol in a slot.
    pub(super) fn symbol_address(&self, index: u16) -> Option<Avma> {
        Some(Avma(self.slot(index)? & !1))
    }

    /// Name and descriptor in a slot.
    pub(super) fn name_and_type(&self, index: u16) -> Option<(String, String)> {
        (self.tag(index)? == tag::NAME_AND_TYPE).then_some(())?;
        let (name, descriptor) = self.pair(index)?;
        Some((self.symbol(name)?, self.symbol(descriptor)?))
    }

    /// Slot of the resolved reference `index`.
    #[must_use]
    pub fn slot_of_resolved(&self, index: u16) -> Option<u16> {
        let map = self.layout.reference_map?;
        let map = map.read_address(self.memory, self.cache?, WHAT).ok()?;
        let length = self.layout.map_length?.read(self.memory, map, WHAT).ok()?;
        (i64::from(index) < length).then_some(())?;
        let at = map.0.checked_add(self.layout.map_data)?;
        let at = at.checked_add(2 * u64::from(index))?;
        self.memory.read_u16(Avma(at)).ok()
    }

    /// Number in slot `index`; `None` for other constants. Copies nothing.
    #[must_use]
    pub fn number(&self, index: u16) -> Option<Constant> {
        let low = |slot: u64| u32::try_from(slot & u64::from(u32::MAX)).unwrap_or_default();
        Some(match self.tag(index)? {
            tag::INTEGER => Constant::Integer(low(self.slot(index)?).cast_signed()),
            tag::FLOAT => Constant::Float(f32::from_bits(low(self.slot(index)?))),
            tag::LONG => Constant::Long(self.slot(index)?.cast_signed()),
            tag::DOUBLE => Constant::Double(f64::from_bits(self.slot(index)?)),
            _ => return None,
        })
    }

    /// Constant in slot `index`; `None` if not loadable.
    #[must_use]
    pub fn constant(&self, index: u16) -> Option<Constant> {
        Some(match self.tag(index)? {
            tag::INTEGER | tag::FLOAT | tag::LONG | tag::DOUBLE => self.number(index)?,
            // The symbol stays after the creation of the object.
            tag::STRING => {
                let (text, is_whole) = self.symbol_at(index, MAX_TEXT)?;
                Constant::String(text, is_whole)
            }
            tag::METHOD_TYPE | tag::METHOD_TYPE_IN_ERROR => {
                Constant::MethodType(self.symbol(self.pair(index)?.0)?)
            }
            tag::METHOD_HANDLE | tag::METHOD_HANDLE_IN_ERROR => {
                let member = self.member(self.pair(index)?.1)?;
                Constant::MethodHandle(class_name(&member.0), member.1, member.2)
            }
            tag::DYNAMIC | tag::DYNAMIC_IN_ERROR => {
                let (name, descriptor) = self.name_and_type(self.pair(index)?.1)?;
                Constant::Dynamic(name, descriptor)
            }
            _ => Constant::Class(array_or_class(&self.class(index)?)),
        })
    }

    /// Class, name and descriptor of the field or method in a slot.
    pub(super) fn member(&self, index: u16) -> Option<(String, String, String)> {
        match self.tag(index)? {
            tag::FIELDREF | tag::METHODREF | tag::INTERFACE_METHODREF => {
                let (class, both) = self.pair(index)?;
                let (name, descriptor) = self.name_and_type(both)?;
                Some((self.class(class)?, name, descriptor))
            }
            _ => None,
        }
    }
}
