//! The adapter: reads the code zone at each poll, and reports changes.

mod pieces;

use std::time::Duration;

use rustc_hash::FxHashMap;
use vmscope_process::pages::Pages;
use vmscope_process::{Adapter, AdapterError, Cadence, CodeZone, Memory, Poll, ProcessView};
use vmscope_records::{
    Avma, CodeChange, Constituent, GoneReason, Method, MethodKey, TimeNs, VmIdentity,
};

use crate::cog_method::EntryKind;
use crate::cost::{Cost, CountedMemory};
use crate::describe::{Described, Describer, Name};
use crate::map::Map;
use crate::vm::{Stamp, Vm, Zone};
use pieces::{Piece, identity, pieces};

/// Pauses between polls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Number of polls of counters alone, before vmscope reads the zone again: cases of inline caches change
/// without these counters.
const POLLS_OF_COUNTERS: u32 = 9;

/// Number of polls in a row that find the VM in a collection or code compaction, before it counts as an
/// error.
const POLLS_IN_COLLECTIONS: u32 = 20;

/// Number of changes that shorten the pause.
const MANY_CHANGES: usize = 32;

/// Number of entries to describe before vmscope looks at the VM's counters again.
const AT_ONCE: usize = 32;

/// Adapter of one Cog VM.
#[derive(Debug)]
pub struct CogAdapter {
    vm: Vm,
    has_begun: bool,
    zone: CodeZone<Identity>,
    /// Descriptions, with the number of cases that a closed PIC had.
    described: FxHashMap<Identity, (u16, Described)>,
    /// PICs with another case since the last poll.
    extended: Vec<Identity>,
    /// Keys of methods, by their entry.
    methods: FxHashMap<Identity, MethodKey>,
    cadence: Cadence,
    /// The VM's counters before the zone was read; `None` if the VM does not tell all.
    stamp: Option<Stamp>,
    /// Polls of counters alone since then.
    unchanged: u32,
    /// Polls since then that could not read the zone.
    torn: u32,
    /// Begin of the last poll that knew all code.
    told_until: TimeNs,
    /// Limits that were reported.
    told: Vec<String>,
    cost: Cost,
}

/// One lifetime of a piece of code. Between two code compactions, the VM uses an address for one entry
/// only, and then frees it in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    at: Avma,
    size: u64,
    part: Part,
    header: i64,
    compactions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Trampoline,
    Entry(EntryKind),
    /// A block inside a method, by its number.
    Block(usize),
    /// The code behind the blocks of a method, which enters them.
    BlockEntry,
    FreeSpace,
    YoungReferrers,
}

impl CogAdapter {
    /// An adapter before its first poll.
    #[must_use]
    pub fn new(vm: Vm) -> Self {
        CogAdapter {
            vm,
            has_begun: false,
            zone: CodeZone::new(),
            described: FxHashMap::default(),
            extended: Vec::new(),
            methods: FxHashMap::default(),
            cadence: Cadence::new(PAUSES.0, PAUSES.1, MANY_CHANGES),
            stamp: None,
            unchanged: 0,
            torn: 0,
            told_until: TimeNs(0),
            told: Vec::new(),
            cost: Cost::default(),
        }
    }

    /// Cost of all polls so far.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Reads the zone and describes new entries. What was described stays known when the zone changes
    /// meanwhile, so that each attempt has less to do.
    fn read(&mut self, memory: &dyn Memory) -> Result<Zone, AdapterError> {
        let (vm, known, extended) = (&self.vm, &mut self.described, &mut self.extended);
        let (zone, ()) = vm.with_zone(memory, |zone, stamp| {
            let pages = Pages::new(memory);
            let mut describer = Describer::new(vm, zone, &pages)?;
            let entries = zone.methods.entries.iter();
            let new: Vec<_> = entries
                .map(|entry| (identity(zone, entry), entry))
                .filter(|(identity, entry)| {
                    let before = known.get(identity);
                    before.is_none_or(|(cases, _)| *cases != entry.stack_check)
                })
                .collect();
            for part in new.chunks(AT_ONCE) {
                let mut described = Vec::with_capacity(part.len());
                for (identity, entry) in part {
                    let one = (entry.stack_check, describer.describe(entry)?);
                    described.push((*identity, one));
                }
                if vm.stamp(memory)? != *stamp {
                    return Err(AdapterError::Busy { what: "code zone" });
                }
                for (identity, one) in described {
                    if known.insert(identity, one).is_some() {
                        extended.push(identity);
                    }
                }
            }
            Ok(())
        })?;
        Ok(zone)
    }

    fn tell(&mut self, zone: &Zone, poll: &mut Poll) -> usize {
        let described = &self.described;
        let pieces = pieces(zone, |identity| described.get(identity).map(|(_, one)| one));
        let codes: Vec<_> = pieces.iter().map(|piece| piece.code.clone()).collect();
        let by_identity: FxHashMap<Identity, Piece> = pieces
            .into_iter()
            .map(|piece| (piece.code.identity, piece))
            .collect();
        let methods = &mut self.methods;
        let describe = |identity: &Identity, constituent: &mut Constituent, poll: &mut Poll| {
            let Some(piece) = by_identity.get(identity) else {
                return;
            };
            constituent.kind = piece.kind.clone();
            constituent.name.clone_from(&piece.name);
            constituent.cases.clone_from(&piece.cases);
            constituent.map = piece.map.clone();
            if let Some((entry, class, name)) = &piece.method {
                let key = *methods
                    .entry(*entry)
                    .or_insert_with(|| new_method(class, name, poll));
                constituent.method = Some(key);
            }
        };
        let reason = |identity: &Identity| match identity.part {
            Part::Entry(EntryKind::ClosedPic | EntryKind::OpenPic) => GoneReason::Flushed,
            _ => GoneReason::Freed,
        };
        let changes = self.zone.update(poll, codes, describe, reason);
        let extended = std::mem::take(&mut self.extended);
        for identity in &extended {
            let known = self.zone.get(identity).zip(by_identity.get(identity));
            if let Some(((key, start, end), piece)) = known {
                poll.code(CodeChange::Seen(Constituent {
                    key,
                    process: poll.process(),
                    since: poll.now(),
                    absent_at: None,
                    start,
                    end,
                    kind: piece.kind.clone(),
                    tier: String::new(),
                    name: piece.name.clone(),
                    method: None,
                    cases: piece.cases.clone(),
                    map: piece.map.clone(),
                }));
            }
        }
        changes + extended.len()
    }

    /// Forgets entries that the zone no longer has.
    fn forget(&mut self, zone: &Zone) {
        let entries = zone.methods.entries.iter();
        let current: rustc_hash::FxHashSet<Identity> =
            entries.map(|entry| identity(zone, entry)).collect();
        self.described
            .retain(|identity, _| current.contains(identity));
        self.methods
            .retain(|identity, _| current.contains(identity));
    }

    /// Reports what can't be read.
    fn tell_limits(&mut self, zone: &Zone, poll: &mut Poll) {
        let mut limits = self.vm.limits.clone();
        if let Some(damage) = zone.methods.damage {
            let error = AdapterError::from(damage);
            limits.push(format!("the rest of the code zone is unreadable: {error}"));
        }
        if zone.methods.layout.is_none() && !zone.methods.entries.is_empty() {
            let text = "this VM does not tell its layout: vmscope uses that of Squeak and Cuis";
            limits.push(text.to_owned());
        }
        let described = || self.described.values().map(|(_, one)| one);
        let mut flaws =
            described().flat_map(|one| std::iter::once(&one.map).chain(&one.block_maps));
        let is_flawed = |map: &&Map| matches!(map, Map::Flawed(_));
        if let Some(Map::Flawed(flaw)) = flaws.find(is_flawed) {
            limits.push(format!("the bytecodes of some methods are unknown: {flaw}"));
        }
        let unknown = |one: &Described| one.name == Name::Unknown;
        if described().any(unknown) {
            limits.push("the names of some methods and selectors are unreadable".to_owned());
        }
        for limit in limits {
            if !self.told.contains(&limit) {
                poll.limit(limit.clone(), "");
                self.told.push(limit);
            }
        }
    }
}

fn new_method(class: &str, name: &str, poll: &mut Poll) -> MethodKey {
    let key = poll.keys().method();
    let time = poll.now();
    poll.method(Method {
        key,
        time,
        class: class.to_owned(),
        name: name.to_owned(),
        ..Method::default()
    });
    key
}

impl Adapter for CogAdapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "Cog".to_owned(),
            version: self.vm.version.clone(),
        }
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let memory = CountedMemory::new(process.memory());
        // Without the counters, vmscope reads the zone.
        let stamp = self.vm.stamp_of_code(&memory).unwrap_or_default();
        let before = self.stamp.take();
        if stamp.is_some() && stamp == before && self.unchanged < POLLS_OF_COUNTERS {
            self.unchanged += 1;
            self.stamp = stamp;
            self.cost = self.cost.with(memory.cost());
            self.zone.is_whole_at(poll.began());
            self.told_until = poll.began();
            return Ok(());
        }
        let zone = self.read(&memory);
        self.cost = self.cost.with(memory.cost());
        if matches!(zone, Err(AdapterError::Torn { .. })) && self.torn < POLLS_IN_COLLECTIONS {
            self.torn += 1;
            poll.code_is_told_until(self.told_until);
            return Ok(());
        }
        let zone = zone?;
        match zone.methods.damage {
            // What follows the damage may still exist.
            Some(damage) if self.has_begun => return Err(damage.into()),
            _ => {}
        }
        self.has_begun = true;
        (self.stamp, self.unchanged, self.torn) = (stamp, 0, 0);
        self.told_until = poll.began();
        let changes = self.tell(&zone, poll);
        self.forget(&zone);
        self.tell_limits(&zone, poll);
        self.cadence.found(changes);
        Ok(())
    }

    fn tells_all_code(&self) -> bool {
        self.has_begun
    }

    fn next_poll(&self) -> Duration {
        match self.stamp.is_some() || self.torn > 0 {
            true => PAUSES.0,
            false => self.cadence.pause(),
        }
    }
}
