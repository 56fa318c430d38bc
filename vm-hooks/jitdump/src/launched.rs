//! State shared by the family and its adapters about a command that vmscope started.

use std::sync::{Mutex, MutexGuard, PoisonError};

use vmscope_process::{Environment, ProcessView};
use vmscope_records::LimitKind;

use crate::attribution::{Attribution, FileRequests};
use crate::cleanup::Cleanup;
use crate::vm::VmKind;

/// Requests of vmscope to the command that it started.
#[derive(Debug)]
pub(crate) struct Launched {
    cleanup: Cleanup,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub folder: Vec<u8>,
    pub requests: FileRequests,
    pub limits: Vec<(LimitKind, String, &'static str)>,
}

impl Launched {
    pub fn new(cleanup: Cleanup) -> Self {
        Launched {
            cleanup,
            state: Mutex::default(),
        }
    }

    pub fn cleanup(&self) -> &Cleanup {
        &self.cleanup
    }

    /// Limits of turning the files on, once.
    pub fn take_limits(&self) -> Vec<(LimitKind, String, &'static str)> {
        std::mem::take(&mut self.state().limits)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which files of a process that was just recognised are ours, as the journal is
    /// told, too.
    pub fn attribution(
        &self,
        kind: VmKind,
        process: &ProcessView,
        given: Option<&Environment>,
    ) -> Attribution {
        let attribution = self.state().requests.of(kind, process, given);
        if process.is_live() {
            self.cleanup.note_process(process, attribution);
        }
        attribution
    }
}
