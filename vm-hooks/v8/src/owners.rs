//! Functions by their bytecodes. Neither bytecodes nor Sparkplug's code refer to their function.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::pages::Pages;
use vmscope_process::{AdapterError, known};

use crate::isolate::{Isolate, Tables};
use crate::object::{Heap, Tagged};

/// Maximum number of scripts and functions of all isolates, those without code included.
const MAX_ALL: u64 = 1 << 21;

const LIST: &str = "list of functions";

/// Offsets in a `WeakArrayList`: number of items, first item.
const LIST_LENGTH: u64 = 16;
const LIST_ITEMS: u64 = 24;

/// Offset of the bytecodes in an `InterpreterData`.
const INTERPRETER_BYTECODES: u64 = 8;

/// Functions (`SharedFunctionInfo`) by the address of their `BytecodeArray`.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    by_bytecodes: FxHashMap<Tagged, Tagged>,
    /// Scripts whose functions were read.
    scripts: FxHashSet<Tagged>,
    /// Functions without bytecodes, with the numbers of their scripts. Most functions never run.
    idle: FxHashSet<(Tagged, i32)>,
    /// Those before the last collection.
    idle_before: FxHashSet<(Tagged, i32)>,
}

impl Owners {
    /// The function with these bytecodes.
    #[must_use]
    pub fn function(&self, bytecodes: Tagged) -> Option<Tagged> {
        self.by_bytecodes.get(&bytecodes).copied()
    }

    /// Whether `function` still has these bytecodes: addresses are used again.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn is_current(
        heap: &Heap<'_>,
        function: Tagged,
        bytecodes: Tagged,
    ) -> Result<bool, AdapterError> {
        let field = |object: Tagged, offset: u64| known(heap.field(object, offset, "function"));
        let Some(data) = field(function, heap.layout.function.data)? else {
            return Ok(false);
        };
        if data == bytecodes {
            return Ok(true);
        }
        for offset in [heap.layout.code.data, INTERPRETER_BYTECODES] {
            if field(data, offset)? == Some(bytecodes) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All bytecodes with their functions.
    pub fn iter(&self) -> impl Iterator<Item = (Tagged, Tagged)> + '_ {
        self.by_bytecodes
            .iter()
            .map(|(bytecodes, function)| (*bytecodes, *function))
    }

    /// Forgets all functions: a collection has freed or moved some. The next [`Owners::read_new`] reads
    /// all scripts, but no data of functions that had no bytecodes before.
    pub fn collected(&mut self) {
        self.by_bytecodes.clear();
        self.scripts.clear();
        self.idle_before = std::mem::take(&mut self.idle);
    }

    /// Reads the functions of all scripts. `heap` reads without a cache: this has its own.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn read(
        heap: &Heap<'_>,
        isolates: &[Isolate],
        tables: &Tables,
    ) -> Result<Self, AdapterError> {
        let mut owners = Owners::default();
        owners.read_new(heap, isolates, tables)?;
        Ok(owners)
    }

    /// Reads the functions of scripts that are new since the last reading. V8 may have put a new script at
    /// the address of an old one, or compiled a function of an old one: [`Owners::read`] finds those too.
    ///
    /// # Errors
    /// As [`Owners::read`].
    pub fn read_new(
        &mut self,
        heap: &Heap<'_>,
        isolates: &[Isolate],
        tables: &Tables,
    ) -> Result<(), AdapterError> {
        let root = |name| {
            let each = isolates.iter();
            each.map(|isolate| tables.root(*isolate, name, heap.memory))
                .collect::<Result<Vec<Tagged>, _>>()
        };
        self.read_lists(heap, &root("script_list")?, &root("bytecode_array_map")?)
    }

    /// Reads new scripts in `lists`; `maps` are the maps of bytecodes.
    fn read_lists(
        &mut self,
        heap: &Heap<'_>,
        lists: &[Tagged],
        maps: &[Tagged],
    ) -> Result<(), AdapterError> {
        let pages = Pages::new(heap.memory);
        let fetch = |objects: &mut dyn Iterator<Item = Tagged>| {
            let read = pages.fetch(objects.filter_map(Tagged::address));
            read.map_err(AdapterError::reading(LIST))
        };
        let heap = &Heap {
            memory: &pages,
            layout: heap.layout,
        };
        let (mut functions, mut left) = (Vec::new(), MAX_ALL);
        for list in lists {
            let mut scripts = items(heap, *list, (LIST_LENGTH, LIST_ITEMS), &mut left)?;
            scripts.retain(|script| self.scripts.insert(*script));
            fetch(&mut scripts.iter().copied())?;
            let ids = heap.fields(&scripts, heap.layout.script.id)?;
            let lists = heap.fields(&scripts, heap.layout.script.functions)?;
            fetch(&mut lists.iter().flatten().copied())?;
            for (id, list) in ids.into_iter().zip(lists) {
                let id = id.and_then(Tagged::small_integer).unwrap_or_default();
                let all = items(heap, list.unwrap_or_default(), (8, 16), &mut left)?;
                functions.extend(all.into_iter().map(|function| (function, id)));
            }
        }
        let is_idle = |function: &&(Tagged, i32)| self.idle_before.contains(*function);
        let (idle, new): (Vec<_>, Vec<_>) = functions.iter().partition(is_idle);
        self.idle.extend(idle);
        let infos: Vec<Tagged> = new.iter().map(|(info, _)| *info).collect();
        fetch(&mut infos.iter().copied())?;
        let data = heap.fields(&infos, heap.layout.function.data)?;
        fetch(&mut data.into_iter().flatten())?;
        for function in new {
            match heap.bytecodes_of(function.0, maps)? {
                Some(bytecodes) => drop(self.by_bytecodes.insert(bytecodes, function.0)),
                None => drop(self.idle.insert(function)),
            }
        }
        Ok(())
    }
}

impl Heap<'_> {
    /// The bytecodes of a function; `None` if it has none. `maps`: the maps of bytecodes.
    ///
    /// # Errors
    /// Failed reads.
    pub fn bytecodes_of(
        &self,
        function: Tagged,
        maps: &[Tagged],
    ) -> Result<Option<Tagged>, AdapterError> {
        let field = |object: Tagged, offset| -> Result<Tagged, AdapterError> {
            Ok(known(self.field(object, offset, "function"))?.unwrap_or_default())
        };
        let data = field(function, self.layout.function.data)?;
        let offsets = [self.layout.code.data, INTERPRETER_BYTECODES];
        for offset in [None].into_iter().chain(offsets.map(Some)) {
            let object = match offset {
                None => data,
                Some(offset) => field(data, offset)?,
            };
            if maps.contains(&field(object, 0)?) {
                return Ok(Some(object));
            }
        }
        Ok(None)
    }
}

/// Objects in an array; `length` and `first` are the offsets of its length and first item. Reads at most
/// `left` items.
fn items(
    heap: &Heap<'_>,
    array: Tagged,
    (length, first): (u64, u64),
    left: &mut u64,
) -> Result<Vec<Tagged>, AdapterError> {
    let length = known(heap.integer(array, length, LIST))?.unwrap_or_default();
    let length = u64::try_from(length).unwrap_or_default();
    let Some(rest) = left.checked_sub(length.max(1)) else {
        return Ok(Vec::new());
    };
    *left = rest;
    let Some(at) = known(heap.at(array, first, LIST))? else {
        return Ok(Vec::new());
    };
    let mut bytes = vec![0; usize::try_from(length * 8).unwrap_or_default()];
    let read = heap.memory.read_partial(at, &mut bytes);
    bytes.truncate(read.map_err(AdapterError::reading(LIST))?);
    let (words, _) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| Tagged(u64::from_le_bytes(*word)));
    let objects = words.filter_map(|item| item.address().filter(|at| at.0 != 0).map(Tagged::of));
    Ok(objects.collect())
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;
    use vmscope_records::Avma;

    use super::*;
    use crate::debug::Debug;
    use crate::versions::Layout;

    const MAP: u64 = 0x1001;
    const LISTS: [u64; 2] = [0x2_0000, 0x3_0000];

    /// A heap with two lists of scripts.
    struct Made(FakeMemory, Layout);

    impl Made {
        fn new() -> Self {
            let mut memory = FakeMemory::new();
            memory.put(Avma(0x1_0000), vec![0; 0x10_0000]);
            let layout = Layout::new((12, 4), &Debug::default()).unwrap();
            Made(memory, layout)
        }

        fn put(&mut self, at: u64, words: &[u64]) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.0.write(Avma(at), &bytes);
        }

        /// A script with a number, at `at`, and the functions of its list.
        fn script(&mut self, at: u64, id: u64, functions: &[u64]) {
            let fields = self.1.script;
            self.put(at + fields.id, &[id << 32]);
            self.put(at + fields.functions, &[(at + 0x800) | 1]);
            self.put(at + 0x808, &[(functions.len() as u64) << 32]);
            let weak: Vec<u64> = functions.iter().map(|function| function | 3).collect();
            self.put(at + 0x810, &weak);
        }

        fn scripts(&mut self, list: usize, scripts: &[u64]) {
            self.put(LISTS[list] + 16, &[(scripts.len() as u64) << 32]);
            let weak: Vec<u64> = scripts.iter().map(|script| script | 3).collect();
            self.put(LISTS[list] + 24, &weak);
        }

        /// Gives a function bytecodes; 0: none.
        fn function(&mut self, at: u64, bytecodes: u64) {
            let data = if bytecodes == 0 { 0 } else { bytecodes | 1 };
            self.put(at + self.1.function.data, &[data]);
            if bytecodes != 0 {
                self.put(bytecodes, &[MAP]);
            }
        }

        fn read(&self, owners: &mut Owners) {
            let heap = Heap {
                memory: &self.0,
                layout: &self.1,
            };
            let lists = LISTS.map(|list| Tagged::of(Avma(list)));
            owners.read_lists(&heap, &lists, &[Tagged(MAP)]).unwrap();
        }
    }

    fn owner(owners: &Owners, bytecodes: u64) -> Option<u64> {
        let found = owners.function(Tagged(bytecodes | 1))?;
        found.address().map(|at| at.0)
    }

    #[test]
    fn a_collection_moves_and_frees_functions_and_their_bytecodes() {
        let [one, two, other] = [0x4_0000, 0x4_2000, 0x4_4000];
        let [moves, stays, idle, dead] = [0x5_0000, 0x5_1000, 0x5_2000, 0x5_3000];
        let mut made = Made::new();
        made.scripts(0, &[one, two]);
        made.scripts(1, &[other]);
        made.script(one, 1, &[moves, idle]);
        made.script(two, 2, &[dead]);
        made.script(other, 1, &[stays]);
        for (function, bytecodes) in [
            (moves, 0x6_0000),
            (stays, 0x6_1000),
            (idle, 0),
            (dead, 0x6_2000),
        ] {
            made.function(function, bytecodes);
        }
        let mut owners = Owners::default();
        made.read(&mut owners);
        assert_eq!(owner(&owners, 0x6_0000), Some(moves));
        assert_eq!(owner(&owners, 0x6_1000), Some(stays));
        assert_eq!(owner(&owners, 0x6_2000), Some(dead));

        // Another function takes the place of dead bytecodes; a new script that of a dead one.
        owners.collected();
        assert_eq!(owner(&owners, 0x6_1000), None, "not read yet");
        made.function(moves, 0x6_2000);
        made.script(two, 3, &[idle + 0x800]);
        made.function(idle + 0x800, 0x6_0000);
        made.read(&mut owners);
        assert_eq!(owner(&owners, 0x6_2000), Some(moves));
        assert_eq!(owner(&owners, 0x6_0000), Some(idle + 0x800));
        assert_eq!(owner(&owners, 0x6_1000), Some(stays));

        // Functions of old scripts that run for the first time wait for a whole reading.
        owners.collected();
        made.function(idle, 0x6_3000);
        made.read(&mut owners);
        assert_eq!(owner(&owners, 0x6_3000), None);
        let mut whole = Owners::default();
        made.read(&mut whole);
        assert_eq!(owner(&whole, 0x6_3000), Some(idle));

        // A new function in the place of one that never ran.
        owners.collected();
        made.script(one, 4, &[moves, idle]);
        made.read(&mut owners);
        assert_eq!(owner(&owners, 0x6_3000), Some(idle));
    }

    #[test]
    fn lists_without_an_end_are_left_out() {
        let mut made = Made::new();
        made.put(LISTS[0] + 16, &[u64::from(u32::MAX >> 1) << 32]);
        made.scripts(1, &[0x4_0000]);
        made.script(0x4_0000, 1, &[0x5_0000]);
        made.function(0x5_0000, 0x6_0000);
        let mut owners = Owners::default();
        made.read(&mut owners);
        assert_eq!(owner(&owners, 0x6_0000), Some(0x5_0000));
    }
}
