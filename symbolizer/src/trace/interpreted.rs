//! The address ranges of interpreters, and samples in them without a method.

use super::{Place, Trace};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{Avma, InterpreterRules, ProcessKey};

/// The most generations of forks between a process and its interpreter's rules.
const MAX_GENERATIONS: usize = 64;

/// The interpreters of each process. A forked process without own rules uses its parent's.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    rules_of: FxHashMap<ProcessKey, Arc<[InterpreterRules]>>,
    /// The parents of forked processes.
    parents: FxHashMap<ProcessKey, ProcessKey>,
}

impl Interpreters {
    pub fn new(trace: &Trace) -> Self {
        let mut rules_of: FxHashMap<ProcessKey, Vec<InterpreterRules>> = FxHashMap::default();
        for rules in trace.interpreters.values() {
            rules_of
                .entry(rules.process)
                .or_default()
                .push(rules.clone());
        }
        if rules_of.is_empty() {
            return Interpreters::default();
        }
        let forks = trace.processes.values();
        let forks = forks.filter(|process| trace.is_fork(process));
        Interpreters {
            rules_of: (rules_of.into_iter())
                .map(|(process, rules)| (process, rules.into()))
                .collect(),
            parents: forks
                .filter_map(|process| Some((process.key, process.parent?)))
                .collect(),
        }
    }

    /// The interpreter around `pc`.
    pub fn at(&self, process: ProcessKey, pc: Avma) -> Option<&InterpreterRules> {
        if self.rules_of.is_empty() {
            return None;
        }
        let mut process = process;
        for _ in 0..MAX_GENERATIONS {
            if let Some(rules) = self.rules_of.get(&process) {
                return rules.iter().find(|rules| rules.covers(pc));
            }
            process = *self.parents.get(&process)?;
        }
        None
    }
}

impl Trace {
    /// Whether a place shows an interpreted method.
    #[must_use]
    pub(crate) const fn shows_method(place: Place) -> bool {
        matches!(place, Place::Interpreted { .. } | Place::Entering { .. })
    }

    /// Whether a place shows a failed attempt to find the interpreted method: the place is still
    /// the interpreter's code.
    #[must_use]
    pub(crate) fn shows_no_method(&self, place: Place) -> bool {
        let Place::Code(code, offset) = place else {
            return false;
        };
        let code = self.constituent(code);
        let Some(pc) = code.start.0.checked_add(u64::from(offset)) else {
            return false;
        };
        let first = (code.process, String::new());
        let rules = self.interpreters.range(first..);
        let mut rules = rules.take_while(|((process, _), _)| *process == code.process);
        rules.any(|(_, rules)| rules.are_of_interpreter() && rules.covers(Avma(pc)))
    }
}
