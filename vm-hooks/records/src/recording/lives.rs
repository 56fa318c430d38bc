//! What is kept of a process, a thread and a constituent, and which of the latter are still
//! needed because a forked process has them of an ended ancestor.

use crate::{
    Constituent, ConstituentGone, ConstituentMoved, Process, ProcessEnd, ProcessKey, Record, TimeNs,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A process's life so far.
#[derive(Debug)]
pub(super) struct ProcessLife {
    pub process: Process,
    /// Whether it began with the mappings and the code of its parent.
    pub forked: bool,
    pub end: Option<ProcessEnd>,
}

impl ProcessLife {
    /// The process that it inherited from.
    fn heir_of(&self) -> Option<ProcessKey> {
        self.process.parent.filter(|_| self.forked)
    }

    fn ended_before(&self, horizon: TimeNs) -> bool {
        self.end.as_ref().is_some_and(|end| end.time < horizon)
    }
}

/// A thread's start and end.
#[derive(Debug)]
pub(super) struct ThreadLife {
    pub process: ProcessKey,
    pub records: Vec<Record>,
    pub ended: Option<TimeNs>,
}

/// A constituent's life so far.
#[derive(Debug)]
pub(super) struct CodeLife {
    pub constituent: Box<Constituent>,
    pub moves: Vec<ConstituentMoved>,
    pub gone: Option<ConstituentGone>,
}

impl CodeLife {
    pub fn new(constituent: Box<Constituent>) -> Self {
        let (moves, gone) = (Vec::new(), None);
        CodeLife {
            constituent,
            moves,
            gone,
        }
    }

    /// More is known of it. It was there since it was told first, at the place it had
    /// then.
    pub fn told_again(&mut self, constituent: Constituent) {
        let known = &mut *self.constituent;
        *known = Constituent {
            since: known.since,
            absent_at: known.absent_at,
            start: known.start,
            end: known.end,
            ..constituent
        };
    }

    /// About what it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let one = &self.constituent;
        size_of::<Self>() + size_of::<Constituent>() + one.name.len() + one.map.heap_bytes()
    }

    pub fn gone_before(&self, horizon: TimeNs) -> bool {
        self.gone.as_ref().is_some_and(|gone| gone.time < horizon)
    }

    /// Whether it was there at one of these times, which are ascending.
    pub fn was_there(&self, times: &[TimeNs]) -> bool {
        let until = self.gone.as_ref().map(|gone| gone.time);
        has_any(times, self.constituent.since, until)
    }

    /// Forgets moves before `horizon`, but for those that say where it was at the horizon
    /// and at `times`, which are ascending.
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

/// Whether one of `times`, which are ascending, is in `[from, until)`.
fn has_any(times: &[TimeNs], from: TimeNs, until: Option<TimeNs>) -> bool {
    let first = times.get(times.partition_point(|&time| time < from));
    first.is_some_and(|&first| until.is_none_or(|until| first < until))
}

/// Processes that ended before the time that matters, and what of them is needed
/// nevertheless.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// All that ended.
    pub all: HashSet<ProcessKey>,
    /// Those of them whose code, or whose ancestors' code, others have.
    pub needed: HashSet<ProcessKey>,
    /// How many more of those there are.
    pub too_many: usize,
    /// When a process handed its code on to another that is needed; ascending.
    forks: HashMap<ProcessKey, Vec<TimeNs>>,
}

impl Departed {
    /// Of the processes that ended before `horizon`, at most `most` are needed for
    /// their code.
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
        // Upwards from all that have not ended. A parent's key is before its child's.
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
        // Downwards: who hands on what it has of another.
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

    /// When a process handed its code on to another that is needed; ascending.
    pub fn forks_of(&self, process: ProcessKey) -> &[TimeNs] {
        self.forks.get(&process).map_or(&[], Vec::as_slice)
    }

    /// Whether a process that is needed has a constituent of its parent, or its
    /// parent's parent.
    pub fn is_inherited(&self, life: &CodeLife) -> bool {
        life.was_there(self.forks_of(life.constituent.process))
    }

    /// Whether nothing of a process is needed.
    pub fn is_forgotten(&self, process: ProcessKey) -> bool {
        self.all.contains(&process) && !self.needed.contains(&process)
    }
}
