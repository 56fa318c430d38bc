//! The adapter: reads the code zone at each poll, and reports changes.

mod beside_code;
mod identity;
mod pieces;

use std::time::Duration;

use rustc_hash::FxHashMap;
use vmscope_process::pages::Pages;
use vmscope_process::{
    Adapter, AdapterError, Cadence, CodeZone, Memory, Poll, ProcessView, SampleNeeds, Unwinder,
    known,
};
use vmscope_records::{Constituent, GoneReason, Method, MethodKey, TimeNs, VmIdentity};

use crate::cog_method::{CogMethod, EntryKind};
use crate::cost::{Cost, CountedMemory};
use crate::describe::{Described, Describer, Name};
use crate::interpreter;
use crate::map::Map;
use crate::sampled::Sampled;
use crate::variables::COMPACTIONS;
use crate::vm::{Stamp, Vm, Zone};
use beside_code::BesideCode;
pub(crate) use beside_code::VM;
use identity::{Ages, Identity, Part};
pub(crate) use pieces::{FREED, YOUNG_REFERRERS, boundaries, with_cases};
use pieces::{codes, piece};

/// Pauses between polls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Pause between looks at the VM's statistics: 25 ms, several times shorter than between readings of
/// the zone, so that few collections are missed.
const LOOKS: Duration = Duration::from_millis(25);

/// Number of polls in a row that find the VM in a collection or code compaction, before it counts as an
/// error.
const POLLS_IN_COLLECTIONS: u32 = 20;

/// Number of changes that shorten the pause.
const MANY_CHANGES: usize = 32;

/// Maximum number of limits: damage with other values each time makes no more.
const MAX_LIMITS: usize = 64;

/// Number of entries to describe before vmscope looks at the VM's counters again.
const AT_ONCE: usize = 32;

/// Adapter of one Cog VM.
#[derive(Debug)]
pub struct CogAdapter {
    vm: Vm,
    has_begun: bool,
    zone: CodeZone<Identity>,
    known: FxHashMap<Identity, Known>,
    ages: Ages,
    /// PICs with another case since the last poll.
    extended: Vec<Identity>,
    /// Keys of methods, by their entry.
    methods: FxHashMap<Identity, MethodKey>,
    cadence: Cadence,
    /// The VM's counters before the zone was read; `None` if the VM does not tell all.
    stamp: Option<Stamp>,
    /// Polls since then that could not read the zone.
    torn: u32,
    /// Limits that were reported.
    told: Vec<String>,
    cost: Cost,
    beside: BesideCode,
    sampled: Sampled,
    is_last: bool,
    /// Begin of the poll that read the zone last, and of the last poll whose counters showed the same code.
    read_at: TimeNs,
    whole_at: TimeNs,
}

/// An entry of the zone that was described.
#[derive(Debug)]
struct Known {
    entry: CogMethod,
    described: Described,
}

impl CogAdapter {
    /// An adapter before its first poll.
    #[must_use]
    pub fn new(vm: Vm) -> Self {
        CogAdapter {
            vm,
            has_begun: false,
            zone: CodeZone::new(),
            known: FxHashMap::default(),
            ages: Ages::default(),
            extended: Vec::new(),
            methods: FxHashMap::default(),
            cadence: Cadence::new(PAUSES.0, PAUSES.1, MANY_CHANGES),
            stamp: None,
            torn: 0,
            told: Vec::new(),
            cost: Cost::default(),
            beside: BesideCode::default(),
            sampled: Sampled::default(),
            is_last: false,
            read_at: TimeNs(0),
            whole_at: TimeNs(0),
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
        let (vm, known, extended) = (&self.vm, &mut self.known, &mut self.extended);
        let ages = &self.ages;
        let (mut zone, ()) = vm.with_zone(memory, |zone, stamp| {
            let pages = Pages::new(memory);
            let mut describer = Describer::new(vm, zone, &pages)?;
            let compacted = (!ages.are_of(zone)).then(|| Ages::new(zone.compactions));
            let ages = compacted.as_ref().unwrap_or(ages);
            let entries = zone.methods.entries.iter();
            let new: Vec<_> = entries
                .map(|entry| (ages.identity(entry), entry))
                .filter(|(identity, entry)| {
                    let before = known.get(identity);
                    before.is_none_or(|before| before.entry.stack_check != entry.stack_check)
                        && before_freed(vm, known, identity).is_none()
                })
                .collect();
            for part in new.chunks(AT_ONCE) {
                let mut described = Vec::with_capacity(part.len());
                for (identity, entry) in part {
                    let one = Known {
                        entry: (*entry).clone(),
                        described: describer.describe(entry)?,
                    };
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
        if !self.ages.are_of(&zone) {
            self.ages.compacted(&zone, known);
        }
        for entry in &mut zone.methods.entries {
            let identity = self.ages.identity(entry);
            if let Some(before) = before_freed(vm, known, &identity) {
                *entry = before.entry.clone();
            } else if let Some(one) = known.get_mut(&identity) {
                // Collections move the entry's objects.
                one.entry.clone_from(entry);
            }
        }
        Ok(zone)
    }

    fn tell(&mut self, zone: &Zone, poll: &mut Poll) -> usize {
        let (known, ages) = (&self.known, &self.ages);
        let piece = |identity: &Identity| {
            let described = |entry: &Identity| known.get(entry).map(|one| &one.described);
            piece((zone, ages), identity, described)
        };
        let methods = &mut self.methods;
        let mut describe = |identity: &Identity, constituent: &mut Constituent, poll: &mut Poll| {
            let Some(piece) = piece(identity) else {
                return;
            };
            if let Some((entry, class, name)) = &piece.method {
                let key = *methods
                    .entry(*entry)
                    .or_insert_with(|| new_method(class, name, poll));
                constituent.method = Some(key);
            }
            constituent.kind = piece.kind;
            constituent.name = piece.name;
            constituent.cases = piece.cases;
            constituent.map = piece.map;
        };
        let reason = |identity: &Identity| match identity.part {
            Part::Entry(EntryKind::ClosedPic | EntryKind::OpenPic) => GoneReason::Flushed,
            _ => GoneReason::Freed,
        };
        let changes = (self.zone).update(poll, codes(zone, ages), &mut describe, reason);
        let extended = std::mem::take(&mut self.extended);
        for identity in extended.iter().filter(|entry| piece(entry).is_some()) {
            self.zone.again(poll, identity, &mut describe);
        }
        changes + extended.len()
    }

    /// Reports the bytecodes of sampled methods.
    fn tell_listings(
        &mut self,
        zone: &Zone,
        process: &ProcessView,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let method_of = |entry: &CogMethod| {
            let identity = self.ages.identity(entry);
            let key = self.methods.get(&identity)?;
            match &self.known.get(&identity)?.described.name {
                Name::Method(name) => Some((*key, name)),
                _ => None,
            }
        };
        let memory = process.memory();
        let told = (self.sampled).poll(&self.vm, zone, memory, method_of, poll);
        known(told).map(|_| ())
    }

    /// Whether a reading of the zone is due. Cases of inline caches change without a counter.
    fn is_due(&self, now: TimeNs, is_same: bool) -> bool {
        let pause = match (is_same, &self.stamp) {
            (true, _) => PAUSES.1,
            (false, Some(_)) => PAUSES.0,
            (false, None) => self.cadence.pause(),
        };
        u128::from(now.since(self.read_at).0) >= pause.as_nanos()
    }

    /// Forgets entries that the zone no longer has.
    fn forget(&mut self, zone: &Zone) {
        let entries = zone.methods.entries.iter();
        let current: rustc_hash::FxHashSet<Identity> =
            entries.map(|entry| self.ages.identity(entry)).collect();
        self.known.retain(|identity, _| current.contains(identity));
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
        let described = || self.known.values().map(|one| &one.described);
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
            if self.told.len() < MAX_LIMITS && !self.told.contains(&limit) {
                poll.limit(limit.clone(), "");
                self.told.push(limit);
            }
        }
    }
}

/// The entry before the VM freed it. Its code stays until the next code compaction, so samples at its
/// address belong to this entry.
fn before_freed<'k>(
    vm: &Vm,
    known: &'k FxHashMap<Identity, Known>,
    freed: &Identity,
) -> Option<&'k Known> {
    vm.variables.at(COMPACTIONS)?;
    let kinds = match freed.part {
        Part::Entry(EntryKind::Free) => EntryKind::WITH_CODE,
        _ => return None,
    };
    let before = kinds.map(|kind| Identity {
        part: Part::Entry(kind),
        ..*freed
    });
    before.iter().find_map(|identity| known.get(identity))
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

    fn sample_needs(&self) -> SampleNeeds {
        interpreter::sample_needs()
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let memory = CountedMemory::new(process.memory());
        let now = poll.began();
        let (beside, is_last) = (&mut self.beside, self.is_last);
        beside.poll(&self.vm, process, (is_last, poll))?;
        self.sampled.take_addresses(poll);
        let stamp = self.vm.stamp_of_code(&memory).unwrap_or_default();
        let is_same = stamp.is_some() && stamp == self.stamp;
        if is_same {
            self.zone.is_whole_at(now);
            self.whole_at = now;
        }
        if self.has_begun && !is_last && !self.is_due(now, is_same) {
            self.cost = self.cost.with(memory.cost());
            poll.code_is_told_until(self.whole_at);
            return Ok(());
        }
        let zone = self.read(&memory);
        self.cost = self.cost.with(memory.cost());
        if matches!(zone, Err(AdapterError::Torn { .. })) && self.torn < POLLS_IN_COLLECTIONS {
            self.torn += 1;
            poll.code_is_told_until(self.whole_at);
            return Ok(());
        }
        let zone = zone?;
        match zone.methods.damage {
            // What follows the damage may still exist.
            Some(damage) if self.has_begun => return Err(damage.into()),
            _ => {}
        }
        (self.stamp, self.torn) = (stamp, 0);
        (self.read_at, self.whole_at) = (now, now);
        let changes = self.tell(&zone, poll);
        if changes > 0 || !self.has_begun {
            self.forget(&zone);
            self.tell_limits(&zone, poll);
        }
        self.has_begun = true;
        self.cadence.found(changes);
        self.tell_listings(&zone, process, poll)?;
        self.beside.use_zone(&self.vm, &zone, process, poll)
    }

    fn tells_all_code(&self) -> bool {
        self.has_begun
    }

    fn unwinder(&mut self, _: &ProcessView) -> Option<Box<dyn Unwinder>> {
        self.beside.unwinder()
    }

    fn next_poll(&self) -> Duration {
        LOOKS
    }

    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.is_last = true;
        self.poll(process, poll)
    }
}
