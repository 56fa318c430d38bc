//! The adapter: reads code that samples hit at each poll, all machine code at times, and reports
//! changes.

mod functions;
mod hits;
mod interpreted;
mod maps;
mod methods;
mod names;
mod optimised;
mod patterns;
mod reader;
mod wasm;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use vmscope_process::pages::Pages;
use vmscope_process::{
    Adapter, AdapterError, Cadence, CodeZone, Memory, Poll, ProcessView, SampleNeeds, SeenCode,
    Unwinder, cpu_time,
};
use vmscope_records::{Avma, Constituent, GoneReason, MethodKey, TimeNs, VmIdentity};

use self::functions::Found;
use self::hits::{CheckedPages, hits};
use self::maps::Maps;
use self::methods::Wholes;
use self::names::{MethodId, Names};
use self::reader::Reader;
use self::wasm::WasmZone;
use crate::code::{self, Code, Kind};
use crate::fit::Fit;
use crate::interpreted::Interpreted;
use crate::interpreter::{Interpreter, sample_needs};
use crate::isolate::{Isolate, Tables};
use crate::object::Tagged;
use crate::owners::Owners;
use crate::pace::Pace;
use crate::regions;
use crate::registry::Streams;
use crate::sighted::SightedFunctions;
use crate::state::States;
use crate::unwind::{CodeFrames, FrameCode};
use crate::vm::V8;

/// Pauses between polls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Number of changes that shorten the pause.
const MANY_CHANGES: usize = 64;

/// Number of polls in a row whose reading a collection disturbs, before one counts nevertheless.
const MAX_MOVED: u32 = 8;

/// Number of failed polls at V8's start, one each 25 ms, before an error counts.
const MAX_TRIES: u32 = 80;

/// Maximum number of limits.
const MAX_LIMITS: usize = 64;

/// Maximum number of scripts and of methods in memory.
const MAX_KNOWN: usize = 1 << 18;

/// Adapter of one V8.
#[derive(Debug)]
pub struct V8Adapter {
    vm: Arc<V8>,
    /// Version of the program; empty if unknown.
    version: String,
    tables: Option<Arc<Tables>>,
    has_begun: bool,
    /// Number of failed polls.
    tries: u32,
    /// Greatest number of isolates at one time.
    most_isolates: usize,
    /// V8's numbers of the followed isolates.
    followed: Option<[u64; 2]>,
    zone: CodeZone<Identity>,
    /// Code by its first address.
    known: BTreeMap<Avma, Known>,
    /// Code that the last reading of all code found first, without samples, by its first address.
    young: FxHashMap<Avma, Code>,
    /// Readings of all code.
    readings: Pace,
    /// Readings of sampled code.
    hit_readings: Pace,
    /// Readings of `owners`: of all scripts, and of new scripts.
    owner_readings: Pace,
    script_readings: Pace,
    methods: FxHashMap<MethodId, MethodKey>,
    names: Names,
    owners: Owners,
    sighted: SightedFunctions,
    interpreter: Interpreter,
    interpreted: Interpreted,
    maps: Maps,
    checked: CheckedPages,
    /// Samples before this time were taken.
    touched_until: TimeNs,
    wholes: Wholes,
    cadence: Cadence,
    told: Vec<String>,
    states: States,
    /// Begin of the last poll that read code.
    read_at: TimeNs,
    /// Begin of the last poll that tried to read code.
    tried_at: TimeNs,
    /// Begin of the last poll that found new code, or that code was gone.
    changed_at: TimeNs,
    is_last: bool,
    /// Polls since the last whose reading no collection disturbed.
    moved: u32,
    frames: CodeFrames,
    wasm: WasmZone,
}

/// A piece of code that was described.
#[derive(Clone, Debug)]
struct Known {
    code: Code,
    identity: Identity,
    /// Whether its map was reported, or can't be read.
    is_mapped: bool,
    /// Begin of the poll that read its function.
    named_at: TimeNs,
    /// Hash of the inlined functions in its map; 0 without any.
    inlined: u64,
}

/// One lifetime of a piece of code. V8 moves code rarely, and then all its objects: code at an old
/// address with an equal function counts as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    start: Avma,
    end: Avma,
    kind: Kind,
    method: Option<MethodKey>,
    /// Number of a regular expression's code that samples have hit since the last collection: a collection may replace
    /// the code, and nothing but its pattern identifies it. Number of optimised code that has other inlined functions
    /// than the code before at this address. 0 for all other code.
    turn: u32,
}

impl Known {
    /// Whether it is a regular expression's code that no sample has hit since the last collection.
    fn is_unsampled(&self) -> bool {
        self.code.kind == Kind::RegExp && self.identity.turn == 0
    }
}

impl V8Adapter {
    /// An adapter before its first poll.
    #[must_use]
    pub fn new(vm: V8) -> Self {
        let frames = CodeFrames::default();
        V8Adapter {
            version: vm.product.version.clone(),
            vm: Arc::new(vm),
            tables: None,
            has_begun: false,
            tries: 0,
            most_isolates: 0,
            followed: None,
            zone: CodeZone::new(),
            known: BTreeMap::new(),
            young: FxHashMap::default(),
            readings: Pace::WHOLE,
            hit_readings: Pace::HITS,
            owner_readings: Pace::WHOLE,
            script_readings: Pace::SCRIPTS,
            methods: FxHashMap::default(),
            names: Names::default(),
            owners: Owners::default(),
            sighted: SightedFunctions::of(frames.functions().clone()),
            interpreter: Interpreter::default(),
            interpreted: Interpreted::default(),
            maps: Maps::default(),
            checked: CheckedPages::default(),
            touched_until: TimeNs(0),
            wholes: Wholes::default(),
            cadence: Cadence::new(PAUSES.0, PAUSES.1, MANY_CHANGES),
            told: Vec::new(),
            states: States::default(),
            read_at: TimeNs(0),
            tried_at: TimeNs(0),
            changed_at: TimeNs(0),
            is_last: false,
            moved: 0,
            frames,
            wasm: WasmZone::default(),
        }
    }

    /// Describes new and changed code; returns all code with identities, ascending. Code whose function a
    /// later poll reads is left out. `sampled`: sampled addresses, ascending.
    fn identify(
        &mut self,
        (codes, sampled): (&[Code], &[Avma]),
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Vec<Known>, AdapterError> {
        let is_known = |code: &&Code| {
            let known = self.known.get(&code.start);
            known.is_some_and(|known| {
                let is_hit = || !hits(code, sampled).is_empty();
                known.code == **code && self.is_fresh(known) && !(known.is_unsampled() && is_hit())
            })
        };
        let now = poll.began();
        let (old, new): (Vec<&Code>, Vec<&Code>) = codes.iter().partition(is_known);
        let old = old
            .into_iter()
            .filter_map(|code| self.known.get(&code.start));
        let mut all: Vec<Known> = old.cloned().collect();
        let optimised = new
            .iter()
            .filter(|code| matches!(code.kind, Kind::Turbofan | Kind::Maglev));
        reader.expect(optimised.map(|code| code.data))?;
        let mut found = Vec::new();
        for code in new {
            match self.function_of(code, reader, poll.now()) {
                Err(error) if error.is_final() => return Err(error),
                function => found.push((code, function)),
            }
        }
        let infos = found.iter().filter_map(|(_, function)| match function {
            Ok(Found::Function(info)) => Some(*info),
            _ => None,
        });
        let infos: Vec<Tagged> = infos.collect();
        reader.expect(infos.iter().copied())?;
        let names = reader.heap.fields(&infos, self.vm.layout.function.name)?;
        reader.expect(names.into_iter().flatten())?;
        for (code, function) in found {
            let method = match function {
                Ok(Found::Function(info)) => match self.method_of(info, reader, poll)? {
                    None => self.method_before(code),
                    method => method,
                },
                Ok(Found::Later) => continue,
                // V8 takes the data from optimised code that it no longer uses.
                Ok(Found::Nothing) | Err(_) => self.method_before(code),
            };
            let before = self.known.get(&code.start).cloned();
            let mut identity = Identity {
                start: code.start,
                end: code.end,
                kind: code.kind,
                method,
                turn: match code.kind {
                    Kind::RegExp if hits(code, sampled).is_empty() => 0,
                    Kind::RegExp => self.names.patterns.new_turn(),
                    _ => before.as_ref().map_or(0, |before| before.identity.turn),
                },
            };
            let mut before = before.filter(|before| before.identity == identity);
            let inlined = before.as_ref().map_or(0, |before| before.inlined);
            if inlined != 0
                && let Some(now) = self.inlined(code, reader, poll)?
                && now != inlined
            {
                identity.turn = self.names.patterns.new_turn();
                before = None;
            }
            all.push(Known {
                code: *code,
                identity,
                is_mapped: before.as_ref().is_some_and(|before| before.is_mapped),
                named_at: now,
                inlined: before.map_or(0, |before| before.inlined),
            });
        }
        all.sort_by_key(|one| one.code.start);
        Ok(all)
    }

    /// Whether no collection came since the code's function was read. Functions with equal shapes take
    /// all places of dead ones, with equal pointers.
    fn is_fresh(&self, known: &Known) -> bool {
        Some(known.named_at) > self.states.died_until()
    }

    /// The method of known code that differs in its data alone. After a collection, other code of equal
    /// shape may have its place.
    fn method_before(&self, code: &Code) -> Option<MethodKey> {
        let before = self.known.get(&code.start)?;
        let data = code.data;
        let is_same = Code {
            data,
            ..before.code
        } == *code
            && self.is_fresh(before);
        let is_optimised = matches!(code.kind, Kind::Turbofan | Kind::Maglev);
        before.identity.method.filter(|_| is_same && is_optimised)
    }

    fn tell(&mut self, all: Vec<Known>, poll: &mut Poll) -> usize {
        let seen = all.iter().map(|known| SeenCode {
            identity: known.identity,
            start: known.identity.start,
            end: known.identity.end,
        });
        let names = &self.names;
        let describe = |identity: &Identity, constituent: &mut Constituent, _: &mut Poll| {
            names.describe(identity, constituent);
        };
        let changes = self
            .zone
            .update(poll, seen, describe, |_| GoneReason::Freed);
        self.known = all.into_iter().map(|one| (one.code.start, one)).collect();
        changes
    }

    /// Takes sampled addresses. Code that executed after the last collection lives until the next one. Only samples of
    /// present code prove this: a poll may have read dead code, whose place new code has taken since.
    fn take_touched(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.maps.touched(poll);
        let since = std::mem::replace(&mut self.touched_until, poll.touched_until());
        if Some(since) < self.states.died_until() {
            return Ok(());
        }
        let mut hit: Vec<Known> = Vec::new();
        for at in poll.touched() {
            match self.at(*at).filter(|known| self.is_fresh(known)) {
                Some(known) => {
                    let is_hit = hit.last().is_some_and(|last| last.code == known.code);
                    if !is_hit && !self.zone.is_in_use(&known.identity) {
                        hit.push(known.clone());
                    }
                }
                None => self.wasm.lives(*at, self.states.died_until()),
            }
        }
        let memory = process.memory();
        let present = code::present(&self.vm.heap(memory), hit.iter().map(|known| &known.code))?;
        if !present.is_empty() && self.states.are_as_seen(memory)? {
            for known in hit.iter().filter(|known| present.contains(&known.code)) {
                self.zone.lives(&known.identity);
            }
        }
        Ok(())
    }

    /// Lists all isolates by `memory`, and follows them. Returns them with their tables.
    fn follow_all(
        &mut self,
        memory: &dyn Memory,
        process: &ProcessView,
        poll: &mut Poll,
    ) -> Result<(Vec<Isolate>, Arc<Tables>), AdapterError> {
        let vm = Arc::clone(&self.vm);
        let now = vm.isolates_stamp(process.memory())?;
        let isolates = vm.isolates(memory)?;
        let first = isolates.first().copied();
        let first = first.ok_or(AdapterError::NotReady { what: "isolate" })?;
        if isolates.len() > self.most_isolates {
            self.most_isolates = isolates.len();
            poll.fact("isolates", self.most_isolates.to_string());
        }
        let tables = match &self.tables {
            Some(tables) => Arc::clone(tables),
            None => {
                let tables = Arc::new(vm.tables(first, memory)?);
                // At recognition, the young program may have lacked its version.
                if self.version.is_empty() {
                    self.version = vm.product.version_now(process);
                }
                tables
            }
        };
        self.tables = Some(Arc::clone(&tables));
        self.states
            .follow(&isolates, (&vm, &tables), process, poll)?;
        // V8 lists isolates before it has made them.
        self.followed = self.states.are_followed(now[1]).then_some(now);
        Ok((isolates, tables))
    }

    /// Follows new isolates between readings of code, if V8's numbers have changed or the last look missed an isolate: a
    /// new worker can take all places of an ended worker, with equal numbers.
    fn follow_new(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let memory = process.memory();
        let isolates = self.vm.isolates_stamp(memory)?;
        let [_, count] = isolates;
        if self.followed != Some(isolates) || !self.states.are_followed(count) {
            self.follow_all(memory, process, poll)?;
        }
        Ok(())
    }

    fn look(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.states.look(process.memory(), self.is_last, poll)?;
        if let Some(time) = self.states.died_until() {
            let whole_until = self.states.whole_until();
            self.wasm.dies_until(time, whole_until);
            if self.zone.dies_until(time, whole_until) {
                self.owners.died();
                self.sighted.died();
                self.seek_patterns();
            }
        }
        Ok(())
    }

    /// Whether no collection has moved or freed objects since `reader` was made.
    fn is_unmoved(&self, process: &ProcessView, reader: &Reader<'_>) -> Result<bool, AdapterError> {
        let now = self.states.stamp(process.memory())?;
        Ok(now.is_some() && now == reader.stamp)
    }

    /// Checks that no collection has moved objects since `reader` was made. A collection makes its readings
    /// inconsistent.
    fn check_unmoved(
        &self,
        process: &ProcessView,
        reader: &Reader<'_>,
    ) -> Result<(), AdapterError> {
        match self.is_unmoved(process, reader)? {
            true => Ok(()),
            false if self.is_last || self.moved >= MAX_MOVED => Ok(()),
            false => Err(AdapterError::Busy { what: "code" }),
        }
    }

    /// Reads all code; returns the number of changes. Programs drop much code within a second: code
    /// without samples counts from its second reading on.
    fn read_all(
        &mut self,
        (process, vm): (&ProcessView, &V8),
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<usize, AdapterError> {
        let place = (reader.tables, reader.first()?);
        let Streams { addresses, damage } = vm.streams(process, &reader.direct, place)?;
        let mut codes = code::describe(&reader.direct, &addresses)?;
        let tells_young = !self.has_begun || self.is_last;
        let sampled = self.maps.waiting();
        let mut young = FxHashMap::default();
        codes.retain(|code| {
            if self.known.contains_key(&code.start) || !hits(code, &sampled).is_empty() {
                return true;
            }
            young.insert(code.start, *code);
            tells_young || self.young.get(&code.start) == Some(code)
        });
        self.young = young;
        let all = self.identify((&codes, &sampled), reader, poll)?;
        self.check_unmoved(process, reader)?;
        let told = all.iter().map(|known| FrameCode::from(&known.code));
        self.frames
            .update(told.chain(self.wasm.frames()), vm, process);
        let changes = self.tell(all, poll);
        self.keep_later(&codes, &sampled);
        if let Some(damage) = damage {
            self.limit(damage, poll);
        }
        Ok(changes)
    }

    /// Reads code: sampled code, or all code at times.
    fn read(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let now = poll.began();
        self.tried_at = now;
        let vm = Arc::clone(&self.vm);
        let pages = Pages::new(process.memory());
        let (isolates, tables) = self.follow_all(&pages, process, poll)?;
        self.look(process, poll)?;
        let mut reader = Reader {
            heap: vm.heap(&pages),
            direct: vm.heap(process.memory()),
            isolates: &isolates,
            tables: &tables,
            scripts: FxHashMap::default(),
            methods: FxHashMap::default(),
            stamp: self.states.stamp(process.memory())?,
            has_owners: false,
            has_new_owners: false,
        };
        self.take_wasm(process.memory(), poll)?;
        let may_read = self.readings.is_due(now) && !poll.spare().is_zero();
        let is_whole = may_read || self.is_last || !self.has_begun;
        // First: a collection may disturb the reading of JavaScript's code, and V8 may free WebAssembly's code before the next
        // poll.
        let wasm_changes = poll.spending(|poll| self.tell_wasm(process, is_whole, poll))?;
        let changes = if is_whole {
            let before = poll.spent();
            let changes = poll.spending(|poll| self.read_all((process, &vm), &mut reader, poll));
            let cost = poll.spent().saturating_sub(before);
            self.readings.spent(now, cost);
            changes
        } else {
            // Readings of owners have separate pauses: optimised code does not need owners.
            let of_owners = |adapter: &Self| {
                let paces = [adapter.owner_readings, adapter.script_readings];
                paces.map(Pace::total).iter().sum::<Duration>()
            };
            let before = (cpu_time(), of_owners(self));
            let changes = self.read_hits((process, &vm), &mut reader, poll);
            let cost = cpu_time().saturating_sub(before.0);
            let owners = of_owners(self).saturating_sub(before.1);
            self.hit_readings.spent(now, cost.saturating_sub(owners));
            changes
        };
        let changes = match changes {
            Err(AdapterError::Busy { .. }) if self.moved < MAX_MOVED => {
                self.moved += 1;
                self.tried_at = TimeNs(0);
                self.interpreted.keep(poll);
                poll.code_is_told_until(self.read_at);
                return Ok(());
            }
            changes => changes?,
        };
        self.moved = 0;
        self.seek_patterns();
        self.tell_patterns(process.memory(), poll)?;
        self.tell_interpreted(process, &mut reader, poll)?;
        (self.interpreter).poll((&vm, process), (&tables, &isolates), poll)?;
        self.tell_maps(process, &mut reader, poll)?;
        self.read_at = now;
        self.has_begun = true;
        self.cadence.found(changes + wasm_changes);
        if changes > 0 {
            self.changed_at = now;
        }
        Ok(())
    }

    /// Looks at V8's state, and reads no code.
    fn look_between(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.interpreted.keep(poll);
        self.follow_new(process, poll)?;
        self.look(process, poll)?;
        self.tell_patterns(process.memory(), poll)?;
        poll.code_is_told_until(self.read_at);
        Ok(())
    }

    /// Whether V8 may still start. Counts the polls before the first reading.
    fn may_start(&mut self) -> bool {
        self.tries = self.tries.saturating_add(1);
        !self.has_begun && !self.is_last && self.tries < MAX_TRIES
    }

    fn tell_version(&mut self, poll: &mut Poll) {
        let version = self.vm.version.clone();
        let Some(fit) = self.vm.fit else {
            poll.fact("V8", version);
            return;
        };
        let Fit { functions, code } = fit;
        let checked = format!("layout by checks of {functions} functions, {code} pieces of code");
        poll.fact("V8", format!("{version}, an unknown version: {checked}"));
        let text = format!(
            "vmscope does not know V8 {version} and does not read there: numbers of collections until it has found \
             V8's counters, durations of collections between two looks, cycles of the collector, used bytes of \
             spaces, functions of WebAssembly"
        );
        self.limit(&text, poll);
    }

    fn limit(&mut self, text: &str, poll: &mut Poll) {
        if self.told.len() < MAX_LIMITS && !self.told.iter().any(|told| told == text) {
            poll.limit(text.to_owned(), "");
            self.told.push(text.to_owned());
        }
    }
}

impl Adapter for V8Adapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: self.vm.product.name.to_owned(),
            version: self.version.clone(),
        }
    }

    fn sample_needs(&self) -> SampleNeeds {
        sample_needs()
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        if !self.has_begun {
            poll.rules("v8", regions::rules(&self.vm.product.modules));
            self.tell_version(poll);
        }
        self.take_touched(process, poll)?;
        // The next reading of all code may be seconds away.
        self.frames.update_builtins(&self.vm, process);
        let now = poll.began();
        let is_due = u128::from(now.since(self.tried_at).0) >= self.cadence.pause().as_nanos();
        // The next collection may free new code.
        let has_new = || self.hit_readings.is_due(now) && self.has_unread(process);
        let read = if self.has_begun && !self.is_last && !is_due && !has_new() {
            self.look_between(process, poll)
        } else {
            self.read(process, poll)
        };
        match read {
            // V8 starts: its objects are not complete.
            Err(error) if self.may_start() && !error.is_final() => Ok(()),
            // V8 ends: it has removed all isolates.
            Err(AdapterError::NotReady { .. }) if self.has_begun => Ok(()),
            read => read,
        }
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

    fn samples_within(&self) -> Duration {
        self.states.samples_within(self.changed_at)
    }

    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        match process.is_alive() {
            true => {
                self.is_last = true;
                self.poll(process, poll)
            }
            false => {
                self.zone.ends(poll);
                Ok(())
            }
        }
    }
}
