//! Lifetimes of code, also over code compactions.

use rustc_hash::FxHashMap;
use vmscope_records::Avma;

use super::Known;
use crate::cog_method::{CogMethod, EntryKind};
use crate::describe::Name;
use crate::vm::Zone;

/// One lifetime of a piece of code. Between two code compactions, the VM uses an address for one entry
/// only, and then frees it in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub at: Avma,
    pub size: u64,
    pub part: Part,
    pub header: i64,
    /// Code compactions before the entry came.
    pub compactions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Trampoline,
    Entry(EntryKind),
    /// A block inside a method, by its number.
    Block(usize),
    /// The code behind the blocks of a method, which enters them.
    BlockEntry,
    FreeSpace,
    YoungReferrers,
}

/// Ages of the zone's entries.
#[derive(Debug, Default)]
pub struct Ages {
    /// Code compactions before the zone was read.
    compactions: u64,
    /// Older numbers: entries that stayed in their place over compactions.
    stayed: FxHashMap<Avma, u64>,
}

impl Ages {
    /// Ages after this number of code compactions, none of which an entry outlived.
    pub fn new(compactions: u64) -> Self {
        Ages {
            compactions,
            ..Self::default()
        }
    }

    /// Whether no code compaction changed the zone since.
    pub fn are_of(&self, zone: &Zone) -> bool {
        self.compactions == zone.compactions
    }

    /// Code compactions before the entry at this address came.
    pub fn at(&self, at: Avma) -> u64 {
        self.stayed.get(&at).copied().unwrap_or(self.compactions)
    }

    /// Identity of an entry of the zone.
    pub fn identity(&self, entry: &CogMethod) -> Identity {
        Identity {
            at: entry.at,
            size: u64::from(entry.size),
            part: Part::Entry(entry.kind),
            header: entry.header,
            compactions: self.at(entry.at),
        }
    }

    /// Takes a code compaction into account. Entries that stayed in their place keep their identity.
    ///
    /// A compaction moves code down only: code at its old address never left this address. After several
    /// compactions, other code may have used the address meanwhile, so all code counts as new.
    pub fn compacted(&mut self, zone: &Zone, known: &mut FxHashMap<Identity, Known>) {
        let old = std::mem::replace(self, Self::new(zone.compactions));
        if old.compactions.checked_add(1) != Some(zone.compactions) {
            return;
        }
        for entry in &zone.methods.entries {
            let now = self.identity(entry);
            let compactions = old.at(entry.at);
            let before = known.get(&Identity { compactions, ..now });
            if before.zip(known.get(&now)).is_some_and(are_same) {
                known.remove(&now);
                self.stayed.insert(entry.at, compactions);
            }
        }
    }
}

/// Compares an entry before a code compaction with the entry at its address afterwards.
///
/// The compiled method tells methods with equal code apart. PICs have none: the same selector and cases
/// count.
fn are_same((before, after): (&Known, &Known)) -> bool {
    let (old, new) = (&before.entry, &after.entry);
    let method = match new.kind {
        EntryKind::Method => old.method,
        _ => new.method,
    };
    let old = CogMethod {
        method,
        usage: new.usage,
        refers_to_young: new.refers_to_young,
        ..old.clone()
    };
    old == *new && before.described == after.described && after.described.name != Name::Unknown
}
