//! The variables of V8 from which vmscope reaches all other data. Their symbols tell their addresses; a stripped program
//! has these symbols up to V8 12. Without symbols, the variables' contents identify them.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memmem;
use vmscope_process::{
    AdapterError, LoadedModule, MapEntry, ProcessView, Symbol, SymbolError, known,
};
use vmscope_records::Avma;

use crate::isolate::{self, MAX_ISOLATES};

/// Section of constant data with all texts of the program (Node.js: 56 MB).
const CONSTANTS: &str = ".rodata";
const MAX_CONSTANTS: u64 = 256 << 20;

/// Maximum bytes of the program's variables (Node.js: 0.5 MB, 4 MB as a library).
const MAX_VARIABLES: u64 = 16 << 20;

/// Maximum number of pointers to allocated memory among the variables.
const MAX_POINTERS: usize = 1 << 16;

/// Maximum number of objects among these that are tried (Node.js: up to 27).
const MAX_OBJECTS: usize = 1 << 9;

/// A name in the table of external references, and one in the table of roots.
const REFERENCE: &str = "abort_with_reason";
const ROOT: &str = "bytecode_array_map";

/// Symbol of V8's platform, which lists the isolates.
pub(crate) const PLATFORM: &str = "_ZN2v88internal2V89platform_E";
/// Symbols of the tables of names.
pub(crate) const REFERENCES: &str = "_ZN2v88internal22ExternalReferenceTable9ref_name_E";
pub(crate) const ROOTS: &str = "_ZN2v88internal10RootsTable11root_names_E";

/// Where V8's variables are; `None` for missing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variables {
    /// Address of the platform's address.
    pub platform: Option<Avma>,
    /// Names of external references.
    pub references: Option<Table>,
    /// Names of roots.
    pub roots: Option<Table>,
}

impl Variables {
    /// The variables with these symbols.
    #[must_use]
    pub fn by_symbols(symbols: &[Symbol]) -> Self {
        let find = |name: &str| symbols.iter().find(|symbol| symbol.name == name);
        let table = |name: &str| {
            find(name).map(|symbol| Table {
                address: symbol.address,
                count: symbol.size / 8,
            })
        };
        Variables {
            platform: find(PLATFORM).map(|symbol| symbol.address),
            references: table(REFERENCES),
            roots: table(ROOTS),
        }
    }

    /// The variables of Node.js in `module`, by what they hold.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] before Node.js has made its first isolate; unreadable headers and sections; failed
    /// reads.
    pub fn by_contents(process: &ProcessView, module: &LoadedModule) -> Result<Self, AdapterError> {
        let pieces = variables(process, module)?;
        let platform = platform(process, module, &pieces)?;
        let platform = platform.ok_or(AdapterError::NotReady { what: "isolate" })?;
        let [references, roots] = tables(process, module, pieces)?;
        Ok(Variables {
            platform: Some(platform),
            references,
            roots,
        })
    }
}

/// A piece of the program's data.
struct Piece {
    at: Avma,
    bytes: Vec<u8>,
}

impl Piece {
    /// Its words of 8 bytes.
    fn words(&self) -> impl Iterator<Item = u64> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().map(|word| u64::from_le_bytes(*word))
    }

    /// Address of a word.
    fn address(&self, index: usize) -> Avma {
        Avma(self.at.0.wrapping_add(index as u64 * 8))
    }
}

/// Pointers to texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// First pointer.
    pub address: Avma,
    /// Number of pointers.
    pub count: u64,
}

/// The tables of names of external references and of roots; `None` for a missing table. They lie in `pieces`, the
/// program's variables, or in its constant data. A table may begin with pointers to other texts.
fn tables(
    process: &ProcessView,
    module: &LoadedModule,
    mut pieces: Vec<Piece>,
) -> Result<[Option<Table>; 2], AdapterError> {
    let bias = process.bias(module)?;
    let constants = process.elf(module)?.section(CONSTANTS, MAX_CONSTANTS);
    let constants = constants.map_err(|source| SymbolError::Elf {
        path: String::from_utf8_lossy(&module.path).into_owned(),
        source,
    })?;
    let Some((range, bytes)) = constants else {
        return Ok([None; 2]);
    };
    let range = bias.apply(range.start).0..bias.apply(range.end).0;
    let texts = [REFERENCE, ROOT].map(|name| {
        let text = [name.as_bytes(), b"\0"].concat();
        let texts = memmem::find_iter(&bytes, &text).map(|at| range.start.wrapping_add(at as u64));
        texts.collect()
    });
    let at = Avma(range.start);
    pieces.push(Piece { at, bytes });
    Ok(texts.map(|texts| longest(&pieces, &texts, &range)))
}

/// The longest sequence of pointers to `constants` that contains a pointer to one of `texts`.
fn longest(pieces: &[Piece], texts: &HashSet<u64>, constants: &Range<u64>) -> Option<Table> {
    let mut best = None;
    for piece in pieces {
        let (mut count, mut has_text) = (0, false);
        // A zero ends the last sequence.
        for (index, word) in piece.words().chain([0]).enumerate() {
            if constants.contains(&word) {
                count += 1;
                has_text |= texts.contains(&word);
                continue;
            }
            if has_text && best.is_none_or(|(_, most)| most < count) {
                let address = piece.address(index - count);
                best = Some((address, count));
            }
            (count, has_text) = (0, false);
        }
    }
    best.map(|(address, count)| Table {
        address,
        count: count as u64,
    })
}

/// Address of a variable in `pieces` that holds the address of Node's platform; `None` before Node.js has made its first
/// isolate.
fn platform(
    process: &ProcessView,
    module: &LoadedModule,
    pieces: &[Piece],
) -> Result<Option<Avma>, AdapterError> {
    let memory = process.memory();
    let mappings = process.mappings();
    let mapping = |word: u64| MapEntry::find(&mappings, Avma(word));
    let is_allocated = |word: u64| {
        let mapping = mapping(word);
        mapping.is_some_and(|mapping| mapping.writable && mapping.path().is_none())
    };
    // An object whose class is constant data.
    let is_object = |word: u64| {
        let class = memory.read_u64(Avma(word)).ok().and_then(mapping);
        class.is_some_and(|class| !class.writable && class.path() == Some(&module.path))
    };
    // Lists of other objects can look like a list of isolates, but not with the right number.
    let lists_isolates = |at: Avma| -> Result<bool, AdapterError> {
        let count = known(isolate::count(at, memory))?.map_or(0, |[_, count]| count);
        if !(1..=MAX_ISOLATES as u64).contains(&count) {
            return Ok(false);
        }
        let isolates = known(isolate::list(at, memory))?.map_or(0, |list| list.len());
        Ok(isolates as u64 == count)
    };
    let all = pieces.iter().flat_map(|piece| {
        let words = piece.words().enumerate();
        words.map(|(index, word)| (piece.address(index), word))
    });
    let pointers = all.filter(|(_, word)| word.is_multiple_of(8) && is_allocated(*word));
    let objects = pointers
        .take(MAX_POINTERS)
        .filter(|(_, word)| is_object(*word));
    for (at, _) in objects.take(MAX_OBJECTS) {
        if lists_isolates(at)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The program's variables: its writable segments.
fn variables(process: &ProcessView, module: &LoadedModule) -> Result<Vec<Piece>, AdapterError> {
    let elf = process.elf(module)?;
    let bias = process.bias(module)?;
    let segments = elf.segments().iter();
    let writable = segments.filter(|segment| segment.is_loaded() && segment.writable);
    let mut left = MAX_VARIABLES;
    let pieces = writable.map(|segment| {
        let at = bias.apply(segment.address);
        let length = segment.memory_bytes.min(left);
        left -= length;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = process.memory().read_partial(at, &mut bytes);
        bytes.truncate(read.map_err(AdapterError::reading("variables"))?);
        Ok(Piece { at, bytes })
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: u64, words: &[u64]) -> Piece {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        Piece {
            at: Avma(at),
            bytes: bytes.collect(),
        }
    }

    #[test]
    fn the_longest_table_with_a_known_text_counts() {
        let texts = HashSet::from([0x105]);
        let pieces = [
            // Without the text.
            piece(0x1000, &[0x101, 0x102, 0x103, 0x104, 0]),
            // Two tables with the text; the second ends with its piece.
            piece(0x2000, &[7, 0x105, 0x106, 0x200, 0x101, 0x105, 0x107]),
            piece(0x3000, &[0x105]),
        ];
        let found = longest(&pieces, &texts, &(0x100..0x200));
        let expected = Table {
            address: Avma(0x2020),
            count: 3,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(longest(&pieces, &texts, &(0x300..0x400)), None);
        assert_eq!(longest(&[], &texts, &(0x100..0x200)), None);
    }

    #[test]
    fn a_piece_at_the_end_of_the_address_space_is_read() {
        let texts = HashSet::from([0x105]);
        let pieces = [piece(u64::MAX - 7, &[3, 0x105, 0x106])];
        let found = longest(&pieces, &texts, &(0x100..0x200)).unwrap();
        assert_eq!((found.address, found.count), (Avma(0), 2));
    }
}
