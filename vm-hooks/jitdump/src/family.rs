//! The family: which processes get an adapter, and what `record` turns on for them.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};

use vmscope_records::{Pid, TimeNs, VmIdentity};
use vmscope_target::{
    Adapter, AdapterError, AdapterFamily, EnvironmentChange, Launch, ProcessView,
};

use crate::adapter::{FileAdapter, now};
use crate::find::{self, DumpMarker, PERF_MAP_FOLDER};
use crate::launch::{launch_environment, launch_hint};
use crate::litter::Litter;
use crate::vm::{self, Vm, VmKind};

/// VMs that describe their code in jitdump files or perf maps.
#[derive(Debug, Default)]
pub struct Family {
    launched: Option<Arc<Launched>>,
}

impl Family {
    /// For processes that run already: their files are their user's, and are left where
    /// they are.
    #[must_use]
    pub fn attaching() -> Self {
        Family::default()
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
    kinds: HashSet<VmKind>,
    said: Vec<(String, &'static str)>,
}

impl Launched {
    pub fn litter(&self) -> &Litter {
        &self.litter
    }

    /// Whether the files of a process of that kind are written because vmscope asked
    /// for them: not where its own command line does, too.
    pub fn has_turned_on(&self, kind: VmKind, process: &ProcessView) -> bool {
        let asks = |word: &String| OWN_SWITCHES.iter().any(|switch| word.contains(switch));
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.kinds.contains(&kind) && !process.command().iter().any(asks)
    }

    /// What there is to say about how it was turned on, once.
    pub fn take_said(&self) -> Vec<(String, &'static str)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.said)
    }
}

/// Words of a command line by which its user asks for such files.
const OWN_SWITCHES: [&str; 8] = [
    "perf-prof",
    "perf_prof",
    "perf-basic-prof",
    "perf_basic_prof",
    "JPperf",
    "jit_debug",
    "jitmap",
    "perf_jit",
];

/// The VM that a variable of [`launch_environment`] is for.
fn kind_of(variable: &str) -> Option<VmKind> {
    Some(match variable {
        "NODE_OPTIONS" | "DENO_V8_FLAGS" => VmKind::V8,
        "PYTHONPERFSUPPORT" => VmKind::CPython,
        "MONO_ENV_OPTIONS" => VmKind::Mono,
        "ERL_ZFLAGS" | "ERL_AFLAGS" => VmKind::Beam,
        name if name.starts_with("DOTNET_") => VmKind::DotNet,
        "ENABLE_JITPROFILING" => VmKind::Julia,
        _ => return None,
    })
}

/// Whether a change to the environment, whose variable holds `old`, has an effect.
fn takes_effect(change: &EnvironmentChange, old: Option<&OsString>) -> bool {
    match change {
        EnvironmentChange::SetDefault { .. } => old.is_none(),
        EnvironmentChange::Append { .. } => {
            let old = old.map(|old| old.to_string_lossy()).unwrap_or_default();
            !OWN_SWITCHES.iter().any(|switch| old.contains(switch))
        }
    }
}

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "jitdump"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let vm = match vm::recognise(process) {
            Some(vm) => vm,
            None if has_files(process) => unknown(process),
            None => return Ok(None),
        };
        // What was over when the recording began is not asked for.
        let tell_from = if self.launched.is_some() {
            TimeNs(0)
        } else {
            now()
        };
        let launched = self.launched.clone();
        Ok(Some(Box::new(FileAdapter::new(vm, launched, tell_from))))
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
        let mut state = launched
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.folder = launch.folder.as_os_str().as_bytes().to_vec();
        state.kinds = changes.iter().filter_map(|c| kind_of(name_of(c))).collect();
        if !launch.folder_is_writable && state.kinds.contains(&VmKind::V8) {
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
            let state = launched
                .state
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            launched.litter.launched(pid.0, &state.folder);
        }
    }

    fn recording_over(&self) {
        if let Some(launched) = &self.launched {
            launched.litter.finish();
        }
    }
}

/// Whether a process of no known VM writes such files all the same.
fn has_files(process: &ProcessView) -> bool {
    let own = |marker: &DumpMarker| marker.is_of(process);
    find::dump_markers(process).iter().any(own)
        || find::open_perf_map(process, PERF_MAP_FOLDER).is_ok_and(|map| map.is_some())
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
