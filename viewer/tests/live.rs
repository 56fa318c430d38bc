//! A live profile beside the recording of the same session: attached to a running program,
//! in steps of 200 ms.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

mod common;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::targets::Target;
use common::{say, skipped};
use vmscope_hotspot::Family as HotSpot;
use vmscope_process::{AdapterFamily, ModuleFile, ProcessView, ReadAt};
use vmscope_records::recording::Reader;
use vmscope_records::{EndReason, Module, ModuleKey, Pid, Symbols};
use vmscope_sampler::session::{Outcome, Readers, Session, SessionOptions, TapEnded, tap};
use vmscope_sampler::{EngineError, KernelEngine, KernelOptions, SamplingRate};
use vmscope_symbolizer::native::{
    Binaries, DebugFile, DebugFileRequest, FileBytes, ReadError, ResolveOptions, resolve_all,
};
use vmscope_symbolizer::symbols::Hits;
use vmscope_symbolizer::{Bounds, Live, Omitted, Profile, Summary, Trace, profile_of};

const STEP: Duration = Duration::from_millis(200);

/// The files that came through the tap.
#[derive(Default)]
struct Files(HashMap<ModuleKey, Arc<ModuleFile>>);

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
struct Both {
    live: Live,
    files: Files,
    outcome: Outcome,
    /// CPU time of this process, and of the live view's steps alone, in seconds.
    cpu: (f64, f64),
    took: Duration,
    /// Resident memory, in KiB, by time.
    memory: Vec<(Duration, u64)>,
}

/// CPU time of this process, or of this thread, in seconds.
fn cpu(of: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{of}/schedstat")).unwrap();
    let ns: u64 = stat.split(' ').next().unwrap().parse().unwrap();
    ns as f64 / 1e9
}

fn cpu_of_all() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| {
            let id = task.ok()?.file_name().into_string().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).ok()?;
            stat.split(' ').next()?.parse::<u64>().ok()
        })
        .sum::<u64>() as f64
        / 1e9
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Records `pid` for so long, with a live view; `None` where that is forbidden here.
fn watch(pid: u32, output: Option<&Path>, time: Duration) -> Option<Both> {
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
    let mut memory = Vec::new();
    let (began, before, before_steps) = (Instant::now(), cpu_of_all(), cpu("thread-self"));
    let mut used = 0.0;
    assert!(session.mark("begun"));
    let mut next = began + STEP;
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
                memory.push((began.elapsed(), resident_kib()));
                // Exited threads do not count.
                used = cpu_of_all() - before;
                next += STEP;
            }
            Err(TapEnded) => break,
        }
    }
    let steps = cpu("thread-self") - before_steps;
    live.finish(&files);
    let outcome = session.finish().unwrap();
    Some(Both {
        live,
        files,
        outcome,
        cpu: (used, steps),
        took: began.elapsed(),
        memory,
    })
}

/// Profile of the recording, named from equal files.
fn profile_at(path: &Path, files: &Files) -> Profile {
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
fn totals(profile: &Profile) -> BTreeMap<(String, String, String), u64> {
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
fn difference(one: &Profile, other: &Profile) -> u64 {
    let (one, other) = (totals(one), totals(other));
    let missing = one
        .iter()
        .map(|(key, n)| n.saturating_sub(*other.get(key).unwrap_or(&0)));
    missing.sum()
}

#[test]
fn a_live_profile_is_that_of_the_recording() {
    let Some(target) = Target::known_shares(2) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vmscope");
    let Some(both) = watch(target.pid(), Some(&path), Duration::from_secs(2)) else {
        return;
    };
    assert_eq!(both.outcome.reason, EndReason::DurationOver);
    let whole = profile_at(&path, &both.files);
    assert_eq!(
        both.live.omitted(),
        Omitted::default(),
        "nothing came too late"
    );
    let live = both.live.profile().read().unwrap();
    assert!(
        live.trace.samples.times.len() > 500,
        "{}",
        live.trace.samples.times.len()
    );
    assert_eq!(live.trace.samples.times, whole.trace.samples.times);
    assert_eq!(totals(&live), totals(&whole));
    assert_eq!(live.trace.marks, whole.trace.marks);
    assert_eq!(live.trace.marks.len(), 1);
    assert!(live.trace.end.is_some());
}

#[test]
fn a_recording_in_memory_is_saved_after_its_target_has_exited() {
    let Some(mut target) = Target::known_shares(1) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pid = target.pid();
    let ends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        target.signal(nix::sys::signal::Signal::SIGTERM);
        target.wait();
    });
    let both = watch(pid, None, Duration::from_secs(60));
    ends.join().unwrap();
    let Some(mut both) = both else {
        return;
    };
    assert_eq!(both.outcome.reason, EndReason::TargetExited);
    let mut kept = both.outcome.kept.take().unwrap();
    for name in ["a.vmscope", "b.vmscope"] {
        let path = folder.path().join(name);
        let written = kept.save(&path).unwrap();
        let whole = profile_at(&path, &both.files);
        let live = both.live.profile().read().unwrap();
        let samples = live.trace.samples.times.len() as u64;
        assert!(samples > 0);
        assert_eq!(written.samples, samples);
        // The end tells as many.
        assert_eq!(both.outcome.written.samples, samples);
        assert_eq!(difference(&live, &whole), 0);
    }
}

/// What a live view costs, of the process that `VMSCOPE_LIVE_PID` names: prints it.
#[test]
#[ignore = "measures; see its comment"]
fn what_a_live_view_costs() {
    let pid: u32 = std::env::var("VMSCOPE_LIVE_PID").unwrap().parse().unwrap();
    let seconds = std::env::var("VMSCOPE_LIVE_SECONDS").map_or(20, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vmscope");
    let time = Duration::from_secs(seconds);
    let Some(both) = watch(pid, Some(&path), time) else {
        return;
    };
    let whole = profile_at(&path, &both.files);
    let live = both.live.profile().read().unwrap();
    let of = |cpu: f64| cpu / both.took.as_secs_f64() * 100.0;
    say(&format!(
        "{} samples, {} places, {} entries; {:.2} % of a core in all, {:.2} % by the live view; {:?}; \
         {} samples elsewhere than in the recording's profile",
        live.trace.samples.times.len(),
        live.trace.places.len(),
        live.entries.len(),
        of(both.cpu.0),
        of(both.cpu.1),
        both.live.omitted(),
        difference(&live, &whole),
    ));
    let end = live.trace.end.as_ref().unwrap();
    say(&format!(
        "by the kernel's account, in all and with what came before: {:.2} s of CPU in {:?}",
        end.recorder_cpu_ns as f64 / 1e9,
        both.took,
    ));
    let half = both.memory.len() / 2;
    let (Some(middle), Some(last)) = (both.memory.get(half), both.memory.last()) else {
        return;
    };
    let grown = last.1 as f64 - middle.1 as f64;
    let hours = (last.0 - middle.0).as_secs_f64() / 3600.0;
    say(&format!(
        "memory {} KiB at {:?}, {} KiB at {:?}: {:.1} MiB an hour",
        middle.1,
        middle.0,
        last.1,
        last.0,
        grown / 1024.0 / hours,
    ));
}
