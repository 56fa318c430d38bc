//! Functions by their bytecodes. Neither bytecodes nor Sparkplug's code refer to their function.

use rustc_hash::FxHashMap;
use vmscope_process::AdapterError;

use crate::isolate::{Isolate, Tables};
use crate::object::{Heap, Tagged};

/// Maximum number of scripts of an isolate.
const MAX_SCRIPTS: u64 = 1 << 16;

/// Maximum number of functions of a script.
const MAX_FUNCTIONS: u64 = 1 << 20;

/// Maximum number of functions of all scripts.
const MAX_ALL: usize = 1 << 21;

/// Offsets in a `WeakArrayList`: number of items, first item.
const LIST_LENGTH: u64 = 16;
const LIST_ITEMS: u64 = 24;

/// Offset of the bytecodes in an `InterpreterData`.
const INTERPRETER_BYTECODES: u64 = 8;

/// Functions (`SharedFunctionInfo`) by the address of their `BytecodeArray`.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    by_bytecodes: FxHashMap<Tagged, Tagged>,
}

impl Owners {
    /// The function with these bytecodes.
    #[must_use]
    pub fn function(&self, bytecodes: Tagged) -> Option<Tagged> {
        self.by_bytecodes.get(&bytecodes).copied()
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
        let mut functions = Vec::new();
        let mut maps = Vec::new();
        for isolate in isolates {
            let list = tables.root(*isolate, "script_list", heap.memory)?;
            maps.push(tables.root(*isolate, "bytecode_array_map", heap.memory)?);
            let scripts = items(heap, list, (LIST_LENGTH, LIST_ITEMS), MAX_SCRIPTS)?;
            let lists = heap.fields(&scripts, heap.layout.script.functions)?;
            for list in lists.into_iter().flatten() {
                if list.address().is_some() && functions.len() < MAX_ALL {
                    functions.extend(items(heap, list, (8, 16), MAX_FUNCTIONS)?);
                }
            }
        }
        let data = heap.fields(&functions, heap.layout.function.data)?;
        let pairs = functions.into_iter().zip(data);
        let pairs: Vec<(Tagged, Tagged)> = pairs
            .filter_map(|(function, data)| Some((function, data?)))
            .filter(|(_, data)| data.address().is_some())
            .collect();
        let objects: Vec<Tagged> = pairs.iter().map(|(_, data)| *data).collect();
        let is_bytecodes = |map: &Option<Tagged>| map.is_some_and(|map| maps.contains(&map));
        let mut by_bytecodes = FxHashMap::default();
        let mut others = Vec::new();
        for ((function, data), map) in pairs.into_iter().zip(heap.fields(&objects, 0)?) {
            match is_bytecodes(&map) {
                true => drop(by_bytecodes.insert(data, function)),
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
                    by_bytecodes.insert(bytecodes, *function);
                }
            }
        }
        Ok(Owners { by_bytecodes })
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
        let field = |object: Tagged, offset| match self.field(object, offset, "function") {
            Err(error) if error.is_final() => Err(error),
            field => Ok(field.unwrap_or_default()),
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

/// Objects in an array; `offsets` are those of its length and its first item.
fn items(
    heap: &Heap<'_>,
    array: Tagged,
    (length, first): (u64, u64),
    cap: u64,
) -> Result<Vec<Tagged>, AdapterError> {
    let what = "list of functions";
    let length = match heap.integer(array, length, what) {
        Err(error) if error.is_final() => return Err(error),
        length => length.ok().and_then(|length| u64::try_from(length).ok()),
    };
    let Some(length) = length.filter(|length| *length <= cap) else {
        return Ok(Vec::new());
    };
    let at = heap.at(array, first, what)?;
    let cap = usize::try_from(cap).unwrap_or(0);
    let words = match heap.memory.read_u64s(at, length, cap) {
        Err(error) if error.is_final() => return Err(AdapterError::reading(what)(error)),
        words => words.unwrap_or_default(),
    };
    let objects = words.into_iter().map(Tagged);
    Ok(objects
        .filter_map(|item| item.address().filter(|at| at.0 != 0).map(Tagged::of))
        .collect())
}
