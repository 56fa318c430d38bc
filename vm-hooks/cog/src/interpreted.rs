//! Methods in the interpreter, by what samples show: addresses of bytecodes and of method objects.
//!
//! No table tells the object around an address. The VM's method cache lists recently called methods, which
//! contain the sampled bytecodes. Only methods in old space count: a full
//! collection alone moves them.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::pages::Pages;
use vmscope_process::{
    AdapterError, MAX_TOUCHED_OF_A_POLL, Memory, Poll, known, read_consistently,
};
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind, GoneReason,
    Method, PcMap, TimeNs,
};

use crate::describe::header_of;
use crate::heap::{Contents, HEADER, Heap, Object};
use crate::listing::{Listing, ListingRoom};
use crate::names::{ClassLayout, MethodName, Names};
use crate::vm::{Vm, Zone};

/// The VM's method cache: words among which are pointers to methods.
pub(crate) const NAMES: [&str; 1] = ["methodCache"];

/// Maximum bytes of the method cache; known ones have 32 KiB.
const MAX_CACHE: u64 = 1 << 20;

/// Maximum bytes of a method.
const MAX_METHOD: u64 = 1 << 20;

/// Maximum number of methods that were reported since a full collection.
const MAX_METHODS: usize = 1 << 16;

/// Maximum number of values for one poll.
const MAX_VALUES: usize = 1 << 12;

/// Maximum number of objects to try for one value.
const CANDIDATES: usize = 8;

/// Attempts to read methods without a collection meanwhile.
const ATTEMPTS: u32 = 8;

/// Methods that were reported.
#[derive(Debug, Default)]
pub struct Interpreted {
    told: FxHashMap<Avma, [ConstituentKey; 2]>,
    /// Number of full collections, and time since which methods lie where they are now.
    full_collections: Option<u64>,
    since: TimeNs,
    absent_at: TimeNs,
    /// Begin of the last poll.
    last: TimeNs,
    /// Values of samples that wait for a reading of the zone.
    values: FxHashSet<Avma>,
    /// The limit was reported.
    is_cut: bool,
    room: ListingRoom,
}

/// A method that was found.
struct Found {
    object: Object,
    bytes: u64,
    name: MethodName,
    listing: Option<Listing>,
}

impl Interpreted {
    /// Keeps the values of `poll`'s samples.
    pub fn take_values(&mut self, poll: &Poll) {
        for value in poll.touched() {
            if self.values.len() < MAX_TOUCHED_OF_A_POLL {
                self.values.insert(*value);
            }
        }
    }

    /// Reports the methods that the values point to.
    ///
    /// # Errors
    /// Failed reads; [`AdapterError::Torn`] if collections happen during each attempt.
    pub fn poll(
        &mut self,
        vm: &Vm,
        zone: &Zone,
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let count = vm.variables.number(memory, "statFullGCs")?;
        if self.full_collections.is_none() || self.full_collections != count {
            self.forget(poll);
            self.full_collections = count;
        }
        self.last = poll.began();
        let (Some(first), Some(cache)) = (
            vm.variables.number(memory, "nilObj")?,
            vm.variables.at("methodCache"),
        ) else {
            return Ok(());
        };
        let is_object =
            |at: &Avma| at.0 >= first && !(zone.bounds.start..zone.bounds.end).contains(at);
        let mut values: Vec<Avma> = self.values.drain().filter(is_object).collect();
        values.sort_unstable();
        values.retain(|value| !self.told.contains_key(value));
        if values.is_empty() {
            return Ok(());
        }
        if self.told.len() >= MAX_METHODS || values.len() > MAX_VALUES {
            if !std::mem::replace(&mut self.is_cut, true) {
                let text = "some interpreted methods have no names: too many";
                poll.limit(text.to_owned(), "");
            }
            values.truncate(MAX_VALUES.min(MAX_METHODS.saturating_sub(self.told.len())));
        }
        let size = vm.variables.size("methodCache").clamp(8, MAX_CACHE);
        let stamp = || vm.stamp(memory);
        let found = read_consistently("compiled methods", ATTEMPTS, stamp, |_| {
            let pages = Pages::new(memory);
            let mut all = cached(&pages, cache, size, first)?;
            // Frames and contexts show methods themselves.
            all.extend(&values);
            all.sort_unstable();
            all.dedup();
            find(vm, zone, &pages, (&values, &all), &self.told, self.room)
        });
        if found.is_err() {
            self.values.extend(&values);
        }
        let (found, room) = found?;
        self.room = room;
        for one in found {
            self.tell(one, poll);
        }
        self.room.tell(poll);
        Ok(())
    }

    fn forget(&mut self, poll: &mut Poll) {
        let now = poll.now();
        for key in self.told.drain().flat_map(|(_, keys)| keys) {
            poll.code(CodeChange::Gone(ConstituentGone {
                key,
                last_seen: self.last,
                time: now,
                reason: GoneReason::Unknown,
            }));
        }
        (self.since, self.absent_at) = (now, self.last);
    }

    fn tell(&mut self, found: Found, poll: &mut Poll) {
        let at = found.object.at;
        let method = poll.keys().method();
        poll.method(Method {
            key: method,
            time: poll.now(),
            class: found.name.class_with_blocks(),
            name: found.name.selector.clone(),
            ..found
                .listing
                .map_or_else(Method::default, Listing::into_method)
        });
        let first = Avma(at.0 + HEADER);
        let parts = [
            (ConstituentKind::MethodObject, at, first),
            (
                ConstituentKind::Bytecodes,
                first,
                Avma(first.0.saturating_add(found.bytes)),
            ),
        ];
        let keys = parts.map(|(kind, start, end)| {
            let key = poll.keys().constituent();
            poll.code(CodeChange::Seen(Constituent {
                key,
                process: poll.process(),
                since: self.since,
                absent_at: Some(self.absent_at),
                start,
                end,
                kind,
                tier: String::new(),
                name: found.name.to_string(),
                method: Some(method),
                cases: Vec::new(),
                map: PcMap::None,
            }));
            key
        });
        self.told.insert(at, keys);
    }
}

/// Words of the method cache that may be methods in old space.
fn cached(
    memory: &dyn Memory,
    cache: Avma,
    size: u64,
    first: u64,
) -> Result<Vec<Avma>, AdapterError> {
    let cap = usize::try_from(MAX_CACHE).unwrap_or(usize::MAX);
    let bytes = memory.read_vec(cache, size, cap);
    let bytes = match bytes {
        Err(error) if error.is_final() => return Err(AdapterError::reading("method cache")(error)),
        bytes => bytes.unwrap_or_default(),
    };
    let words = bytes.chunks_exact(memory.pointer_bytes().max(1));
    let words = words.map(|word| Avma(crate::cog_method::number(word)));
    Ok(words
        .filter(|word| word.0 >= first && word.0 % 8 == 0)
        .collect())
}

/// Methods around `values`; new ones only. `told`: reported methods. `all`: possible methods' addresses,
/// ascending.
fn find(
    vm: &Vm,
    zone: &Zone,
    memory: &dyn Memory,
    (values, all): (&[Avma], &[Avma]),
    told: &FxHashMap<Avma, [ConstituentKey; 2]>,
    mut room: ListingRoom,
) -> Result<(Vec<Found>, ListingRoom), AdapterError> {
    let heap = Heap::of(&vm.variables, memory)?;
    let classes = ClassLayout::of(&vm.variables, &heap, memory)?;
    let mut names = Names::new(heap, classes);
    let mut found: FxHashMap<Avma, Found> = FxHashMap::default();
    for value in values {
        let after = all.partition_point(|at| at <= value);
        let below = all.get(..after).unwrap_or_default().iter().rev();
        let near = below.take_while(|at| value.0 - at.0 < MAX_METHOD);
        let near = near.filter(|at| at.0 % 8 == 0);
        for at in near.take(CANDIDATES) {
            let Some(object) = known(heap.object(*at))? else {
                continue;
            };
            let bytes = object.slots().saturating_mul(heap.word());
            let is_inside = value.0 - at.0 < bytes.saturating_add(HEADER);
            if object.contents() != Contents::Code || !is_inside {
                continue;
            }
            if told.contains_key(&object.at) || found.contains_key(&object.at) {
                break;
            }
            let header_of = |code: &Object| header_of(&heap, zone, code);
            let Some(header) = known(header_of(&object))? else {
                continue;
            };
            if let Some(name) = known(names.method(&object, header, &header_of))? {
                let listing = room.listing(&mut names, &vm.bytecodes, object, header)?;
                let one = Found {
                    object,
                    bytes,
                    name,
                    listing,
                };
                found.insert(object.at, one);
                break;
            }
        }
    }
    Ok((found.into_values().collect(), room))
}
