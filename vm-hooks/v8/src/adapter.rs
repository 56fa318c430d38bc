//! The adapter: reads all machine code at each poll, and reports changes.

mod maps;
mod methods;

use std::collections::BTreeMap;
use std::time::Duration;

use rustc_hash::FxHashMap;
use vmscope_process::pages::Pages;
use vmscope_process::{
    Adapter, AdapterError, Cadence, CodeZone, MAX_TOUCHED_OF_A_POLL, Poll, ProcessView,
    SampleNeeds, SeenCode, Unwinder,
};
use vmscope_records::{
    Avma, Constituent, ConstituentKind, GoneReason, Method, MethodKey, TimeNs, VmIdentity,
};

use self::maps::Maps;
use self::methods::Wholes;
use crate::bytecodes::ConstantKinds;
use crate::code::{self, Code, Kind};
use crate::function::{Function, Script};
use crate::interpreted::Interpreted;
use crate::interpreter::{Interpreter, sample_needs};
use crate::isolate::{Isolate, Tables};
use crate::object::{Heap, Tagged};
use crate::owners::Owners;
use crate::regions;
use crate::registry::Streams;
use crate::state::{Epoch, States};
use crate::unwind::CodeFrames;
use crate::vm::V8;

/// Pauses between polls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Number of changes that shorten the pause.
const MANY_CHANGES: usize = 64;

/// Maximum number of limits.
const MAX_LIMITS: usize = 64;

/// Maximum number of scripts and of methods in memory.
const MAX_KNOWN: usize = 1 << 18;

/// Adapter of one V8.
#[derive(Debug)]
pub struct V8Adapter {
    vm: V8,
    tables: Option<Tables>,
    has_begun: bool,
    /// Greatest number of isolates at one time.
    isolates: usize,
    zone: CodeZone<Identity>,
    /// Code by its first address.
    known: BTreeMap<Avma, Known>,
    methods: FxHashMap<MethodId, MethodKey>,
    names: FxHashMap<MethodKey, String>,
    owners: Owners,
    interpreter: Interpreter,
    interpreted: Interpreted,
    maps: Maps,
    wholes: Wholes,
    cadence: Cadence,
    told: Vec<String>,
    states: States,
    /// Epoch of the code that was read last, and begin of that poll.
    epoch: Option<Epoch>,
    read_at: TimeNs,
    /// Begin of the last poll that tried to read the code.
    tried_at: TimeNs,
    is_last: bool,
    frames: CodeFrames,
    /// Values of samples that may be bytecodes, ascending.
    touched: Vec<Tagged>,
}

/// A piece of code that was described.
#[derive(Clone, Debug)]
struct Known {
    code: Code,
    identity: Identity,
    /// Whether its map was reported, or can't be read.
    is_mapped: bool,
}

/// One lifetime of a piece of code. V8 moves code rarely, and then all its objects: code at an old
/// address with an equal function counts as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    start: Avma,
    end: Avma,
    kind: Kind,
    method: Option<MethodKey>,
}

/// A function. Workers run equal functions of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MethodId {
    name: String,
    file: String,
    /// Number of a script without a name.
    script: i32,
    position: Option<u32>,
}

/// What one poll reads functions with.
struct Reader<'p> {
    heap: Heap<'p>,
    /// Without a cache.
    direct: Heap<'p>,
    isolates: &'p [Isolate],
    tables: &'p Tables,
    scripts: FxHashMap<Tagged, Script>,
    has_owners: bool,
}

impl V8Adapter {
    /// An adapter before its first poll.
    #[must_use]
    pub fn new(vm: V8) -> Self {
        V8Adapter {
            vm,
            tables: None,
            has_begun: false,
            isolates: 0,
            zone: CodeZone::new(),
            known: BTreeMap::new(),
            methods: FxHashMap::default(),
            names: FxHashMap::default(),
            owners: Owners::default(),
            interpreter: Interpreter::default(),
            interpreted: Interpreted::default(),
            maps: Maps::default(),
            wholes: Wholes::default(),
            cadence: Cadence::new(PAUSES.0, PAUSES.1, MANY_CHANGES),
            told: Vec::new(),
            states: States::default(),
            epoch: None,
            read_at: TimeNs(0),
            tried_at: TimeNs(0),
            is_last: false,
            frames: CodeFrames::default(),
            touched: Vec::new(),
        }
    }

    /// Describes new and changed code; returns all code with identities, ascending.
    fn identify(
        &mut self,
        codes: &[Code],
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Vec<Known>, AdapterError> {
        let is_known = |code: &&Code| {
            let known = self.known.get(&code.start);
            known.is_some_and(|known| known.code == **code)
        };
        let (old, new): (Vec<&Code>, Vec<&Code>) = codes.iter().partition(is_known);
        let old = old
            .into_iter()
            .filter_map(|code| self.known.get(&code.start));
        let mut all: Vec<Known> = old.cloned().collect();
        for code in new {
            let function = match self.function_of(code, reader) {
                Err(error) if error.is_final() => return Err(error),
                function => function.ok().flatten(),
            };
            let method = match function {
                Some(function) => self.method(&function, reader, poll)?,
                // V8 takes the data from optimised code that it no longer uses.
                None => self.method_before(code),
            };
            all.push(Known {
                code: *code,
                identity: Identity {
                    start: code.start,
                    end: code.end,
                    kind: code.kind,
                    method,
                },
                is_mapped: false,
            });
        }
        all.sort_by_key(|one| one.code.start);
        Ok(all)
    }

    /// The method of known code at the same place.
    fn method_before(&self, code: &Code) -> Option<MethodKey> {
        let before = self.known.get(&code.start)?.identity;
        let is_same = before.end == code.end && before.kind == code.kind;
        before.method.filter(|_| is_same)
    }

    /// The function that a piece of code executes; `None` if it belongs to none.
    fn function_of(
        &mut self,
        code: &Code,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Function>, AdapterError> {
        let info = match code.kind {
            Kind::Turbofan | Kind::Maglev => reader.optimised(code)?,
            Kind::Baseline => match self.owner(code.data, reader)? {
                Some(info) => info,
                None => return Ok(None),
            },
            Kind::Builtin | Kind::RegExp | Kind::Wasm | Kind::Interpreted => return Ok(None),
        };
        reader.heap.function(info).map(Some)
    }

    /// The function with these bytecodes. Reads the functions of all scripts at most once in a poll.
    fn owner(
        &mut self,
        bytecodes: Tagged,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Tagged>, AdapterError> {
        if self.owners.function(bytecodes).is_none() && !reader.has_owners {
            self.owners = Owners::read(&reader.direct, reader.isolates, reader.tables)?;
            reader.has_owners = true;
        }
        Ok(self.owners.function(bytecodes))
    }

    fn method(
        &mut self,
        function: &Function,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<MethodKey>, AdapterError> {
        let id = reader.method_id(function)?;
        if let Some(key) = self.methods.get(&id) {
            return Ok(Some(*key));
        }
        if self.methods.len() >= MAX_KNOWN {
            self.methods.clear();
            self.names.clear();
        }
        let key = poll.keys().method();
        let name = shown_name(&id);
        self.names.insert(key, name.clone());
        poll.method(Method {
            key,
            time: poll.now(),
            name,
            file: id.file.clone(),
            ..Method::default()
        });
        self.methods.insert(id, key);
        Ok(Some(key))
    }

    /// Keeps values of samples for the next poll that reads code.
    fn keep_touched(&mut self, poll: &Poll) {
        let unknown = self.interpreted.unknown(poll.touched());
        self.touched.extend(unknown);
        self.touched.sort_unstable();
        self.touched.dedup();
        self.touched.truncate(MAX_TOUCHED_OF_A_POLL);
    }

    /// Reports interpreted functions that samples show.
    fn tell_interpreted(
        &mut self,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let mut maps = Vec::new();
        for isolate in reader.isolates {
            let map = (reader.tables).root(*isolate, "bytecode_array_map", reader.heap.memory)?;
            maps.push(map);
        }
        self.keep_touched(poll);
        let values = std::mem::take(&mut self.touched);
        let found = reader.direct.fields(&values, 0)?;
        for (value, map) in values.into_iter().zip(found) {
            if !map.is_some_and(|map| maps.contains(&map)) || !self.interpreted.has_room() {
                continue;
            }
            let Some(info) = self.owner(value, reader)? else {
                continue;
            };
            let method = self.method_of(info, reader, poll)?;
            let put = match method {
                Some(method) => self.interpreted.put(&reader.heap, value, (info, method)),
                None => Ok(()),
            };
            match put {
                Err(error) if error.is_final() => return Err(error),
                _ => {}
            }
        }
        if reader.has_owners {
            self.keep_interpreted(reader, poll)?;
        }
        self.interpreted.tell(poll);
        Ok(())
    }

    /// Forgets interpreted functions whose bytecodes have moved.
    fn keep_interpreted(
        &mut self,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let known: Vec<_> = self.interpreted.functions().collect();
        for (bytecodes, info, method) in known {
            let now = self.owners.function(bytecodes);
            let is_same = match now {
                Some(other) if other != info => {
                    self.method_of(other, reader, poll)? == Some(method)
                }
                other => other.is_some(),
            };
            if !is_same {
                self.interpreted.forget(bytecodes);
            }
        }
        Ok(())
    }

    /// The method of a `SharedFunctionInfo`; `None` if it is damaged.
    fn method_of(
        &mut self,
        info: Tagged,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<MethodKey>, AdapterError> {
        match reader.heap.function(info) {
            Err(error) if error.is_final() => Err(error),
            Err(_) => Ok(None),
            Ok(function) => self.method(&function, reader, poll),
        }
    }

    fn tell(&mut self, all: Vec<Known>, poll: &mut Poll) -> usize {
        let seen = all.iter().map(|known| SeenCode {
            identity: known.identity,
            start: known.identity.start,
            end: known.identity.end,
        });
        let names = &self.names;
        let describe = |identity: &Identity, constituent: &mut Constituent, _: &mut Poll| {
            describe(names, identity, constituent);
        };
        let changes = self
            .zone
            .update(poll, seen, describe, |_| GoneReason::Freed);
        self.known = all.into_iter().map(|one| (one.code.start, one)).collect();
        changes
    }

    /// Looks at V8's state. In one epoch, no code goes.
    fn look(
        &mut self,
        process: &ProcessView,
        poll: &mut Poll,
    ) -> Result<Option<Epoch>, AdapterError> {
        let epoch = self.states.look(process.memory(), self.is_last, poll)?;
        if epoch.is_some() && epoch == self.epoch {
            self.zone.is_whole_at(poll.began());
        }
        Ok(epoch)
    }

    fn limit(&mut self, text: &str, poll: &mut Poll) {
        if self.told.len() < MAX_LIMITS && !self.told.iter().any(|told| told == text) {
            poll.limit(text.to_owned(), "");
            self.told.push(text.to_owned());
        }
    }
}

impl Reader<'_> {
    fn method_id(&mut self, function: &Function) -> Result<MethodId, AdapterError> {
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

    /// The bytecodes of a function; `None` if it has none. Reads without the cache.
    fn bytecodes_of(&self, info: Tagged) -> Result<Option<Tagged>, AdapterError> {
        let root = |isolate: &Isolate| {
            let memory = self.heap.memory;
            self.tables.root(*isolate, "bytecode_array_map", memory)
        };
        let maps: Vec<Tagged> = self.isolates.iter().map(root).collect::<Result<_, _>>()?;
        self.direct.bytecodes_of(info, &maps)
    }

    /// Maps of constants, which all isolates share.
    fn kinds(&self) -> Result<ConstantKinds, AdapterError> {
        let isolate = self.isolates.first().copied();
        let isolate = isolate.ok_or(AdapterError::NotReady { what: "isolate" })?;
        let root = |name| self.tables.root(isolate, name, self.heap.memory);
        Ok(ConstantKinds {
            number: root("heap_number_map")?,
            function: root("shared_function_info_map")?,
        })
    }

    /// The function of optimised code.
    fn optimised(&self, code: &Code) -> Result<Tagged, AdapterError> {
        const WRAPPED: u64 = 8;
        let fields = self.heap.layout.optimised;
        let what = "data of optimised code";
        let item = self.heap.item(code.data, fields.function, what)?;
        match fields.is_wrapped {
            true => self.heap.field(item, WRAPPED, what),
            false => Ok(item),
        }
    }

    fn script(&mut self, script: Tagged) -> Result<Script, AdapterError> {
        if let Some(known) = self.scripts.get(&script) {
            return Ok(known.clone());
        }
        let read = match self.heap.script(script) {
            Err(error) if error.is_final() => return Err(error),
            read => read.unwrap_or_default(),
        };
        if self.scripts.len() >= MAX_KNOWN {
            self.scripts.clear();
        }
        self.scripts.insert(script, read.clone());
        Ok(read)
    }
}

/// Completes a constituent, but for its map.
fn describe(
    names: &FxHashMap<MethodKey, String>,
    identity: &Identity,
    constituent: &mut Constituent,
) {
    constituent.kind = kind_of(identity.kind);
    constituent.tier = identity.kind.tier().to_owned();
    constituent.method = identity.method;
    let name = identity.method.and_then(|method| names.get(&method));
    constituent.name = match name {
        Some(name) => name.clone(),
        None => shown_kind(identity.kind).to_owned(),
    };
}

fn kind_of(kind: Kind) -> ConstituentKind {
    match kind {
        Kind::Baseline | Kind::Maglev | Kind::Turbofan => ConstituentKind::Method,
        Kind::Interpreted => ConstituentKind::Interpreter,
        Kind::RegExp => ConstituentKind::RegExp,
        Kind::Builtin | Kind::Wasm => ConstituentKind::Stub,
    }
}

/// Name of code without a function.
fn shown_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Baseline | Kind::Maglev | Kind::Turbofan => "",
        Kind::Interpreted => "interpreter entry",
        Kind::RegExp => "(regular expression)",
        Kind::Builtin => "(builtin's entry)",
        Kind::Wasm => "(WebAssembly)",
    }
}

fn shown_name(id: &MethodId) -> String {
    match (&*id.name, id.position) {
        ("", Some(0)) if !id.file.is_empty() => "(top level)".to_owned(),
        ("", _) => "(anonymous)".to_owned(),
        (name, _) => name.to_owned(),
    }
}

impl Adapter for V8Adapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: self.vm.product.name.to_owned(),
            version: self.vm.product.version.clone(),
        }
    }

    fn sample_needs(&self) -> SampleNeeds {
        sample_needs()
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        if !self.has_begun {
            poll.rules("v8", regions::rules(&self.vm.product.modules));
            poll.fact("V8", self.vm.version.clone());
        }
        self.maps.touched(poll);
        let now = poll.began();
        let is_due = u128::from(now.since(self.tried_at).0) >= self.cadence.pause().as_nanos();
        if self.has_begun && !self.is_last && !is_due {
            self.keep_touched(poll);
            self.look(process, poll)?;
            poll.code_is_told_until(self.read_at);
            return Ok(());
        }
        self.tried_at = now;
        let vm = self.vm.clone();
        let pages = Pages::new(process.memory());
        let isolates = vm.isolates(&pages)?;
        let Some(first) = isolates.first().copied() else {
            return Ok(());
        };
        if isolates.len() > self.isolates {
            self.isolates = isolates.len();
            poll.fact("isolates", self.isolates.to_string());
        }
        let tables = match &self.tables {
            Some(tables) => tables.clone(),
            None => vm.tables(first, &pages)?,
        };
        self.tables = Some(tables.clone());
        let followed = (&vm, &tables);
        self.states.follow(&isolates, followed, process, poll)?;
        let epoch = self.look(process, poll)?;
        let heap = vm.heap(&pages);
        let direct = vm.heap(process.memory());
        let Streams { addresses, damage } = vm.streams(process, &direct, (&tables, first))?;
        let codes = code::describe(&direct, &addresses)?;
        let mut reader = Reader {
            heap,
            direct,
            isolates: &isolates,
            tables: &tables,
            scripts: FxHashMap::default(),
            has_owners: false,
        };
        let all = self.identify(&codes, &mut reader, poll)?;
        let codes = all.iter().map(|known| &known.code);
        self.frames.update(codes, &vm, process)?;
        let changes = self.tell(all, poll);
        self.tell_interpreted(&mut reader, poll)?;
        (self.interpreter).poll((&vm, process), (&tables, &isolates), poll)?;
        if let Some(damage) = damage {
            self.limit(damage, poll);
        }
        self.tell_maps(process, &mut reader, poll)?;
        (self.epoch, self.read_at) = (epoch, now);
        self.has_begun = true;
        self.cadence.found(changes);
        Ok(())
    }

    fn tells_all_code(&self) -> bool {
        self.has_begun
    }

    fn unwinder(&mut self, process: &ProcessView) -> Option<Box<dyn Unwinder>> {
        self.frames.unwinder(&self.vm, process)
    }

    fn next_poll(&self) -> Duration {
        self.states.pause()
    }

    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        match process.is_alive() {
            true => {
                self.is_last = true;
                self.poll(process, poll)
            }
            false => Ok(()),
        }
    }
}
