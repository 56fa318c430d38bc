//! Functions by their bytecodes. Neither bytecodes nor Sparkplug's code refer to their function.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, known};
use vmscope_records::Avma;

use crate::isolate::{Isolate, Tables};
use crate::object::{Heap, Tagged};

/// Maximum number of scripts and functions of all isolates, those without code included.
const MAX_ALL: u64 = 1 << 21;

/// Number of functions of a short script.
const SHORT: u64 = 4;

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

    /// Reads the functions of all scripts. `heap` reads without a cache: all addresses are far apart.
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
    /// the address of an old one: [`Owners::read`] finds those too.
    ///
    /// # Errors
    /// As [`Owners::read`].
    pub fn read_new(
        &mut self,
        heap: &Heap<'_>,
        isolates: &[Isolate],
        tables: &Tables,
    ) -> Result<(), AdapterError> {
        let (mut functions, mut left) = (Vec::new(), MAX_ALL);
        let mut maps = Vec::new();
        for isolate in isolates {
            maps.push(tables.root(*isolate, "bytecode_array_map", heap.memory)?);
            let list = [tables.root(*isolate, "script_list", heap.memory)?];
            let mut scripts = items(heap, &list, (LIST_LENGTH, LIST_ITEMS), &mut left)?;
            scripts.retain(|script| self.scripts.insert(*script));
            let lists = heap.fields(&scripts, heap.layout.script.functions)?;
            let lists: Vec<Tagged> = lists.into_iter().flatten().collect();
            functions.extend(items(heap, &lists, (8, 16), &mut left)?);
        }
        let data = heap.fields(&functions, heap.layout.function.data)?;
        let pairs = functions.into_iter().zip(data);
        let pairs: Vec<(Tagged, Tagged)> = pairs
            .filter_map(|(function, data)| Some((function, data?)))
            .filter(|(_, data)| data.address().is_some())
            .collect();
        let objects: Vec<Tagged> = pairs.iter().map(|(_, data)| *data).collect();
        let is_bytecodes = |map: &Option<Tagged>| map.is_some_and(|map| maps.contains(&map));
        let mut others = Vec::new();
        for ((function, data), map) in pairs.into_iter().zip(heap.fields(&objects, 0)?) {
            match is_bytecodes(&map) {
                true => drop(self.by_bytecodes.insert(data, function)),
                false => others.push((function, data)),
            }
        }
        // Sparkplug's code, or the copy of the interpreter's entry, leads to the bytecodes.
        for offset in [heap.layout.code.data, INTERPRETER_BYTECODES] {
            let objects: Vec<Tagged> = others.iter().map(|(_, data)| *data).collect();
            let found = heap.fields(&objects, offset)?;
            let found: Vec<Tagged> = found.into_iter().map(Option::unwrap_or_default).collect();
            let found_maps = heap.fields(&found, 0)?;
            let each = others.iter().zip(found).zip(found_maps);
            for (((function, _), bytecodes), map) in each {
                if is_bytecodes(&map) {
                    self.by_bytecodes.insert(bytecodes, *function);
                }
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
        let inner = offsets.map(|offset| field(data, offset));
        for object in [Ok(data)].into_iter().chain(inner) {
            let object = object?;
            if maps.contains(&field(object, 0)?) {
                return Ok(Some(object));
            }
        }
        Ok(None)
    }
}

/// Objects in all of `arrays`; `length` and `first` are the offsets of an array's length and first item.
/// Reads at most `left` items.
fn items(
    heap: &Heap<'_>,
    arrays: &[Tagged],
    (length, first): (u64, u64),
    left: &mut u64,
) -> Result<Vec<Tagged>, AdapterError> {
    let failed = AdapterError::reading("list of functions");
    let (mut objects, mut short, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for (array, length) in arrays.iter().zip(heap.fields(arrays, length)?) {
        let length = length.and_then(Tagged::small_integer);
        let length = length.and_then(|length| u64::try_from(length).ok());
        let (Some(array), Some(length)) = (array.address(), length) else {
            continue;
        };
        let Some(rest) = left.checked_sub(length.max(1)) else {
            break;
        };
        *left = rest;
        let at = Avma(array.0.wrapping_add(first));
        match length {
            0 => {}
            1..=SHORT => short.push((at, length)),
            _ => long.push((at, length)),
        }
    }
    let mut put = |words: &[[u8; 8]]| {
        let words = words.iter().map(|word| Tagged(u64::from_le_bytes(*word)));
        objects
            .extend(words.filter_map(|item| item.address().filter(|at| at.0 != 0).map(Tagged::of)));
    };
    // Most scripts are short: one read for many of them.
    let places: Vec<Avma> = short.iter().map(|(at, _)| *at).collect();
    let (mut bytes, bytes_each) = (Vec::new(), SHORT as usize * 8);
    let read = heap
        .memory
        .read_each(&places, bytes_each, &mut bytes)
        .map_err(&failed)?;
    for ((each, is_read), bytes) in short
        .into_iter()
        .zip(read)
        .zip(bytes.chunks_exact(bytes_each))
    {
        let (words, _) = bytes.as_chunks::<8>();
        match words.get(..each.1 as usize) {
            Some(words) if is_read => put(words),
            _ => long.push(each),
        }
    }
    for (at, length) in long {
        let mut bytes = vec![0; length as usize * 8];
        let read = heap.memory.read_partial(at, &mut bytes).map_err(&failed)?;
        bytes.truncate(read);
        put(bytes.as_chunks::<8>().0);
    }
    Ok(objects)
}
