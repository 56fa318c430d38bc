//! The view of a process that is over.

use std::sync::{Arc, RwLock};

use vmscope_records::{Avma, Pid};

use super::{ProcessView, Source};
use crate::{MapEntry, Memory, MemoryError};

/// The memory of a process that is over: none, also when its number is another
/// process's by now.
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
    /// A process that is gone already, of which only is known what was mapped into it
    /// while it ran: there is no memory, and of its files there are those that were
    /// kept ([`ProcessView::keep`]).
    #[must_use]
    pub fn exited(pid: Pid, mut mappings: Vec<MapEntry>) -> Self {
        mappings.sort_by_key(|entry| entry.start);
        let memory = NoMemory {
            pid,
            pointer_bytes: 8,
        };
        Self::new(pid, Arc::new(memory), mappings, Source::Departed)
    }

    /// The same view, of a process whose name (`comm`) and program's path are known
    /// otherwise.
    #[must_use]
    pub fn called(mut self, name: &str, program: &str) -> Self {
        name.clone_into(&mut self.name);
        program.clone_into(&mut self.program);
        self
    }

    /// The same view, now that its process is over or runs another program: it has no
    /// memory any more, and nothing is asked of whatever process has its number. What
    /// is known by now stays; `told` are mappings that it had, of which those of files
    /// are added that are not known yet.
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
