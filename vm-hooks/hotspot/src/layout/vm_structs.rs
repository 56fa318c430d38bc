//! The tables in which a JVM describes its own structures (`vmStructs.cpp`), for the
//! serviceability agent and whoever else reads it from outside.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, LoadedModule, Memory, ProcessView};
use vmscope_records::Avma;

/// More entries than this of a table are not believed: JDK 17 has 788 fields.
const MAX_ENTRIES: u64 = 1 << 14;

/// Longer names are not believed.
const MAX_NAME: usize = 512;

/// A table's entry may not be larger than this.
const MAX_STRIDE: u64 = 256;

/// A field of a VM structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its type, as the table has it; may be empty.
    pub type_name: String,
    /// Whether it is a static: then it has an address, else an offset.
    pub is_static: bool,
    /// Bytes from the structure's begin.
    pub offset: u64,
    /// Where the static is.
    pub address: Avma,
}

/// A type of the VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type it is derived from; empty where there is none.
    pub superclass: String,
    /// Its size in bytes; 0 where the table has none.
    pub size: u64,
}

/// What a JVM says about its own structures.
#[derive(Clone, Debug, Default)]
pub struct VmStructs {
    fields: FxHashMap<String, FxHashMap<String, Field>>,
    types: FxHashMap<String, Type>,
    constants: FxHashMap<String, i64>,
}

/// The symbols of one table, and how its entries are made.
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

/// The symbol by which a library is known to be HotSpot's.
pub const MARK: &str = FIELDS.first;

impl VmStructs {
    /// Reads the tables of `libjvm` in `process`.
    ///
    /// # Errors
    ///
    /// [`AdapterError::NotReady`] while the VM has not filled them in;
    /// [`AdapterError::MissingSymbol`] where the library has none of them; whatever
    /// reading memory fails with.
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

    /// A field by its structure's and its own name.
    #[must_use]
    pub fn field(&self, structure: &str, name: &str) -> Option<&Field> {
        self.fields.get(structure)?.get(name)
    }

    /// All fields of a structure.
    pub fn fields_of(&self, structure: &str) -> impl Iterator<Item = (&str, &Field)> {
        let fields = self.fields.get(structure).into_iter().flatten();
        fields.map(|(name, field)| (name.as_str(), field))
    }

    /// The offset of a field that is not static.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`].
    pub fn offset(&self, structure: &str, name: &str) -> Result<u64, AdapterError> {
        self.optional_offset(structure, name)
            .ok_or_else(|| missing(structure, name))
    }

    /// Likewise, `None` where this version has no such field.
    #[must_use]
    pub fn optional_offset(&self, structure: &str, name: &str) -> Option<u64> {
        let field = self.field(structure, name)?;
        (!field.is_static).then_some(field.offset)
    }

    /// Where a static field is.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`].
    pub fn static_at(&self, structure: &str, name: &str) -> Result<Avma, AdapterError> {
        self.optional_static(structure, name)
            .ok_or_else(|| missing(structure, name))
    }

    /// Likewise, `None` where this version has no such field.
    #[must_use]
    pub fn optional_static(&self, structure: &str, name: &str) -> Option<Avma> {
        let field = self.field(structure, name)?;
        (field.is_static && field.address.0 != 0).then_some(field.address)
    }

    /// A type's size in bytes.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`].
    pub fn size_of(&self, name: &str) -> Result<u64, AdapterError> {
        self.optional_size_of(name)
            .ok_or_else(|| missing("sizeof", name))
    }

    /// Likewise, `None` where it is not told.
    #[must_use]
    pub fn optional_size_of(&self, name: &str) -> Option<u64> {
        Some(self.types.get(name)?.size).filter(|&size| size != 0)
    }

    /// A type by its name.
    #[must_use]
    pub fn type_named(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// A constant.
    #[must_use]
    pub fn constant(&self, name: &str) -> Option<i64> {
        self.constants.get(name).copied()
    }

    /// Constants whose names begin with `prefix`, without it.
    pub fn constants_beginning<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, i64)> {
        let all = self.constants.iter();
        all.filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, *value)))
    }

    /// How many fields, types and constants there are.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let fields = self.fields.values().map(FxHashMap::len).sum();
        (fields, self.types.len(), self.constants.len())
    }
}

type Values = FxHashMap<&'static str, u64>;

fn reading() -> impl Fn(vmscope_process::MemoryError) -> AdapterError {
    AdapterError::reading("description of itself")
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

/// An entry of a table.
struct Entry<'a> {
    memory: &'a dyn Memory,
    bytes: &'a [u8],
    parts: &'a [usize],
}

impl Entry<'_> {
    /// The offsets of its parts.
    fn parts<const N: usize>(&self) -> Result<[usize; N], AdapterError> {
        <[usize; N]>::try_from(self.parts).map_err(|_| AdapterError::NotReady {
            what: "description of itself",
        })
    }

    fn bytes(&self, part: usize) -> Option<&[u8]> {
        self.bytes.get(part..)
    }

    /// The string that a part points to; `None` for a null pointer.
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

/// Calls `take` with each entry of a table until it answers `false` (the entry that
/// ends it, whose name is null).
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
            what: "description of itself",
        });
    }
    let implausible = |value| AdapterError::Implausible {
        what: "entries' size in its description of itself",
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
        what: "entries in its description of itself",
        cap: MAX_ENTRIES,
    })
}
