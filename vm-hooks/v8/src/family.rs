//! Recognition of V8 in Node.js.

use vmscope_process::{Adapter, AdapterError, AdapterFamily, Launch, ProcessView, SampleNeeds};

use crate::interpreter::sample_needs;
use crate::launch::obstacle;
use crate::{V8, V8Adapter};

/// V8 in Node.js.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family;

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "v8"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let vm = V8::open(process)?;
        Ok(vm.map(|vm| Box::new(V8Adapter::new(vm)) as Box<dyn Adapter>))
    }

    fn launch_needs(&self, _launch: &Launch) -> SampleNeeds {
        sample_needs()
    }

    fn launch_obstacle(&self, launch: &Launch) -> Option<String> {
        obstacle(&launch.program)
    }
}
