//! Spaces of V8's heap, found by the names of their classes.

use vmscope_process::{AdapterError, Memory, Symbol};
use vmscope_records::{Avma, SpaceUse};

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
const ADDRESSES: std::ops::Range<u64> = 0x1_0000..1 << 47;

/// Classes of spaces.
#[derive(Clone, Debug, Default)]
pub struct SpaceNames(Vec<(u64, String)>);

impl SpaceNames {
    /// The names among V8's symbols; none from a binary without them.
    #[must_use]
    pub fn of(symbols: &[Symbol]) -> Self {
        let spaces = symbols.iter().filter_map(|symbol| {
            let name = symbol.name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
            let name = name.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let table = symbol.address.0.checked_add(TABLE)?;
            Some((table, format!("{name}Space")))
        });
        SpaceNames(spaces.collect())
    }

    /// The spaces of `heap`.
    ///
    /// # Errors
    /// Failed reads.
    pub fn spaces(&self, heap: Avma, memory: &dyn Memory) -> Result<Spaces, AdapterError> {
        let failed = AdapterError::reading("spaces");
        if self.0.is_empty() {
            return Ok(Spaces::default());
        }
        let words = memory.read_u64s(heap, WORDS, WORDS as usize);
        let mut places = words.map_err(&failed)?;
        places.retain(|at| ADDRESSES.contains(at) && at.is_multiple_of(8));
        places.sort_unstable();
        places.dedup();
        let places: Vec<Avma> = places.into_iter().map(Avma).collect();
        let mut bytes = Vec::new();
        let read = memory.read_each(&places, 16, &mut bytes);
        let read = read.map_err(&failed)?;
        let (words, _) = bytes.as_chunks::<8>();
        let each = places.iter().zip(words.chunks_exact(2)).zip(read);
        let spaces = each.filter_map(|((at, words), is_read)| {
            let [table, owner] = [words.first()?, words.get(1)?].map(|w| u64::from_le_bytes(*w));
            let (_, name) = self.0.iter().find(|(known, _)| *known == table)?;
            (is_read && owner == heap.0).then(|| (name.clone(), *at))
        });
        let mut spaces: Vec<(String, Avma)> = spaces.collect();
        spaces.sort();
        Ok(Spaces(spaces))
    }
}

/// Spaces of one heap: class and address.
#[derive(Clone, Debug, Default)]
pub struct Spaces(Vec<(String, Avma)>);

impl Spaces {
    /// Committed bytes of the spaces that have any.
    ///
    /// # Errors
    /// Failed reads.
    pub fn uses(&self, memory: &dyn Memory) -> Result<Vec<SpaceUse>, AdapterError> {
        let places = self.0.iter();
        let places = places.map(|(_, at)| Avma(at.0.wrapping_add(COMMITTED)));
        let mut bytes = Vec::new();
        let read = memory.read_each(&places.collect::<Vec<_>>(), 8, &mut bytes);
        let read = read.map_err(AdapterError::reading("spaces"))?;
        let (words, _) = bytes.as_chunks::<8>();
        let each = self.0.iter().zip(words).zip(read);
        let spaces = each.filter_map(|(((name, _), word), is_read)| {
            let committed = u64::from_le_bytes(*word);
            (is_read && committed > 0).then(|| SpaceUse {
                name: name.clone(),
                before: None,
                after: None,
                capacity: Some(committed),
            })
        });
        Ok(spaces.collect())
    }
}
