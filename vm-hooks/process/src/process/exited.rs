//! Views of exited processes.

use std::sync::{Arc, RwLock};

use vmscope_records::{Avma, Pid};

use super::{ProcessView, Source};
use crate::{MapEntry, Memory, MemoryError};

/// No memory, even if another process has the same id now.
struct NoMemory {
    pid: Pid,
    pointer_bytes: usize,
}

impl Memory for NoMemory {
    fn read_partial(&self, _: Avma, _: &mut [u8]) -> Result<usize, MemoryError> {
        Err(MemoryError::Gone { pid: self.pid })
    }

    fn pointer_bytes(&self) -> usize {
        self.pointer_bytes
    }
}

impl ProcessView {
    /// An exited process with known mappings: no memory, and only kept files
    /// ([`ProcessView::keep`]).
    #[must_use]
    pub fn exited(pid: Pid, mut mappings: Vec<MapEntry>) -> Self {
        mappings.sort_by_key(|entry| entry.start);
        let memory = NoMemory {
            pid,
            pointer_bytes: 8,
        };
        Self::new(pid, Arc::new(memory), mappings, Source::Departed)
    }

    /// Sets the name (`comm`) and program path of an exited process.
    #[must_use]
    pub fn called(mut self, name: &str, program: &str) -> Self {
        name.clone_into(&mut self.name);
        program.clone_into(&mut self.program);
        self
    }

    /// Turns the view into one of an exited (or replaced) program: without memory, and without
    /// queries about its process id. Known data stays; file mappings from `told` are added for new
    /// paths.
    #[must_use]
    pub fn into_departed(mut self, told: impl Iterator<Item = MapEntry>) -> Self {
        let mut mappings = self.mappings().to_vec();
        for entry in told.filter(|entry| entry.path().is_some()) {
            if !mappings.iter().any(|known| known.path() == entry.path()) {
                mappings.push(entry);
            }
        }
        mappings.sort_by_key(|entry| entry.start);
        self.maps = RwLock::new(mappings.into());
        self.memory = Arc::new(NoMemory {
            pid: self.pid,
            pointer_bytes: self.memory.pointer_bytes(),
        });
        self.source = Source::Departed;
        self
    }
}
