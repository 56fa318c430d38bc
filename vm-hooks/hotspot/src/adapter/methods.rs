//! The methods that were met, each with the key that the recording knows it by.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_records::{Avma, Method, MethodKey};
use vmscope_target::{Look, Memory};

use crate::bytecode::{ConstantPoolView, PoolLayout, listing};
use crate::jvm::Jvm;
use crate::method::{MethodInfo, MethodLayout, Stamp, class_name, readable_signature};

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
    known: FxHashMap<Avma, Known>,
    bytes: usize,
}

#[derive(Debug)]
struct Known {
    stamp: Stamp,
    key: MethodKey,
    info: Arc<MethodInfo>,
    /// Whether the recording has it, and whether with its bytecodes.
    told: bool,
    told_whole: bool,
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
            bytes: 0,
        }
    }

    /// Whether the method at `method` is still the one that is known; `false` too where
    /// none is.
    pub fn is_current(&self, memory: &dyn Memory, method: Avma) -> bool {
        let known = self.known.get(&method);
        known.is_some_and(|known| {
            let now = self.layout.stamp(memory, method);
            now.is_ok_and(|now| now == known.stamp)
        })
    }

    /// Reads a method, if it is not known or another has its place now. Whether it is
    /// known.
    pub fn meet(&mut self, memory: &dyn Memory, method: Avma, look: &Look) -> bool {
        let Ok(stamp) = self.layout.stamp(memory, method) else {
            return self.known.contains_key(&method);
        };
        if self
            .known
            .get(&method)
            .is_some_and(|known| known.stamp == stamp)
        {
            return true;
        }
        if self.known.len() >= MAX_METHODS || self.bytes >= MAX_BYTES {
            return false;
        }
        let Ok(info) = self.layout.read(memory, method) else {
            return false;
        };
        self.bytes += bytes_of(&info);
        let known = Known {
            stamp,
            key: look.keys().method(),
            info: Arc::new(info),
            told: false,
            told_whole: false,
        };
        if let Some(before) = self.known.insert(method, known) {
            self.bytes = self.bytes.saturating_sub(bytes_of(&before.info));
        }
        true
    }

    /// What is known of a method.
    pub fn info(&self, method: Avma) -> Option<Arc<MethodInfo>> {
        self.known.get(&method).map(|known| Arc::clone(&known.info))
    }

    /// Its key; it is told if it was not yet.
    pub fn tell(&mut self, method: Avma, look: &mut Look) -> Option<MethodKey> {
        let known = self.known.get_mut(&method)?;
        if !known.told {
            known.told = true;
            look.method(record(known, look));
        }
        Some(known.key)
    }

    /// Likewise, with its bytecodes, and with their listing if there is `memory` to read
    /// names from: for a method that samples hit.
    pub fn tell_whole(
        &mut self,
        memory: Option<&dyn Memory>,
        method: Avma,
        look: &mut Look,
    ) -> Option<MethodKey> {
        let known = self.known.get_mut(&method)?;
        if !known.told_whole {
            (known.told, known.told_whole) = (true, true);
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
        Some(known.key)
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

fn record(known: &Known, look: &Look) -> Method {
    let info = &known.info;
    Method {
        key: known.key,
        time: look.now(),
        class: class_name(&info.class),
        name: method_name(info),
        file: info.file.clone(),
        line: info.lines.iter().map(|entry| entry.line).min().unwrap_or(0),
        lines: info.lines.clone(),
        bytecodes: Vec::new(),
        listing: Vec::new(),
    }
}

/// A method's name with its parameters.
fn method_name(info: &MethodInfo) -> String {
    format!("{}{}", info.name, readable_signature(&info.signature))
}

/// A method's name with its class.
pub(super) fn full_name(info: &MethodInfo) -> String {
    format!("{}.{}", class_name(&info.class), method_name(info))
}
