//! Reading a `Method` out of the VM.

mod stamp;

use vmscope_process::{AdapterError, Memory};
use vmscope_records::{Avma, LineEntry};

use super::info::MethodInfo;
use super::line_table;
use super::lookup::ClassMethods;
use crate::bytecode::decode_utf8;
use crate::layout::{Encodings, Missing, Scalar, VmStructs, Wanted};

pub use stamp::Stamp;

/// 16 bits.
const MAX_SYMBOL: u64 = u16::MAX as u64;

/// Maximum size of a line table: 65,535 bytecodes with at most 11 bytes each.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Bytes of the first read behind the bytecodes.
const FIRST_LINE_BYTES: usize = 512;

const WHAT: &str = "method";

/// Field offsets of `Method`, `ConstMethod`, `ConstantPool`, `Klass` and `Symbol`.
#[derive(Clone, Debug)]
pub struct MethodLayout {
    encodings: Encodings,
    const_method: Scalar,
    const_method_bytes: u64,
    constants: Scalar,
    flags: Scalar,
    code_size: Scalar,
    name_index: Scalar,
    signature_index: Scalar,
    pool_bytes: u64,
    pool_holder: Scalar,
    /// JDK 12 on: field of the pool; JDK 11: field of the class.
    source_file: Option<SourceFile>,
    pub(super) klass_name: Scalar,
    symbol_length: Scalar,
    symbol_body: u64,
    /// `has_linenumber_table`.
    has_lines: i64,
    pub(super) class_methods: Option<ClassMethods>,
    /// Optional fields missing from the tables.
    pub missing: Vec<Missing>,
}

/// Consequences of missing fields.
mod cost {
    pub const BYTECODES: &str = "methods have no bytecodes or lines";
    pub const LINES: &str = "methods have no lines";
    pub const SIGNATURES: &str = "method names lack parameters: overloads look alike";
    pub const FILES: &str = "methods have no source files";
    pub const NAMES: &str = "methods have no names";
    pub const INTERPRETED: &str = "no names for interpreted methods";
}

#[derive(Clone, Copy, Debug)]
enum SourceFile {
    InPool(Scalar),
    InClass(Scalar),
}

fn missing(structure: &str, name: &str) -> AdapterError {
    AdapterError::MissingField {
        name: format!("{structure}.{name}"),
    }
}

impl MethodLayout {
    /// Finds all fields. [`MethodLayout::missing`] lists the optional fields that are absent.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`] for a field essential to method names.
    pub fn of(structs: &VmStructs, encodings: Encodings) -> Result<Self, AdapterError> {
        let mut wanted = Wanted::new(structs);
        let of = |name| structs.scalar("ConstMethod", name);
        let source = "_source_file_name_index";
        let in_pool = structs.optional_scalar("ConstantPool", source);
        let in_class = || structs.optional_scalar("InstanceKlass", source);
        let lines_flag = structs
            .constant("ConstMethodFlags::_misc_has_linenumber_table")
            .or_else(|| structs.constant("ConstMethod::_has_linenumber_table"));
        Ok(MethodLayout {
            encodings,
            const_method: structs.scalar("Method", "_constMethod")?,
            const_method_bytes: structs.size_of("ConstMethod")?,
            constants: of("_constants")?,
            flags: wanted
                .or_none(of("_flags._flags").or_else(|_| of("_flags")), cost::LINES)
                .unwrap_or(Scalar::ABSENT),
            code_size: wanted.scalar("ConstMethod", "_code_size", cost::BYTECODES),
            name_index: of("_name_index")?,
            signature_index: wanted.scalar("ConstMethod", "_signature_index", cost::SIGNATURES),
            pool_bytes: structs.size_of("ConstantPool")?,
            pool_holder: structs.scalar("ConstantPool", "_pool_holder")?,
            source_file: wanted.or_none(
                in_pool
                    .map(SourceFile::InPool)
                    .or_else(|| in_class().map(SourceFile::InClass))
                    .ok_or_else(|| missing("ConstantPool", source)),
                cost::FILES,
            ),
            klass_name: structs.scalar("Klass", "_name")?,
            symbol_length: structs.scalar("Symbol", "_length")?,
            symbol_body: structs
                .optional_offset("Symbol", "_body")
                .map_or_else(|| structs.offset("Symbol", "_body[0]"), Ok)?,
            has_lines: lines_flag.unwrap_or(1),
            class_methods: wanted.or_none(ClassMethods::of(structs), cost::INTERPRETED),
            missing: wanted.missing,
        })
    }

    /// Layout for a JVM with failed [`MethodLayout::of`]: every method is unreadable.
    #[must_use]
    pub fn unknown(error: &AdapterError, encodings: Encodings) -> Self {
        let absent = Scalar::ABSENT;
        MethodLayout {
            encodings,
            const_method: absent,
            const_method_bytes: 0,
            constants: absent,
            flags: absent,
            code_size: absent,
            name_index: absent,
            signature_index: absent,
            pool_bytes: 0,
            pool_holder: absent,
            source_file: None,
            klass_name: absent,
            symbol_length: absent,
            symbol_body: 0,
            has_lines: 0,
            class_methods: None,
            missing: vec![Missing::of(error, cost::NAMES)],
        }
    }

    /// Whether the tables include signatures; otherwise methods have no signatures.
    #[must_use]
    pub fn tells_signatures(&self) -> bool {
        !self.signature_index.is_absent()
    }

    /// Address of the `ConstMethod` of the method at `method`.
    fn const_method(&self, memory: &dyn Memory, method: Avma) -> Result<Avma, AdapterError> {
        if self.const_method.is_absent() {
            return Err(AdapterError::NotReady { what: WHAT });
        }
        self.const_method.read_address(memory, method, WHAT)
    }

    /// Reads the method at `method`.
    ///
    /// # Errors
    /// [`AdapterError::Memory`] if the method or its data are gone.
    pub fn read(&self, memory: &dyn Memory, method: Avma) -> Result<MethodInfo, AdapterError> {
        let reading = AdapterError::reading(WHAT);
        let const_method = self.const_method(memory, method)?;
        let head = memory
            .read_vec(const_method, self.const_method_bytes, 4096)
            .map_err(&reading)?;
        let number = |field: Scalar| field.unsigned_of(&head).unwrap_or_default();
        let constants = Avma(number(self.constants));
        let bytecodes_at = Avma(const_method.0.wrapping_add(self.const_method_bytes));
        let code_size = number(self.code_size);
        let bytecodes = memory
            .read_vec(bytecodes_at, code_size, usize::from(u16::MAX))
            .map_err(&reading)?;
        let holder = self.pool_holder.read_address(memory, constants, WHAT)?;
        let class = self.klass_name.read_address(memory, holder, WHAT)?;
        let lines = if self.flags.of(&head).unwrap_or_default() & self.has_lines != 0 {
            self.lines(memory, Avma(bytecodes_at.0.wrapping_add(code_size)))
        } else {
            Vec::new()
        };
        Ok(MethodInfo {
            method,
            constants,
            holder,
            class: self.symbol(memory, class)?,
            name: self.symbol_in_pool(memory, constants, number(self.name_index))?,
            signature: if self.signature_index.is_absent() {
                String::new()
            } else {
                self.symbol_in_pool(memory, constants, number(self.signature_index))?
            },
            file: self.file(memory, constants, holder).unwrap_or_default(),
            bytecodes_at,
            bytecodes: bytecodes.into(),
            lines,
        })
    }

    /// Address and length of the bytecodes of the method at `method`.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn bytecode_range(
        &self,
        memory: &dyn Memory,
        method: Avma,
    ) -> Result<(Avma, u64), AdapterError> {
        let const_method = self.const_method(memory, method)?;
        let size = self.code_size.read(memory, const_method, WHAT)?;
        let at = Avma(const_method.0.wrapping_add(self.const_method_bytes));
        Ok((at, size.cast_unsigned()))
    }

    /// Constant pool of the method at `method`.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn constants(&self, memory: &dyn Memory, method: Avma) -> Result<Avma, AdapterError> {
        let const_method = self.const_method(memory, method)?;
        self.constants.read_address(memory, const_method, WHAT)
    }

    /// The class (`Klass*`) that declares the method at `method`; `None` if no method is there:
    /// the class must list the method among its own.
    ///
    /// # Errors
    /// As [`MethodLayout::methods_of`].
    pub fn holder(&self, memory: &dyn Memory, method: Avma) -> Result<Option<Avma>, AdapterError> {
        let constants = self.constants(memory, method)?;
        let holder = self.pool_holder.read_address(memory, constants, WHAT)?;
        let methods = self.methods_of(memory, holder)?;
        Ok(methods.contains(&method).then_some(holder))
    }

    /// Symbol of the method's name.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn name_of(&self, memory: &dyn Memory, method: Avma) -> Result<Avma, AdapterError> {
        self.symbol_of(memory, method, self.name_index)
    }

    /// Symbol of the method's signature.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn signature_of(&self, memory: &dyn Memory, method: Avma) -> Result<Avma, AdapterError> {
        self.symbol_of(memory, method, self.signature_index)
    }

    /// Symbol whose number a field of the `ConstMethod` holds.
    fn symbol_of(
        &self,
        memory: &dyn Memory,
        method: Avma,
        field: Scalar,
    ) -> Result<Avma, AdapterError> {
        let const_method = self.const_method(memory, method)?;
        let constants = self.constants.read_address(memory, const_method, WHAT)?;
        let index = field.read(memory, const_method, WHAT)?.cast_unsigned();
        // In older versions, the lowest bit marks unresolved slots.
        Ok(Avma(self.pool_slot(memory, constants, index)? & !1))
    }

    /// Name of the class at `klass`, in the VM's form.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn class(&self, memory: &dyn Memory, klass: Avma) -> Result<String, AdapterError> {
        let name = self.klass_name.read_address(memory, klass, WHAT)?;
        self.symbol(memory, name)
    }

    /// Value in slot `index` of a constant pool.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn pool_slot(
        &self,
        memory: &dyn Memory,
        pool: Avma,
        index: u64,
    ) -> Result<u64, AdapterError> {
        let at = pool
            .0
            .wrapping_add(self.pool_bytes)
            .wrapping_add(index.wrapping_mul(8));
        memory
            .read_u64(Avma(at))
            .map_err(AdapterError::reading("constant pool"))
    }

    /// Symbol in slot `index` of a constant pool.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn symbol_in_pool(
        &self,
        memory: &dyn Memory,
        pool: Avma,
        index: u64,
    ) -> Result<String, AdapterError> {
        let slot = self.pool_slot(memory, pool, index)?;
        // In older versions, the lowest bit marks unresolved slots.
        self.symbol(memory, Avma(slot & !1))
    }

    /// Symbol at `at`.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn symbol(&self, memory: &dyn Memory, at: Avma) -> Result<String, AdapterError> {
        let (bytes, _) = self.symbol_bytes(memory, at, usize::from(u16::MAX))?;
        Ok(decode_utf8(bytes))
    }

    /// First `most` bytes of the symbol at `at`, and whether the symbol is complete.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn symbol_bytes(
        &self,
        memory: &dyn Memory,
        at: Avma,
        most: usize,
    ) -> Result<(Vec<u8>, bool), AdapterError> {
        let length = self.symbol_length.read(memory, at, "symbol")?;
        let length = length.cast_unsigned() & MAX_SYMBOL;
        let wanted = length.min(most as u64);
        let body = Avma(at.0.wrapping_add(self.symbol_body));
        let bytes = memory
            .read_vec(body, wanted, most)
            .map_err(AdapterError::reading("symbol"))?;
        Ok((bytes, wanted == length))
    }

    fn file(
        &self,
        memory: &dyn Memory,
        constants: Avma,
        holder: Avma,
    ) -> Result<String, AdapterError> {
        let index = match self.source_file {
            None => return Ok(String::new()),
            Some(SourceFile::InPool(field)) => field.read(memory, constants, WHAT)?,
            Some(SourceFile::InClass(field)) => field.read(memory, holder, WHAT)?,
        };
        if index <= 0 {
            return Ok(String::new());
        }
        self.symbol_in_pool(memory, constants, index.cast_unsigned())
    }

    /// Line table at `at`. Its length is unknown; a zero byte ends it.
    fn lines(&self, memory: &dyn Memory, at: Avma) -> Vec<LineEntry> {
        let mut length = FIRST_LINE_BYTES;
        loop {
            let mut bytes = vec![0; length];
            let got = memory.read_partial(at, &mut bytes).unwrap_or(0);
            bytes.truncate(got);
            if bytes.contains(&0) || got < length || length >= MAX_LINE_BYTES {
                return line_table(&bytes, self.encodings.unsigned5_excess);
            }
            length *= 4;
        }
    }
}
