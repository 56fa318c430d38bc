//! Recognition of Cog VMs.

use vmscope_process::{Adapter, AdapterError, AdapterFamily, Launch, ProcessView, SampleNeeds};

use crate::{CogAdapter, Vm, interpreter};

/// Cog VMs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family;

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "cog"
    }

    /// Bytecodes of interpreted methods need registers, also in recordings without callers.
    fn launch_needs(&self, _: &Launch) -> SampleNeeds {
        interpreter::sample_needs()
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let vm = Vm::open(process)?;
        Ok(vm.map(|vm| Box::new(CogAdapter::new(vm)) as Box<dyn Adapter>))
    }
}
