//! VM families, one line each. In an address space, the first adapter that emits all code is the last
//! that vmscope polls. The order: VMs that publish themselves, VMs read from outside, files about
//! VMs.

use clap::Args;
use clap::builder::PossibleValuesParser;
use vmscope_cog::Family as Cog;
use vmscope_hotspot::Family as HotSpot;
use vmscope_jitdump::Family as Jitdump;
use vmscope_jitdump::cleanup::{Cleanup, Journal, state_folder};
use vmscope_process::{AdapterFamily, FilesReason, Launch};
use vmscope_publish_reader::{Family as Publish, LifetimeRate};
use vmscope_v8::Family as V8;

/// Names of the families, as messages have them.
const NAMES: [&str; 5] = ["publish", "hotspot", "cog", "v8", "jitdump"];
const FILES: &str = "jitdump";

/// Which families may read a VM.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FamilyOptions {
    /// Read VMs with this adapter alone (v8: memory of Node.js; jitdump: files that VMs write)
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(NAMES))]
    adapter: Option<String>,
    /// Ask a running VM for the names of its JIT code: .NET 8 or later then writes a jitdump until vmscope ends
    #[arg(long)]
    ask_vm: bool,
}

impl FamilyOptions {
    fn allow(&self, name: &str) -> bool {
        self.adapter.as_deref().is_none_or(|only| only == name)
    }

    /// Families for attached processes, and for commands launched without changes. Files of such a VM
    /// belong to its user.
    pub fn attaching(&self, lifetimes: Option<LifetimeRate>) -> Vec<Box<dyn AdapterFamily>> {
        let mut families = self.readers_of_memory(lifetimes);
        if self.allow(FILES) {
            families.push(Box::new(match self.ask_vm {
                true => Jitdump::asking(),
                false => Jitdump::attaching(),
            }));
        }
        families
    }

    /// Families for a command that vmscope starts with requests for descriptions of code. If one of them
    /// can't read the command's VM, or the user prefers files, files describe V8 to the end:
    /// [`Launch::files`] gets the reason. A user's choice of another adapter leaves no files.
    pub(super) fn launching(
        &self,
        lifetimes: Option<LifetimeRate>,
        launch: &mut Launch,
    ) -> Vec<Box<dyn AdapterFamily>> {
        let mut families = self.readers_of_memory(lifetimes);
        if self.adapter.as_deref() == Some(FILES) {
            launch.files = Some(FilesReason::Asked);
        }
        if launch.files.is_none() && self.allow(FILES) {
            let obstacle = families.iter().find_map(|one| one.launch_obstacle(launch));
            launch.files = obstacle.map(FilesReason::Obstacle);
        }
        if launch.files.is_some() {
            families.retain(|family| family.name() != V8.name());
        }
        if self.allow(FILES) {
            families.push(Box::new(Jitdump::launching(cleanup())));
        }
        families
    }

    fn readers_of_memory(&self, lifetimes: Option<LifetimeRate>) -> Vec<Box<dyn AdapterFamily>> {
        let mut families: Vec<Box<dyn AdapterFamily>> = vec![
            Box::new(Publish { lifetimes }),
            Box::new(HotSpot),
            Box::new(Cog),
            Box::new(V8),
        ];
        families.retain(|family| self.allow(family.name()));
        families
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_can_be_chosen_by_its_name() {
        let all = FamilyOptions::default().attaching(None);
        let names: Vec<_> = all.iter().map(|family| family.name()).collect();
        assert_eq!(names, NAMES);
        for name in NAMES {
            let adapter = Some(name.to_owned());
            let chosen = FamilyOptions {
                adapter,
                ..FamilyOptions::default()
            }
            .attaching(None);
            let chosen: Vec<_> = chosen.iter().map(|family| family.name()).collect();
            assert_eq!(chosen, [name]);
        }
    }
}
