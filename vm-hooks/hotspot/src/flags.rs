//! Flags of a running JVM (`JVMFlag`): values and origins.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::layout::VmStructs;

/// Maximum plausible number of flags: JDK 17 has 1,269.
const MAX_FLAGS: u64 = 1 << 13;

/// Maximum length of names and texts; the rest is cut off.
const MAX_TEXT: usize = 256;

/// Flag types in numeric order of JDK 17 and later; older VMs have type names.
const TYPES: [&str; 10] = [
    "bool",
    "int",
    "uint",
    "intx",
    "uintx",
    "uint64_t",
    "size_t",
    "double",
    "ccstr",
    "ccstrlist",
];

/// Value of a flag.
#[derive(Clone, Debug, PartialEq)]
pub enum FlagValue {
    /// `-XX:+…` or `-XX:-…`.
    Bool(bool),
    /// A number.
    Signed(i64),
    /// An unsigned number, for instance a size in bytes.
    Unsigned(u64),
    /// A number with a fraction.
    Double(f64),
    /// A text; `None` for a null pointer.
    Text(Option<String>),
}

/// A flag.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// Value.
    pub value: FlagValue,
    /// Origin of the value.
    pub origin: Origin,
}

/// Origin of a flag's value (`JVMFlagOrigin`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Default value.
    Default,
    /// Set by the VM for this machine (ergonomics).
    Ergonomic,
    /// Set by a user: command line, environment, file, tool.
    User,
    /// Set by the VM for internal reasons.
    Internal,
}

impl Flag {
    /// The flag as on a command line.
    #[must_use]
    pub fn option(&self, name: &str) -> String {
        match &self.value {
            FlagValue::Bool(true) => format!("-XX:+{name}"),
            FlagValue::Bool(false) => format!("-XX:-{name}"),
            FlagValue::Signed(value) => format!("-XX:{name}={value}"),
            FlagValue::Unsigned(value) => format!("-XX:{name}={value}"),
            FlagValue::Double(value) => format!("-XX:{name}={value}"),
            FlagValue::Text(text) => format!("-XX:{name}={}", text.as_deref().unwrap_or_default()),
        }
    }
}

/// Flags of a JVM by name, as read.
#[derive(Clone, Debug, Default)]
pub struct Flags(FxHashMap<String, Flag>);

impl Flags {
    /// Reads all flags; `memory` should cache pages, since names lie close together. Unreadable
    /// flags and flags of unknown type are left out.
    ///
    /// # Errors
    /// [`AdapterError`] if the VM's tables lack its flags, or its memory is unreadable.
    pub fn read(memory: &dyn Memory, structs: &VmStructs) -> Result<Self, AdapterError> {
        let reading = || AdapterError::reading("flags");
        let table = structs.static_at("JVMFlag", "flags")?;
        let count = structs.static_at("JVMFlag", "numFlags")?;
        let size = structs.size_of("JVMFlag")?;
        let at = |name| structs.offset("JVMFlag", name);
        let place = Places {
            name: at("_name")?,
            value: at("_addr")?,
            flags: at("_flags")?,
            kind: at("_type")?,
            kind_is_text: structs
                .field("JVMFlag", "_type")
                .is_some_and(|field| field.type_name.contains('*')),
        };
        let table = memory.read_pointer(table).map_err(reading())?;
        let count = memory.read_u64(count).map_err(reading())?;
        if table.0 == 0 || count == 0 {
            return Err(AdapterError::NotReady { what: "flags" });
        }
        if count > MAX_FLAGS {
            return Err(AdapterError::TooMany {
                what: "flags",
                cap: MAX_FLAGS,
            });
        }
        let mut flags = FxHashMap::default();
        for number in 0..count {
            let entry = number
                .checked_mul(size)
                .and_then(|by| table.checked_add(by));
            let Some(entry) = entry else { break };
            // The last flag has no name.
            match place.read(memory, entry) {
                Some((name, flag)) => flags.insert(name, flag),
                None => continue,
            };
        }
        Ok(Self(flags))
    }

    /// Flag by name, without `-XX:`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Flag> {
        self.0.get(name)
    }

    /// Whether a boolean flag exists and has value `true`.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).map(|flag| &flag.value) == Some(&FlagValue::Bool(true))
    }

    /// Value of an unsigned flag.
    #[must_use]
    pub fn unsigned(&self, name: &str) -> Option<u64> {
        match self.get(name)?.value {
            FlagValue::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// Flags set by users, ordered by name.
    #[must_use]
    pub fn set_by_user(&self) -> Vec<(&str, &Flag)> {
        let all = self.0.iter();
        let set = all.filter(|(_, flag)| flag.origin == Origin::User);
        let mut set: Vec<_> = set.map(|(name, flag)| (name.as_str(), flag)).collect();
        set.sort_unstable_by_key(|(name, _)| *name);
        set
    }

    /// Number of flags.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Field offsets of a flag.
struct Places {
    name: u64,
    value: u64,
    flags: u64,
    kind: u64,
    kind_is_text: bool,
}

impl Places {
    fn read(&self, memory: &dyn Memory, entry: Avma) -> Option<(String, Flag)> {
        let at = |offset| entry.checked_add(offset);
        let text = |at: Avma| {
            let bytes = memory.read_c_string(at, MAX_TEXT).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let name = memory.read_pointer(at(self.name)?).ok()?;
        let name = text(name).filter(|name| !name.is_empty())?;
        let place = memory.read_pointer(at(self.value)?).ok()?;
        let kind = if self.kind_is_text {
            text(memory.read_pointer(at(self.kind)?).ok()?)?
        } else {
            let kind = memory.read_u32(at(self.kind)?).ok()?;
            (*TYPES.get(usize::try_from(kind).ok()?)?).to_owned()
        };
        let value = match kind.as_str() {
            "bool" => FlagValue::Bool(memory.read_u8(place).ok()? != 0),
            "int" => FlagValue::Signed(i64::from(memory.read_i32(place).ok()?)),
            "uint" => FlagValue::Unsigned(u64::from(memory.read_u32(place).ok()?)),
            "intx" => FlagValue::Signed(memory.read_u64(place).ok()?.cast_signed()),
            "uintx" | "uint64_t" | "size_t" => FlagValue::Unsigned(memory.read_u64(place).ok()?),
            "double" => FlagValue::Double(f64::from_bits(memory.read_u64(place).ok()?)),
            "ccstr" | "ccstrlist" => {
                let at = memory.read_pointer(place).ok()?;
                FlagValue::Text(if at.0 == 0 { None } else { text(at) })
            }
            _ => return None,
        };
        let origin = match memory.read_u32(at(self.flags)?).ok()? & 15 {
            0 => Origin::Default,
            5 => Origin::Ergonomic,
            1..=4 | 6 | 8 => Origin::User,
            _ => Origin::Internal,
        };
        Some((name, Flag { value, origin }))
    }
}
