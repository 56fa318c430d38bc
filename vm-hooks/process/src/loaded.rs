//! Modules of a process, and failures of symbol lookup.

use vmscope_records::{Avma, ModuleState};

use crate::{ElfError, MapEntry};

/// A module of a process: one file with its mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedModule {
    /// Path as the target sees it; may be invalid UTF-8.
    pub path: Vec<u8>,
    /// Mappings in ascending order of addresses.
    pub mappings: Vec<MapEntry>,
}

impl LoadedModule {
    /// Last part of the path, for display; invalid UTF-8 is replaced.
    #[must_use]
    pub fn file_name(&self) -> String {
        let last = self.path.rsplit(|byte| *byte == b'/').next();
        String::from_utf8_lossy(last.unwrap_or_default()).into_owned()
    }

    /// Address of the file's first mapped byte, with the ELF header. A program may map later parts of the file once
    /// more, at lower addresses.
    #[must_use]
    pub fn start(&self) -> Avma {
        let first = self.mappings.iter().min_by_key(|mapping| mapping.offset);
        first.map_or(Avma(0), |first| first.start)
    }

    /// Bytes of executable mappings.
    #[must_use]
    pub fn code_bytes(&self) -> u64 {
        let code = self.mappings.iter().filter(|mapping| mapping.executable);
        code.map(|mapping| mapping.end.0.saturating_sub(mapping.start.0))
            .sum()
    }

    /// Whether a mapping is executable.
    #[must_use]
    pub fn has_code(&self) -> bool {
        self.mappings.iter().any(|mapping| mapping.executable)
    }
}

/// A failed symbol lookup in a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// Opening the mapped file failed.
    #[error("cannot open {path}: {}", words(.state))]
    NotOpened {
        /// Path in the target.
        path: String,
        /// State of the file.
        state: ModuleState,
    },
    /// The view has no files.
    #[error("the symbols of {path} are unknown on this machine: give the folder of its binaries")]
    NoFiles {
        /// Path in the target.
        path: String,
    },
    /// No segment fits the mappings.
    #[error("the mapping of {path} contradicts its program headers")]
    NoBias {
        /// Path in the target.
        path: String,
    },
    /// Malformed ELF.
    #[error("cannot read the symbols of {path}")]
    Elf {
        /// Path in the target.
        path: String,
        /// The ELF error.
        #[source]
        source: ElfError,
    },
}

fn words(state: &ModuleState) -> String {
    match state {
        ModuleState::Deleted => "the file was deleted".to_owned(),
        ModuleState::Replaced => "the file was replaced".to_owned(),
        ModuleState::Unreadable(why) => why.clone(),
        other => format!("{other:?}"),
    }
}
