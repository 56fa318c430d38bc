//! A module of a process, and why its symbols could not be looked up.

use vmscope_records::{Avma, ModuleState};

use crate::{ElfError, MapEntry};

/// A module of a process: one file and where it is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedModule {
    /// Its path as the target sees it; need not be UTF-8.
    pub path: Vec<u8>,
    /// Its mappings, in ascending order of addresses.
    pub mappings: Vec<MapEntry>,
}

impl LoadedModule {
    /// The last part of its path, for people: bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn file_name(&self) -> String {
        let last = self.path.rsplit(|byte| *byte == b'/').next();
        String::from_utf8_lossy(last.unwrap_or_default()).into_owned()
    }

    /// Its first address.
    #[must_use]
    pub fn start(&self) -> Avma {
        self.mappings.first().map_or(Avma(0), |first| first.start)
    }

    /// Whether code is mapped from it.
    #[must_use]
    pub fn has_code(&self) -> bool {
        self.mappings.iter().any(|mapping| mapping.executable)
    }
}

/// Why a module's symbols could not be looked up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// The file that is mapped could not be opened.
    #[error("the file of {path} can't be opened: {}", words(.state))]
    NotOpened {
        /// The module's path in the target.
        path: String,
        /// What became of it.
        state: ModuleState,
    },
    /// There are no files behind this view.
    #[error("the symbols of {path} are not known here: give the directory its binaries are below")]
    NoFiles {
        /// The module's path in the target.
        path: String,
    },
    /// Its mappings fit none of its segments.
    #[error("{path} is not mapped as its program headers say")]
    NoBias {
        /// The module's path in the target.
        path: String,
    },
    /// It is not ELF as it should be.
    #[error("the symbols of {path} can't be read")]
    Elf {
        /// The module's path in the target.
        path: String,
        /// What is wrong with it.
        #[source]
        source: ElfError,
    },
}

fn words(state: &ModuleState) -> String {
    match state {
        ModuleState::Deleted => "it was deleted".to_owned(),
        ModuleState::Replaced => "another file has its name now".to_owned(),
        ModuleState::Unreadable(why) => why.clone(),
        other => format!("{other:?}"),
    }
}
