//! The methods that were met, each with the key that the recording knows it by.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Avma, Method, MethodKey};
use vmscope_target::{Look, Memory};

use crate::bytecode::{ConstantPoolView, PoolLayout, listing};
use crate::jvm::Jvm;
use crate::method::{MethodInfo, MethodLayout, Stamp, class_name};

/// More methods than this are not kept in mind.
const MAX_METHODS: usize = 1 << 20;

/// Nor more bytes of their bytecodes, lines and names: some twenty times what a large
/// program's methods take.
const MAX_BYTES: usize = 512 << 20;

/// The methods that were met, by their `Method*`.
#[derive(Debug)]
pub(super) struct Methods {
    layout: MethodLayout,
    pools: Option<PoolLayout>,
    known: FxHashMap<Avma, Arc<Known>>,
    /// Those that were compared with what is there, in this look.
    compared: FxHashSet<Avma>,
    bytes: usize,
    /// See [`MAX_BYTES`].
    most_bytes: usize,
    has_told_full: bool,
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
    pub fn new(jvm: &Jvm, look: &mut Look) -> Self {
        let pools = PoolLayout::of(&jvm.structs, jvm.methods.clone());
        if let Err(error) = &pools {
            look.limit(format!("there are no listings of bytecodes: {error}"), "");
        }
        Methods {
            layout: jvm.methods.clone(),
            pools: pools.ok(),
            known: FxHashMap::default(),
            compared: FxHashSet::default(),
            bytes: 0,
            most_bytes: MAX_BYTES,
            has_told_full: false,
        }
    }

    /// A look begins: what is there may have changed.
    pub fn begin(&mut self) {
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
    pub fn meet(&mut self, memory: &dyn Memory, method: Avma, look: &mut Look) -> bool {
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
            self.tell_full(look);
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
            key: look.keys().method(),
            info: Arc::new(info),
            told: AtomicBool::new(false),
            told_whole: AtomicBool::new(false),
        };
        self.known.insert(method, Arc::new(known));
        self.compared.insert(method);
        true
    }

    fn tell_full(&mut self, look: &mut Look) {
        if !std::mem::replace(&mut self.has_told_full, true) {
            look.limit(
                format!(
                    "there are more methods than vmscope keeps in mind ({MAX_METHODS}, or {} MiB \
                     of their names, lines and bytecodes): some have no names",
                    MAX_BYTES >> 20
                ),
                "",
            );
        }
    }

    /// Whether a method was met in this look.
    pub fn has_met(&self, method: Avma) -> bool {
        self.compared.contains(&method)
    }

    /// Whether a method is known, there or not.
    pub fn contains(&self, method: Avma) -> bool {
        self.known.contains_key(&method)
    }

    /// What is known of a method, to be kept.
    pub fn pin(&self, method: Avma) -> Option<Pinned> {
        let known = self.known.get(&method)?;
        Some((method, Arc::clone(known)))
    }

    /// Makes methods known again that another may have taken the places of. Returns what
    /// was known instead, for [`Methods::put_back`].
    pub fn reinstate(&mut self, pinned: &[Pinned]) -> Vec<(Avma, Option<Arc<Known>>)> {
        let put = |(method, known): &Pinned| {
            let before = self.known.insert(*method, Arc::clone(known));
            (*method, before)
        };
        pinned.iter().map(put).collect()
    }

    /// Undoes [`Methods::reinstate`].
    pub fn put_back(&mut self, before: Vec<(Avma, Option<Arc<Known>>)>) {
        for (method, known) in before {
            match known {
                Some(known) => self.known.insert(method, known),
                None => self.known.remove(&method),
            };
        }
    }

    /// A method is gone: who refers to it has kept it.
    pub fn forget(&mut self, method: Avma) {
        if let Some(known) = self.known.remove(&method) {
            self.bytes = self.bytes.saturating_sub(bytes_of(&known.info));
        }
        self.compared.remove(&method);
    }

    /// What is known of a method.
    pub fn info(&self, method: Avma) -> Option<Arc<MethodInfo>> {
        self.known.get(&method).map(|known| Arc::clone(&known.info))
    }

    /// Its key; it is told if it was not yet.
    pub fn tell(&mut self, method: Avma, look: &mut Look) -> Option<MethodKey> {
        let known = self.known.get(&method)?;
        if !known.told.swap(true, Relaxed) {
            look.method(record(known, look));
        }
        Some(known.key)
    }

    /// Likewise, with its bytecodes, and with their listing if there is `memory` to read
    /// names from: for a method that samples hit. With `memory`, only of one that was met
    /// in this look: another may have its place.
    pub fn tell_whole(
        &mut self,
        memory: Option<&dyn Memory>,
        method: Avma,
        look: &mut Look,
    ) -> Option<MethodKey> {
        if memory.is_some() && !self.has_met(method) {
            return None;
        }
        let known = self.known.get(&method)?;
        Some(self.tell_pinned(memory, known, look))
    }

    /// Likewise, of a method that may not be there any more: without `memory` then.
    pub fn tell_pinned(
        &self,
        memory: Option<&dyn Memory>,
        known: &Known,
        look: &mut Look,
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
                ..record(known, look)
            };
            look.method(whole);
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

fn record(known: &Known, look: &Look) -> Method {
    let info = &known.info;
    Method {
        key: known.key,
        time: look.now(),
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
