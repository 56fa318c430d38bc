//! What one poll reads functions with.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, known};
use vmscope_records::{Avma, MethodKey};

use super::MAX_KNOWN;
use super::names::MethodId;
use crate::bytecodes::ConstantKinds;
use crate::function::{Function, Script};
use crate::isolate::{Isolate, Tables};
use crate::object::{Heap, Tagged};
use crate::state::Stamp;

/// Access to the heap and the tables during a poll.
pub(super) struct Reader<'p> {
    pub heap: Heap<'p>,
    /// Without a cache.
    pub direct: Heap<'p>,
    pub isolates: &'p [Isolate],
    pub tables: &'p Tables,
    pub scripts: FxHashMap<Tagged, Script>,
    /// Methods of functions that this poll has read.
    pub methods: FxHashMap<Tagged, Option<MethodKey>>,
    /// The collections before the poll; `None` during one.
    pub stamp: Option<Stamp>,
    /// Whether this poll has read the functions of all scripts.
    pub has_owners: bool,
    /// Whether this poll has read the functions of new scripts.
    pub has_new_owners: bool,
}

impl Reader<'_> {
    pub fn method_id(&mut self, function: &Function) -> Result<MethodId, AdapterError> {
        let script = match function.script {
            Some(script) => self.script(script)?,
            None => Script::default(),
        };
        Ok(MethodId {
            name: function.name.clone(),
            script: if script.name.is_empty() { script.id } else { 0 },
            file: script.name,
            position: function.position,
        })
    }

    /// The maps of bytecodes, one of each isolate.
    pub fn bytecode_maps(&self) -> Result<Vec<Tagged>, AdapterError> {
        self.roots("bytecode_array_map")
    }

    /// The maps of functions, one of each isolate.
    pub fn function_maps(&self) -> Result<Vec<Tagged>, AdapterError> {
        self.roots("shared_function_info_map")
    }

    fn roots(&self, name: &str) -> Result<Vec<Tagged>, AdapterError> {
        let root = |isolate: &Isolate| self.tables.root(*isolate, name, self.heap.memory);
        self.isolates.iter().map(root).collect()
    }

    /// The bytecodes of a function; `None` if it has none.
    pub fn bytecodes_of(&self, info: Tagged) -> Result<Option<Tagged>, AdapterError> {
        let found = self.heap.bytecodes_of(&[info], &self.bytecode_maps()?)?;
        Ok(found.first().copied().flatten())
    }

    /// Whether a function has these bytecodes now.
    pub fn has_still(&self, info: Tagged, bytecodes: Tagged) -> Result<bool, AdapterError> {
        (self.direct).has_bytecodes(info, bytecodes, &self.bytecode_maps()?)
    }

    /// Tells that reads of these objects follow.
    pub fn expect(&self, objects: impl Iterator<Item = Tagged>) -> Result<(), AdapterError> {
        let addresses: Vec<Avma> = objects.filter_map(Tagged::address).collect();
        let read = self.heap.memory.expect(&addresses);
        read.map_err(AdapterError::reading("objects"))
    }

    pub fn first(&self) -> Result<Isolate, AdapterError> {
        let first = self.isolates.first().copied();
        first.ok_or(AdapterError::NotReady { what: "isolate" })
    }

    /// Maps of constants, which all isolates share.
    pub fn kinds(&self) -> Result<ConstantKinds, AdapterError> {
        let isolate = self.first()?;
        let root = |name| self.tables.root(isolate, name, self.heap.memory);
        Ok(ConstantKinds {
            number: root("heap_number_map")?,
            function: root("shared_function_info_map")?,
        })
    }

    pub fn script(&mut self, script: Tagged) -> Result<Script, AdapterError> {
        if let Some(known) = self.scripts.get(&script) {
            return Ok(known.clone());
        }
        let read = known(self.heap.script(script))?.unwrap_or_default();
        if self.scripts.len() >= MAX_KNOWN {
            self.scripts.clear();
        }
        self.scripts.insert(script, read.clone());
        Ok(read)
    }
}
