//! Isolates: V8's instances in a process, and their tables.

use vmscope_process::{AdapterError, Memory, known};
use vmscope_records::Avma;

use crate::object::Tagged;
use crate::vm::Names;

/// An isolate, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isolate(pub Avma);

/// Maximum number of isolates.
pub(crate) const MAX_ISOLATES: usize = 1 << 10;

/// Node's platform has a `std::unordered_map` of isolates: offset of its first node.
const FIRST_NODE: u64 = 0x40;

/// Offset of the isolate's own address: the check.
const SELF: u64 = 8;

/// Distance from an isolate to the address in its register of roots.
const ROOT: u64 = 0x80;

/// Bytes from an isolate's begin that hold both tables.
const HEAD: u64 = 0x6000;

/// Distance from the entry stack pointer to V8's state.
const STATE: u64 = 16;

/// Number of isolates, and the first node, of Node's platform, whose address is at `platform`. Both change with new
/// isolates.
pub(crate) fn count(platform: Avma, memory: &dyn Memory) -> Result<[u64; 2], AdapterError> {
    let at = first_node_at(platform, memory)?;
    let words = memory.read_u64s(at, 2, 2);
    match *words.map_err(AdapterError::reading("number of isolates"))? {
        [first, count] => Ok([first, count]),
        _ => Ok([0; 2]),
    }
}

/// Address of the first node's address.
fn first_node_at(platform: Avma, memory: &dyn Memory) -> Result<Avma, AdapterError> {
    let platform = memory.read_u64(platform);
    match platform.map_err(AdapterError::reading("platform"))? {
        0 => Err(AdapterError::NotReady { what: "isolate" }),
        platform => Ok(Avma(platform.wrapping_add(FIRST_NODE))),
    }
}

/// Lists the isolates of Node's platform, whose address is at `platform`.
pub(crate) fn list(platform: Avma, memory: &dyn Memory) -> Result<Vec<Isolate>, AdapterError> {
    let failed = AdapterError::reading("isolates");
    let word = |at: u64| memory.read_u64(Avma(at)).map_err(&failed);
    let mut node = word(first_node_at(platform, memory)?.0)?;
    let mut isolates = Vec::new();
    while node != 0 && isolates.len() < MAX_ISOLATES {
        let at = word(node.wrapping_add(8))?;
        if known(word(at.wrapping_add(SELF)))? == Some(at) {
            isolates.push(Isolate(Avma(at)));
        }
        node = word(node)?;
    }
    isolates.sort();
    isolates.dedup();
    match isolates.is_empty() {
        true => Err(AdapterError::NotReady { what: "isolate" }),
        false => Ok(isolates),
    }
}

/// Offsets of an isolate's tables, and of the entries that vmscope reads.
#[derive(Clone, Debug)]
pub struct Tables {
    references: u64,
    roots: u64,
    reference_names: Names,
    root_names: Names,
}

impl Tables {
    /// Finds both tables by their contents.
    pub(crate) fn find(
        isolate: Isolate,
        (references, roots): (&Names, &Names),
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let mut bytes = vec![0; HEAD as usize];
        let read = memory.read_partial(isolate.0, &mut bytes);
        let length = read.map_err(AdapterError::reading("isolate"))?;
        bytes.truncate(length);
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let references_at = find_references(&words, isolate, references)?;
        let roots_at = find_roots(&words, roots, memory)?;
        Ok(Tables {
            references: references_at as u64 * 8,
            roots: roots_at as u64 * 8,
            reference_names: references.clone(),
            root_names: roots.clone(),
        })
    }

    /// The external reference whose name ends with `name`; `None` if V8 has none.
    ///
    /// # Errors
    /// Failed reads.
    pub fn reference(
        &self,
        isolate: Isolate,
        name: &str,
        memory: &dyn Memory,
    ) -> Result<Option<Avma>, AdapterError> {
        let Some(index) = self.reference_names.ending(name) else {
            return Ok(None);
        };
        let at = (isolate.0.0).wrapping_add(self.references + index as u64 * 8);
        let address = memory.read_u64(Avma(at));
        let address = address.map_err(AdapterError::reading("external reference"))?;
        Ok(Some(Avma(address)))
    }

    /// Address of the number that tells V8's current activity; `None` if V8 does not tell it.
    ///
    /// # Errors
    /// Failed reads.
    pub fn state(
        &self,
        isolate: Isolate,
        memory: &dyn Memory,
    ) -> Result<Option<Avma>, AdapterError> {
        let at = self.reference(isolate, "js_entry_sp_address", memory)?;
        Ok(at.map(|at| Avma(at.0.wrapping_add(STATE))))
    }

    /// The root object `name`.
    ///
    /// # Errors
    /// A missing name; failed reads.
    pub fn root(
        &self,
        isolate: Isolate,
        name: &str,
        memory: &dyn Memory,
    ) -> Result<Tagged, AdapterError> {
        let index = self.root_names.index(name);
        let index = index.ok_or_else(|| AdapterError::MissingField {
            name: name.to_owned(),
        })?;
        let at = (isolate.0.0).wrapping_add(self.roots + index as u64 * 8);
        let object = memory.read_u64(Avma(at));
        object.map(Tagged).map_err(AdapterError::reading("root"))
    }
}

/// Index of the table of external references. Two entries identify the table: the isolate's address, and the roots' address.
fn find_references(words: &[u64], isolate: Isolate, names: &Names) -> Result<usize, AdapterError> {
    let missing = || AdapterError::MissingField {
        name: "isolate_root".to_owned(),
    };
    let itself = names.index("isolate").ok_or_else(missing)?;
    let root = names.ending("isolate_root").ok_or_else(missing)?;
    let (itself_is, root_is) = (isolate.0.0, isolate.0.0.wrapping_add(ROOT));
    let found = (0..words.len()).find(|start| {
        words.get(start + itself) == Some(&itself_is) && words.get(start + root) == Some(&root_is)
    });
    found.ok_or(AdapterError::NotReady {
        what: "table of external references",
    })
}

/// Index of the table of roots. Two entries identify the table: the meta map, whose map is itself, and another map, whose map
/// is the meta map.
fn find_roots(words: &[u64], names: &Names, memory: &dyn Memory) -> Result<usize, AdapterError> {
    let index = |name: &str| {
        names.index(name).ok_or_else(|| AdapterError::MissingField {
            name: name.to_owned(),
        })
    };
    let (meta, other) = (index("meta_map")?, index("bytecode_array_map")?);
    let map_of = |object: u64| {
        let at = Tagged(object).address()?;
        memory.read_u64(at).ok()
    };
    let last = words.len().saturating_sub(names.count());
    let found = (0..last).find(|start| {
        let map = words.get(start + meta).copied();
        let other = words.get(start + other).copied();
        map.is_some_and(|map| map_of(map) == Some(map))
            && other.is_some_and(|other| map.is_some() && map_of(other) == map)
    });
    found.ok_or(AdapterError::NotReady {
        what: "table of roots",
    })
}
