//! Methods read so far, each with its key in the recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{Memory, Poll};
use vmscope_records::{Avma, Method, MethodKey, TimeNs};

use crate::bytecode::{ConstantPoolView, PoolLayout, listing};
use crate::jvm::Jvm;
use crate::method::{MethodInfo, MethodLayout, Stamp, class_name};

use super::counters::Unloading;

/// Maximum number of methods in memory.
const MAX_METHODS: usize = 1 << 20;

/// Maximum bytes of bytecodes, lines and names in memory: about twenty times the need of a
/// large program.
const MAX_BYTES: usize = 512 << 20;

/// Maximum bytes of displaced methods.
const MAX_DISPLACED: usize = 32 << 20;

/// Nanoseconds after an unloading during which another unloading is probable.
const LATELY: u64 = 10_000_000_000;

/// Methods read so far, by `Method*`.
#[derive(Debug)]
pub(super) struct Methods {
    layout: MethodLayout,
    pools: Option<PoolLayout>,
    known: FxHashMap<Avma, Arc<Known>>,
    /// Methods read, or compared with the VM's memory, since the last unloading.
    compared: FxHashSet<Avma>,
    /// Methods unloaded, or replaced by another, since before the last unloading.
    displaced: Displaced,
    times: Times,
    bytes: usize,
    /// See [`MAX_BYTES`].
    most_bytes: usize,
    has_told_full: bool,
}

/// Times of polls, by the VM's unload count at their begin.
#[derive(Debug, Default)]
struct Times {
    /// The VM's counters at the newest poll.
    unloading: Option<Unloading>,
    /// First and newest poll with this number of unloaded classes.
    since: TimeNs,
    newest: TimeNs,
    /// First of these polls that met no method which dies in the unloading just counted.
    settled: Option<TimeNs>,
    /// First settled and last poll with the number before. Classes may have been unloaded already
    /// during the last.
    before: Option<(TimeNs, TimeNs)>,
    /// How often polls have seen another number than the poll before.
    changes: u64,
    /// Whether the VM may have unloaded classes several times between these and the later polls.
    are_several: bool,
}

/// Methods read earlier, within bounds.
#[derive(Debug, Default)]
struct Displaced {
    all: FxHashMap<Avma, Arc<Known>>,
    bytes: usize,
}

impl Displaced {
    fn put(&mut self, method: Avma, known: Arc<Known>) {
        let bytes = bytes_of(&known.info);
        if self.bytes.saturating_add(bytes) <= MAX_DISPLACED {
            self.bytes += bytes;
            // The newer of two methods wins.
            self.all.insert(method, known);
        }
    }

    /// Drops methods last read before `time`.
    fn age(&mut self, time: TimeNs) {
        self.all.retain(|_, known| known.met >= time);
        let all = self.all.values();
        self.bytes = all.map(|known| bytes_of(&known.info)).sum();
    }
}

/// A method as read. Users share ownership: another method may take its address.
#[derive(Debug)]
pub(super) struct Known {
    stamp: Stamp,
    key: MethodKey,
    pub info: Arc<MethodInfo>,
    /// Whether the recording has the method; whether with bytecodes.
    told: AtomicBool,
    told_whole: AtomicBool,
    /// Begin of the poll that read the method. A later successful comparison proves nothing:
    /// the memory of unloaded classes stays unchanged for a while.
    met: TimeNs,
}

/// A method and its address.
pub(super) type Pinned = (Avma, Arc<Known>);

impl Known {
    /// Whether another method is at `method` now; false if memory is unreadable.
    pub fn is_replaced(&self, layout: &MethodLayout, memory: &dyn Memory, method: Avma) -> bool {
        let now = layout.stamp(memory, method);
        now.is_ok_and(|now| now != self.stamp)
    }
}

impl Methods {
    /// An empty table. Without `pools`, methods get no listings.
    pub fn new(jvm: &Jvm, pools: Option<PoolLayout>) -> Self {
        Methods {
            layout: jvm.methods.clone(),
            pools,
            known: FxHashMap::default(),
            compared: FxHashSet::default(),
            displaced: Displaced::default(),
            times: Times::default(),
            bytes: 0,
            most_bytes: MAX_BYTES,
            has_told_full: false,
        }
    }

    /// Begins a poll. After an unloading, every method needs a new comparison: its address may be
    /// another method's. `unloading`: the VM's counters, read after `time`, if available.
    pub fn begin(&mut self, time: TimeNs, unloading: Option<Unloading>) {
        let times = &mut self.times;
        let both = unloading.zip(times.unloading);
        if both.is_none_or(|(now, before)| now.classes != before.classes) {
            self.compared.clear();
            times.before = (times.settled.take()).map(|settled| (settled, times.newest));
            times.changes += u64::from(times.unloading.is_some());
            times.are_several = both.is_some_and(|(now, before)| now.most_since(&before) > 1);
            times.since = time;
            self.displaced
                .age(times.before.map_or(time, |(from, _)| from));
        }
        times.unloading = unloading;
        times.newest = time;
        let is_first = times.since == time;
        if unloading.is_some_and(|now| !now.may_go_on(is_first)) {
            times.settled.get_or_insert(time);
        }
    }

    /// The VM's counters at the begin of this poll.
    pub fn unloading(&self) -> Option<Unloading> {
        self.times.unloading
    }

    /// How often polls so far have seen that the VM had unloaded classes.
    pub fn unloadings(&self) -> u64 {
        self.times.changes
    }

    /// Whether no class was unloaded since `time`: methods present then are still present.
    pub fn are_same_since(&self, time: TimeNs) -> bool {
        self.times.since <= time
    }

    /// Whether classes were unloaded in the last [`LATELY`] nanoseconds.
    pub fn have_gone_lately(&self) -> bool {
        let times = &self.times;
        times.changes > 0 && times.newest.since(times.since).0 < LATELY
    }

    /// Requires new comparisons within a poll: memory read from here on is newer than earlier
    /// reads.
    pub fn renew(&mut self) {
        self.compared.clear();
    }

    /// Whether a pinned method still occupies its address.
    pub fn is_current(&self, memory: &dyn Memory, (method, known): &Pinned) -> bool {
        let is_known = self
            .known
            .get(method)
            .is_some_and(|now| Arc::ptr_eq(now, known));
        if is_known && self.compared.contains(method) {
            return true;
        }
        let now = self.layout.stamp(memory, *method);
        now.is_ok_and(|now| now == known.stamp)
    }

    /// Reads a method if it is unknown or replaced. Returns whether the known data is current;
    /// otherwise the caller reports a nameless method.
    pub fn meet(&mut self, memory: &dyn Memory, method: Avma, poll: &mut Poll) -> bool {
        if self.compared.contains(&method) {
            return true;
        }
        let Ok(stamp) = self.layout.stamp(memory, method) else {
            return false;
        };
        let known = self.known.get(&method);
        if known.is_some_and(|known| known.stamp == stamp) {
            self.compared.insert(method);
            return true;
        }
        // In any case, the previous method is gone.
        self.forget(method);
        if self.known.len() >= MAX_METHODS || self.bytes >= self.most_bytes {
            self.tell_full(poll);
            return false;
        }
        let info = self.layout.read(memory, method);
        let is_sound = |info: &MethodInfo| is_sound(info, self.layout.tells_signatures());
        let Some(info) = info.ok().filter(is_sound) else {
            return false;
        };
        self.bytes = self.bytes.saturating_add(bytes_of(&info));
        let known = Known {
            stamp,
            key: poll.keys().method(),
            info: Arc::new(info),
            told: AtomicBool::new(false),
            told_whole: AtomicBool::new(false),
            met: self.times.newest,
        };
        self.known.insert(method, Arc::new(known));
        self.compared.insert(method);
        true
    }

    /// Likewise for a method named by new code or by a new class: always compares. After an
    /// unloading, the memory of an unloaded method stays unchanged for a while: an earlier comparison
    /// may have found this method at the address.
    pub fn meet_anew(&mut self, memory: &dyn Memory, method: Avma, poll: &mut Poll) -> bool {
        self.compared.remove(&method);
        self.meet(memory, method, poll)
    }

    fn tell_full(&mut self, poll: &mut Poll) {
        if !std::mem::replace(&mut self.has_told_full, true) {
            poll.limit(
                format!(
                    "too many methods (vmscope keeps {MAX_METHODS}, or {} MiB of names, lines and \
                     bytecodes): some have no names",
                    MAX_BYTES >> 20
                ),
                "",
            );
        }
    }

    /// Whether a method was read or compared since the last unloading.
    pub fn has_met(&self, method: Avma) -> bool {
        self.compared.contains(&method)
    }

    /// Method lost in the last unloading: the only one that polls with the previous unload
    /// count certainly found at this address. `None` if another method may have had the address between two
    /// unloadings that no poll saw apart.
    pub fn dead(&self, method: Avma) -> Option<Pinned> {
        let (from, last) = self.times.before.filter(|_| !self.times.are_several)?;
        let both = [self.known.get(&method), self.displaced.all.get(&method)];
        let was_there = |known: &&Arc<Known>| from <= known.met && known.met < last;
        let mut then = both.into_iter().flatten().filter(was_there);
        let found = then.next().filter(|_| then.next().is_none())?;
        Some((method, Arc::clone(found)))
    }

    /// A present method, for keeping.
    pub fn pin(&self, method: Avma) -> Option<Pinned> {
        let known = self.known.get(&method).filter(|_| self.has_met(method))?;
        Some((method, Arc::clone(known)))
    }

    /// Replaces all known methods with `pinned`, whose addresses other methods may have taken.
    /// Returns the previous methods for [`Methods::put_back`].
    pub fn only(&mut self, pinned: &[Pinned]) -> FxHashMap<Avma, Arc<Known>> {
        let pinned = pinned.iter().cloned().collect();
        std::mem::replace(&mut self.known, pinned)
    }

    /// Undoes [`Methods::only`].
    pub fn put_back(&mut self, known: FxHashMap<Avma, Arc<Known>>) {
        self.known = known;
    }

    /// Removes a method that is gone. Shared owners keep its data.
    pub fn forget(&mut self, method: Avma) {
        if let Some(known) = self.known.remove(&method) {
            self.bytes = self.bytes.saturating_sub(bytes_of(&known.info));
            self.displaced.put(method, known);
        }
        self.compared.remove(&method);
    }

    /// Data of a method.
    pub fn info(&self, method: Avma) -> Option<Arc<MethodInfo>> {
        self.known.get(&method).map(|known| Arc::clone(&known.info))
    }

    /// Key of a method; reports the method first if necessary.
    pub fn tell(known: &Known, poll: &mut Poll) -> MethodKey {
        if !known.told.swap(true, Relaxed) {
            poll.method(record(known, poll));
        }
        known.key
    }

    /// Reports a sampled method with its bytecodes and returns its key; with `memory`, reads names
    /// for the listing. `memory` requires a present method: later, another method may have the
    /// address.
    pub fn tell_whole(
        &mut self,
        memory: Option<&dyn Memory>,
        method: Avma,
        poll: &mut Poll,
    ) -> Option<MethodKey> {
        if memory.is_some() && !self.has_met(method) {
            return None;
        }
        let known = self.known.get(&method)?;
        Some(self.tell_pinned(memory, known, poll))
    }

    /// Likewise for a pinned method; without `memory` after its unloading.
    pub fn tell_pinned(
        &self,
        memory: Option<&dyn Memory>,
        known: &Known,
        poll: &mut Poll,
    ) -> MethodKey {
        if !known.told_whole.swap(true, Relaxed) {
            known.told.store(true, Relaxed);
            let bytecodes = known.info.bytecodes.to_vec();
            let pool = memory
                .zip(self.pools.as_ref())
                .and_then(|(memory, layout)| {
                    ConstantPoolView::read(layout, memory, known.info.constants).ok()
                });
            let listing = pool.map(|pool| listing(&known.info, &pool));
            let whole = Method {
                bytecodes,
                listing: listing.unwrap_or_default(),
                ..record(known, poll)
            };
            poll.method(whole);
        }
        known.key
    }
}

fn bytes_of(info: &MethodInfo) -> usize {
    let texts = [&info.class, &info.name, &info.signature, &info.file];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    let lines = std::mem::size_of_val(info.lines.as_slice());
    std::mem::size_of::<Known>()
        + std::mem::size_of::<MethodInfo>()
        + texts
        + lines
        + info.bytecodes.len()
}

/// Whether a method has a valid name. The VM may have half overwritten the methods of a class
/// just unloaded. VMs without signatures in their structures give none.
fn is_sound(info: &MethodInfo, has_signature: bool) -> bool {
    let is_name = |name: &str| !name.is_empty() && !name.chars().any(char::is_control);
    let signature = info.signature.as_str();
    let is_signature = if has_signature {
        is_name(signature) && signature.starts_with('(')
    } else {
        signature.is_empty()
    };
    is_name(&info.class) && is_name(&info.name) && is_signature
}

fn record(known: &Known, poll: &Poll) -> Method {
    let info = &known.info;
    Method {
        key: known.key,
        time: poll.now(),
        class: class_name(&info.class),
        name: info.name_with_parameters(),
        file: info.file.clone(),
        line: info.lines.iter().map(|entry| entry.line).min().unwrap_or(0),
        lines: info.lines.clone(),
        bytecodes: Vec::new(),
        listing: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
