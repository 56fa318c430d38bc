//! VM families, one line each. In an address space, the first adapter that emits all code is the last
//! that vmscope polls. The order: VMs that publish themselves, VMs read from outside, files about
//! VMs.

use vmscope_cog::Family as Cog;
use vmscope_hotspot::Family as HotSpot;
use vmscope_jitdump::Family as Jitdump;
use vmscope_jitdump::cleanup::{Cleanup, Journal, state_folder};
use vmscope_process::AdapterFamily;
use vmscope_publish_reader::{Family as Publish, LifetimeRate};
use vmscope_v8::Family as V8;

/// Families for attached processes, and for commands launched without changes. Files of such a VM
/// belong to its user.
pub(crate) fn attaching(lifetimes: Option<LifetimeRate>) -> Vec<Box<dyn AdapterFamily>> {
    vec![
        Box::new(Publish { lifetimes }),
        Box::new(HotSpot),
        Box::new(Cog),
        Box::new(V8),
        Box::new(Jitdump::attaching()),
    ]
}

/// Families for a command that vmscope starts with requests for descriptions of code.
pub(super) fn launching(lifetimes: Option<LifetimeRate>) -> Vec<Box<dyn AdapterFamily>> {
    vec![
        Box::new(Publish { lifetimes }),
        Box::new(HotSpot),
        Box::new(Cog),
        Box::new(V8),
        Box::new(Jitdump::launching(cleanup())),
    ]
}

/// Cleanup of leftover files, after a sweep of files from killed earlier runs.
fn cleanup() -> Cleanup {
    let (state, home) = (std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"));
    let folder = state_folder(state.as_deref(), home.as_deref());
    Cleanup::new(folder.and_then(|folder| {
        Journal::sweep(&folder);
        // Without a journal, files of a killed run stay.
        Journal::begin(&folder).ok()
    }))
}
