//! Spaces of V8's heap, found by the names of their classes.

use vmscope_process::{AdapterError, Memory, Symbol, read_words};
use vmscope_records::{Avma, SpaceUse};

use crate::versions::SpaceFields;

/// Begin and end of the symbols of these classes' tables of functions.
pub(crate) const PREFIX: &str = "_ZTVN2v88internal";
const SUFFIX: &str = "SpaceE";

/// Distance from a table's symbol to the address in its objects.
const TABLE: u64 = 16;

/// Number of words from a heap's begin that contain the addresses of all its spaces.
const WORDS: u64 = 0x50;

/// Offset of a space's committed bytes.
const COMMITTED: u64 = 24;

/// Addresses that a process may have.
pub(crate) const ADDRESSES: std::ops::Range<u64> = 0x1_0000..1 << 47;

/// Classes of spaces.
#[derive(Clone, Debug, Default)]
pub struct SpaceNames {
    /// Their tables of functions.
    tables: Vec<(u64, String)>,
    /// Fields with used bytes; `None` if unknown.
    fields: Option<SpaceFields>,
}

impl SpaceNames {
    /// The names among V8's symbols; none from a binary without them.
    #[must_use]
    pub fn of(symbols: &[Symbol], fields: Option<SpaceFields>) -> Self {
        let spaces = symbols.iter().filter_map(|symbol| {
            let name = symbol.name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
            let name = name.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let table = symbol.address.0.checked_add(TABLE)?;
            Some((table, format!("{name}Space")))
        });
        SpaceNames {
            tables: spaces.collect(),
            fields,
        }
    }

    /// The spaces of `heap`.
    ///
    /// # Errors
    /// Failed reads.
    pub fn spaces(&self, heap: Avma, memory: &dyn Memory) -> Result<Spaces, AdapterError> {
        let failed = AdapterError::reading("spaces");
        if self.tables.is_empty() {
            return Ok(Spaces::default());
        }
        let words = memory.read_u64s(heap, WORDS, WORDS as usize);
        let mut places = words.map_err(&failed)?;
        places.retain(|at| ADDRESSES.contains(at) && at.is_multiple_of(8));
        places.sort_unstable();
        places.dedup();
        let places: Vec<Avma> = places.into_iter().map(Avma).collect();
        let words = read_words(memory, &places).map_err(&failed)?;
        let spaces = places.iter().zip(words).filter_map(|(at, words)| {
            let [table, owner] = words?;
            let (_, name) = self.tables.iter().find(|(known, _)| *known == table)?;
            (owner == heap.0).then(|| Space {
                name: name.clone(),
                at: *at,
                used: self.fields.and_then(|fields| used_field(name, fields)),
            })
        });
        let mut spaces: Vec<Space> = spaces.collect();
        spaces.sort();
        Ok(Spaces(spaces))
    }
}

/// Field with the used bytes of a class of spaces. V8 does not sum up the new space's.
fn used_field(name: &str, fields: SpaceFields) -> Option<u64> {
    if name.ends_with("LargeObjectSpace") {
        return Some(fields.large);
    }
    let paged = ["OldSpace", "CodeSpace", "MapSpace", "TrustedSpace"];
    paged.contains(&name).then_some(fields.paged)
}

/// One space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Space {
    /// Its class.
    name: String,
    at: Avma,
    /// Offset of its used bytes.
    used: Option<u64>,
}

/// Spaces of one heap.
#[derive(Clone, Debug, Default)]
pub struct Spaces(Vec<Space>);

impl Spaces {
    /// Committed and used bytes of the spaces that have any.
    ///
    /// # Errors
    /// Failed reads.
    pub fn uses(&self, memory: &dyn Memory) -> Result<Vec<SpaceUse>, AdapterError> {
        let places = self.0.iter().flat_map(|space| {
            let fields = [COMMITTED, space.used.unwrap_or(COMMITTED)];
            fields.map(|field| Avma(space.at.0.wrapping_add(field)))
        });
        let words = read_words(memory, &places.collect::<Vec<_>>());
        let words = words.map_err(AdapterError::reading("spaces"))?;
        let (words, _) = words.as_chunks::<2>();
        let spaces = self.0.iter().zip(words).filter_map(|(space, words)| {
            let [Some([committed]), Some([used])] = *words else {
                return None;
            };
            let used = space.used.map(|_| used).filter(|used| *used <= committed);
            (committed > 0).then(|| SpaceUse {
                name: space.name.clone(),
                before: None,
                after: used,
                capacity: Some(committed),
            })
        });
        Ok(spaces.collect())
    }
}
