//! Chooses the sampling engine: the requested engine, or else the first working engine.

use anyhow::Result;
use std::sync::Arc;
use vmscope_publish_reader::open;
use vmscope_records::Pid;
use vmscope_sampler::session::Readers;
use vmscope_sampler::{
    Engine, EngineError, HeldCommand, InVmEngine, InVmOptions, KernelEngine, Opening,
};

use super::options::EngineChoice;
use super::{SamplingOptions, explain};
use crate::print::say;

/// An engine, ready for sampling.
pub struct ChosenEngine {
    pub engine: Box<dyn Engine>,
    /// Reason for a default choice; empty for a requested engine.
    pub(super) reason: String,
    /// Samples include stack copies, in which the session finds callers.
    pub(super) copies_stacks: bool,
}

impl ChosenEngine {
    /// Attaches an engine to running processes.
    pub(super) fn attach(
        pids: &[Pid],
        options: &SamplingOptions,
        readers: &Readers,
        opening: Arc<Opening>,
    ) -> Result<Self> {
        if options.engine == EngineChoice::InVm {
            let engine = InVmEngine::attach(pids, &options.in_vm_options()?)?;
            return Ok(Self::in_vm(engine, ""));
        }
        let kernel = options.kernel_options(readers, opening)?;
        match KernelEngine::attach(pids, &kernel) {
            Ok(engine) => Ok(Self::kernel(engine, options)),
            Err(error) if options.engine == EngineChoice::Auto && is_about_perf(&error) => {
                let Ok(in_vm) = InVmEngine::attach(pids, &options.in_vm_options()?) else {
                    return Err(explain(error));
                };
                let why = format!("perf events can't be had: {error}");
                say(&format!(
                    "the VM's own sampler is used (--engine in-vm), as {why}"
                ));
                let in_vm = in_vm.instead_of_kernel(&why);
                Ok(Self::in_vm(in_vm, &why))
            }
            Err(error) => Err(explain(error)),
        }
    }

    /// Attaches an engine to a held command.
    pub(super) fn follow(
        held: &HeldCommand,
        options: &SamplingOptions,
        readers: &Readers,
    ) -> Result<Self> {
        if options.engine == EngineChoice::InVm {
            let engine = InVmEngine::follow(held, &options.in_vm_options()?)?;
            return Ok(Self::in_vm(engine, ""));
        }
        let kernel = options.kernel_options(readers, Arc::default())?;
        let engine = KernelEngine::follow(held, &kernel).map_err(explain)?;
        Ok(Self::kernel(engine, options))
    }

    fn kernel(engine: KernelEngine, options: &SamplingOptions) -> Self {
        let reason = match options.engine {
            EngineChoice::Auto => "the first that works",
            _ => "",
        };
        ChosenEngine {
            engine: Box::new(engine),
            reason: reason.to_owned(),
            copies_stacks: true,
        }
    }

    fn in_vm(engine: InVmEngine, reason: &str) -> Self {
        ChosenEngine {
            engine: Box::new(engine),
            reason: reason.to_owned(),
            copies_stacks: false,
        }
    }
}

impl std::fmt::Debug for ChosenEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChosenEngine")
            .field("engine", &self.engine.description().name)
            .finish_non_exhaustive()
    }
}

/// Whether the machine, not the target, forbids the kernel engine.
fn is_about_perf(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Forbidden { .. }
            | EngineError::TooFewDescriptors { .. }
            | EngineError::LockedMemory { .. }
            | EngineError::Syscall { .. }
    )
}

impl SamplingOptions {
    /// Options of the in-VM engine.
    fn in_vm_options(&self) -> Result<InVmOptions> {
        Ok(InVmOptions {
            rate: self.rate()?,
            callers: self.asks_callers().then_some(self.max_depth),
            open,
        })
    }
}
