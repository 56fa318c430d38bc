//! Temps of a unit: arguments, copied values, then other temps.

use super::bytecodes::{InVector, Instruction};
use super::tree::{Analysis, ScopeId, UnitId, VariableId};
use std::collections::HashMap;

/// What a temp holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    Variable(VariableId),
    /// The temp vector of a scope.
    Vector(ScopeId),
}

/// Location of a variable's value.
pub enum Location {
    Temp(usize),
    Vector(InVector),
}

/// Instructions for reads and writes of a variable kind.
pub struct Access {
    pub temp: fn(usize) -> Instruction,
    pub in_vector: fn(InVector) -> Instruction,
    pub instance: fn(usize) -> Instruction,
    pub binding: fn(usize) -> Instruction,
}

pub const PUSH: Access = Access {
    temp: Instruction::PushTemp,
    in_vector: Instruction::PushInVector,
    instance: Instruction::PushReceiverVariable,
    binding: Instruction::PushLiteralVariable,
};

pub const POP_INTO: Access = Access {
    temp: Instruction::PopIntoTemp,
    in_vector: Instruction::PopInVector,
    instance: Instruction::PopIntoReceiverVariable,
    binding: Instruction::PopIntoLiteralVariable,
};

pub const STORE_INTO: Access = Access {
    temp: Instruction::StoreIntoTemp,
    in_vector: Instruction::StoreInVector,
    instance: Instruction::StoreIntoReceiverVariable,
    binding: Instruction::StoreIntoLiteralVariable,
};

/// The temps of a unit.
pub struct Frame {
    /// Names of the temps in order.
    pub names: Vec<String>,
    /// What a closure copies, in order.
    pub copied: Vec<Entry>,
    slots: HashMap<Entry, usize>,
}

impl Frame {
    /// Maximum number of temps of a frame.
    pub const MAX_TEMPS: usize = 63;

    /// Lays out the temps of a unit. `None`: too many temps.
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

    /// The temp with a scope's vector, if the scope has a vector.
    pub fn vector(&self, scope: ScopeId) -> Option<usize> {
        self.slot(Entry::Vector(scope))
    }

    /// Location of a variable's value.
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

/// The entry through which a frame reaches a variable.
fn entry_of(analysis: &Analysis, variable: VariableId) -> Entry {
    if analysis.is_shared(variable) {
        Entry::Vector(analysis.variables[variable].scope)
    } else {
        Entry::Variable(variable)
    }
}
