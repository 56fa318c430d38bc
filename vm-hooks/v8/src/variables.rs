//! The variables of V8 from which vmscope reaches all other data. Their symbols tell their addresses; a stripped program
//! has these symbols up to V8 12. Without symbols, the variables' contents identify them.

use vmscope_process::{AdapterError, LoadedModule, MapEntry, ProcessView, Symbol, known};
use vmscope_records::Avma;

use crate::contents::{Contents, Piece};
use crate::isolate::{self, MAX_ISOLATES};

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

    /// The variables of Node.js in `module`, whose data are `contents`, by what they hold. A table may begin with pointers
    /// to other texts.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] before Node.js has made its first isolate; failed reads.
    pub fn by_contents(
        process: &ProcessView,
        module: &LoadedModule,
        contents: &Contents,
    ) -> Result<Self, AdapterError> {
        let platform = platform(process, module, &contents.variables)?;
        let platform = platform.ok_or(AdapterError::NotReady { what: "isolate" })?;
        let [references, roots] = [REFERENCE, ROOT].map(|name| {
            let range = contents.longest_table(&contents.addresses_of(name))?;
            Some(Table {
                address: range.start,
                count: (range.end.0.wrapping_sub(range.start.0)) / 8,
            })
        });
        Ok(Variables {
            platform: Some(platform),
            references,
            roots,
        })
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
