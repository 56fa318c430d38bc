//! Why an adapter could not read its VM.

use vmscope_records::{Avma, Pid};

use crate::{MemoryError, SymbolError};

/// Why an adapter could not read its VM.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// The target is gone.
    #[error("process {pid} is gone")]
    Gone {
        /// Which it was.
        pid: Pid,
    },
    /// Memory could not be read.
    #[error("the VM's {what} can't be read")]
    Memory {
        /// What was read.
        what: &'static str,
        /// Why.
        #[source]
        source: MemoryError,
    },
    /// The symbols of one of its modules could not be looked up.
    #[error("the VM's symbols can't be looked up")]
    Symbols(#[from] SymbolError),
    /// A symbol that this adapter can't do without is not there (stripped, or
    /// another version).
    #[error("the VM has no symbol {name}")]
    MissingSymbol {
        /// Its name.
        name: String,
    },
    /// The VM's description of itself lacks something.
    #[error("the VM does not describe {name}")]
    MissingField {
        /// What is missing, as the VM would call it (`nmethod._state`).
        name: String,
    },
    /// A version that this adapter does not know how to read.
    #[error("{vm} {version} is not supported ({supported} is)")]
    UnsupportedVersion {
        /// The VM.
        vm: &'static str,
        /// The version it says it is.
        version: String,
        /// What is supported, in words.
        supported: &'static str,
    },
    /// A VM that runs the same programs and is built otherwise (a JVM that is not
    /// HotSpot): which it is, and why that matters.
    #[error("this is {vm}, which can't be read: {why}")]
    OtherVm {
        /// What it is, with its version where that is known.
        vm: String,
        /// Why it can't be read, in words.
        why: &'static str,
        /// What to do instead; empty where nothing helps.
        remedy: &'static str,
    },
    /// The VM has not got that far in its start.
    #[error("the VM's {what} is not set up yet")]
    NotReady {
        /// What is not.
        what: &'static str,
    },
    /// The VM is in the middle of changing it: [`crate::read_consistently`] tries
    /// again.
    #[error("the VM is changing its {what}")]
    Busy {
        /// What it changes.
        what: &'static str,
    },
    /// It kept changing while it was read.
    #[error("the VM's {what} changed during each of {attempts} attempts to read it")]
    Torn {
        /// What was read.
        what: &'static str,
        /// How often.
        attempts: u32,
    },
    /// What was read can't be.
    #[error("the VM's {what} can't be {value:#x} (at {at})")]
    Implausible {
        /// What was read.
        what: &'static str,
        /// Its value.
        value: u64,
        /// Where it was read.
        at: Avma,
    },
    /// There is more of it than is believed; also: a list that runs in a circle.
    #[error("more than {cap} of the VM's {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many are believed.
        cap: u64,
    },
    /// A file that the VM writes could not be read.
    #[error("{path} can't be read")]
    File {
        /// Its path.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl AdapterError {
    /// For `map_err` around the reading of `what`.
    pub fn reading(what: &'static str) -> impl Fn(MemoryError) -> AdapterError {
        move |source| match source {
            MemoryError::Gone { pid } => AdapterError::Gone { pid },
            source => AdapterError::Memory { what, source },
        }
    }

    /// Whether a further poll can't go better: the process is gone, its memory may
    /// not be read, or this is not a VM that the adapter can read.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            AdapterError::Gone { .. }
            | AdapterError::MissingSymbol { .. }
            | AdapterError::MissingField { .. }
            | AdapterError::UnsupportedVersion { .. }
            | AdapterError::OtherVm { .. } => true,
            AdapterError::Memory { source, .. } => source.is_final(),
            _ => false,
        }
    }

    /// What it is with its causes, in one line.
    #[must_use]
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            // A transparent error says what its cause says.
            if !text.ends_with(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        text
    }

    /// The one thing to do about it, for people; empty where nothing helps.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            AdapterError::Memory { source, .. } => source.remedy(),
            AdapterError::OtherVm { remedy, .. } => remedy,
            AdapterError::MissingSymbol { .. } => "use a build of the VM that is not stripped",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_its_causes_and_what_helps() {
        let pid = Pid(7);
        let denied = AdapterError::reading("code cache")(MemoryError::Denied { pid });
        assert_eq!(
            denied.in_full(),
            "the VM's code cache can't be read: reading the memory of process 7 is not permitted"
        );
        assert!(denied.remedy().contains("ptrace_scope") && denied.is_final());
        let other = AdapterError::OtherVm {
            vm: "Eclipse OpenJ9 0.48".to_owned(),
            why: "its structures are not HotSpot's",
            remedy: "run the program on a HotSpot JVM",
        };
        assert_eq!(
            other.in_full(),
            "this is Eclipse OpenJ9 0.48, which can't be read: its structures are not HotSpot's"
        );
        assert_eq!(other.remedy(), "run the program on a HotSpot JVM");
        assert!(other.is_final());
    }
}
