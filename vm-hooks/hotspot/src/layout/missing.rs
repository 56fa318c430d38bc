//! Fields missing from a JVM's tables, with the consequences; other fields stay in use.

use vmscope_process::AdapterError;

use super::{Scalar, VmStructs};

/// A missing optional field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Structure and field (`nmethod._state`).
    pub field: String,
    /// The consequence: missing data, in words.
    pub cost: &'static str,
}

impl Missing {
    /// Error of a search, and its consequence.
    #[must_use]
    pub fn of(error: &AdapterError, cost: &'static str) -> Self {
        let field = match error {
            AdapterError::MissingField { name } => name.clone(),
            other => other.to_string(),
        };
        Missing { field, cost }
    }

    /// All missing fields as sentences; fields with the same consequence share a sentence.
    #[must_use]
    pub fn told(all: &[Missing]) -> Vec<String> {
        let mut costs: Vec<&str> = all.iter().map(|one| one.cost).collect();
        costs.dedup();
        let sentence = |cost: &&str| {
            let same = all.iter().filter(|one| one.cost == *cost);
            let fields: Vec<&str> = same.map(|one| one.field.as_str()).collect();
            format!("this JVM does not describe {}: {cost}", fields.join(", "))
        };
        let mut told: Vec<String> = costs.iter().map(sentence).collect();
        told.sort();
        told.dedup();
        told
    }
}

/// Finds optional fields and collects the missing ones.
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

    /// Result of a search; `None` is stored with its consequence.
    pub fn or_none<T>(&mut self, found: Result<T, AdapterError>, cost: &'static str) -> Option<T> {
        found
            .map_err(|error| self.missing.push(Missing::of(&error, cost)))
            .ok()
    }

    /// A field; [`Scalar::ABSENT`] if missing.
    pub fn scalar(&mut self, structure: &str, name: &str, cost: &'static str) -> Scalar {
        let found = self.structs.scalar(structure, name);
        self.or_none(found, cost).unwrap_or(Scalar::ABSENT)
    }

    /// Size of a type; 0 if missing.
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
                "this JVM does not describe A._b, D._e: no lines",
                "this JVM does not describe A._c: no names"
            ]
        );
    }
}
