//! The family: which processes get an adapter, and what `record` turns on for them.

mod whose;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, Environment, EnvironmentChange, Launch, ProcessView,
};
use vmscope_records::{Pid, TimeNs, VmIdentity};

use crate::adapter::{FileAdapter, Origin, now};
use crate::find::{self, DumpMarker, PERF_MAP_FOLDER};
use crate::follow::FileError;
use crate::launch::{launch_environment, launch_hint};
use crate::litter::Litter;
use crate::vm::{self, Vm, VmKind};

pub(crate) use whose::Ours;
use whose::Wishes;

/// VMs that describe their code in jitdump files or perf maps.
#[derive(Debug)]
pub struct Family {
    launched: Option<Arc<Launched>>,
    /// What was over before that is not asked for: when the recording began.
    tell_from: TimeNs,
}

impl Family {
    /// For processes that run already: their files are their user's, and are left where
    /// they are.
    #[must_use]
    pub fn attaching() -> Self {
        Family {
            launched: None,
            tell_from: now(),
        }
    }

    /// For a command that is to be started, with its VM's files turned on; those are
    /// cleaned up through `litter`.
    #[must_use]
    pub fn launching(litter: Litter) -> Self {
        Family {
            launched: Some(Arc::new(Launched {
                litter,
                state: Mutex::default(),
            })),
            tell_from: TimeNs(0),
        }
    }
}

/// What vmscope has turned on in the command that it started.
#[derive(Debug)]
pub(crate) struct Launched {
    litter: Litter,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    folder: Vec<u8>,
    wishes: Wishes,
    said: Vec<(String, &'static str)>,
}

impl Launched {
    pub fn litter(&self) -> &Litter {
        &self.litter
    }

    /// What there is to say about how it was turned on, once.
    pub fn take_said(&self) -> Vec<(String, &'static str)> {
        std::mem::take(&mut self.state().said)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which files of a process that was just recognised are ours, as the journal is
    /// told, too.
    fn whose(&self, kind: VmKind, process: &ProcessView, given: Option<&Environment>) -> Ours {
        let ours = self.state().wishes.of(kind, process, given);
        if process.is_live() {
            self.litter.is_seen(process, ours);
        }
        ours
    }
}

/// Whether a change to the environment, whose variable holds `old`, has an effect.
fn takes_effect(change: &EnvironmentChange, old: Option<&OsString>) -> bool {
    match change {
        EnvironmentChange::SetDefault { .. } => old.is_none(),
        EnvironmentChange::Append { .. } => {
            !old.is_some_and(|old| whose::asks(&old.to_string_lossy()))
        }
    }
}

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "jitdump"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let launched = self.launched.as_deref();
        let mut environment = None;
        if let Some(launched) = launched
            && process.is_live()
        {
            environment = process.environment().ok();
            let wishes = &mut launched.state().wishes;
            wishes.note(process, environment.as_ref());
        }
        let vm = match vm::recognise(process) {
            Some(vm) => vm,
            None if has_files(process) => unknown(process),
            None => return Ok(None),
        };
        let origin = Origin {
            ours: launched.map_or_else(Ours::default, |launched| {
                launched.whose(vm.kind, process, environment.as_ref())
            }),
            launched: self.launched.clone(),
            map_folder: find::perf_map_folder(vm.kind, process, environment),
        };
        let adapter = FileAdapter::new(vm, origin, self.tell_from);
        Ok(Some(Box::new(adapter)))
    }

    fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        let Some(launched) = &self.launched else {
            return Vec::new();
        };
        let changes: Vec<EnvironmentChange> =
            launch_environment(&launch.command, launch.folder_is_writable)
                .into_iter()
                .filter(|change| takes_effect(change, std::env::var_os(name_of(change)).as_ref()))
                .collect();
        let mut state = launched.state();
        state.folder = launch.folder.as_os_str().as_bytes().to_vec();
        state.wishes = Wishes::new(&changes, |name| std::env::var_os(name), &launch.command);
        if !launch.folder_is_writable && state.wishes.kinds().any(|kind| kind == VmKind::V8) {
            let text = format!(
                "V8 can't write its dump into {}, so it writes a perf map: there are no source \
                 lines, and code is known from when it was first seen on",
                launch.folder.display()
            );
            state
                .said
                .push((text, "a working folder that can be written to"));
        }
        if let Some(hint) = launch_hint(&launch.command) {
            let text = "the VM can't be told through the environment to name its code";
            state.said.push((text.to_owned(), hint));
        }
        changes
    }

    fn launched(&self, pid: Pid) {
        if let Some(launched) = &self.launched {
            let state = launched.state();
            if state.wishes.are_all_ours() {
                launched.litter.launched(pid.0, &state.folder);
            }
        }
    }

    fn recording_over(&self) {
        if let Some(launched) = &self.launched {
            launched.litter.finish();
        }
    }
}

/// Whether a process of no known VM writes such files all the same, or seems to: of a
/// map that is not believed the adapter says so. (A stale one is told of nobody: any
/// process may get the number of an earlier VM.)
fn has_files(process: &ProcessView) -> bool {
    let own = |marker: &DumpMarker| marker.is_of(process);
    if find::dump_markers(process).iter().any(own) {
        return true;
    }
    match find::open_perf_map(process, PERF_MAP_FOLDER, VmKind::Other) {
        Ok(map) => map.is_some(),
        Err(error) => process.is_live() && is_worth_saying(&error),
    }
}

fn is_worth_saying(error: &FileError) -> bool {
    matches!(
        error,
        FileError::NotAFile { .. } | FileError::NotTheTargets { .. }
    )
}

fn unknown(process: &ProcessView) -> Vm {
    Vm {
        kind: VmKind::Other,
        identity: VmIdentity {
            kind: process.name().to_owned(),
            version: String::new(),
        },
        rules: Vec::new(),
    }
}

fn name_of(change: &EnvironmentChange) -> &str {
    match change {
        EnvironmentChange::SetDefault { name, .. } | EnvironmentChange::Append { name, .. } => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_vms_map_that_is_not_believed_is_said() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = ProcessView::open(Pid(child.id())).unwrap();
        let map = format!("/tmp/perf-{}.map", child.id());
        assert!(!has_files(&process));
        std::os::unix::fs::symlink("/etc/passwd", &map).unwrap();
        let has = has_files(&process);
        std::fs::remove_file(&map).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has, "nobody says that it is a link");
    }
}
