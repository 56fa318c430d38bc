//! Functions by their bytecodes. Neither bytecodes nor Sparkplug's code refer to their function.

use rustc_hash::FxHashMap;
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

/// Name of the lists in messages.
const LIST: &str = "list of functions";

/// Offset of the bytecodes in an `InterpreterData`.
const INTERPRETER_BYTECODES: u64 = 8;

/// Functions (`SharedFunctionInfo`) by the address of their `BytecodeArray`.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    by_bytecodes: FxHashMap<Tagged, Owner>,
    /// Numbers of the scripts whose functions were read.
    scripts: FxHashMap<Tagged, Option<Tagged>>,
    /// Whether a collection came since the last reading. New scripts may have taken dead scripts' addresses.
    has_died: bool,
}

/// A function and its place in its script's list. Dead functions may still refer to bytecodes whose place
/// other bytecodes took; V8 takes them from the list.
#[derive(Clone, Copy, Debug)]
struct Owner {
    function: Tagged,
    script: Tagged,
    index: u64,
}

impl Owners {
    /// Owner of these bytecodes at the reading of its script.
    #[must_use]
    pub fn function(&self, bytecodes: Tagged) -> Option<Tagged> {
        let owner = self.by_bytecodes.get(&bytecodes);
        owner.map(|owner| owner.function)
    }

    /// The live function that has these bytecodes now: addresses are used again. `maps`: the maps of
    /// bytecodes.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn current(
        &self,
        heap: &Heap<'_>,
        bytecodes: Tagged,
        maps: &[Tagged],
    ) -> Result<Option<Tagged>, AdapterError> {
        let Some(owner) = self.by_bytecodes.get(&bytecodes) else {
            return Ok(None);
        };
        let list = known(heap.field(owner.script, heap.layout.script.functions, LIST))?;
        let item = known(heap.item(list.unwrap_or_default(), owner.index, LIST))?;
        let Some(at) = item.and_then(Tagged::address) else {
            return Ok(None);
        };
        // The collector may have moved the function.
        let function = Tagged::of(at);
        let is_current = heap.has_bytecodes(function, bytecodes, maps)?;
        Ok(is_current.then_some(function))
    }

    /// Tells that a collection may have freed or moved functions and scripts.
    pub fn died(&mut self) {
        self.has_died = true;
    }

    /// Whether a collection came since the last reading.
    #[must_use]
    pub fn has_died(&self) -> bool {
        self.has_died
    }

    /// All bytecodes with their functions.
    pub fn iter(&self) -> impl Iterator<Item = (Tagged, Tagged)> + '_ {
        self.by_bytecodes
            .iter()
            .map(|(bytecodes, owner)| (*bytecodes, owner.function))
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

    /// Reads the functions of scripts that are new since the last reading, and forgets those of dead
    /// scripts.
    ///
    /// # Errors
    /// As [`Owners::read`].
    pub fn read_new(
        &mut self,
        heap: &Heap<'_>,
        isolates: &[Isolate],
        tables: &Tables,
    ) -> Result<(), AdapterError> {
        let (mut scripts, mut left) = (Vec::new(), MAX_ALL);
        let mut maps = Vec::new();
        for isolate in isolates {
            maps.push(tables.root(*isolate, "bytecode_array_map", heap.memory)?);
            let list = [tables.root(*isolate, "script_list", heap.memory)?];
            let found = items(heap, &list, (LIST_LENGTH, LIST_ITEMS), &mut left)?;
            scripts.extend(found.into_iter().map(|item| item.object));
        }
        let has_died = std::mem::take(&mut self.has_died);
        scripts.retain(|script| has_died || !self.scripts.contains_key(script));
        let numbers = heap.fields(&scripts, heap.layout.script.id)?;
        if has_died {
            let numbers = scripts.iter().copied().zip(numbers.iter().copied());
            let numbers: FxHashMap<Tagged, Option<Tagged>> = numbers.collect();
            (self.scripts).retain(|script, number| numbers.get(script) == Some(number));
            (self.by_bytecodes).retain(|_, owner| self.scripts.contains_key(&owner.script));
        }
        let mut numbers = numbers.into_iter();
        scripts.retain(|script| {
            let number = numbers.next().flatten();
            self.scripts.insert(*script, number).is_none()
        });
        let lists = heap.fields(&scripts, heap.layout.script.functions)?;
        let lists: Vec<Tagged> = lists.into_iter().map(Option::unwrap_or_default).collect();
        let functions = items(heap, &lists, (8, 16), &mut left)?;
        let owner = |item: Item| Owner {
            function: item.object,
            script: scripts.get(item.array).copied().unwrap_or_default(),
            index: item.index,
        };
        let owners: Vec<Owner> = functions.into_iter().map(owner).collect();
        self.read_bytecodes(heap, &maps, owners)
    }

    /// Reads the bytecodes of functions; `maps`: the maps of bytecodes.
    fn read_bytecodes(
        &mut self,
        heap: &Heap<'_>,
        maps: &[Tagged],
        owners: Vec<Owner>,
    ) -> Result<(), AdapterError> {
        let functions: Vec<Tagged> = owners.iter().map(|owner| owner.function).collect();
        let found = heap.bytecodes_of(&functions, maps)?;
        let pairs = owners.into_iter().zip(found);
        let pairs = pairs.filter_map(|(owner, found)| Some((found?, owner)));
        self.by_bytecodes.extend(pairs);
        Ok(())
    }
}

impl Heap<'_> {
    /// The bytecodes of each of `functions`; `None` for those without. A function's data are its bytecodes, or lead to them:
    /// Sparkplug's code, and the copy of the interpreter's entry. `maps`: the maps of bytecodes.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn bytecodes_of(
        &self,
        functions: &[Tagged],
        maps: &[Tagged],
    ) -> Result<Vec<Option<Tagged>>, AdapterError> {
        let is_bytecodes = |map: &Option<Tagged>| map.is_some_and(|map| maps.contains(&map));
        let data = self.fields(functions, self.layout.function.data)?;
        let data: Vec<Tagged> = data.into_iter().map(Option::unwrap_or_default).collect();
        let fields = self.each_field(data.iter().flat_map(|data| self.data_places(*data)))?;
        let (fields, _) = fields.as_chunks::<3>();
        let inner = fields.iter().map(|[map, inner @ ..]| {
            inner.map(|inner| inner.filter(|_| !is_bytecodes(map)).unwrap_or_default())
        });
        let inner: Vec<[Tagged; 2]> = inner.collect();
        let inner_maps = self.fields(inner.as_flattened(), 0)?;
        let (inner_maps, _) = inner_maps.as_chunks::<2>();
        let all = data
            .into_iter()
            .zip(fields)
            .zip(inner.iter().zip(inner_maps));
        let found = all.map(|((data, [map, ..]), (inner, inner_maps))| {
            let mut inner = inner.iter().zip(inner_maps);
            match is_bytecodes(map) {
                true => Some(data),
                false => inner
                    .find(|(_, map)| is_bytecodes(map))
                    .map(|(inner, _)| *inner),
            }
        });
        Ok(found.collect())
    }

    /// Whether a function has these bytecodes, by at most two system calls. `maps`: the maps of bytecodes.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn has_bytecodes(
        &self,
        function: Tagged,
        bytecodes: Tagged,
        maps: &[Tagged],
    ) -> Result<bool, AdapterError> {
        let is_bytecodes = |map: &Option<Tagged>| map.is_some_and(|map| maps.contains(&map));
        let places = [(function, self.layout.function.data), (bytecodes, 0)];
        let [data, map] = self.fields_at(places)?;
        if !is_bytecodes(&map) || data == Some(bytecodes) {
            return Ok(is_bytecodes(&map));
        }
        let [map, inner @ ..] = self.fields_at(self.data_places(data.unwrap_or_default()))?;
        Ok(!is_bytecodes(&map) && inner.contains(&Some(bytecodes)))
    }

    /// The fields of a function's `data` that show its bytecodes.
    fn data_places(&self, data: Tagged) -> [(Tagged, u64); 3] {
        [0, self.layout.code.data, INTERPRETER_BYTECODES].map(|offset| (data, offset))
    }
}

/// An object in one of several arrays.
struct Item {
    array: usize,
    index: u64,
    object: Tagged,
}

/// Objects in all of `arrays`; `length` and `first` are the offsets of an array's length and first item.
/// Reads at most `left` items.
fn items(
    heap: &Heap<'_>,
    arrays: &[Tagged],
    (length, first): (u64, u64),
    left: &mut u64,
) -> Result<Vec<Item>, AdapterError> {
    let failed = AdapterError::reading(LIST);
    let (mut objects, mut short, mut long) = (Vec::new(), Vec::new(), Vec::new());
    let lengths = heap.fields(arrays, length)?;
    for (number, (array, length)) in arrays.iter().zip(lengths).enumerate() {
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
            1..=SHORT => short.push((number, at, length)),
            _ => long.push((number, at, length)),
        }
    }
    let mut put = |array: usize, words: &[[u8; 8]]| {
        let words = words.iter().map(|word| Tagged(u64::from_le_bytes(*word)));
        objects.extend((0..).zip(words).filter_map(|(index, item)| {
            let at = item.address().filter(|at| at.0 != 0)?;
            Some(Item {
                array,
                index,
                object: Tagged::of(at),
            })
        }));
    };
    // Most scripts are short: one read for many of them.
    let places: Vec<Avma> = short.iter().map(|(_, at, _)| *at).collect();
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
        match words.get(..each.2 as usize) {
            Some(words) if is_read => put(each.0, words),
            _ => long.push(each),
        }
    }
    for (array, at, length) in long {
        let mut bytes = vec![0; length as usize * 8];
        let read = heap.memory.read_partial(at, &mut bytes).map_err(&failed)?;
        bytes.truncate(read);
        put(array, bytes.as_chunks::<8>().0);
    }
    Ok(objects)
}
