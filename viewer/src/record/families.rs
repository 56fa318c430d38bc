//! The VMs that vmscope knows: one line for each family. Of the adapters of one address space, the first
//! that emits all code is the last that is polled: a VM's own words come first, then what is read from
//! outside, then files about it.

use vmscope_cog::Family as Cog;
use vmscope_hotspot::Family as HotSpot;
use vmscope_jitdump::Family as Jitdump;
use vmscope_jitdump::cleanup::{Cleanup, Journal, state_folder};
use vmscope_process::AdapterFamily;
use vmscope_publish_reader::{Family as Publish, LifetimeRate};

/// For attached processes, or commands launched without changes: whatever files its VM writes are
/// its user's.
pub(crate) fn attaching(lifetimes: Option<LifetimeRate>) -> Vec<Box<dyn AdapterFamily>> {
    vec![
        Box::new(Publish { lifetimes }),
        Box::new(HotSpot),
        Box::new(Cog),
        Box::new(Jitdump::attaching()),
    ]
}

/// For a command that vmscope starts, whose VM is to tell of its code.
pub(super) fn launching(lifetimes: Option<LifetimeRate>) -> Vec<Box<dyn AdapterFamily>> {
    vec![
        Box::new(Publish { lifetimes }),
        Box::new(HotSpot),
        Box::new(Cog),
        Box::new(Jitdump::launching(cleanup())),
    ]
}

/// What is left behind is cleaned up; what earlier runs could not clean up because they
/// were killed, first.
fn cleanup() -> Cleanup {
    let (state, home) = (std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"));
    let folder = state_folder(state.as_deref(), home.as_deref());
    Cleanup::new(folder.and_then(|folder| {
        Journal::sweep(&folder);
        // Without a journal, what a killed run leaves behind stays there.
        Journal::begin(&folder).ok()
    }))
}
