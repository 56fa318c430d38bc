//! Interpreted functions: the bytecodes that samples point to.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, CodeZone, MAX_TOUCHED_OF_A_POLL, Poll, SeenCode};
use vmscope_records::{Avma, Constituent, ConstituentKind, GoneReason, MethodKey};

use crate::object::{Heap, Tagged};

/// Maximum number of interpreted functions that were reported.
const MAX_FUNCTIONS: usize = 1 << 17;

/// Maximum bytes of a function's bytecodes.
const MAX_BYTECODES: u64 = 64 << 20;

/// Functions in the interpreter that were reported, by their bytecodes.
#[derive(Debug, Default)]
pub(crate) struct Interpreted {
    known: FxHashMap<Tagged, Known>,
    zone: CodeZone<Identity>,
    /// Values of samples that may be bytecodes, ascending.
    kept: Vec<Tagged>,
    /// Whether all changes were reported. The first report tells when nothing was known.
    is_told: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    info: Tagged,
    method: MethodKey,
    /// First bytecode, and first address after the last.
    range: (Avma, Avma),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    bytecodes: Tagged,
    method: MethodKey,
    kind: Data,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Data {
    Bytecodes,
    /// The object, by its tagged address.
    Object,
}

impl Interpreted {
    /// Keeps values of samples that may be bytecodes of unreported functions.
    pub fn keep(&mut self, poll: &Poll) {
        let tagged = poll.touched().iter().map(|value| Tagged(value.0));
        let objects = tagged.filter(|value| value.address().is_some() && value.0 & 2 == 0);
        let unknown = objects.filter(|value| !self.known.contains_key(value));
        self.kept.extend(unknown);
        self.kept.sort_unstable();
        self.kept.dedup();
        self.kept.truncate(MAX_TOUCHED_OF_A_POLL);
    }

    /// Keeps a value for the next poll.
    pub fn keep_value(&mut self, value: Tagged) {
        if self.kept.len() < MAX_TOUCHED_OF_A_POLL {
            self.kept.push(value);
        }
    }

    /// The kept values, ascending.
    pub fn take_kept(&mut self) -> Vec<Tagged> {
        std::mem::take(&mut self.kept)
    }

    /// Whether there is room for another function.
    pub fn has_room(&self) -> bool {
        self.known.len() < MAX_FUNCTIONS
    }

    /// Takes a function: its bytecodes, its `SharedFunctionInfo`, its method.
    ///
    /// # Errors
    /// Damaged bytecodes; failed reads.
    pub fn put(
        &mut self,
        heap: &Heap<'_>,
        bytecodes: Tagged,
        (info, method): (Tagged, MethodKey),
    ) -> Result<(), AdapterError> {
        let what = "bytecodes";
        let length = heap.integer(bytecodes, 8, what)?;
        let start = heap.at(bytecodes, heap.layout.bytecodes.first, what)?;
        let length = u64::try_from(length).ok();
        let length = length.filter(|length| *length <= MAX_BYTECODES);
        let end = length.and_then(|length| start.0.checked_add(length));
        let end = end.ok_or(AdapterError::Implausible {
            what,
            value: start.0,
            at: start,
        })?;
        let range = (start, Avma(end));
        self.known.insert(
            bytecodes,
            Known {
                info,
                method,
                range,
            },
        );
        self.is_told = false;
        Ok(())
    }

    /// Forgets a function.
    pub fn forget(&mut self, bytecodes: Tagged) {
        self.known.remove(&bytecodes);
        self.is_told = false;
    }

    /// All reported functions: bytecodes, `SharedFunctionInfo`, method.
    pub fn functions(&self) -> impl Iterator<Item = (Tagged, Tagged, MethodKey)> + '_ {
        let known = self.known.iter();
        known.map(|(bytecodes, known)| (*bytecodes, known.info, known.method))
    }

    /// Reports changes.
    pub fn tell(&mut self, poll: &mut Poll) {
        if std::mem::replace(&mut self.is_told, true) {
            self.zone.is_whole_at(poll.began());
            return;
        }
        let seen = self.known.iter().flat_map(|(bytecodes, known)| {
            let identity = |kind| Identity {
                bytecodes: *bytecodes,
                method: known.method,
                kind,
            };
            let object = (Avma(bytecodes.0), Avma(bytecodes.0.saturating_add(1)));
            let pieces = [(Data::Bytecodes, known.range), (Data::Object, object)];
            pieces.map(|(kind, (start, end))| SeenCode {
                identity: identity(kind),
                start,
                end,
            })
        });
        let seen: Vec<_> = seen.filter(|piece| piece.start < piece.end).collect();
        let describe = |identity: &Identity, constituent: &mut Constituent, _: &mut Poll| {
            constituent.kind = match identity.kind {
                Data::Bytecodes => ConstituentKind::Bytecodes,
                Data::Object => ConstituentKind::MethodObject,
            };
            constituent.method = Some(identity.method);
        };
        self.zone
            .update(poll, seen, describe, |_| GoneReason::Freed);
    }
}
