//! A session with a live profile, and the profile of its recording.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::skipped;
use vmscope_hotspot::Family as HotSpot;
use vmscope_process::{AdapterFamily, ModuleFile, ProcessView, ReadAt};
use vmscope_records::recording::Reader;
use vmscope_records::{Module, ModuleKey, Pid, Symbols};
use vmscope_sampler::session::{Outcome, Readers, Session, SessionOptions, TapEnded, tap};
use vmscope_sampler::{EngineError, KernelEngine, KernelOptions, SamplingRate};
use vmscope_symbolizer::native::{
    Binaries, DebugFile, DebugFileRequest, FileBytes, ReadError, ResolveOptions, resolve_all,
};
use vmscope_symbolizer::symbols::Hits;
use vmscope_symbolizer::{Bounds, Live, Profile, Summary, Trace, profile_of};

const STEP: Duration = Duration::from_millis(200);

/// The files that came through the tap.
#[derive(Default)]
pub struct Files(HashMap<ModuleKey, Arc<ModuleFile>>);

struct Bytes(Arc<ModuleFile>);

impl FileBytes for Bytes {
    fn len(&self) -> u64 {
        ReadAt::len(&*self.0)
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, ReadError> {
        let mut bytes = vec![0; len];
        let read = self.0.read_some(offset, &mut bytes);
        match read.map_err(|source| ReadError::Io {
            offset,
            len,
            source,
        })? {
            read if read == len => Ok(Cow::Owned(bytes)),
            _ => Err(ReadError::OutOfBounds {
                offset,
                len,
                file_len: self.len(),
            }),
        }
    }
}

impl Binaries for Files {
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String> {
        let file = self.0.get(&module.key).ok_or("not opened")?;
        Ok(Arc::new(Bytes(Arc::clone(file))))
    }

    fn debug_file(&self, _: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        Vec::new()
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Live and final results of a session.
pub struct Both {
    pub live: Live,
    pub files: Files,
    pub outcome: Outcome,
}

/// Records `pid` for so long, with a live view, and calls `stepped` after each of its steps; `None`
/// where that is forbidden here.
pub fn watch(
    pid: u32,
    output: Option<&Path>,
    time: Duration,
    mut stepped: impl FnMut(),
) -> Option<Both> {
    let pid = Pid(pid);
    let families: Vec<Box<dyn AdapterFamily>> = vec![Box::new(HotSpot)];
    let readers = Readers::of(vec![ProcessView::open(pid).unwrap()], families);
    let needs = readers.sample_needs();
    let options = KernelOptions {
        rate: SamplingRate::from_hz(1400.0).unwrap(),
        registers: needs.registers,
        stack_bytes: u16::try_from(needs.stack_bytes).unwrap(),
        ..KernelOptions::default()
    };
    let engine = match KernelEngine::attach(&[pid], &options) {
        Err(error @ EngineError::Forbidden { .. }) => {
            skipped(&error.to_string());
            return None;
        }
        engine => engine.unwrap(),
    };
    let (source, tapped) = tap(256);
    let session = Session::start(
        Box::new(engine),
        readers,
        SessionOptions {
            pids: vec![pid],
            command: vec!["target".to_owned()],
            output: output.map(Path::to_owned),
            duration: Some(time),
            tap: Some(source),
            ..SessionOptions::default()
        },
    )
    .unwrap();
    let mut live = Live::new(false, Bounds::default());
    let mut files = Files::default();
    assert!(session.mark("begun"));
    let mut next = Instant::now() + STEP;
    let mut until = vmscope_records::TimeNs(0);
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        match tapped.take(wait) {
            Ok(Some(batch)) => {
                files.0.extend(batch.files);
                batch
                    .records
                    .into_iter()
                    .for_each(|record| live.take(record));
                until = batch.complete_until;
            }
            Ok(None) => {
                live.settle(until, &files);
                stepped();
                next += STEP;
            }
            Err(TapEnded) => break,
        }
    }
    live.finish(&files);
    let outcome = session.finish().unwrap();
    Some(Both {
        live,
        files,
        outcome,
    })
}

/// Profile of the recording, named from equal files.
pub fn profile_at(path: &Path, files: &Files) -> Profile {
    let trace = Trace::read(&mut Reader::open(File::open(path).unwrap()).unwrap()).unwrap();
    let hits = Hits::missing_in(&trace);
    let wanted: Vec<_> = (hits.modules.iter())
        .map(|(module, hits)| (module, hits.as_slice()))
        .collect();
    let mut options = ResolveOptions::default();
    options.lines = false;
    options.threads = 1;
    let symbols: Vec<Symbols> = resolve_all(&wanted, files, &options);
    profile_of(trace, symbols, false)
}

/// Samples by region, name and tier.
pub fn totals(profile: &Profile) -> BTreeMap<(String, String, String), u64> {
    let summary = Summary::with_errors(profile, &Default::default());
    let mut totals = BTreeMap::new();
    for (entry, &samples) in profile.entries.iter().zip(&summary.entries) {
        let key = (
            entry.region.name().to_owned(),
            entry.name.clone(),
            entry.tier.clone(),
        );
        *totals.entry(key).or_insert(0) += samples;
    }
    totals.retain(|_, samples| *samples > 0);
    totals
}

/// How many samples two profiles give to different entries.
pub fn difference(one: &Profile, other: &Profile) -> u64 {
    let (one, other) = (totals(one), totals(other));
    let missing = one
        .iter()
        .map(|(key, n)| n.saturating_sub(*other.get(key).unwrap_or(&0)));
    missing.sum()
}
