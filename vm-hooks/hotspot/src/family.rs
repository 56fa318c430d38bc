//! Recognition of a HotSpot JVM, and its launch options.

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, EnvironmentChange, Launch, ProcessView, SampleNeeds,
};

use crate::adapter::HotSpotAdapter;
use crate::jvm::library_of;
use crate::other_jvm;
use crate::sample_needs::sample_needs;

/// HotSpot JVMs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family;

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "hotspot"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        if library_of(process).is_none() {
            return other_jvm::recognise(process).map_or(Ok(None), Err);
        }
        Ok(Some(Box::new(HotSpotAdapter::new())))
    }

    fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        if !launch.precise {
            return Vec::new();
        }
        vec![EnvironmentChange::Append {
            name: "JAVA_TOOL_OPTIONS".to_owned(),
            separator: " ".to_owned(),
            value: "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints".to_owned(),
        }]
    }

    fn launch_needs(&self, _launch: &Launch) -> SampleNeeds {
        sample_needs()
    }
}
