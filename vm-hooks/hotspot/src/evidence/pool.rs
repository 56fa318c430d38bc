//! What a JVM's constant pools say about the operands of bytecodes: fields' offsets,
//! called methods, classes, numbers.

use vmscope_records::Avma;
use vmscope_target::{AdapterError, Memory};

use super::facts::Reference;
use crate::layout::{Scalar, VmStructs};

const WHAT: &str = "constant pool";

/// `JVM_CONSTANT_Integer` and so on.
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const LONG: u8 = 5;
const DOUBLE: u8 = 6;

/// More methods than this no class is believed to have.
const MAX_METHODS: u64 = 1 << 16;

/// Symbols are not looked at further than this.
const MAX_SYMBOL: u64 = 256;

/// Classes' chains of superclasses are not longer.
const MAX_SUPERS: usize = 64;

/// Where things lie in pools, their caches and classes.
#[derive(Clone, Debug)]
pub struct PoolLayout {
    pool_bytes: u64,
    tags: Scalar,
    cache: Scalar,
    resolved_klasses: Scalar,
    entries: Entries,
    klass_super: Scalar,
    methods: Scalar,
    default_methods: Option<Scalar>,
    const_method: Scalar,
    constants: Scalar,
    name_index: Scalar,
    signature_index: Scalar,
    bytes_data: u64,
    words_data: u64,
    symbol_length: Scalar,
    symbol_body: u64,
}

/// Where a pool's cache keeps what is resolved.
#[derive(Clone, Copy, Debug)]
enum Entries {
    /// Up to JDK 21: behind the cache, fields and methods alike.
    Mixed {
        begin: u64,
        size: u64,
        indices: Scalar,
        f1: Scalar,
        f2: Scalar,
    },
    /// JDK 22 on: an array of each.
    Apart {
        fields: Scalar,
        methods: Scalar,
        data: u64,
        field_bytes: u64,
        /// The offset of the field; not exported: behind the pointer to its class.
        field_offset: u64,
        method_bytes: u64,
        method_index: Scalar,
    },
}

impl PoolLayout {
    /// Looks everything up.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`]: there is less evidence then.
    pub fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        let of = |structure: &str, name: &str| structs.scalar(structure, name);
        let entries = if structs.type_named("ConstantPoolCacheEntry").is_some() {
            let of = |name| structs.scalar("ConstantPoolCacheEntry", name);
            Entries::Mixed {
                begin: structs.size_of("ConstantPoolCache")?,
                size: structs.size_of("ConstantPoolCacheEntry")?,
                indices: of("_indices")?,
                f1: of("_f1")?,
                f2: of("_f2")?,
            }
        } else {
            Entries::Apart {
                fields: of("ConstantPoolCache", "_resolved_field_entries")?,
                methods: of("ConstantPoolCache", "_resolved_method_entries")?,
                data: structs.offset("Array<ResolvedMethodEntry>", "_data")?,
                field_bytes: structs.size_of("ResolvedFieldEntry")?,
                field_offset: 8,
                method_bytes: structs.size_of("ResolvedMethodEntry")?,
                method_index: of("ResolvedMethodEntry", "_cpool_index")?,
            }
        };
        Ok(PoolLayout {
            pool_bytes: structs.size_of("ConstantPool")?,
            tags: of("ConstantPool", "_tags")?,
            cache: of("ConstantPool", "_cache")?,
            resolved_klasses: of("ConstantPool", "_resolved_klasses")?,
            entries,
            klass_super: of("Klass", "_super")?,
            methods: of("InstanceKlass", "_methods")?,
            default_methods: structs.optional_scalar("InstanceKlass", "_default_methods"),
            const_method: of("Method", "_constMethod")?,
            constants: of("ConstMethod", "_constants")?,
            name_index: of("ConstMethod", "_name_index")?,
            signature_index: of("ConstMethod", "_signature_index")?,
            bytes_data: structs.offset("Array<u1>", "_data")?,
            words_data: structs.offset("Array<Method*>", "_data")?,
            symbol_length: of("Symbol", "_length")?,
            symbol_body: structs
                .optional_offset("Symbol", "_body")
                .map_or_else(|| structs.offset("Symbol", "_body[0]"), Ok)?,
        })
    }

    /// What the operand of a field's bytecode refers to.
    ///
    /// # Errors
    ///
    /// [`AdapterError::Memory`] where the pool is not there any more; likewise below.
    pub fn field(
        &self,
        memory: &dyn Memory,
        pool: Avma,
        operand: u16,
    ) -> Result<Reference, AdapterError> {
        let cache = self.cache.read_address(memory, pool, WHAT)?;
        let reading = AdapterError::reading(WHAT);
        let offset = match self.entries {
            Entries::Mixed {
                begin,
                size,
                f1,
                f2,
                ..
            } => {
                let at = element(cache, begin, size, operand);
                if f1.read(memory, at, WHAT)? == 0 {
                    return Ok(Reference::Unknown);
                }
                f2.read(memory, at, WHAT)?
            }
            Entries::Apart {
                fields,
                data,
                field_bytes,
                field_offset,
                ..
            } => {
                let array = fields.read_address(memory, cache, WHAT)?;
                let at = element(array, data, field_bytes, operand);
                if memory.read_u64(at).map_err(&reading)? == 0 {
                    return Ok(Reference::Unknown);
                }
                let at = Avma(at.0.wrapping_add(field_offset));
                i64::from(memory.read_u32(at).map_err(&reading)?)
            }
        };
        Ok(u32::try_from(offset).map_or(Reference::Unknown, Reference::Field))
    }

    /// The class, name and signature (symbols) that a call's operand refers to; the
    /// class is null where it is not resolved.
    ///
    /// # Errors
    ///
    /// As [`PoolLayout::field`].
    pub fn callee(
        &self,
        memory: &dyn Memory,
        pool: Avma,
        operand: u16,
    ) -> Result<(Avma, Avma, Avma), AdapterError> {
        let cache = self.cache.read_address(memory, pool, WHAT)?;
        let index = match self.entries {
            Entries::Mixed {
                begin,
                size,
                indices,
                ..
            } => {
                let at = element(cache, begin, size, operand);
                indices.read(memory, at, WHAT)?.cast_unsigned() & 0xffff
            }
            Entries::Apart {
                methods,
                data,
                method_bytes,
                method_index,
                ..
            } => {
                let array = methods.read_address(memory, cache, WHAT)?;
                let at = element(array, data, method_bytes, operand);
                method_index.read(memory, at, WHAT)?.cast_unsigned()
            }
        };
        let both = self.slot(memory, pool, index)? & 0xffff_ffff;
        let class = self.class_at(memory, pool, both & 0xffff)?;
        let names = self.slot(memory, pool, both >> 16)? & 0xffff_ffff;
        let name = self.slot(memory, pool, names & 0xffff)? & !1;
        let signature = self.slot(memory, pool, names >> 16)? & !1;
        Ok((class, Avma(name), Avma(signature)))
    }

    /// What the operand of `new`, `checkcast`, `ldc` … refers to.
    ///
    /// # Errors
    ///
    /// As [`PoolLayout::field`].
    pub fn class_at(
        &self,
        memory: &dyn Memory,
        pool: Avma,
        index: u64,
    ) -> Result<Avma, AdapterError> {
        let slot = self.slot(memory, pool, index)?;
        let classes = self.resolved_klasses.read_address(memory, pool, WHAT)?;
        let at = element(classes, self.words_data, 8, slot & 0xffff);
        let class = memory.read_u64(at).map_err(AdapterError::reading(WHAT))?;
        Ok(Avma(class))
    }

    /// The number in slot `index`, if it is one.
    ///
    /// # Errors
    ///
    /// As [`PoolLayout::field`].
    pub fn number(
        &self,
        memory: &dyn Memory,
        pool: Avma,
        index: u64,
    ) -> Result<Reference, AdapterError> {
        let tags = self.tags.read_address(memory, pool, WHAT)?;
        let mut tag = [0];
        memory
            .read_into(element(tags, self.bytes_data, 1, index), &mut tag)
            .map_err(AdapterError::reading(WHAT))?;
        let slot = self.slot(memory, pool, index)?;
        let [low, _] = [slot & 0xffff_ffff, slot >> 32];
        Ok(match tag {
            [INTEGER] => {
                let low = u32::try_from(low).unwrap_or(0).cast_signed();
                Reference::Constant(i64::from(low))
            }
            [FLOAT] => Reference::Constant(low.cast_signed()),
            [LONG | DOUBLE] => Reference::Constant(slot.cast_signed()),
            _ => Reference::Unknown,
        })
    }

    /// The first bytes of a symbol.
    ///
    /// # Errors
    ///
    /// As [`PoolLayout::field`].
    pub fn symbol(&self, memory: &dyn Memory, at: Avma) -> Result<String, AdapterError> {
        let length = self.symbol_length.read(memory, at, "symbol")?;
        let length = length.cast_unsigned().min(MAX_SYMBOL);
        let body = Avma(at.0.wrapping_add(self.symbol_body));
        let bytes = memory
            .read_vec(body, length, usize::from(u16::MAX))
            .map_err(AdapterError::reading("symbol"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn slot(&self, memory: &dyn Memory, pool: Avma, index: u64) -> Result<u64, AdapterError> {
        memory
            .read_u64(element(pool, self.pool_bytes, 8, index))
            .map_err(AdapterError::reading(WHAT))
    }

    /// The method of that name and signature (addresses of symbols, which are unique) that
    /// objects of `class` have; null where there is none.
    ///
    /// # Errors
    ///
    /// As [`PoolLayout::field`].
    pub fn find(
        &self,
        memory: &dyn Memory,
        class: Avma,
        name: Avma,
        signature: Avma,
    ) -> Result<Avma, AdapterError> {
        let mut at = class;
        for _ in 0..MAX_SUPERS {
            if at.0 == 0 {
                break;
            }
            let found = self.find_in(memory, self.methods, at, name, signature)?;
            if found.0 != 0 {
                return Ok(found);
            }
            at = self.klass_super.read_address(memory, at, WHAT)?;
        }
        match self.default_methods {
            Some(field) if class.0 != 0 => self.find_in(memory, field, class, name, signature),
            _ => Ok(Avma(0)),
        }
    }

    fn find_in(
        &self,
        memory: &dyn Memory,
        field: Scalar,
        class: Avma,
        name: Avma,
        signature: Avma,
    ) -> Result<Avma, AdapterError> {
        let reading = AdapterError::reading(WHAT);
        let array = field.read_address(memory, class, WHAT)?;
        if array.0 == 0 {
            return Ok(Avma(0));
        }
        let count = memory.read_u32(array).map_err(&reading)?;
        let data = Avma(array.0.wrapping_add(self.words_data));
        let methods = memory
            .read_u64s(data, u64::from(count).min(MAX_METHODS), 1 << 20)
            .map_err(&reading)?;
        for method in methods {
            let const_method = self.const_method.read_address(memory, Avma(method), WHAT)?;
            let pool = self.constants.read_address(memory, const_method, WHAT)?;
            let index = |field: Scalar| field.read(memory, const_method, WHAT);
            let its_name = index(self.name_index)?.cast_unsigned();
            if self.slot(memory, pool, its_name)? & !1 != name.0 {
                continue;
            }
            let its_signature = index(self.signature_index)?.cast_unsigned();
            if self.slot(memory, pool, its_signature)? & !1 == signature.0 {
                return Ok(Avma(method));
            }
        }
        Ok(Avma(0))
    }
}

fn element(array: Avma, data: u64, size: u64, index: impl Into<u64>) -> Avma {
    let within = size.wrapping_mul(index.into());
    Avma(array.0.wrapping_add(data).wrapping_add(within))
}
