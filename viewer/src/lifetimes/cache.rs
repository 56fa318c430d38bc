//! Lifetimes of a finished recording, read at the first request and shared by views.

use super::of_recording;
use crate::memory::MemoryOption;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::{Stop, Trace};

/// Reads the lifetimes; `None` after a stop, a sentence after a failure.
type Reading = dyn Fn(&Trace, &Stop) -> Option<Result<Lifetimes, String>> + Send + Sync;

/// Shared lifetimes. Without a source (a running process), there are none.
#[derive(Clone, Default)]
pub struct LifetimesCache {
    source: Option<Arc<Reading>>,
    cached: Arc<Mutex<Option<Arc<Lifetimes>>>>,
}

impl std::fmt::Debug for LifetimesCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LifetimesCache({})", self.has_source())
    }
}

impl LifetimesCache {
    /// Lifetimes of the recording at `path`.
    pub fn of_file(path: PathBuf, memory: MemoryOption) -> Self {
        Self::of(move |trace, stop| {
            let watch = |done: u64, all: u64| {
                stop.tell(done, all);
                match stop.is_stopped() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            let read = of_recording(trace, &path, memory, watch);
            read.map_err(|error| format!("{error:#}")).transpose()
        })
    }

    /// Lifetimes from another source.
    pub fn of(
        source: impl Fn(&Trace, &Stop) -> Option<Result<Lifetimes, String>> + Send + Sync + 'static,
    ) -> Self {
        LifetimesCache {
            source: Some(Arc::new(source)),
            cached: Arc::default(),
        }
    }

    /// Whether there can be lifetimes.
    pub fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Cached or newly read lifetimes, or a sentence after a failure; `None` after a stop.
    pub fn get(&self, trace: &Trace, stop: &Stop) -> Option<Result<Arc<Lifetimes>, String>> {
        // Concurrent callers wait and share the result.
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lifetimes) = &*cached {
            return Some(Ok(Arc::clone(lifetimes)));
        }
        Some(self.source.as_ref()?(trace, stop)?.map(|lifetimes| {
            let lifetimes = Arc::new(lifetimes);
            *cached = Some(Arc::clone(&lifetimes));
            lifetimes
        }))
    }
}
