//! The temps of a unit: arguments, copied values, then the others.

use super::bytecodes::InVector;
use super::tree::{Analysis, ScopeId, UnitId, VariableId};
use std::collections::HashMap;

/// What a temp holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    Variable(VariableId),
    /// The temp vector of a scope.
    Vector(ScopeId),
}

/// Where a variable's value is.
pub enum Location {
    Temp(usize),
    Vector(InVector),
}

/// The temps of a unit.
pub struct Frame {
    /// Names of the temps in order.
    pub names: Vec<String>,
    /// What a closure copies, in order.
    pub copied: Vec<Entry>,
    slots: HashMap<Entry, usize>,
}

impl Frame {
    /// The most temps of a frame.
    pub const MAX_TEMPS: usize = 63;

    /// Lays out the temps of a unit. `None`: there are too many.
    pub fn new(analysis: &Analysis, unit: UnitId) -> Option<Self> {
        let mut frame = Self {
            names: Vec::new(),
            copied: Vec::new(),
            slots: HashMap::new(),
        };
        let unit = &analysis.units[unit];
        for argument in &unit.arguments {
            frame.add(analysis, Entry::Variable(*argument));
        }
        for variable in &unit.outer_variables {
            let entry = entry_of(analysis, *variable);
            if frame.slot(entry).is_none() {
                frame.add(analysis, entry);
                frame.copied.push(entry);
            }
        }
        for scope in &unit.scopes {
            for variable in &analysis.scopes[*scope].variables {
                let entry = entry_of(analysis, *variable);
                if frame.slot(entry).is_none() {
                    frame.add(analysis, entry);
                }
            }
        }
        (frame.names.len() <= Self::MAX_TEMPS).then_some(frame)
    }

    fn add(&mut self, analysis: &Analysis, entry: Entry) {
        self.slots.insert(entry, self.names.len());
        self.names.push(match entry {
            Entry::Variable(variable) => analysis.variables[variable].name.clone(),
            Entry::Vector(_) => "<vector>".to_owned(),
        });
    }

    /// The temp that holds `entry`.
    pub fn slot(&self, entry: Entry) -> Option<usize> {
        self.slots.get(&entry).copied()
    }

    /// The temp that holds the vector of a scope, if it has one.
    pub fn vector(&self, scope: ScopeId) -> Option<usize> {
        self.slot(Entry::Vector(scope))
    }

    /// Where a variable's value is.
    pub fn location(&self, analysis: &Analysis, variable: VariableId) -> Option<Location> {
        let entry = entry_of(analysis, variable);
        let temp = self.slot(entry)?;
        match entry {
            Entry::Variable(_) => Some(Location::Temp(temp)),
            Entry::Vector(scope) => {
                let mut shared = analysis.shared_variables(scope);
                let index = shared.position(|shared| shared == variable)?;
                Some(Location::Vector(InVector {
                    index,
                    vector: temp,
                }))
            }
        }
    }
}

/// What a frame needs in order to reach a variable.
fn entry_of(analysis: &Analysis, variable: VariableId) -> Entry {
    if analysis.is_shared(variable) {
        Entry::Vector(analysis.variables[variable].scope)
    } else {
        Entry::Variable(variable)
    }
}
