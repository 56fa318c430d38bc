//! An adapter for given files, for tests and for fuzzing.

use std::sync::Arc;

use vmscope_process::{Adapter, ModuleFile};
use vmscope_records::{TimeNs, VmIdentity};

use super::{Dump, FileAdapter, FileOrigin, Map};
use crate::attribution::Attribution;
use crate::clock::DumpClock;
use crate::follow::{DumpFile, PerfMapFile};
use crate::vm::{Vm, VmKind};

/// The files of a process.
#[derive(Clone, Debug)]
pub struct Files {
    /// The VM that writes them.
    pub kind: VmKind,
    /// Its dumps.
    pub dumps: Vec<Arc<ModuleFile>>,
    /// Its perf map.
    pub map: Option<Arc<ModuleFile>>,
    /// Whether the dumps' clock is the polls' clock.
    pub has_times: bool,
    /// Time before which removed code is not reported.
    pub emit_from: TimeNs,
    /// Number of pieces that a perf map reports without samples.
    pub unsampled: Option<usize>,
}

impl Default for Files {
    fn default() -> Self {
        Files {
            kind: VmKind::Other,
            dumps: Vec::new(),
            map: None,
            has_times: false,
            emit_from: TimeNs(0),
            unsampled: None,
        }
    }
}

impl Files {
    /// The adapter that reads them.
    #[must_use]
    pub fn adapter(self) -> Box<dyn Adapter> {
        Box::new(self.file_adapter())
    }

    pub(super) fn file_adapter(self) -> FileAdapter {
        let vm = Vm {
            kind: self.kind,
            identity: VmIdentity {
                kind: "vm".to_owned(),
                version: String::new(),
            },
            rules: Vec::new(),
        };
        let origin = FileOrigin {
            asked: None,
            launched: None,
            attribution: Attribution::default(),
            map_folder: Vec::new(),
            omits_frame_pointers: false,
        };
        let mut adapter = FileAdapter::new(vm, origin, self.emit_from);
        let clock = match self.has_times {
            true => DumpClock::Monotonic(0),
            false => DumpClock::Unknown,
        };
        let dumps = self.dumps.into_iter().map(|file| Dump {
            clock: Some(clock),
            ..Dump::new(DumpFile::new(file, "dump"), Vec::new())
        });
        adapter.dumps.extend(dumps);
        let map = self.map.map(|file| PerfMapFile::new(file, "map"));
        adapter.map = map.map(|file| Map::new(file, None));
        if let Some(unsampled) = self.unsampled {
            adapter.live.max_unsampled = unsampled;
        }
        adapter
    }
}
