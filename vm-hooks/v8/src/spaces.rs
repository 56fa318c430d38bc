//! Spaces of V8's heap, found by the names of their classes.

use vmscope_process::{AdapterError, Memory, ProcessView};
use vmscope_records::{Avma, SpaceUse};

use crate::vm::V8;

/// Begin and end of the symbols of these classes' tables of functions.
const PREFIX: &str = "_ZTVN2v88internal";
const SUFFIX: &str = "SpaceE";

/// Distance from a table's symbol to the address in its objects.
const TABLE: u64 = 16;

/// Maximum number of classes.
const MAX_CLASSES: usize = 1 << 14;

/// Number of words from a heap's begin that contain the addresses of all its spaces.
const WORDS: u64 = 0x50;

/// Words of a space: table of functions, heap, number, committed bytes.
const HEAP: usize = 1;
const COMMITTED: usize = 3;

/// Bytes of these words.
const BYTES: usize = 32;

/// Classes of spaces.
#[derive(Clone, Debug, Default)]
pub struct SpaceNames(Vec<(u64, String)>);

impl SpaceNames {
    /// Reads the names; none from a binary without them.
    ///
    /// # Errors
    /// Unreadable symbols.
    pub fn read(vm: &V8, process: &ProcessView) -> Result<Self, AdapterError> {
        let symbols = process.symbols_beginning(&vm.product.module, PREFIX, MAX_CLASSES)?;
        let spaces = symbols.into_iter().filter_map(|symbol| {
            let name = symbol.name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
            let name = name.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let table = symbol.address.0.checked_add(TABLE)?;
            Some((table, format!("{name}Space")))
        });
        Ok(SpaceNames(spaces.collect()))
    }

    /// The committed bytes of each space of `heap`.
    ///
    /// # Errors
    /// Failed reads.
    pub fn spaces(&self, heap: Avma, memory: &dyn Memory) -> Result<Vec<SpaceUse>, AdapterError> {
        let failed = AdapterError::reading("spaces");
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let words = memory.read_u64s(heap, WORDS, WORDS as usize);
        let mut places = words.map_err(&failed)?;
        places.retain(|at| *at != 0 && at.is_multiple_of(8));
        places.sort_unstable();
        places.dedup();
        let places: Vec<Avma> = places.into_iter().map(Avma).collect();
        let mut bytes = Vec::new();
        let read = memory.read_each(&places, BYTES, &mut bytes);
        let read = read.map_err(&failed)?;
        let (words, _) = bytes.as_chunks::<8>();
        let each = words.chunks_exact(BYTES / 8).zip(read);
        let spaces = each
            .filter(|(_, is_read)| *is_read)
            .filter_map(|(space, _)| {
                let word = |index: usize| space.get(index).map(|word| u64::from_le_bytes(*word));
                let (_, name) = self.0.iter().find(|(table, _)| word(0) == Some(*table))?;
                let committed = word(COMMITTED).filter(|bytes| *bytes > 0)?;
                (word(HEAP)? == heap.0).then(|| SpaceUse {
                    name: name.clone(),
                    before: None,
                    after: None,
                    capacity: Some(committed),
                })
            });
        let mut spaces: Vec<SpaceUse> = spaces.collect();
        spaces.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(spaces)
    }
}
