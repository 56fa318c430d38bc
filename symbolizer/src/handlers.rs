//! Samples by interpreter routine: the handlers of bytecodes, and the interpreter's other code.
//! VMProfiler's interpreter report lists the same for the labels of its interpreter.

use crate::profile::Profile;
use crate::summary::Filter;
use crate::time_buckets::{Stop, by_place};
use crate::trace::Place;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vmscope_records::ConstituentKind;

/// An interpreter routine with samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler<'p> {
    /// Its name, which begins with the bytecode's name.
    pub name: &'p str,
    /// Samples, whether or not their method is known.
    pub samples: u64,
}

/// Routines of all interpreters that name their routines, most samples first; `None` if `stop` came first.
#[must_use]
pub fn handlers<'p>(
    profile: &'p Profile,
    filter: &Filter,
    stop: &Stop,
) -> Option<Vec<Handler<'p>>> {
    let counts = by_place(profile, filter, stop)?;
    let mut by_name: FxHashMap<&str, u64> = FxHashMap::default();
    for (place, &samples) in profile.trace.places.iter().zip(&counts) {
        let code = match *place {
            Place::Code(code, _) => code,
            Place::Interpreted { handler, .. } | Place::Entering { handler, .. } => handler,
            _ => continue,
        };
        let routine = profile.trace.constituent(code);
        if samples > 0 && routine.kind == ConstituentKind::Interpreter {
            *by_name.entry(&routine.name).or_default() += u64::from(samples);
        }
    }
    let handlers = by_name.into_iter();
    let mut handlers: Vec<_> = handlers
        .map(|(name, samples)| Handler { name, samples })
        .collect();
    handlers.sort_by_key(|handler| (Reverse(handler.samples), handler.name));
    Some(handlers)
}
