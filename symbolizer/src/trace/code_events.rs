//! Comings, moves and ends of code over time, for charts. The zones keep present code; this
//! keeps the times of changes.

use rustc_hash::FxHashMap;
use vmscope_records::{
    Constituent, ConstituentGone, ConstituentKey, ConstituentKind, ConstituentMoved, GoneReason,
    ProcessKey, TimeNs,
};

/// The most events; beyond it the oldest are dropped.
const MAX_EVENTS: usize = 1 << 20;

/// The most labels; further code shares the last one.
const MAX_LABELS: usize = 256;

/// A kind of code event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeStep {
    /// New code.
    Came,
    /// A code compaction moved it.
    Moved,
    /// The code is gone.
    Gone(GoneReason),
}

/// An event of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeEvent {
    /// The event happened after this time …
    pub earliest: TimeNs,
    /// … and not later than this; equal times are exact.
    pub time: TimeNs,
    /// The process of the code zone.
    pub process: ProcessKey,
    /// The kind.
    pub step: CodeStep,
    label: u16,
}

/// All code events, in recording order.
#[derive(Clone, Debug, Default)]
pub struct CodeEvents {
    events: Vec<CodeEvent>,
    labels: Vec<String>,
    /// Present code: process and label.
    known: FxHashMap<ConstituentKey, (ProcessKey, u16)>,
    forgotten: u64,
}

impl CodeEvents {
    /// The kept events, nearly in time order.
    #[must_use]
    pub fn all(&self) -> &[CodeEvent] {
        &self.events
    }

    /// The number of dropped older events.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The code's tier, or its kind without tiers.
    #[must_use]
    pub fn label(&self, event: &CodeEvent) -> &str {
        let label = self.labels.get(usize::from(event.label));
        label.map_or("", String::as_str)
    }

    pub(crate) fn came(&mut self, one: &Constituent) {
        let Some(kind) = word(&one.kind) else {
            return;
        };
        if self.known.contains_key(&one.key) {
            return;
        }
        let label = self.number(if one.tier.is_empty() { kind } else { &one.tier });
        self.known.insert(one.key, (one.process, label));
        self.put(CodeEvent {
            earliest: one.absent_at.unwrap_or(one.since),
            time: one.since,
            process: one.process,
            step: CodeStep::Came,
            label,
        });
    }

    pub(crate) fn moved(&mut self, moved: &ConstituentMoved) {
        if let Some(&(process, label)) = self.known.get(&moved.key) {
            self.put(CodeEvent {
                earliest: moved.last_seen,
                time: moved.time,
                process,
                step: CodeStep::Moved,
                label,
            });
        }
    }

    pub(crate) fn gone(&mut self, gone: &ConstituentGone) {
        if let Some((process, label)) = self.known.remove(&gone.key) {
            self.put(CodeEvent {
                earliest: gone.last_seen,
                time: gone.time,
                process,
                step: CodeStep::Gone(gone.reason),
                label,
            });
        }
    }

    /// Keeps the newest `most` events, once an eighth more exist. Returns the number of dropped
    /// events.
    pub(crate) fn keep_newest(&mut self, most: usize) -> u64 {
        let len = self.events.len();
        if len <= most + most / 8 {
            return 0;
        }
        self.events.drain(..len - most);
        self.forgotten += (len - most) as u64;
        (len - most) as u64
    }

    /// Forgets a constituent without further events.
    pub(crate) fn forget(&mut self, key: ConstituentKey) {
        self.known.remove(&key);
    }

    fn put(&mut self, event: CodeEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.drain(..MAX_EVENTS / 2);
            self.forgotten += MAX_EVENTS as u64 / 2;
        }
        self.events.push(event);
    }

    fn number(&mut self, label: &str) -> u16 {
        let known = self.labels.iter().position(|other| other == label);
        let number = known.unwrap_or_else(|| {
            if self.labels.len() < MAX_LABELS {
                self.labels.push(label.to_owned());
            }
            self.labels.len() - 1
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }
}

/// The word for a kind of code; `None` for data and free space.
fn word(kind: &ConstituentKind) -> Option<&str> {
    Some(match kind {
        ConstituentKind::Method | ConstituentKind::Block => "method",
        ConstituentKind::ClosedPic | ConstituentKind::OpenPic => "PIC",
        ConstituentKind::Trampoline | ConstituentKind::Enilopmart => "trampoline",
        ConstituentKind::Interpreter => "interpreter",
        ConstituentKind::Adapter => "adapter",
        ConstituentKind::RegExp => "regexp",
        ConstituentKind::Other(word) => word,
        ConstituentKind::Bytecodes | ConstituentKind::MethodObject | ConstituentKind::Free => {
            return None;
        }
        _ => "stub",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::{Avma, PcMap};

    fn one(key: u64, tier: &str, kind: ConstituentKind) -> Constituent {
        Constituent {
            key: ConstituentKey(key),
            process: ProcessKey(1),
            since: TimeNs(20),
            absent_at: Some(TimeNs(10)),
            start: Avma(0),
            end: Avma(16),
            kind,
            tier: tier.to_owned(),
            name: String::new(),
            method: None,
            cases: Vec::new(),
            map: PcMap::None,
        }
    }

    #[test]
    fn what_is_told_again_came_once() {
        let mut events = CodeEvents::default();
        for _ in 0..2 {
            events.came(&one(1, "C2", ConstituentKind::Method));
        }
        events.came(&one(2, "", ConstituentKind::Method));
        events.came(&one(3, "", ConstituentKind::Free));
        let gone = ConstituentGone {
            key: ConstituentKey(1),
            last_seen: TimeNs(30),
            time: TimeNs(40),
            reason: GoneReason::Unloaded,
        };
        for _ in 0..2 {
            events.gone(&gone);
        }
        let told = events.all().iter();
        let told: Vec<_> = told
            .map(|event| {
                (
                    event.earliest.0,
                    event.time.0,
                    event.step,
                    events.label(event),
                )
            })
            .collect();
        let unloaded = CodeStep::Gone(GoneReason::Unloaded);
        assert_eq!(
            told,
            [
                (10, 20, CodeStep::Came, "C2"),
                (10, 20, CodeStep::Came, "method"),
                (30, 40, unloaded, "C2")
            ]
        );
    }

    #[test]
    fn of_too_many_the_newest_are_kept() {
        let mut events = CodeEvents::default();
        for key in 0..MAX_EVENTS as u64 + 1 {
            events.came(&one(key, "", ConstituentKind::Method));
        }
        assert_eq!(events.all().len(), MAX_EVENTS / 2 + 1);
        assert_eq!(events.forgotten(), MAX_EVENTS as u64 / 2);
    }
}
