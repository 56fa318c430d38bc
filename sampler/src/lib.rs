//! Sampling engines and recording sessions.
//!
//! An [`Engine`] turns a live process into [`EngineEvent`]s in time order; [`kernel::KernelEngine`]
//! uses `perf_event_open`, [`in_vm::InVmEngine`] the sampler of a VM that links `vmscope-publish`.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "tests may fail by panicking"
    )
)]

pub mod code;
pub mod engine;
pub mod in_vm;
pub mod kernel;
pub mod launch;
pub mod priority;
mod proc;
pub mod rate;
pub mod session;
pub mod snapshot;
mod sys;

pub use code::{CodeError, CodeNow, CodeTable, read_code};
pub use engine::{
    Engine, EngineDescription, EngineError, EngineEvent, EngineState, RawMapping, RawSample,
    RawThreadEnd,
};
pub use in_vm::{InVmEngine, InVmOptions};
pub use kernel::{CallGraph, KernelEngine, KernelOptions, Opening, UserCallers};
pub use launch::{HeldCommand, LaunchError, RunningCommand};
pub use priority::{Favoured, Scheduling, promptly, raise_this_thread};
pub use rate::{RateError, SamplingRate};
pub use snapshot::{CoreEngine, Shutter, SnapshotEngine, ThreadState, thread_states};
