//! A session without end: its memory levels off.

use super::*;
use crate::native::{DebugFile, DebugFileRequest, FileBytes};
use vmscope_records::{
    Avma, Chain, ChainFrame, Collection, Compilation, Constituent, ConstituentGone, ConstituentKey,
    ConstituentKind, Counter, CounterMeaning, Cover, CpuMode, DurationNs, Exactness, Fact,
    GoneReason, Mapping, Mark, Method, Module, PcMap, Pid, Position, Process, ProcessEnd, SpaceUse,
    Thread, ThreadCpu, ThreadEnd, ThreadRole, Tid,
};

/// Session length in hours, step length in seconds.
const HOURS: u64 = 6;
const EVERY: u64 = 2;

const SECOND: u64 = 1_000_000_000;
const MAIN: ProcessKey = ProcessKey(1);
const WORKER: ThreadKey = ThreadKey(0);

/// The lifetime of a method in steps.
const LIFE: u64 = 100;

struct NoFiles;

impl Binaries for NoFiles {
    fn module(&self, _: &Module) -> Result<Arc<dyn FileBytes>, String> {
        Err("none".to_owned())
    }

    fn debug_file(&self, _: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        Vec::new()
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Small bounds, reached within the first hours.
fn bounds() -> Bounds {
    Bounds {
        samples: 20_000,
        age: DurationNs(600 * SECOND),
        entries: 1_500,
        sites: 3_000,
        series: 1_500,
        threads: 500,
        processes: 500,
        codes: 10_000,
        code: 300_000,
        cpu_readings: 64,
    }
}

fn process(key: ProcessKey, parent: Option<ProcessKey>, time: TimeNs) -> Record {
    Record::Process(Process {
        key,
        time,
        pid: Pid(key.0 + 100),
        parent,
        name: format!("process {}", key.0),
    })
}

fn thread(key: ThreadKey, process: ProcessKey, role: ThreadRole, time: TimeNs) -> Record {
    Record::Thread(Thread {
        key,
        process,
        tid: Tid(key.0 + 1000),
        time,
        name: format!("thread {}", key.0),
        role,
        cpu_before: DurationNs(0),
    })
}

fn sample(thread: ThreadKey, time: TimeNs, pc: u64) -> Record {
    Record::Sample(Sample {
        time,
        thread,
        pc: Avma(pc),
        mode: CpuMode::User,
        detail: None,
    })
}

/// The address of a step's method: later methods reuse it.
fn place(step: u64) -> u64 {
    0x10_0000 + step % (2 * LIFE) * 0x1000
}

fn method(step: u64, time: TimeNs) -> [Record; 2] {
    let key = MethodKey(step);
    let frame = |at| ChainFrame {
        method: key,
        position: Position::Bytecode(vmscope_records::BytecodePc(at)),
    };
    let chains: Vec<Chain> = (0..40).map(|at| vec![frame(at)]).collect();
    let covers = (0..40).map(|at| Cover {
        start: at * 16,
        end: at * 16 + 16,
        chain: at,
        exactness: Exactness::Exact,
        method_error: 0,
    });
    let told = Method {
        key,
        time,
        class: format!("C{step}"),
        name: "run".to_owned(),
        file: String::new(),
        line: 1,
        lines: Vec::new(),
        bytecodes: vec![0; 200],
        listing: Vec::new(),
    };
    let start = place(step);
    let code = Constituent {
        key: ConstituentKey(step),
        process: MAIN,
        since: time,
        absent_at: None,
        start: Avma(start),
        end: Avma(start + 0x400),
        kind: ConstituentKind::Method,
        tier: "C2".to_owned(),
        name: format!("C{step}.run"),
        method: Some(key),
        cases: Vec::new(),
        map: PcMap::Covers {
            covers: covers.collect(),
            chains,
        },
    };
    [
        Record::Method(Box::new(told)),
        Record::Constituent(Box::new(code)),
    ]
}

/// One step that begins at `time`.
fn step(live: &mut Live, step: u64, time: TimeNs) {
    let at = |ms: u64| TimeNs(time.0 + ms * 1_000_000);
    method(step, at(1))
        .into_iter()
        .for_each(|told| live.take(told));
    if let Some(old) = step.checked_sub(LIFE).filter(|old| *old > 0) {
        live.take(Record::ConstituentGone(ConstituentGone {
            key: ConstituentKey(old),
            last_seen: time,
            time: at(1),
            reason: GoneReason::Unloaded,
        }));
    }
    // Short threads, one of them a collector's.
    for n in 1..=3 {
        let key = ThreadKey(u32::try_from(step * 3 + n).unwrap());
        let role = [ThreadRole::Mutator, ThreadRole::Collector][usize::from(n == 3)];
        live.take(thread(key, MAIN, role, at(2)));
        live.take(sample(key, at(10 + n), place(step) + n * 64));
        live.take(Record::ThreadEnd(ThreadEnd {
            key,
            time: at(20),
            alive: false,
            cpu: DurationNs(1_000_000),
            cpu_measured: true,
            cpu_user: Some(DurationNs(900_000)),
        }));
    }
    for n in 0..10 {
        let code = step.saturating_sub(n * 9).max(1);
        live.take(sample(WORKER, at(30 + n * 10), place(code) + n * 32));
    }
    live.take(Record::ThreadCpu(ThreadCpu {
        key: WORKER,
        time: at(200),
        cpu: DurationNs(step * 10_000_000),
        cpu_user: None,
    }));
    // A short process with own memory.
    let child = ProcessKey(u32::try_from(step + 10).unwrap());
    live.take(process(child, Some(MAIN), at(300)));
    live.take(Record::Mapping(Mapping {
        process: child,
        time: at(301),
        start: Avma(0x5000),
        end: Avma(0x9000),
        offset: vmscope_records::FileOffset(0),
        module: None,
        name: String::new(),
        executable: true,
    }));
    live.take(Record::Fact(Fact {
        process: child,
        time: at(302),
        name: "program".to_owned(),
        value: format!("{step}"),
    }));
    live.take(Record::ProcessEnd(ProcessEnd {
        key: child,
        time: at(400),
        alive: false,
        cpu: Some(DurationNs(5)),
        cpu_user: Some(DurationNs(4)),
    }));
    live.take(Record::Collection(Box::new(Collection {
        key: CollectionKey(step),
        process: MAIN,
        time: at(500),
        collector: "G1".to_owned(),
        begin: Some(at(490)),
        end: Some(at(500)),
        spaces: vec![SpaceUse::default(); 4],
        ..Collection::default()
    })));
    live.take(Record::Compilation(Box::new(Compilation {
        process: MAIN,
        thread: WORKER,
        id: step,
        name: format!("C{step}.run"),
        first_seen: at(510),
        last_seen: at(520),
        ..Compilation::default()
    })));
    for n in 0..3 {
        live.take(Record::Counter(Counter {
            process: MAIN,
            time: at(600),
            section: "Memory".to_owned(),
            name: format!("figure {n}"),
            unit: String::new(),
            meaning: CounterMeaning::Gauge,
            value: 1.0,
        }));
    }
    live.take(Record::Mark(Mark {
        time: at(700),
        text: format!("mark {step}"),
    }));
    live.settle(TimeNs(time.0 + EVERY * SECOND), &NoFiles);
}

/// The sizes of all data.
fn sizes(live: &mut Live) -> Vec<(&'static str, usize)> {
    let profile = Arc::clone(&live.profile);
    let profile = profile.read().unwrap();
    let trace = &profile.trace;
    let texts = |all: &[crate::Entry]| all.iter().map(|one| one.name.len()).sum();
    let maps = trace.code.constituents.iter();
    let (time_buckets, cells) = profile.time_buckets.size();
    let index = &live.index;
    vec![
        ("entries", profile.entries.len()),
        ("texts of entries", texts(&profile.entries)),
        ("sites", profile.sites.len()),
        ("places", trace.places.len()),
        ("single samples", trace.samples.times.len()),
        ("time buckets", time_buckets),
        ("cells", cells),
        ("threads", trace.threads.len()),
        ("threads by key", trace.thread_index.len()),
        (
            "readings of CPU time",
            trace.threads.iter().map(|t| t.cpu.len()).sum(),
        ),
        ("processes", trace.processes.len()),
        ("ends of processes", trace.process_ends.len()),
        ("ended processes", index.ended_processes.len()),
        ("extents", trace.extents.len()),
        ("facts", trace.facts.len()),
        ("rules", trace.region_rules.len()),
        ("methods", trace.methods.len()),
        ("fresh methods", index.fresh_methods.len()),
        ("constituents", trace.code.constituents.len()),
        (
            "bytes of maps",
            maps.map(|code| code.map.heap_bytes()).sum(),
        ),
        ("stays", live.growing.len()),
        ("stripped", live.stripped.len()),
        ("code events", trace.code_events.all().len()),
        ("collections", trace.collections.len()),
        ("collections by key", index.collections.len()),
        ("compilations", trace.compilations.len()),
        ("compilations by key", index.compilations.len()),
        ("counters", trace.counters.len()),
        ("marks", trace.marks.len()),
        ("limits", trace.limits.len()),
        ("losses", trace.lost.len()),
        ("address spaces", live.placing.world.spaces()),
        ("zones", live.placing.world.zones().len()),
        ("changes", live.changes.len()),
        (
            "places of code",
            index.places_of_code.values().map(Vec::len).sum(),
        ),
    ]
}

#[test]
fn what_is_kept_of_a_session_without_end_levels_off() {
    let mut live = Live::new(true, bounds());
    live.take(process(MAIN, None, TimeNs(0)));
    live.take(thread(WORKER, MAIN, ThreadRole::Mutator, TimeNs(0)));
    let steps = HOURS * 3600 / EVERY;
    // The greatest sizes in each half of the session.
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for number in 1..=steps {
        step(&mut live, number, TimeNs(number * EVERY * SECOND));
        if !number.is_multiple_of(20) {
            continue;
        }
        let half = if number <= steps / 2 {
            &mut first
        } else {
            &mut second
        };
        let now = sizes(&mut live);
        if half.is_empty() {
            half.clone_from(&now);
        }
        for ((_, most), (_, now)) in half.iter_mut().zip(now) {
            *most = now.max(*most);
        }
    }
    for ((what, before), (_, after)) in first.iter().zip(&second) {
        assert!(
            *after <= before + before / 10 + 8,
            "{what}: {before} in the first half, {after} in the second"
        );
    }
    let size = |what| {
        first
            .iter()
            .find(|(name, _)| *name == what)
            .map(|all| all.1)
    };
    assert!(size("threads") <= Some(500 + 2 * 125 + 20), "{first:?}");
    // New maps since the last cleanup come on top of the bound.
    assert!(size("bytes of maps") <= Some(5_000_000), "{first:?}");
    // Omissions are counted.
    let left = live.omitted();
    assert!(left.threads > 20_000 && left.code > 1_000, "{left:?}");
    assert!(left.records > 20_000 && left.names > 0, "{left:?}");
    assert_eq!((left.late, left.late_samples), (0, 0));
    all_is_still_counted(&live, steps);
}

/// A summed-up thread keeps its samples, CPU time and role.
fn all_is_still_counted(live: &Live, steps: u64) {
    let profile = &*live.profile.read().unwrap();
    let summary = crate::Summary::with_errors(profile, &crate::Filter::default());
    assert_eq!(summary.total, steps * 13);
    let of_role = |role| {
        let threads = summary.threads.iter().filter(move |one| {
            let thread = &profile.trace.threads[one.thread].thread;
            thread.role == role
        });
        threads.fold((0, 0), |(samples, cpu), one| {
            (samples + one.samples, cpu + one.cpu.map_or(0, |cpu| cpu.0))
        })
    };
    assert_eq!(of_role(ThreadRole::Collector), (steps, steps * 1_000_000));
    let (samples, cpu) = of_role(ThreadRole::Mutator);
    assert_eq!(samples, steps * 12);
    // The worker's CPU time after the last sample is outside the window.
    let all = steps * (2_000_000 + 10_000_000);
    assert!(cpu.abs_diff(all) < 10_000_000, "{cpu} of {all}");
    let over = profile.trace.threads.iter();
    let over: Vec<&str> = over
        .map(|one| one.thread.name.as_str())
        .filter(|name| name.ends_with("ended threads)"))
        .collect();
    assert_eq!(over.len(), 2, "one of each role");
}

/// With too much dead code in the window, samples go early.
#[test]
fn code_that_is_gone_is_not_kept_for_ever_few_samples() {
    let bounds = Bounds {
        samples: 1 << 20,
        age: DurationNs(u64::MAX),
        codes: 1_000,
        ..Bounds::default()
    };
    let mut live = Live::new(true, bounds);
    live.take(process(MAIN, None, TimeNs(0)));
    live.take(thread(WORKER, MAIN, ThreadRole::Mutator, TimeNs(0)));
    let mut most = 0;
    for number in 1..=12_000 {
        step(&mut live, number, TimeNs(number * EVERY * SECOND));
        most = most.max(live.growing.len());
    }
    assert!(most < 8_000, "{most}");
    assert!(live.omitted().samples > 50_000, "{:?}", live.omitted());
}
