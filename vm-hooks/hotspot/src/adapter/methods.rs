//! The methods that were met, each with the key that the recording knows it by.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{Memory, Poll};
use vmscope_records::{Avma, Method, MethodKey, TimeNs};

use crate::bytecode::{ConstantPoolView, PoolLayout, listing};
use crate::jvm::Jvm;
use crate::method::{MethodInfo, MethodLayout, Stamp, class_name};

/// More methods than this are not kept in mind.
const MAX_METHODS: usize = 1 << 20;

/// Nor more bytes of their bytecodes, lines and names: some twenty times what a large
/// program's methods take.
const MAX_BYTES: usize = 512 << 20;

/// Nor more bytes of those that are there no more.
const MAX_DISPLACED: usize = 32 << 20;

/// The methods that were met, by their `Method*`.
#[derive(Debug)]
pub(super) struct Methods {
    layout: MethodLayout,
    pools: Option<PoolLayout>,
    known: FxHashMap<Avma, Arc<Known>>,
    /// Those that were compared with what is there, in this poll.
    compared: FxHashSet<Avma>,
    /// Those that another took the place of, or that are gone, since before the last
    /// unloading.
    displaced: Displaced,
    times: Times,
    bytes: usize,
    /// See [`MAX_BYTES`].
    most_bytes: usize,
    has_told_full: bool,
}

/// When looks were, by what the VM had counted when they began.
#[derive(Debug, Default)]
struct Times {
    /// How many classes were unloaded.
    unloaded: Option<i64>,
    /// The first poll for which this was so, and the newest.
    since: TimeNs,
    newest: TimeNs,
    /// The first and the last one before, for which it was another number: in the last
    /// one classes may have been unloaded already.
    before: Option<(TimeNs, TimeNs)>,
}

/// Methods that were known, within bounds.
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
            // Of two that is the newer one.
            self.all.insert(method, known);
        }
    }

    /// Drops those that were not met after `time`.
    fn age(&mut self, time: TimeNs) {
        self.all.retain(|_, known| known.met >= time);
        let all = self.all.values();
        self.bytes = all.map(|known| bytes_of(&known.info)).sum();
    }
}

/// A method as it was read. Who refers to it keeps it: another may take its place.
#[derive(Debug)]
pub(super) struct Known {
    stamp: Stamp,
    key: MethodKey,
    pub info: Arc<MethodInfo>,
    /// Whether the recording has it, and whether with its bytecodes.
    told: AtomicBool,
    told_whole: AtomicBool,
    /// When the poll began in which it was read. That it is still alike later does not
    /// show that it is there: the memory of what was unloaded stays as it is for a while.
    met: TimeNs,
}

/// A method under the address that it had.
pub(super) type Pinned = (Avma, Arc<Known>);

impl Known {
    /// Whether another method is at `method` now. Where that can't be read nobody knows.
    pub fn is_replaced(&self, layout: &MethodLayout, memory: &dyn Memory, method: Avma) -> bool {
        let now = layout.stamp(memory, method);
        now.is_ok_and(|now| now != self.stamp)
    }
}

impl Methods {
    /// None is known yet. Without `pools` there are no listings.
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

    /// A poll begins: what is there may have changed. `unloaded`: how many classes the VM
    /// had unloaded after `time`, if it tells.
    pub fn begin(&mut self, time: TimeNs, unloaded: Option<i64>) {
        self.compared.clear();
        let times = &mut self.times;
        if unloaded.is_none() || unloaded != times.unloaded {
            times.before = times.unloaded.map(|_| (times.since, times.newest));
            times.unloaded = unloaded;
            times.since = time;
            self.displaced
                .age(times.before.map_or(time, |(from, _)| from));
        }
        times.newest = time;
    }

    /// What is read from now on is newer than what the poll has read so far: what is there
    /// may have changed again.
    pub fn renew(&mut self) {
        self.compared.clear();
    }

    /// Whether a method is still there.
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

    /// Reads a method, if it is not known or another has its place now. Whether what is
    /// known of it is what is there: if not, it is to be told of as nameless.
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
        // Whatever comes of it, the one that was there is gone.
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

    fn tell_full(&mut self, poll: &mut Poll) {
        if !std::mem::replace(&mut self.has_told_full, true) {
            poll.limit(
                format!(
                    "there are more methods than vmscope keeps in mind ({MAX_METHODS}, or {} MiB \
                     of their names, lines and bytecodes): some have no names",
                    MAX_BYTES >> 20
                ),
                "",
            );
        }
    }

    /// Whether a method was met in this poll.
    pub fn has_met(&self, method: Avma) -> bool {
        self.compared.contains(&method)
    }

    /// What is known of a method that was there, and is not since classes were unloaded
    /// the last time: what was known of its place before that, and no longer before.
    pub fn dead(&self, method: Avma) -> Option<Pinned> {
        let (from, last) = self.times.before?;
        let both = [self.known.get(&method), self.displaced.all.get(&method)];
        let was_there = |known: &&Arc<Known>| from <= known.met && known.met < last;
        let mut then = both.into_iter().flatten().filter(was_there);
        let found = then.next().filter(|_| then.next().is_none())?;
        Some((method, Arc::clone(found)))
    }

    /// What is known of a method that was met in this poll, to be kept.
    pub fn pin(&self, method: Avma) -> Option<Pinned> {
        let known = self.known.get(&method).filter(|_| self.has_met(method))?;
        Some((method, Arc::clone(known)))
    }

    /// Makes these methods all that are known: others may have taken their places.
    /// Returns what was known, for [`Methods::put_back`].
    pub fn only(&mut self, pinned: &[Pinned]) -> FxHashMap<Avma, Arc<Known>> {
        let pinned = pinned.iter().cloned().collect();
        std::mem::replace(&mut self.known, pinned)
    }

    /// Undoes [`Methods::only`].
    pub fn put_back(&mut self, known: FxHashMap<Avma, Arc<Known>>) {
        self.known = known;
    }

    /// A method is gone: who refers to it has kept it.
    pub fn forget(&mut self, method: Avma) {
        if let Some(known) = self.known.remove(&method) {
            self.bytes = self.bytes.saturating_sub(bytes_of(&known.info));
            self.displaced.put(method, known);
        }
        self.compared.remove(&method);
    }

    /// What is known of a method.
    pub fn info(&self, method: Avma) -> Option<Arc<MethodInfo>> {
        self.known.get(&method).map(|known| Arc::clone(&known.info))
    }

    /// The key of a method; it is told if it was not yet.
    pub fn tell(known: &Known, poll: &mut Poll) -> MethodKey {
        if !known.told.swap(true, Relaxed) {
            poll.method(record(known, poll));
        }
        known.key
    }

    /// Likewise, with its bytecodes, and with their listing if there is `memory` to read
    /// names from: for a method that samples hit. With `memory`, only of one that was met
    /// in this poll: another may have its place.
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

    /// Likewise, of a method that may not be there any more: without `memory` then.
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

/// Whether a method is named as methods are: one whose class was just unloaded may be
/// half overwritten. Where the VM does not tell signatures there is none.
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
