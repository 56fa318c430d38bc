//! The family: recognition of processes, and environment changes by `record`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, Environment, EnvironmentChange, FilesReason, Launch,
    ProcessView,
};
use vmscope_records::{LimitKind, Pid, TimeNs, VmIdentity};

use crate::adapter::{FileAdapter, FileOrigin, now};
use crate::attribution::{self, Attribution, FileRequests, name_of};
use crate::cleanup::Cleanup;
use crate::diagnostic_port::Reporting;
use crate::find::{self, DumpMarker, PERF_MAP_FOLDER};
use crate::follow::FileError;
use crate::launch::{MONO_FRAME_POINTERS, launch_environment, launch_hint};
use crate::launched::Launched;
use crate::vm::{self, Vm, VmKind};

/// VMs that describe their code in jitdump files or perf maps.
#[derive(Debug)]
pub struct Family {
    launched: Option<Arc<Launched>>,
    /// VMs that can begin to write files while they run are asked to do so.
    asks: bool,
    /// Code gone before this time (the recording's start) is skipped.
    emit_from: TimeNs,
}

impl Family {
    /// For running processes: files belong to the user and stay.
    #[must_use]
    pub fn attaching() -> Self {
        Family {
            launched: None,
            asks: false,
            emit_from: now(),
        }
    }

    /// For running processes whose VMs shall begin to write files, until the recording ends; these files are removed.
    #[must_use]
    pub fn asking() -> Self {
        Family {
            asks: true,
            ..Family::attaching()
        }
    }

    /// For a command to be started, with its VM's files requested; `cleanup` removes them.
    #[must_use]
    pub fn launching(cleanup: Cleanup) -> Self {
        Family {
            launched: Some(Arc::new(Launched::new(cleanup))),
            asks: false,
            emit_from: TimeNs(0),
        }
    }
}

/// Whether a change to the environment, whose variable holds `old`, has an effect.
fn takes_effect(change: &EnvironmentChange, old: Option<&OsString>) -> bool {
    match change {
        EnvironmentChange::SetDefault { .. } => old.is_none(),
        EnvironmentChange::Append { .. } => {
            !old.is_some_and(|old| attribution::asks_for_files(&old.to_string_lossy()))
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
            let requests = &mut launched.state().requests;
            requests.note(process, environment.as_ref());
        }
        let vm = match vm::recognise(process) {
            Some(vm) => vm,
            None if has_files(process) => unknown(process),
            None => return Ok(None),
        };
        if vm.kind == VmKind::Mono && environment.is_none() {
            environment = process.environment().ok();
        }
        let omits_frame_pointers =
            vm.kind == VmKind::Mono && !mono_keeps_frame_pointers(environment.as_ref());
        // Files that the VM writes already are its user's.
        let writes = || {
            let mut dumps = find::dump_markers(process).into_iter();
            dumps.any(|marker| !marker.mapping.is_marked_deleted()) || has_perf_map(process)
        };
        let asks = self.asks && vm.kind == VmKind::DotNet && process.is_live() && !writes();
        let origin = FileOrigin {
            omits_frame_pointers,
            attribution: launched.map_or_else(Attribution::default, |launched| {
                launched.attribution(vm.kind, process, environment.as_ref())
            }),
            asked: asks
                .then(|| Reporting::begin(process, &find::temporary_folder(process)))
                .and_then(Result::transpose),
            launched: self.launched.clone(),
            map_folder: find::perf_map_folder(vm.kind, process, environment),
        };
        let adapter = FileAdapter::new(vm, origin, self.emit_from);
        Ok(Some(Box::new(adapter)))
    }

    fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        let Some(launched) = &self.launched else {
            return Vec::new();
        };
        let changes: Vec<EnvironmentChange> = launch_environment(launch)
            .into_iter()
            .filter(|change| takes_effect(change, std::env::var_os(name_of(change)).as_ref()))
            .collect();
        let mut state = launched.state();
        // Asked twice with `--precise`.
        state.limits.clear();
        state.folder = launch.folder.as_os_str().as_bytes().to_vec();
        state.requests =
            FileRequests::new(&changes, |name| std::env::var_os(name), &launch.command);
        if let Some(FilesReason::Obstacle(why)) = &launch.files {
            let text = format!("{why}: its code is known by a file that it writes");
            let limit = (LimitKind::AdapterIncomplete, text, "");
            state.limits.push(limit);
        }
        if !launch.folder_is_writable && state.requests.kinds().any(|kind| kind == VmKind::V8) {
            let text = format!(
                "V8 cannot write a jitdump into {} and writes a perf map instead: no lines; code \
                 is known from its first observation",
                launch.folder.display()
            );
            let remedy = "start the command in a writable folder";
            let limit = (LimitKind::AdapterIncomplete, text, remedy);
            state.limits.push(limit);
        }
        if let Some(hint) = launch_hint(&launch.command) {
            let text = "this VM has no environment variable that makes it write names of JIT code";
            let limit = (LimitKind::NoNames, text.to_owned(), hint);
            state.limits.push(limit);
        }
        changes
    }

    fn launched(&self, pid: Pid) {
        if let Some(launched) = &self.launched {
            let state = launched.state();
            if state.requests.are_all_ours() {
                launched.cleanup().launched(pid.0, &state.folder);
            }
        }
    }

    fn recording_over(&self) {
        if let Some(launched) = &self.launched {
            launched.cleanup().finish();
        }
    }
}

/// Whether Mono with this environment keeps frame pointers.
fn mono_keeps_frame_pointers(environment: Option<&Environment>) -> bool {
    let mut options = environment.into_iter().flatten();
    let options = options.find(|(name, _)| name == b"MONO_DEBUG");
    let mut options = options
        .into_iter()
        .flat_map(|(_, value)| value.split(|byte| *byte == b','));
    options.any(|option| option == MONO_FRAME_POINTERS.as_bytes())
}

/// Whether a process of no known VM writes or seems to write such files. The adapter reports
/// distrusted maps. (But no stale map: any process may get the pid of an earlier
/// VM.)
fn has_files(process: &ProcessView) -> bool {
    let own = |marker: &DumpMarker| marker.is_of(process);
    find::dump_markers(process).iter().any(own) || has_perf_map(process)
}

fn has_perf_map(process: &ProcessView) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mono_keeps_frame_pointers_if_told() {
        let with = |value: &str| {
            let variable = |name: &str, value: &str| (name.into(), value.into());
            let environment = vec![
                variable("A", "disable_omit_fp"),
                variable("MONO_DEBUG", value),
            ];
            mono_keeps_frame_pointers(Some(&environment))
        };
        assert!(with("disable_omit_fp") && with("casts,disable_omit_fp"));
        assert!(!with("") && !with("disable_omit_fp2"));
        assert!(!mono_keeps_frame_pointers(None) && !mono_keeps_frame_pointers(Some(&vec![])));
    }

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
