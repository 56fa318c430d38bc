//! Errors of adapters.

use vmscope_records::{Avma, Pid};

use crate::{MemoryError, SymbolError};

/// An adapter's failure to read its VM.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// The target process exited.
    #[error("process {pid} has ended")]
    Gone {
        /// The process.
        pid: Pid,
    },
    /// A memory read failed.
    #[error("cannot read the VM's {what}")]
    Memory {
        /// The structure.
        what: &'static str,
        /// The reason.
        #[source]
        source: MemoryError,
    },
    /// Symbol lookup in a module failed.
    #[error("cannot read the VM's symbols")]
    Symbols(#[from] SymbolError),
    /// A required symbol is missing (stripped binary or another version).
    #[error("the VM has no symbol {name}")]
    MissingSymbol {
        /// Its name.
        name: String,
    },
    /// The VM's self-description lacks an entry.
    #[error("the VM does not describe {name}")]
    MissingField {
        /// Missing entry, named like the VM names it (`nmethod._state`).
        name: String,
    },
    /// A VM for the same programs with another implementation (a JVM other than HotSpot), or of a version
    /// that the adapter does not know.
    #[error("cannot read {vm}: {why}")]
    OtherVm {
        /// VM name, with version if known.
        vm: String,
        /// The reason, in words.
        why: &'static str,
        /// Remedy; empty if none.
        remedy: &'static str,
    },
    /// The VM is still starting.
    #[error("the VM's {what} is not set up yet")]
    NotReady {
        /// The missing structure.
        what: &'static str,
    },
    /// The VM is changing the structure; [`crate::read_consistently`] retries.
    #[error("the VM is changing its {what}")]
    Busy {
        /// The structure.
        what: &'static str,
    },
    /// The structure changed during each read.
    #[error("the VM's {what} changed during each of {attempts} attempts to read it")]
    Torn {
        /// The structure.
        what: &'static str,
        /// Number of reads.
        attempts: u32,
    },
    /// An impossible value.
    #[error("the VM's {what} has the impossible value {value:#x} (at {at})")]
    Implausible {
        /// The structure.
        what: &'static str,
        /// Its value.
        value: u64,
        /// Its address.
        at: Avma,
    },
    /// A structure that contradicts itself.
    #[error("the VM's {what} is damaged (at {at}): {why}")]
    Damaged {
        /// The structure.
        what: &'static str,
        /// The contradiction, in words.
        why: String,
        /// Its address.
        at: Avma,
    },
    /// Too many entries, or a circular list.
    #[error("the VM's {what}: more than {cap} entries")]
    TooMany {
        /// The entries.
        what: &'static str,
        /// Maximum number.
        cap: u64,
    },
    /// Reading a VM's file failed.
    #[error("cannot read {path}")]
    File {
        /// Its path.
        path: String,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
}

impl AdapterError {
    /// For `map_err` after a read of `what`.
    pub fn reading(what: &'static str) -> impl Fn(MemoryError) -> AdapterError {
        move |source| match source {
            MemoryError::Gone { pid } => AdapterError::Gone { pid },
            source => AdapterError::Memory { what, source },
        }
    }

    /// Whether further polls must fail too: the process exited, denies access to its memory, or
    /// runs an unsupported VM.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            AdapterError::Gone { .. }
            | AdapterError::MissingSymbol { .. }
            | AdapterError::MissingField { .. }
            | AdapterError::OtherVm { .. } => true,
            AdapterError::Memory { source, .. } => source.is_final(),
            _ => false,
        }
    }

    /// One line: the message with its causes.
    #[must_use]
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            // A transparent error repeats its cause.
            if !text.ends_with(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        text
    }

    /// Remedy for the user; empty if none.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            AdapterError::Memory { source, .. } => source.remedy(),
            AdapterError::OtherVm { remedy, .. } => remedy,
            AdapterError::MissingSymbol { .. } => "use an unstripped build of the VM",
            _ => "",
        }
    }
}

/// A value that was read, or `None` if it can't be read.
///
/// # Errors
/// Errors after which no read can succeed ([`AdapterError::is_final`]).
pub fn known<T>(read: Result<T, AdapterError>) -> Result<Option<T>, AdapterError> {
    match read {
        Err(error) if error.is_final() => Err(error),
        other => Ok(other.ok()),
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
            "cannot read the VM's code cache: no permission to read the memory of process 7"
        );
        assert!(denied.remedy().contains("ptrace_scope") && denied.is_final());
        let other = AdapterError::OtherVm {
            vm: "Eclipse OpenJ9 0.48".to_owned(),
            why: "its structures are not HotSpot's",
            remedy: "run the program on a HotSpot JVM",
        };
        assert_eq!(
            other.in_full(),
            "cannot read Eclipse OpenJ9 0.48: its structures are not HotSpot's"
        );
        assert_eq!(other.remedy(), "run the program on a HotSpot JVM");
        assert!(other.is_final());
    }
}
