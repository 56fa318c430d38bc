//! Recognition of V8 in Node.js.

use vmscope_process::{Adapter, AdapterError, AdapterFamily, Launch, ProcessView};

use crate::launch::obstacle;

/// V8 in Node.js.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family;

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "v8"
    }

    fn recognise(&self, _: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        Ok(None)
    }

    fn launch_obstacle(&self, launch: &Launch) -> Option<String> {
        obstacle(&launch.program)
    }
}
