//! WebAssembly's code as records.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, CodeZone, Memory, Poll, ProcessView, SeenCode, known};
use vmscope_records::{Avma, Constituent, ConstituentKind, GoneReason, Method, MethodKey};

use super::{MAX_KNOWN, V8Adapter};
use crate::unwind::FrameCode;
use crate::wasm::names::Names;
use crate::wasm::{ModuleBytes, Region, Wasm, WasmCode, WasmKind, region_at};

/// What is known about WebAssembly.
#[derive(Debug, Default)]
pub(super) struct WasmZone {
    zone: CodeZone<WasmIdentity>,
    /// Regions of all modules, ascending.
    regions: Vec<Region>,
    /// Code by its first address.
    known: BTreeMap<Avma, WasmIdentity>,
    /// Sampled addresses in regions.
    waiting: FxHashSet<Avma>,
    modules: Modules,
}

/// Modules with their names, and methods that stand for their functions.
#[derive(Debug, Default)]
struct Modules {
    names: FxHashMap<ModuleBytes, Names>,
    methods: FxHashMap<(ModuleBytes, u32), MethodKey>,
}

/// One lifetime of a piece of code. V8 may use addresses again once a module has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WasmIdentity {
    code: WasmCode,
    module: Option<ModuleBytes>,
}

impl WasmZone {
    /// Whether an address is in the regions of WebAssembly.
    pub fn covers(&self, at: Avma) -> bool {
        region_at(&self.regions, at).is_some()
    }

    /// Whether code at an address in the regions is unknown.
    pub fn lacks(&self, at: Avma) -> bool {
        self.at(at).is_none()
    }

    fn at(&self, at: Avma) -> Option<&WasmIdentity> {
        let (_, known) = self.known.range(..=at).next_back()?;
        (at <= known.code.end).then_some(known)
    }

    /// All known code, for the unwinder.
    pub fn frames(&self) -> impl Iterator<Item = FrameCode> + '_ {
        self.known.values().map(|known| frame_code(&known.code))
    }

    fn identities(
        &mut self,
        wasm: &Wasm,
        codes: Vec<WasmCode>,
        memory: &dyn Memory,
    ) -> Result<Vec<WasmIdentity>, AdapterError> {
        let mut modules: FxHashMap<Avma, Option<ModuleBytes>> = FxHashMap::default();
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
    /// Reads the names of a module once; returns its bytes.
    fn read(
        &mut self,
        (wasm, module): (&Wasm, Avma),
        memory: &dyn Memory,
    ) -> Result<Option<ModuleBytes>, AdapterError> {
        let Some(bytes) = wasm.bytes_of(memory, module)? else {
            return Ok(None);
        };
        if let Entry::Vacant(place) = self.names.entry(bytes) {
            let size = usize::try_from(bytes.size).unwrap_or(usize::MAX);
            let read = memory.read_vec(bytes.start, bytes.size, size);
            let read = known(read.map_err(AdapterError::reading("WebAssembly module")))?;
            place.insert(Names::of(&read.unwrap_or_default()));
        }
        Ok(Some(bytes))
    }

    fn keep(&mut self, alive: &FxHashSet<ModuleBytes>) {
        self.names.retain(|module, _| alive.contains(module));
        self.methods.retain(|(module, _), _| alive.contains(module));
    }

    /// Completes a constituent.
    fn describe(
        &mut self,
        identity: &WasmIdentity,
        constituent: &mut Constituent,
        poll: &mut Poll,
    ) {
        let WasmIdentity { code, module } = identity;
        let names = module.and_then(|module| self.names.get(&module));
        let name = code.index.map(|number| match names {
            Some(names) => names.function(number),
            None => Names::default().function(number),
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
            let method = self.methods.entry((module, number)).or_insert_with(|| {
                let key = poll.keys().method();
                poll.method(Method {
                    key,
                    time: poll.now(),
                    name: name.clone(),
                    file: names.map(|names| names.url.clone()).unwrap_or_default(),
                    ..Method::default()
                });
                key
            });
            constituent.method = Some(*method);
        }
        constituent.tier = tier.to_owned();
        (constituent.kind, constituent.name) = (kind, name);
    }
}

impl V8Adapter {
    /// Reads which regions have WebAssembly, and takes the sampled addresses there.
    pub(super) fn take_wasm(&mut self, memory: &dyn Memory) -> Result<(), AdapterError> {
        let Some(wasm) = self.vm.wasm else {
            return Ok(());
        };
        self.wasm.regions = wasm.regions(memory)?;
        if !self.wasm.regions.is_empty() {
            let regions = &self.wasm.regions;
            let taken = self
                .maps
                .take_waiting(|at| region_at(regions, at).is_some());
            self.wasm.waiting.extend(taken);
        }
        Ok(())
    }

    /// Reports WebAssembly's code: all of it, or that of samples. Returns the number of changes.
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
        if self.wasm.regions.is_empty() && self.wasm.known.is_empty() {
            return Ok(0);
        }
        waiting.sort_unstable();
        if self.wasm.modules.methods.len() > MAX_KNOWN {
            self.wasm.modules.methods.clear();
        }
        let memory = process.memory();
        match is_all {
            true => self.all_wasm(&wasm, memory, poll),
            false => self.wasm_at(&wasm, memory, &waiting, poll),
        }
    }

    fn all_wasm(
        &mut self,
        wasm: &Wasm,
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<usize, AdapterError> {
        let (codes, damage) = wasm.all(memory, &self.wasm.regions)?;
        let all = self.wasm.identities(wasm, codes, memory)?;
        if let Some(damage) = damage {
            self.limit(damage, poll);
        }
        let WasmZone {
            zone,
            modules,
            known,
            ..
        } = &mut self.wasm;
        let seen = all.iter().map(|identity| seen(*identity));
        let changes = zone.update(
            poll,
            seen,
            |identity, constituent, poll| {
                modules.describe(identity, constituent, poll);
            },
            |_| GoneReason::Freed,
        );
        *known = all.into_iter().map(|it| (it.code.start, it)).collect();
        let alive: FxHashSet<ModuleBytes> = known.values().filter_map(|it| it.module).collect();
        modules.keep(&alive);
        Ok(changes)
    }

    fn wasm_at(
        &mut self,
        wasm: &Wasm,
        memory: &dyn Memory,
        waiting: &[Avma],
        poll: &mut Poll,
    ) -> Result<usize, AdapterError> {
        let (mut hit, mut new): (Vec<WasmIdentity>, Vec<Avma>) = (Vec::new(), Vec::new());
        for at in waiting {
            match self.wasm.at(*at) {
                Some(known) if hit.last() == Some(known) => {}
                Some(known) => hit.push(*known),
                None => new.push(*at),
            }
        }
        let mut changes = 0;
        let codes: Vec<WasmCode> = hit.iter().map(|known| known.code).collect();
        let still = wasm.still(memory, &codes)?;
        for known in hit {
            if still.contains(&known.code) {
                self.wasm.zone.was_there(&known, poll.now());
                continue;
            }
            self.wasm.known.remove(&known.code.start);
            self.wasm.zone.went(poll, &known, GoneReason::Freed);
            let (start, end) = (known.code.start, known.code.end);
            new.extend(waiting.iter().filter(|at| (start..=end).contains(*at)));
            changes += 1;
        }
        new.sort_unstable();
        let codes = wasm.at(memory, &self.wasm.regions, &new)?;
        for identity in self.wasm.identities(wasm, codes, memory)? {
            let WasmCode { start, end, .. } = identity.code;
            let before = self.wasm.known.range(..end).rev();
            let replaced: Vec<WasmIdentity> = before
                .take_while(|(_, known)| known.code.end > start)
                .map(|(_, known)| *known)
                .collect();
            if replaced.contains(&identity) {
                continue;
            }
            for known in &replaced {
                self.wasm.known.remove(&known.code.start);
            }
            let WasmZone {
                zone,
                modules,
                known,
                ..
            } = &mut self.wasm;
            known.insert(start, identity);
            self.frames.put(&frame_code(&identity.code));
            zone.found(
                poll,
                seen(identity),
                &replaced,
                |identity, constituent, poll| {
                    modules.describe(identity, constituent, poll);
                },
            );
            changes += 1;
        }
        Ok(changes)
    }
}

fn frame_code(code: &WasmCode) -> FrameCode {
    FrameCode {
        code: code.start.0..code.end.0,
        is_baseline: false,
    }
}

fn seen(identity: WasmIdentity) -> SeenCode<WasmIdentity> {
    SeenCode {
        identity,
        start: identity.code.start,
        end: identity.code.end,
    }
}
