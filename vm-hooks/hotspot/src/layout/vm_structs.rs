//! Tables in which a JVM describes its own structures (`vmStructs.cpp`), meant for the
//! serviceability agent and other external readers.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, LoadedModule, Memory, ProcessView};
use vmscope_records::Avma;

/// Maximum plausible number of entries in a table: JDK 17 has 788 fields.
const MAX_ENTRIES: u64 = 1 << 14;

/// Maximum plausible length of a name.
const MAX_NAME: usize = 512;

/// Maximum size of a table's entry in bytes.
const MAX_STRIDE: u64 = 256;

/// A field of a VM structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Type name from the table; may be empty.
    pub type_name: String,
    /// Whether the field is static, with an address instead of an offset.
    pub is_static: bool,
    /// Offset in the structure.
    pub offset: u64,
    /// Address of a static field.
    pub address: Avma,
}

/// A type of the VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Base type; empty for none.
    pub superclass: String,
    /// Size in bytes; 0 if unknown.
    pub size: u64,
}

/// A JVM's description of its own structures.
#[derive(Clone, Debug, Default)]
pub struct VmStructs {
    fields: FxHashMap<String, FxHashMap<String, Field>>,
    types: FxHashMap<String, Type>,
    constants: FxHashMap<String, i64>,
}

/// Symbols of a table and of its entry layout.
struct Table {
    first: &'static str,
    stride: &'static str,
    parts: &'static [&'static str],
}

const FIELDS: Table = Table {
    first: "gHotSpotVMStructs",
    stride: "gHotSpotVMStructEntryArrayStride",
    parts: &[
        "gHotSpotVMStructEntryTypeNameOffset",
        "gHotSpotVMStructEntryFieldNameOffset",
        "gHotSpotVMStructEntryTypeStringOffset",
        "gHotSpotVMStructEntryIsStaticOffset",
        "gHotSpotVMStructEntryOffsetOffset",
        "gHotSpotVMStructEntryAddressOffset",
    ],
};

const TYPES: Table = Table {
    first: "gHotSpotVMTypes",
    stride: "gHotSpotVMTypeEntryArrayStride",
    parts: &[
        "gHotSpotVMTypeEntryTypeNameOffset",
        "gHotSpotVMTypeEntrySuperclassNameOffset",
        "gHotSpotVMTypeEntrySizeOffset",
    ],
};

const INTS: Table = Table {
    first: "gHotSpotVMIntConstants",
    stride: "gHotSpotVMIntConstantEntryArrayStride",
    parts: &[
        "gHotSpotVMIntConstantEntryNameOffset",
        "gHotSpotVMIntConstantEntryValueOffset",
    ],
};

const LONGS: Table = Table {
    first: "gHotSpotVMLongConstants",
    stride: "gHotSpotVMLongConstantEntryArrayStride",
    parts: &[
        "gHotSpotVMLongConstantEntryNameOffset",
        "gHotSpotVMLongConstantEntryValueOffset",
    ],
};

/// The exported symbol that identifies HotSpot's library.
pub const MARK: &str = FIELDS.first;

impl VmStructs {
    /// Reads the tables of `libjvm` in `process`.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] before the VM fills in the tables;
    /// [`AdapterError::MissingSymbol`] if the library has no tables; errors of reads.
    pub fn read(
        process: &ProcessView,
        libjvm: &LoadedModule,
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let tables = [&FIELDS, &TYPES, &INTS, &LONGS];
        let names: Vec<&str> = tables
            .iter()
            .flat_map(|table| {
                [table.first, table.stride]
                    .into_iter()
                    .chain(table.parts.iter().copied())
            })
            .collect();
        let symbols = process.symbols(libjvm, &names)?;
        let mut values = FxHashMap::default();
        for (name, symbol) in names.iter().zip(symbols) {
            let symbol = symbol.ok_or_else(|| AdapterError::MissingSymbol {
                name: (*name).to_owned(),
            })?;
            let value = memory.read_u64(symbol.address).map_err(reading())?;
            values.insert(*name, value);
        }
        let mut structs = VmStructs::default();
        structs.read_fields(memory, &values)?;
        structs.read_types(memory, &values)?;
        structs.read_constants(memory, &INTS, &values, |entry| {
            entry.and_then(int_at).map(i64::from)
        })?;
        structs.read_constants(memory, &LONGS, &values, |entry| {
            entry.and_then(long_at).map(u64::cast_signed)
        })?;
        Ok(structs)
    }

    fn read_fields(&mut self, memory: &dyn Memory, values: &Values) -> Result<(), AdapterError> {
        for_each(memory, &FIELDS, values, |entry| {
            let [type_name, name, type_string, is_static, offset, address] = entry.parts()?;
            let field = Field {
                type_name: entry.string(type_string)?.unwrap_or_default(),
                is_static: entry.bytes(is_static).and_then(int_at) != Some(0),
                offset: entry.bytes(offset).and_then(long_at).unwrap_or_default(),
                address: Avma(entry.bytes(address).and_then(long_at).unwrap_or_default()),
            };
            let Some(type_name) = entry.string(type_name)? else {
                return Ok(false);
            };
            let name = entry.string(name)?.unwrap_or_default();
            self.fields
                .entry(type_name)
                .or_default()
                .insert(name, field);
            Ok(true)
        })
    }

    fn read_types(&mut self, memory: &dyn Memory, values: &Values) -> Result<(), AdapterError> {
        for_each(memory, &TYPES, values, |entry| {
            let [name, superclass, size] = entry.parts()?;
            let Some(name) = entry.string(name)? else {
                return Ok(false);
            };
            let one = Type {
                superclass: entry.string(superclass)?.unwrap_or_default(),
                size: entry.bytes(size).and_then(long_at).unwrap_or_default(),
            };
            self.types.insert(name, one);
            Ok(true)
        })
    }

    fn read_constants(
        &mut self,
        memory: &dyn Memory,
        table: &Table,
        values: &Values,
        decode: fn(Option<&[u8]>) -> Option<i64>,
    ) -> Result<(), AdapterError> {
        for_each(memory, table, values, |entry| {
            let [name, value] = entry.parts()?;
            let Some(name) = entry.string(name)? else {
                return Ok(false);
            };
            if let Some(value) = decode(entry.bytes(value)) {
                self.constants.insert(name, value);
            }
            Ok(true)
        })
    }

    /// Field by structure and name.
    #[must_use]
    pub fn field(&self, structure: &str, name: &str) -> Option<&Field> {
        self.fields.get(structure)?.get(name)
    }

    /// All fields of a structure.
    pub fn fields_of(&self, structure: &str) -> impl Iterator<Item = (&str, &Field)> {
        let fields = self.fields.get(structure).into_iter().flatten();
        fields.map(|(name, field)| (name.as_str(), field))
    }

    /// Offset of a non-static field.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`].
    pub fn offset(&self, structure: &str, name: &str) -> Result<u64, AdapterError> {
        self.optional_offset(structure, name)
            .ok_or_else(|| missing(structure, name))
    }

    /// Likewise; `None` if this version lacks the field.
    #[must_use]
    pub fn optional_offset(&self, structure: &str, name: &str) -> Option<u64> {
        let field = self.field(structure, name)?;
        (!field.is_static).then_some(field.offset)
    }

    /// Address of a static field.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`].
    pub fn static_at(&self, structure: &str, name: &str) -> Result<Avma, AdapterError> {
        self.optional_static(structure, name)
            .ok_or_else(|| missing(structure, name))
    }

    /// Likewise; `None` if this version lacks the field.
    #[must_use]
    pub fn optional_static(&self, structure: &str, name: &str) -> Option<Avma> {
        let field = self.field(structure, name)?;
        (field.is_static && field.address.0 != 0).then_some(field.address)
    }

    /// Size of a type in bytes.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`].
    pub fn size_of(&self, name: &str) -> Result<u64, AdapterError> {
        self.optional_size_of(name)
            .ok_or_else(|| missing("sizeof", name))
    }

    /// Likewise; `None` if unknown.
    #[must_use]
    pub fn optional_size_of(&self, name: &str) -> Option<u64> {
        Some(self.types.get(name)?.size).filter(|&size| size != 0)
    }

    /// Type by name.
    #[must_use]
    pub fn type_named(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// A constant.
    #[must_use]
    pub fn constant(&self, name: &str) -> Option<i64> {
        self.constants.get(name).copied()
    }

    /// Constants with names that begin with `prefix`; the prefix is removed.
    pub fn constants_beginning<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, i64)> {
        let all = self.constants.iter();
        all.filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, *value)))
    }

    /// Numbers of fields, types and constants.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let fields = self.fields.values().map(FxHashMap::len).sum();
        (fields, self.types.len(), self.constants.len())
    }
}

type Values = FxHashMap<&'static str, u64>;

fn reading() -> impl Fn(vmscope_process::MemoryError) -> AdapterError {
    AdapterError::reading("self-description")
}

fn missing(structure: &str, name: &str) -> AdapterError {
    AdapterError::MissingField {
        name: format!("{structure}.{name}"),
    }
}

fn int_at(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.first_chunk::<4>().copied()?))
}

fn long_at(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.first_chunk::<8>().copied()?))
}

/// Entry of a table.
struct Entry<'a> {
    memory: &'a dyn Memory,
    bytes: &'a [u8],
    parts: &'a [usize],
}

impl Entry<'_> {
    /// Offsets of its parts.
    fn parts<const N: usize>(&self) -> Result<[usize; N], AdapterError> {
        <[usize; N]>::try_from(self.parts).map_err(|_| AdapterError::NotReady {
            what: "self-description",
        })
    }

    fn bytes(&self, part: usize) -> Option<&[u8]> {
        self.bytes.get(part..)
    }

    /// String behind a part's pointer; `None` for a null pointer.
    fn string(&self, part: usize) -> Result<Option<String>, AdapterError> {
        match self.bytes(part).and_then(long_at) {
            None | Some(0) => Ok(None),
            Some(at) => {
                let string = self.memory.read_c_string(Avma(at), MAX_NAME);
                let string = string.map_err(reading())?;
                Ok(Some(String::from_utf8_lossy(&string).into_owned()))
            }
        }
    }
}

/// Passes each entry of a table to `take` until `take` returns `false`, as for the last entry,
/// whose name is null.
fn for_each(
    memory: &dyn Memory,
    table: &Table,
    values: &Values,
    mut take: impl FnMut(&Entry<'_>) -> Result<bool, AdapterError>,
) -> Result<(), AdapterError> {
    let value = |name: &'static str| values.get(name).copied().unwrap_or_default();
    let (first, stride) = (value(table.first), value(table.stride));
    if first == 0 || stride == 0 {
        return Err(AdapterError::NotReady {
            what: "self-description",
        });
    }
    let implausible = |value| AdapterError::Implausible {
        what: "entry size in its self-description",
        value,
        at: Avma(first),
    };
    if !(16..=MAX_STRIDE).contains(&stride) {
        return Err(implausible(stride));
    }
    let mut parts = Vec::new();
    for part in table.parts {
        let part = value(part);
        if part >= stride {
            return Err(implausible(part));
        }
        parts.extend(usize::try_from(part));
    }
    let mut buffer = vec![0; usize::try_from(stride).unwrap_or_default()];
    for number in 0..MAX_ENTRIES {
        let at = first.checked_add(number * stride);
        let at = Avma(at.ok_or_else(|| implausible(stride))?);
        memory.read_into(at, &mut buffer).map_err(reading())?;
        let entry = Entry {
            memory,
            bytes: &buffer,
            parts: &parts,
        };
        if !take(&entry)? {
            return Ok(());
        }
    }
    Err(AdapterError::TooMany {
        what: "entries of its self-description",
        cap: MAX_ENTRIES,
    })
}
