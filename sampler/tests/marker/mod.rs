//! A VM family whose VMs map a file named `jit-PID.dump`, the program that does, and
//! what a recording says of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tempfile::TempDir;
use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, MapEntry, Poll, ProcessView, ReadAt as _,
};
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentKind, Content, PcMap, ProcessKey, Record, VmIdentity,
};
use vmscope_sampler::session::{Readers, Session, SessionOptions};
use vmscope_sampler::{
    EngineError, HeldCommand, KernelEngine, KernelOptions, RunningCommand, SamplingRate,
};

/// What happened to a family's adapters.
#[derive(Default)]
pub struct Happened {
    /// How often the family was asked.
    pub asked: usize,
    /// Number of answers that the VM is not ready.
    pub not_ready: usize,
    /// Whose VM it recognised.
    pub recognised: Vec<ProcessKey>,
    /// Whose adapter had its last poll.
    pub finished: Vec<ProcessKey>,
    /// Whose adapter has read its dump.
    pub looked: Vec<ProcessKey>,
    /// Number of announcements of the recording's end.
    pub over: usize,
}

/// The log of a family, and the folder of its recording.
#[derive(Clone)]
pub struct Log(Arc<Mutex<Happened>>, Arc<TempDir>);

impl Default for Log {
    fn default() -> Self {
        Log(Arc::default(), Arc::new(tempfile::tempdir().unwrap()))
    }
}

impl Log {
    pub fn lock(&self) -> MutexGuard<'_, Happened> {
        self.0.lock().unwrap()
    }

    /// Where the dumps go.
    pub fn folder(&self) -> PathBuf {
        self.1.path().to_owned()
    }

    /// The recording's file.
    pub fn recording(&self) -> PathBuf {
        self.folder().join("a.vmscope")
    }

    pub fn sorted(&self, of: impl Fn(&Happened) -> &Vec<ProcessKey>) -> Vec<ProcessKey> {
        let mut keys = of(&self.lock()).clone();
        keys.sort_unstable();
        keys
    }
}

/// The family.
pub struct Marker {
    name: &'static str,
    log: Log,
}

impl Marker {
    pub fn family(name: &'static str, log: &Log) -> Box<dyn AdapterFamily> {
        let log = log.clone();
        Box::new(Marker { name, log })
    }
}

/// The mapped dump, if any.
fn dump(view: &ProcessView) -> Option<MapEntry> {
    let is_dump = |entry: &&MapEntry| {
        let path = entry.path().map(String::from_utf8_lossy);
        entry.executable && path.is_some_and(|path| path.ends_with(".dump"))
    };
    view.mappings().iter().find(is_dump).cloned()
}

impl AdapterFamily for Marker {
    fn name(&self) -> &'static str {
        self.name
    }

    fn recognise(&self, view: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let mut happened = self.log.lock();
        happened.asked += 1;
        let Some(dump) = dump(view) else {
            return Ok(None);
        };
        if happened.not_ready > 0 {
            happened.not_ready -= 1;
            return Err(AdapterError::NotReady { what: "dump" });
        }
        happened.recognised.push(view.key());
        Ok(Some(Box::new(MarkerAdapter {
            dump,
            log: self.log.clone(),
            has_told: false,
        })))
    }

    fn recording_over(&self) {
        self.log.lock().over += 1;
    }
}

struct MarkerAdapter {
    dump: MapEntry,
    log: Log,
    has_told: bool,
}

impl Adapter for MarkerAdapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "Marker".to_owned(),
            version: "1".to_owned(),
        }
    }

    fn poll(&mut self, view: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        assert_eq!(poll.process(), view.key());
        if std::mem::replace(&mut self.has_told, true) {
            return Ok(());
        }
        let file = view.open_mapped(&self.dump)?;
        let bytes = file.read_at(0, usize::try_from(file.len()).unwrap());
        let bytes = bytes.unwrap();
        self.log.lock().looked.push(view.key());
        poll.code(CodeChange::Seen(Constituent {
            key: poll.keys().constituent(),
            process: poll.process(),
            since: poll.began(),
            absent_at: None,
            start: Avma(0x1000),
            end: Avma(0x1100),
            kind: ConstituentKind::Stub,
            tier: String::new(),
            name: String::from_utf8(bytes).unwrap().trim().to_owned(),
            method: None,
            cases: Vec::new(),
            map: PcMap::None,
        }));
        Ok(())
    }

    fn finish(&mut self, view: &ProcessView, _: &mut Poll) -> Result<(), AdapterError> {
        assert!(self.has_told, "at least one look comes first");
        self.log.lock().finished.push(view.key());
        Ok(())
    }

    fn next_poll(&self) -> Duration {
        Duration::from_millis(20)
    }
}

/// What was recorded.
pub struct Recorded {
    pub records: Vec<Record>,
    pub lost: u64,
}

impl Recorded {
    pub fn read(path: &Path, lost: u64) -> Self {
        let mut reader = Reader::open(File::open(path).unwrap()).unwrap();
        let mut records = Vec::new();
        while let Some(chunk) = reader.next_chunk(Content::ALL).unwrap() {
            for item in chunk.items() {
                if let Item::Record(record) = item {
                    records.push(record);
                }
            }
        }
        assert_eq!(reader.ending().damage_count, 0);
        Recorded { records, lost }
    }

    /// Programs with a marker reported by the kernel, each with its pid.
    pub fn markers(&self) -> BTreeMap<ProcessKey, u32> {
        let mut pids = BTreeMap::new();
        let mut dumps = Vec::new();
        let mut markers = BTreeMap::new();
        for record in &self.records {
            match record {
                Record::Process(process) => {
                    pids.insert(process.key, process.pid.get());
                }
                Record::Module(module) if module.path.ends_with(".dump") => dumps.push(module.key),
                Record::Mapping(mapping) if mapping.module.is_some_and(|m| dumps.contains(&m)) => {
                    markers.insert(mapping.process, pids[&mapping.process]);
                }
                _ => {}
            }
        }
        markers
    }

    /// What adapters told of each program.
    pub fn found(&self) -> BTreeMap<ProcessKey, String> {
        let code = self.records.iter().filter_map(|record| match record {
            Record::Constituent(code) => Some((code.process, code.name.clone())),
            _ => None,
        });
        code.collect()
    }

    /// The recording's kind of VM.
    pub fn vm(&self) -> String {
        let sessions = self.records.iter().rev();
        let mut kinds = sessions.filter_map(|record| match record {
            Record::Session(session) => Some(session.vm.kind.clone()),
            _ => None,
        });
        kinds.next().unwrap()
    }
}

/// The program that maps a marker; `None`, said loudly, where there is no compiler.
pub fn marker_program() -> Option<PathBuf> {
    static PROGRAM: std::sync::OnceLock<Option<PathBuf>> = std::sync::OnceLock::new();
    let compile = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/marker.c");
        let own = format!("marker-{}", std::process::id());
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-o"]).arg(&program).arg(&source);
        match compiler.status() {
            Ok(status) => assert!(status.success(), "{}", source.display()),
            Err(error) => {
                eprintln!("SKIPPED, NOTHING TESTED: no C compiler (cc): {error}");
                return None;
            }
        }
        Some(program)
    };
    PROGRAM.get_or_init(compile).clone()
}

/// Starts to record `command`, with `D` as the folder of its dumps, and lets it go.
pub fn start(command: Command, log: &Log) -> Option<(Session, RunningCommand)> {
    start_with(command, log, vec![Marker::family("marker", log)])
}

/// The same with other families.
pub fn start_with(
    mut command: Command,
    log: &Log,
    families: Vec<Box<dyn AdapterFamily>>,
) -> Option<(Session, RunningCommand)> {
    command.env("D", log.folder());
    let held = HeldCommand::start(command).unwrap();
    let options = KernelOptions {
        rate: SamplingRate::DEFAULT,
        registers: 0,
        stack_bytes: 0,
        ..KernelOptions::default()
    };
    let engine = match KernelEngine::follow(&held, &options) {
        Err(error @ EngineError::Forbidden { .. }) => {
            eprintln!("SKIPPED, NOTHING TESTED: {error}");
            return None;
        }
        engine => Box::new(engine.unwrap()),
    };
    let options = SessionOptions {
        pids: vec![held.pid()],
        launched: true,
        command: vec!["marker".to_owned()],
        output: Some(log.recording()),
        ..SessionOptions::default()
    };
    let session = Session::start(engine, Readers::later(families), options).unwrap();
    Some((session, held.release().unwrap()))
}
