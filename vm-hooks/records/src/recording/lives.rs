//! Kept processes, threads and constituents, and the selection of constituents that forked
//! processes inherit from ended ancestors.

use super::residents::CodePlace;
use crate::{
    Avma, Constituent, ConstituentGone, ConstituentMoved, GoneReason, Process, ProcessEnd,
    ProcessKey, Record, TimeNs, Unmapping,
};
use std::collections::{BTreeMap, HashMap, HashSet};

#[derive(Debug)]
pub(super) struct ProcessLife {
    pub process: Process,
    /// Whether it inherited mappings and code from its parent.
    pub forked: bool,
    pub end: Option<ProcessEnd>,
}

impl ProcessLife {
    /// The process it inherits from.
    fn heir_of(&self) -> Option<ProcessKey> {
        self.process.parent.filter(|_| self.forked)
    }

    /// Takes a forked process's inherited mappings away. The recording keeps copies of the mappings
    /// that the process still has.
    pub fn not_inherited(&self) -> Option<Record> {
        self.heir_of().map(|_| {
            Record::Unmapping(Unmapping {
                process: self.process.key,
                time: self.process.time,
                start: Avma(0),
                end: Avma(u64::MAX),
            })
        })
    }

    fn ended_before(&self, horizon: TimeNs) -> bool {
        self.end.as_ref().is_some_and(|end| end.time < horizon)
    }
}

#[derive(Debug)]
pub(super) struct ThreadLife {
    pub process: ProcessKey,
    pub records: Vec<Record>,
    pub ended: Option<TimeNs>,
}

#[derive(Debug)]
pub(super) struct CodeLife {
    pub constituent: Box<Constituent>,
    pub moves: Vec<ConstituentMoved>,
    pub gone: Option<ConstituentGone>,
    /// When newer code replaced it; before the horizon.
    pub replaced: Option<TimeNs>,
    /// Its place among the [`Residents`](super::residents::Residents).
    pub present_at: Option<CodePlace>,
}

impl CodeLife {
    pub fn new(constituent: Box<Constituent>) -> Self {
        CodeLife {
            constituent,
            moves: Vec::new(),
            gone: None,
            replaced: None,
            present_at: None,
        }
    }

    /// Approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        let one = &self.constituent;
        size_of::<Self>() + size_of::<Constituent>() + one.name.len() + one.map.heap_bytes()
    }

    /// Its end, recorded or by newer code. Inherited code outlives the code that replaced it.
    pub fn end(&self) -> Option<ConstituentGone> {
        let gone = self.gone.clone();
        let Some(time) = self.replaced else {
            return gone;
        };
        let replaced = ConstituentGone {
            key: self.constituent.key,
            last_seen: self.constituent.since,
            time,
            reason: GoneReason::Recycled,
        };
        Some(gone.filter(|gone| gone.time <= time).unwrap_or(replaced))
    }

    fn end_time(&self) -> Option<TimeNs> {
        let gone = self.gone.as_ref().map(|gone| gone.time);
        gone.into_iter().chain(self.replaced).min()
    }

    pub fn gone_before(&self, horizon: TimeNs) -> bool {
        self.end_time().is_some_and(|time| time < horizon)
    }

    /// Whether its last placement, of `time`, ended before it began.
    pub fn never_came(&self, time: TimeNs) -> bool {
        let is_last = self.moves.iter().all(|moved| moved.time <= time);
        is_last && self.gone.as_ref().is_some_and(|gone| gone.time <= time)
    }

    /// Whether the code existed at any of the ascending `times`.
    pub fn was_there(&self, times: &[TimeNs]) -> bool {
        has_any(times, self.constituent.since, self.end_time())
    }

    /// Drops moves before `horizon`, except those that determine the address at the horizon and at
    /// the ascending `times`.
    pub fn forget_moves(&mut self, horizon: TimeNs, times: &[TimeNs]) {
        let next = self.moves.iter().skip(1).map(|moved| Some(moved.time));
        let next: Vec<_> = next.chain([None]).collect();
        let mut next = next.into_iter();
        self.moves.retain(|moved| {
            let until = next.next().flatten();
            until.is_none_or(|until| until >= horizon) || has_any(times, moved.time, until)
        });
    }
}

/// Whether one of the ascending `times` lies in `[from, until)`.
fn has_any(times: &[TimeNs], from: TimeNs, until: Option<TimeNs>) -> bool {
    let first = times.get(times.partition_point(|&time| time < from));
    first.is_some_and(|&first| until.is_none_or(|until| first < until))
}

/// Processes that ended before the horizon, and the needed ones among them.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// All ended processes.
    pub all: HashSet<ProcessKey>,
    /// Ended processes with code (own or inherited) that others inherit.
    pub needed: HashSet<ProcessKey>,
    /// Number of such processes beyond the maximum.
    pub too_many: usize,
    /// Ascending times of forks with needed children, by parent.
    forks: HashMap<ProcessKey, Vec<TimeNs>>,
}

impl Departed {
    /// At most `most` of the processes that ended before `horizon` count as needed.
    pub fn of<'a>(
        processes: &BTreeMap<ProcessKey, ProcessLife>,
        code: impl Iterator<Item = &'a CodeLife>,
        horizon: TimeNs,
        most: usize,
    ) -> Self {
        let ended = (processes.iter()).filter(|(_, life)| life.ended_before(horizon));
        let mut departed = Departed {
            all: ended.map(|(key, _)| *key).collect(),
            ..Departed::default()
        };
        // Bottom-up from live processes: a parent's key precedes its child's.
        let mut heirs: HashSet<ProcessKey> = HashSet::new();
        for (key, life) in processes.iter().rev() {
            if departed.all.contains(key) && !heirs.contains(key) {
                continue;
            }
            if let Some(parent) = life.heir_of() {
                heirs.insert(parent);
                let times = departed.forks.entry(parent).or_default();
                times.push(life.process.time);
            }
        }
        if departed.forks.is_empty() {
            return departed;
        }
        for times in departed.forks.values_mut() {
            times.sort_unstable();
        }
        let mut givers: HashSet<ProcessKey> = (code)
            .filter(|life| departed.is_inherited(life))
            .map(|life| life.constituent.process)
            .collect();
        // Top-down: descendants pass on inherited code.
        for (key, life) in processes {
            if life
                .heir_of()
                .is_some_and(|parent| givers.contains(&parent))
            {
                givers.insert(*key);
            }
            if givers.contains(key) && heirs.contains(key) && departed.all.contains(key) {
                if departed.needed.len() < most {
                    departed.needed.insert(*key);
                } else {
                    departed.too_many += 1;
                }
            }
        }
        departed
    }

    /// Ascending times of forks with needed children.
    pub fn forks_of(&self, process: ProcessKey) -> &[TimeNs] {
        self.forks.get(&process).map_or(&[], Vec::as_slice)
    }

    /// Whether a needed process inherited the constituent.
    pub fn is_inherited(&self, life: &CodeLife) -> bool {
        life.was_there(self.forks_of(life.constituent.process))
    }

    /// Whether an ended process is not needed.
    pub fn is_forgotten(&self, process: ProcessKey) -> bool {
        self.all.contains(&process) && !self.needed.contains(&process)
    }
}
