//! WebAssembly's code as records.

mod maps;

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, CodeZone, Memory, Poll, ProcessView, SeenCode, known};
use vmscope_records::{Avma, Constituent, ConstituentKind, GoneReason, Method, MethodKey, TimeNs};

use super::hits::take_overlapping;
use super::{MAX_KNOWN, V8Adapter};
use crate::unwind::FrameCode;
use crate::wasm::module::Module;
use crate::wasm::{ModuleBytes, Region, Wasm, WasmCode, WasmKind, region_at};

/// What is known about WebAssembly.
#[derive(Debug, Default)]
pub(super) struct WasmZone {
    zone: CodeZone<WasmIdentity>,
    /// Regions of all modules, ascending.
    regions: Vec<Region>,
    /// Code by its first address, with the begin of the poll that read its module.
    known: BTreeMap<Avma, (WasmIdentity, TimeNs)>,
    /// Sampled addresses in regions.
    waiting: FxHashSet<Avma>,
    modules: Modules,
}

/// Modules with their functions, and methods that stand for these.
#[derive(Debug, Default)]
struct Modules {
    functions: FxHashMap<ModuleId, Module>,
    /// Begin of the first reading with code of a module, by its `NativeModule`.
    seen_at: FxHashMap<(Avma, ModuleId), TimeNs>,
    /// By module and number; with whether the listing was reported.
    methods: FxHashMap<(ModuleId, u32), (MethodKey, bool)>,
    /// Code whose map was reported, or can't be read.
    mapped: FxHashSet<WasmIdentity>,
}

/// A module by its bytes. Another module may have all addresses of a dead one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ModuleId {
    bytes: ModuleBytes,
    hash: u64,
}

/// One lifetime of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WasmIdentity {
    code: WasmCode,
    module: Option<ModuleId>,
}

impl WasmZone {
    /// Whether WebAssembly's regions contain an address.
    pub fn covers(&self, at: Avma) -> bool {
        region_at(&self.regions, at).is_some()
    }

    /// Code at an address that was read after `died_until`, the last collection.
    fn fresh_at(&self, at: Avma, died_until: Option<TimeNs>) -> Option<WasmIdentity> {
        let (_, (identity, read_at)) = self.known.range(..=at).next_back()?;
        (at <= identity.code.end && Some(*read_at) > died_until).then_some(*identity)
    }

    /// Whether a poll must read the code at an address of the regions.
    pub fn lacks(&self, at: Avma, died_until: Option<TimeNs>) -> bool {
        self.fresh_at(at, died_until).is_none()
    }

    /// Takes the address of a sample after the last collection.
    pub fn lives(&mut self, at: Avma, died_until: Option<TimeNs>) {
        if let Some(identity) = self.fresh_at(at, died_until) {
            self.zone.lives(&identity);
        }
    }

    /// Declares that modules may have died in a collection.
    pub fn dies_until(&mut self, time: TimeNs, whole_until: TimeNs) {
        self.zone.dies_until(time, whole_until);
    }

    /// Declares that samples at the addresses of `codes` before `now` belong to this code, even if V8 has freed the code: V8
    /// uses no address twice while the module lives.
    fn were_there(&mut self, codes: &[WasmIdentity], now: TimeNs) {
        for identity in codes {
            let region = region_at(&self.regions, identity.code.start);
            if region.is_some_and(|region| region.module == identity.code.module) {
                self.zone.was_there(identity, now);
            }
        }
    }

    /// The function at an address whose map was not reported.
    fn unmapped(&self, at: Avma) -> Option<WasmIdentity> {
        let (_, (identity, _)) = self.known.range(..=at).next_back()?;
        let is_function = matches!(identity.code.kind, WasmKind::Liftoff | WasmKind::Turbofan);
        let is_new = at <= identity.code.end && !self.modules.mapped.contains(identity);
        (is_function && is_new).then_some(*identity)
    }

    /// All known code, for the unwinder.
    pub fn frames(&self) -> impl Iterator<Item = FrameCode> + '_ {
        let codes = self.known.values();
        codes.map(|(identity, _)| frame_code(&identity.code))
    }

    fn identities(
        &mut self,
        wasm: &Wasm,
        codes: Vec<WasmCode>,
        memory: &dyn Memory,
    ) -> Result<Vec<WasmIdentity>, AdapterError> {
        let mut modules: FxHashMap<Avma, Option<ModuleId>> = FxHashMap::default();
        let mut all = Vec::with_capacity(codes.len());
        for code in codes {
            let module = match modules.get(&code.module) {
                Some(known) => *known,
                None => {
                    let module = self.modules.read((wasm, code.module), memory)?;
                    *modules.entry(code.module).or_insert(module)
                }
            };
            all.push(WasmIdentity { code, module });
        }
        Ok(all)
    }
}

impl Modules {
    /// Reads a module once; returns which module it is.
    fn read(
        &mut self,
        (wasm, module): (&Wasm, Avma),
        memory: &dyn Memory,
    ) -> Result<Option<ModuleId>, AdapterError> {
        let Some(bytes) = wasm.bytes_of(memory, module)? else {
            return Ok(None);
        };
        let hash = bytes.hash(memory)?;
        let id = ModuleId { bytes, hash };
        if let Entry::Vacant(place) = self.functions.entry(id) {
            let size = usize::try_from(bytes.size).unwrap_or(usize::MAX);
            let read = memory.read_vec(bytes.start, bytes.size, size);
            let read = known(read.map_err(AdapterError::reading("WebAssembly module")))?;
            place.insert(Module::of(&read.unwrap_or_default()));
        }
        Ok(Some(id))
    }

    fn keep(&mut self, known: &BTreeMap<Avma, (WasmIdentity, TimeNs)>) {
        let with_module = |(it, _): &(WasmIdentity, TimeNs)| Some((it.code.module, it.module?));
        let alive: FxHashSet<(Avma, ModuleId)> = known.values().filter_map(with_module).collect();
        self.seen_at.retain(|module, _| alive.contains(module));
        let alive: FxHashSet<ModuleId> = alive.into_iter().map(|(_, module)| module).collect();
        self.functions.retain(|module, _| alive.contains(module));
        self.methods.retain(|(module, _), _| alive.contains(module));
    }

    /// A function's method, and whether its listing was reported. Reports the method once.
    fn method(&mut self, module: ModuleId, number: u32, poll: &mut Poll) -> &mut (MethodKey, bool) {
        let functions = self.functions.get(&module);
        self.methods.entry((module, number)).or_insert_with(|| {
            let key = poll.keys().method();
            poll.method(Method {
                key,
                time: poll.now(),
                name: functions.map(|it| it.function(number)).unwrap_or_default(),
                file: functions.map(|it| it.url.clone()).unwrap_or_default(),
                ..Method::default()
            });
            (key, false)
        })
    }

    /// Completes a constituent.
    fn describe(
        &mut self,
        identity: &WasmIdentity,
        constituent: &mut Constituent,
        poll: &mut Poll,
    ) {
        let WasmIdentity { code, module } = identity;
        self.mapped.remove(identity);
        if let Some(module) = module {
            // V8 uses no address twice while the module lives.
            let seen_at = self.seen_at.entry((code.module, *module));
            let seen_at = *seen_at.or_insert(poll.began());
            constituent.absent_at = constituent.absent_at.min(Some(seen_at));
        }
        let functions = module.and_then(|module| self.functions.get(&module));
        let name = code.index.map(|number| match functions {
            Some(functions) => functions.function(number),
            None => Module::default().function(number),
        });
        let name = name.unwrap_or_default();
        let (tier, kind, name) = match code.kind {
            WasmKind::Liftoff => ("Liftoff", ConstituentKind::Method, name),
            WasmKind::Turbofan => ("TurboFan", ConstituentKind::Method, name),
            WasmKind::Import => {
                let name = format!("wasm-to-js {name}");
                ("wasm", ConstituentKind::Adapter, name.trim_end().to_owned())
            }
            WasmKind::JumpTable => ("wasm", ConstituentKind::Stub, "(jump table)".to_owned()),
        };
        if kind == ConstituentKind::Method
            && let Some((module, number)) = module.zip(code.index)
        {
            constituent.method = Some(self.method(module, number, poll).0);
        }
        constituent.tier = tier.to_owned();
        (constituent.kind, constituent.name) = (kind, name);
    }
}

impl V8Adapter {
    /// Reads which regions have WebAssembly, and takes the sampled addresses there.
    pub(super) fn take_wasm(
        &mut self,
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let Some(wasm) = self.vm.wasm else {
            return Ok(());
        };
        let regions = wasm.regions(memory).map(Some);
        if let Some(regions) = self.or_limit(regions, poll)? {
            self.wasm.regions = regions;
        }
        if !self.wasm.regions.is_empty() {
            let regions = &self.wasm.regions;
            let taken = self
                .maps
                .take_waiting(|at| region_at(regions, at).is_some());
            self.wasm.waiting.extend(taken);
        }
        Ok(())
    }

    /// Reports all code of WebAssembly, or the code at sampled addresses. Returns the number of changes.
    pub(super) fn tell_wasm(
        &mut self,
        process: &ProcessView,
        is_all: bool,
        poll: &mut Poll,
    ) -> Result<usize, AdapterError> {
        let Some(wasm) = self.vm.wasm else {
            return Ok(0);
        };
        let mut waiting: Vec<Avma> = self.wasm.waiting.drain().collect();
        let has_work = match is_all {
            true => !self.wasm.regions.is_empty() || !self.wasm.known.is_empty(),
            false => !waiting.is_empty(),
        };
        if !has_work {
            return Ok(0);
        }
        waiting.sort_unstable();
        if self.wasm.modules.methods.len() > MAX_KNOWN {
            self.wasm.modules.methods.clear();
        }
        let memory = process.memory();
        let stamp = self.states.stamp(memory)?;
        let read = match is_all {
            true => self.read_all_wasm(&wasm, memory, poll),
            false => self.read_wasm_at(&wasm, memory, &waiting),
        };
        let Some(read) = self.or_limit(read.map(Some), poll)? else {
            return Ok(0);
        };
        // After a collection, code and modules may be of different times.
        if !self.is_last && (stamp.is_none() || self.states.stamp(memory)? != stamp) {
            self.wasm.waiting.extend(waiting);
            return Ok(0);
        }
        if read.found.iter().any(|identity| identity.module.is_none()) {
            let why = "its bytes are unreadable, or more than 64 MiB";
            let text = format!("functions of a WebAssembly module have no names: {why}");
            self.limit(&text, poll);
        }
        let changes = match is_all {
            true => self.tell_all_wasm(read, poll),
            false => self.tell_wasm_at(read, poll),
        };
        let maps = self.tell_wasm_maps((&wasm, memory), &waiting, poll);
        self.or_limit(maps, poll)?;
        Ok(changes)
    }

    /// The result; after an error its default and a limit: JavaScript's code does not depend on WebAssembly's.
    fn or_limit<T: Default>(
        &mut self,
        result: Result<T, AdapterError>,
        poll: &mut Poll,
    ) -> Result<T, AdapterError> {
        match result {
            Err(error) if !error.is_final() => {
                let text = format!("some of WebAssembly's code is unknown: {}", error.in_full());
                self.limit(&text, poll);
                Ok(T::default())
            }
            result => result,
        }
    }

    fn read_all_wasm(
        &mut self,
        wasm: &Wasm,
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<ReadWasm, AdapterError> {
        let (codes, damage) = wasm.all(memory, &self.wasm.regions)?;
        if let Some(damage) = damage {
            self.limit(damage, poll);
        }
        Ok(ReadWasm {
            found: self.wasm.identities(wasm, codes, memory)?,
            gone: Vec::new(),
        })
    }

    /// Reads the code at sampled addresses (ascending).
    fn read_wasm_at(
        &mut self,
        wasm: &Wasm,
        memory: &dyn Memory,
        waiting: &[Avma],
    ) -> Result<ReadWasm, AdapterError> {
        let died_until = self.states.died_until();
        let (mut hit, mut new): (Vec<WasmIdentity>, Vec<Avma>) = (Vec::new(), Vec::new());
        for at in waiting {
            match self.wasm.fresh_at(*at, died_until) {
                Some(identity) if hit.last() == Some(&identity) => {}
                Some(identity) => hit.push(identity),
                None => new.push(*at),
            }
        }
        let codes: Vec<WasmCode> = hit.iter().map(|identity| identity.code).collect();
        let still = wasm.still(memory, &codes)?;
        let (mut found, gone): (Vec<_>, Vec<_>) =
            (hit.into_iter()).partition(|identity| still.contains(&identity.code));
        for WasmIdentity { code, .. } in &gone {
            let at = waiting.iter().copied();
            new.extend(at.filter(|at| (code.start..=code.end).contains(at)));
        }
        new.sort_unstable();
        let codes = wasm.at(memory, &self.wasm.regions, &new)?;
        found.extend(self.wasm.identities(wasm, codes, memory)?);
        Ok(ReadWasm { found, gone })
    }

    fn tell_all_wasm(&mut self, read: ReadWasm, poll: &mut Poll) -> usize {
        let known = self.wasm.known.values().map(|(identity, _)| *identity);
        let known: Vec<WasmIdentity> = known.collect();
        self.wasm.were_there(&known, poll.began());
        let WasmZone {
            zone,
            modules,
            known,
            ..
        } = &mut self.wasm;
        let changes = zone.update(
            poll,
            read.found.iter().map(|identity| seen(*identity)),
            |identity, constituent, poll| modules.describe(identity, constituent, poll),
            |_| GoneReason::Freed,
        );
        let now = poll.began();
        let all = read.found.into_iter();
        let before = std::mem::replace(known, all.map(|it| (it.code.start, (it, now))).collect());
        for (start, (identity, _)) in &*known {
            if before
                .get(start)
                .is_none_or(|(before, _)| before != identity)
            {
                self.frames.put(&frame_code(&identity.code));
            }
        }
        modules.keep(known);
        (modules.mapped).retain(|it| known.get(&it.code.start).is_some_and(|(now, _)| now == it));
        changes
    }

    fn tell_wasm_at(&mut self, read: ReadWasm, poll: &mut Poll) -> usize {
        let mut changes = read.gone.len();
        self.wasm.were_there(&read.gone, poll.began());
        for identity in read.gone {
            self.wasm.known.remove(&identity.code.start);
            self.wasm.zone.went(poll, &identity, GoneReason::Freed);
        }
        let now = poll.began();
        for identity in read.found {
            let WasmCode { start, end, .. } = identity.code;
            let known = &mut self.wasm.known;
            let over = take_overlapping(known, (start, end), |(known, _)| known.code.end);
            let over: Vec<WasmIdentity> = over.into_iter().map(|(known, _)| known).collect();
            self.wasm.known.insert(start, (identity, now));
            if over.contains(&identity) {
                self.wasm.zone.was_there(&identity, poll.now());
                continue;
            }
            self.frames.put(&frame_code(&identity.code));
            let WasmZone { zone, modules, .. } = &mut self.wasm;
            let describe = |identity: &WasmIdentity, one: &mut Constituent, poll: &mut Poll| {
                modules.describe(identity, one, poll);
            };
            zone.found(poll, seen(identity), &over, describe);
            changes += 1;
        }
        changes
    }
}

/// What a poll read.
struct ReadWasm {
    /// Code that is there, known or new.
    found: Vec<WasmIdentity>,
    /// Known code that is no longer there.
    gone: Vec<WasmIdentity>,
}

fn frame_code(code: &WasmCode) -> FrameCode {
    FrameCode {
        code: code.start.0..code.end.0,
        compiler: None,
    }
}

fn seen(identity: WasmIdentity) -> SeenCode<WasmIdentity> {
    SeenCode {
        identity,
        start: identity.code.start,
        end: identity.code.end,
    }
}
