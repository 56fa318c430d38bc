//! What a JVM's tables do not have: named, with what it costs, while the rest is used.

use vmscope_process::AdapterError;

use super::{Scalar, VmStructs};

/// A field that can be done without, and is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Structure and field (`nmethod._state`).
    pub field: String,
    /// What is not known for want of it, in words.
    pub cost: &'static str,
}

impl Missing {
    /// What a lookup failed with, and what that costs.
    #[must_use]
    pub fn of(error: &AdapterError, cost: &'static str) -> Self {
        let field = match error {
            AdapterError::MissingField { name } => name.clone(),
            other => other.to_string(),
        };
        Missing { field, cost }
    }

    /// All of them, as one sentence each: fields that cost the same stand together.
    #[must_use]
    pub fn told(all: &[Missing]) -> Vec<String> {
        let mut costs: Vec<&str> = all.iter().map(|one| one.cost).collect();
        costs.dedup();
        let sentence = |cost: &&str| {
            let same = all.iter().filter(|one| one.cost == *cost);
            let fields: Vec<&str> = same.map(|one| one.field.as_str()).collect();
            format!("this JVM does not tell {}: {cost}", fields.join(", "))
        };
        let mut told: Vec<String> = costs.iter().map(sentence).collect();
        told.sort();
        told.dedup();
        told
    }
}

/// Polls up fields that can be done without, and keeps in mind which are missing.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub structs: &'a VmStructs,
    pub missing: Vec<Missing>,
}

impl<'a> Wanted<'a> {
    pub fn new(structs: &'a VmStructs) -> Self {
        Wanted {
            structs,
            missing: Vec::new(),
        }
    }

    /// What was found; `None` is kept in mind with what it costs.
    pub fn or_none<T>(&mut self, found: Result<T, AdapterError>, cost: &'static str) -> Option<T> {
        found
            .map_err(|error| self.missing.push(Missing::of(&error, cost)))
            .ok()
    }

    /// A field; [`Scalar::ABSENT`] where it is missing.
    pub fn scalar(&mut self, structure: &str, name: &str, cost: &'static str) -> Scalar {
        let found = self.structs.scalar(structure, name);
        self.or_none(found, cost).unwrap_or(Scalar::ABSENT)
    }

    /// A type's size; 0 where it is missing.
    pub fn size_of(&mut self, name: &str, cost: &'static str) -> u64 {
        let found = self.structs.size_of(name);
        self.or_none(found, cost).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_the_same_is_told_in_one_sentence() {
        let one = |field: &str, cost| Missing {
            field: field.to_owned(),
            cost,
        };
        let all = [
            one("A._b", "no lines"),
            one("A._c", "no names"),
            one("D._e", "no lines"),
        ];
        assert_eq!(
            Missing::told(&all),
            [
                "this JVM does not tell A._b, D._e: no lines",
                "this JVM does not tell A._c: no names"
            ]
        );
    }
}
