//! Recognition of Cog VMs.

use vmscope_process::{Adapter, AdapterError, AdapterFamily, ProcessView};

use crate::{CogAdapter, Vm};

/// Cog VMs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family;

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "cog"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let vm = Vm::open(process)?;
        Ok(vm.map(|vm| Box::new(CogAdapter::new(vm)) as Box<dyn Adapter>))
    }
}
