//! Code that newer code replaced without a record of its end.

use super::lives::CodeLife;
use crate::{ConstituentKey, ConstituentKind, ProcessKey, TimeNs};
use std::collections::BTreeMap;

/// Present code by address, brought forward to the horizon.
///
/// A reader ends older code where newer code comes. If both came before the horizon, the older code
/// must go first: without the newer code, a reader would take it for present.
#[derive(Debug, Default)]
pub(super) struct Residents {
    /// Without overlaps.
    present: BTreeMap<CodePlace, Resident>,
    /// Start addresses of code that came or moved since the horizon.
    arrivals: BTreeMap<(TimeNs, ConstituentKey), u64>,
}

/// Process, layer, and start address.
pub(super) type CodePlace = (ProcessKey, Layer, u64);

#[derive(Clone, Copy, Debug)]
struct Resident {
    /// End address, exclusive.
    end: u64,
    since: (TimeNs, ConstituentKey),
}

/// New code replaces code of its own layer only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    Code,
    Bytecodes,
    Methods,
}

impl Layer {
    fn of(kind: &ConstituentKind) -> Self {
        match kind {
            ConstituentKind::Bytecodes => Layer::Bytecodes,
            ConstituentKind::MethodObject => Layer::Methods,
            _ => Layer::Code,
        }
    }
}

impl Residents {
    /// Code came or moved to `start`.
    pub fn put(&mut self, time: TimeNs, key: ConstituentKey, start: u64) {
        self.arrivals.insert((time, key), start);
    }

    /// Applies the arrivals before `horizon`, and notes which code they replaced.
    pub fn advance(&mut self, code: &mut BTreeMap<ConstituentKey, CodeLife>, horizon: TimeNs) {
        let later = self.arrivals.split_off(&(horizon, ConstituentKey(0)));
        for (since, start) in std::mem::replace(&mut self.arrivals, later) {
            let Some(life) = code.get_mut(&since.1) else {
                continue;
            };
            self.remove(life);
            life.replaced = None;
            let one = &life.constituent;
            let end = start.saturating_add(one.end.0.saturating_sub(one.start.0));
            if start >= end || life.never_came(since.0) {
                continue;
            }
            let (process, layer) = (one.process, Layer::of(&one.kind));
            let at = (process, layer, start);
            let before_end = self
                .present
                .range((process, layer, 0)..(process, layer, end));
            let overlapping = before_end.rev().take_while(|(_, other)| other.end > start);
            let overlapping = overlapping.map(|(at, other)| (*at, other.since));
            // A late arrival may be older.
            let (older, newer): (Vec<_>, Vec<_>) =
                overlapping.partition(|(_, other)| *other < since);
            life.replaced = newer.iter().map(|(_, other)| other.0).min();
            life.present_at = newer.is_empty().then_some(at);
            for (at, (_, key)) in older {
                self.present.remove(&at);
                if let Some(other) = code.get_mut(&key) {
                    other.present_at = None;
                    other.replaced = Some(since.0);
                }
            }
            if newer.is_empty() {
                self.present.insert(at, Resident { end, since });
            }
        }
    }

    /// Removes dropped or moved code.
    pub fn remove(&mut self, life: &mut CodeLife) {
        if let Some(at) = life.present_at.take() {
            self.present.remove(&at);
        }
    }
}
