//! Where interpreters are, and which samples in them show no method.

use super::{Place, Trace};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{Avma, InterpreterRules, ProcessKey};

/// So many generations of forks are followed to the process that told of its interpreter.
const MAX_GENERATIONS: usize = 64;

/// The interpreters of each process; a forked one has those of its parent, as long as it
/// has none of its own.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    told: FxHashMap<ProcessKey, Arc<[InterpreterRules]>>,
    /// Of forked processes, their parents.
    parents: FxHashMap<ProcessKey, ProcessKey>,
}

impl Interpreters {
    pub fn new(trace: &Trace) -> Self {
        let mut told: FxHashMap<ProcessKey, Vec<InterpreterRules>> = FxHashMap::default();
        for rules in trace.interpreters.values() {
            told.entry(rules.process).or_default().push(rules.clone());
        }
        if told.is_empty() {
            return Interpreters::default();
        }
        let forks = trace.processes.values();
        let forks = forks.filter(|process| trace.is_fork(process));
        Interpreters {
            told: (told.into_iter())
                .map(|(process, rules)| (process, rules.into()))
                .collect(),
            parents: forks
                .filter_map(|process| Some((process.key, process.parent?)))
                .collect(),
        }
    }

    /// The interpreter that `pc` is in.
    pub fn at(&self, process: ProcessKey, pc: Avma) -> Option<&InterpreterRules> {
        if self.told.is_empty() {
            return None;
        }
        let mut process = process;
        for _ in 0..MAX_GENERATIONS {
            if let Some(told) = self.told.get(&process) {
                return told.iter().find(|rules| rules.covers(pc));
            }
            process = *self.parents.get(&process)?;
        }
        None
    }
}

impl Trace {
    /// Whether a place is an interpreter that told a method.
    #[must_use]
    pub(crate) const fn shows_method(place: Place) -> bool {
        matches!(place, Place::Interpreted { .. } | Place::Entering { .. })
    }

    /// Whether a place is in an interpreter that could have told a method and did not.
    /// The place of a sample is not any more where the interpreter is; its code is.
    #[must_use]
    pub(crate) fn shows_no_method(&self, place: Place) -> bool {
        let Place::Code(code, offset) = place else {
            return false;
        };
        let Some(code) = self.code.constituents.get(code as usize) else {
            return false;
        };
        let Some(pc) = code.start.0.checked_add(u64::from(offset)) else {
            return false;
        };
        let first = (code.process, String::new());
        let told = self.interpreters.range(first..);
        let mut told = told.take_while(|((process, _), _)| *process == code.process);
        told.any(|(_, rules)| rules.covers(Avma(pc)))
    }
}
