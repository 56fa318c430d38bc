//! The kernel engine on live programs: this test binary, run again as its own child.
//!
//! Where the kernel forbids perf events the tests say so on stderr and pass.
#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests fail by panics and skip loudly"
)]

use std::collections::HashMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vmscope_records::{CpuMode, Limit, LimitKind, Pid};
use vmscope_sampler::{
    CallGraph, Engine as _, EngineError, EngineEvent, EngineState, HeldCommand, KernelEngine,
    KernelOptions, RawThreadEnd, UserCallers,
};

const ROLE: &str = "VMSCOPE_TEST_ROLE";

/// The child process: runs the role that the environment names.
#[test]
fn child_entry() {
    match std::env::var(ROLE).as_deref() {
        Ok("short-threads") => {
            for _ in 0..20 {
                let threads: Vec<_> = (0..4)
                    .map(|_| std::thread::spawn(|| spin(Duration::from_millis(5))))
                    .collect();
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().expect("spins"));
            }
        }
        Ok("idle-threads") => {
            for _ in 0..200 {
                std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
            }
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok("attach") => {
            let pid = std::env::var("PID").ok().and_then(|pid| pid.parse().ok());
            let pid = Pid(pid.expect("a pid"));
            match KernelEngine::attach(&[pid], &KernelOptions::default()) {
                Err(error) if forbidden(&error) => {}
                engine => {
                    let mut events = Vec::new();
                    engine
                        .expect("opens")
                        .finish(&mut events)
                        .expect("finishes");
                    assert!(ends(&events).len() > 200);
                }
            }
        }
        Ok("spin") => spin(Duration::from_secs(2)),
        Ok("storm") => storm(Instant::now() + Duration::from_secs(2)),
        Ok("waves") => waves(),
        Ok("two-threads") => {
            let other = std::thread::spawn(|| spin(Duration::from_millis(1500)));
            spin(Duration::from_millis(1500));
            other.join().expect("spins");
        }
        Ok("ping-pong") => ping_pong(),
        _ => {}
    }
}

/// Two threads hand each other a byte without end. Each waits for the other.
fn ping_pong() {
    let (mut one, mut other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    std::thread::spawn(move || {
        let mut byte = [0];
        loop {
            other.read_exact(&mut byte).expect("reads");
            other.write_all(&byte).expect("writes");
        }
    });
    loop {
        one.write_all(&[1]).expect("writes");
        one.read_exact(&mut [0]).expect("reads");
    }
}

/// Works for so much CPU time of its thread, which samples follow: a busy machine may give it
/// little of the wall's. In user space, but for a poll at that clock every some 100 µs.
fn spin(time: Duration) {
    let clock = || {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
        Duration::from(now.expect("a clock"))
    };
    let end = clock() + time;
    while clock() < end {
        work(100_000);
    }
}

/// Works for this wall-clock time.
fn linger(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        work(1000);
    }
}

fn work(rounds: u32) {
    let mut x = 1u64;
    for _ in 0..rounds {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005));
    }
}

/// Threads that start threads, until `end`.
fn storm(end: Instant) {
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                while Instant::now() < end {
                    std::thread::scope(|inner| {
                        for _ in 0..3 {
                            inner.spawn(|| linger(Duration::from_millis(8)));
                        }
                    });
                }
            });
        }
    });
}

/// For each byte on stdin, a starter thread starts worker threads in turn. Workers live long enough
/// for many samples. A profiler that attaches meanwhile opens the starter, and then finds workers that have
/// inherited its events. The idle threads
/// make attaching take a while.
fn waves() {
    for _ in 0..48 {
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
    }
    let mut byte = [0];
    while std::io::stdin().read_exact(&mut byte).is_ok() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| linger(Duration::from_millis(250)));
                std::thread::sleep(Duration::from_micros(200));
            }
        });
    }
}

fn child(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["child_entry", "--exact", "--test-threads=1"])
        .env(ROLE, role)
        .stdout(Stdio::null());
    command
}

/// Says loudly that nothing was tested where perf events are forbidden.
fn forbidden(error: &EngineError) -> bool {
    let forbidden = matches!(error, EngineError::Forbidden { .. });
    if forbidden {
        eprintln!("SKIPPED, NOTHING TESTED: {error}");
    }
    forbidden
}

fn follow(command: Command, options: &KernelOptions) -> Option<Vec<EngineEvent>> {
    let held = HeldCommand::start(command).expect("can fork");
    let mut engine = match KernelEngine::follow(&held, options) {
        Err(error) if forbidden(&error) => return None,
        engine => engine.expect("opens"),
    };
    let mut running = held.release().expect("can exec");
    let mut events = Vec::new();
    run(&mut engine, Duration::from_secs(60), &mut events);
    assert!(running.wait().expect("waits").success());
    Some(events)
}

/// Drains until the target is gone or `time` is over, then finishes.
fn run(engine: &mut KernelEngine, time: Duration, events: &mut Vec<EngineEvent>) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let state = engine.drain(Duration::from_millis(100), events);
        if state.expect("drains") == EngineState::TargetsGone {
            break;
        }
    }
    engine.finish(events).expect("finishes");
    let in_order = |event: &&EngineEvent| !matches!(event, EngineEvent::ThreadCpu { .. });
    assert!(
        events
            .iter()
            .filter(in_order)
            .is_sorted_by_key(|e| e.time()),
        "events come in the order of time"
    );
}

fn ends(events: &[EngineEvent]) -> Vec<&RawThreadEnd> {
    let ends = events.iter().filter_map(|event| match event {
        EngineEvent::ThreadEnded(end) => Some(&**end),
        _ => None,
    });
    ends.collect()
}

/// Threads and their accounts: each started once before its first sample, ended once after its last
/// sample, with the number of delivered samples.
fn check_lives(events: &[EngineEvent]) {
    let mut living: HashMap<u32, u64> = HashMap::new();
    for event in events {
        match event {
            EngineEvent::ThreadStarted { tid, .. } => {
                let before = living.insert(tid.0, 0);
                assert_eq!(before, None, "thread {tid} starts once");
            }
            EngineEvent::Sample(sample) => {
                let samples = living.get_mut(&sample.tid.0);
                *samples.expect("a sample of a thread that has started") += 1;
            }
            EngineEvent::ThreadEnded(end) => {
                let samples = living.remove(&end.tid.0);
                assert_eq!(samples, Some(end.samples), "{end:?}");
            }
            _ => {}
        }
    }
    assert!(living.is_empty(), "each thread ends: {living:?}");
}

/// No thread is sampled twice: its samples would be twice the periods of its CPU time.
///
/// The sampling timer also runs while a hypervisor keeps the CPU for others; the thread's CPU time
/// excludes that time (`CONFIG_PARAVIRT_TIME_ACCOUNTING`). So a thread may have some excess samples.
fn check_sampled_once(events: &[EngineEvent]) {
    let cpus = std::thread::available_parallelism().expect("known").get();
    for end in ends(events) {
        // The CPU time may be behind by a tick of the scheduler (10 ms). A period on each CPU may
        // have begun before the counted time.
        let cpu = end.cpu.0 + 10_000_000;
        let promised = cpu / end.mean_period.0;
        let most = promised + promised / 2 + cpus as u64;
        assert!(
            end.samples <= most,
            "more than {most} samples: sampled twice? {end:?}"
        );
    }
}

/// The distances between samples of each thread show whether two events sampled it: the ticks of
/// two events are a fixed part of the period apart, so at least every other distance would be half a
/// period or less. Ticks of one event are a period of CPU time apart, thus at least a period of real
/// time, except late ticks.
fn check_distances(events: &[EngineEvent]) -> usize {
    let mut times: HashMap<u32, Vec<u64>> = HashMap::new();
    for event in events {
        if let EngineEvent::Sample(sample) = event {
            times.entry(sample.tid.0).or_default().push(sample.time.0);
        }
    }
    let period = KernelOptions::default().rate.period().0;
    let mut judged = 0;
    for (tid, times) in times.iter().filter(|(_, times)| times.len() >= 20) {
        let distances = times.windows(2).map(|pair| pair[1] - pair[0]);
        let short = distances
            .filter(|&distance| distance < period * 6 / 10)
            .count();
        assert!(
            4 * short < times.len(),
            "{short} of {} samples of thread {tid} come early: sampled twice?",
            times.len()
        );
        judged += 1;
    }
    judged
}

/// What an interpreter's reader asks for: registers, and the top of the stack.
#[cfg(target_arch = "x86_64")]
#[test]
fn registers_and_stack_are_those_of_the_sample() {
    // BX, BP, SP, IP, R13 (`perf_regs.h`).
    let (sp, ip) = (7, 8);
    let registers = 1 << 1 | 1 << 6 | 1 << sp | 1 << ip | 1 << 21;
    let options = KernelOptions {
        registers,
        stack_bytes: 256,
        ..KernelOptions::default()
    };
    let Some(events) = follow(child("spin"), &options) else {
        return;
    };
    check_lives(&events);
    let (mut whole, mut user) = (0, 0);
    for event in &events {
        let EngineEvent::Sample(sample) = event else {
            continue;
        };
        let detail = sample.detail.as_ref().expect("asked for");
        let registers = detail.registers.as_ref().expect("a user process");
        assert_eq!(registers.values.len(), 5);
        if sample.mode != CpuMode::User {
            continue;
        }
        user += 1;
        assert_eq!(registers.value(ip), Some(sample.pc.0));
        let Some(stack) = &detail.stack else {
            continue;
        };
        assert_eq!(registers.value(sp), Some(stack.sp.0));
        // At a program's start, the stack's bottom is nearer.
        whole += usize::from(stack.bytes.len() == 256);
    }
    assert!(user > 500, "{user} samples");
    assert!(whole * 100 >= user * 99, "{whole} whole stacks of {user}");
}

#[test]
fn a_thread_that_was_inherited_and_found_is_sampled_once() {
    let mut waves = child("waves")
        .stdin(Stdio::piped())
        .spawn()
        .expect("can fork");
    let mut stdin = waves.stdin.take().expect("is a pipe");
    std::thread::sleep(Duration::from_millis(200));
    let (mut judged, mut duplicates) = (0, 0);
    // About every second attempt starts a thread between the opening of the parent's events and the
    // next reading of /proc.
    for _ in 0..24 {
        stdin.write_all(b"x").expect("is read");
        let opened = KernelEngine::attach(&[Pid(waves.id())], &KernelOptions::default());
        if opened.as_ref().is_err_and(forbidden) {
            break;
        }
        let mut engine = opened.expect("opens");
        let mut events = Vec::new();
        run(&mut engine, Duration::from_millis(400), &mut events);
        judged += check_distances(&events);
        duplicates += engine.duplicates();
        if judged > 20 && duplicates > 50 {
            break;
        }
    }
    waves.kill().expect("can kill");
    waves.wait().expect("waits");
    eprintln!("{duplicates} duplicates dropped, {judged} threads judged");
    if judged > 0 {
        assert!(
            duplicates > 0,
            "no thread was both inherited and found: nothing was tested"
        );
    }
}

#[test]
fn threads_of_five_milliseconds_are_all_seen() {
    let Some(events) = follow(child("short-threads"), &KernelOptions::default()) else {
        return;
    };
    check_lives(&events);
    check_sampled_once(&events);
    let ends = ends(&events);
    // 80 threads of the program, its main thread and this test's thread.
    assert_eq!(ends.len(), 82, "every thread is seen");
    // A thread of 5 ms is promised up to 7 samples, and gets fewer on a busy machine. The test
    // therefore checks only their sum: a machine that takes nine tenths of the time away still
    // delivers a tenth of the promised samples.
    let samples: u64 = ends.iter().map(|end| end.samples).sum();
    assert!(samples >= 56, "{samples} of 560");
}

#[test]
fn a_thread_storm_is_attached_to_and_no_thread_sampled_twice() {
    for _ in 0..3 {
        let mut storm = child("storm").spawn().expect("can fork");
        // Long enough for the test harness to start.
        std::thread::sleep(Duration::from_millis(200));
        let opened = KernelEngine::attach(&[Pid(storm.id())], &KernelOptions::default());
        let mut events = Vec::new();
        let opened = opened.map(|mut engine| {
            run(&mut engine, Duration::from_millis(800), &mut events);
        });
        storm.kill().expect("can kill");
        storm.wait().expect("waits");
        match opened {
            Err(error) if forbidden(&error) => return,
            opened => opened.expect("opens"),
        }
        check_lives(&events);
        check_sampled_once(&events);
        let threads = ends(&events).len();
        assert!(threads > 20, "{threads} threads seen");
    }
}

#[test]
fn with_few_descriptors_each_thread_has_one_event() {
    let mut two = child("two-threads").spawn().expect("can fork");
    std::thread::sleep(Duration::from_millis(200));
    let options = KernelOptions {
        max_descriptors: Some(64),
        ..KernelOptions::default()
    };
    let opened = KernelEngine::attach(&[Pid(two.id())], &options);
    if opened.as_ref().is_err_and(forbidden) {
        two.wait().expect("waits");
        return;
    }
    let mut engine = opened.expect("opens");
    let limits = &engine.description().limits;
    assert!(
        limits
            .iter()
            .any(|limit| limit.kind == vmscope_records::LimitKind::EngineFallback),
        "{limits:?}"
    );
    let mut events = Vec::new();
    run(&mut engine, Duration::from_secs(60), &mut events);
    two.wait().expect("waits");
    check_lives(&events);
    check_sampled_once(&events);
    let sampled = ends(&events).iter().filter(|end| end.samples > 20).count();
    assert_eq!(sampled, 2, "both threads that spin are sampled");
}

/// Counters of CPU time must leave the descriptors to the events.
#[test]
fn every_thread_has_an_event_though_the_descriptors_do_not_suffice_for_all() {
    let mut target = child("idle-threads").spawn().expect("can fork");
    let threads = format!("/proc/{}/task", target.id());
    while std::fs::read_dir(&threads).expect("it runs").count() <= 200 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let attach = child("attach");
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 364; exec \"$0\" \"$@\""])
        .arg(attach.get_program())
        .args(attach.get_args())
        .env(ROLE, "attach")
        .env("PID", target.id().to_string());
    let status = limited.stdout(Stdio::null()).status().expect("can fork");
    target.kill().expect("can kill");
    target.wait().expect("waits");
    assert!(status.success());
}

#[test]
fn children_and_execs_of_a_command_are_followed() {
    let mut command = Command::new("sh");
    command.args(["-c", "true; (exec sleep 0.01); exec sleep 0.02"]);
    let Some(events) = follow(command, &KernelOptions::default()) else {
        return;
    };
    check_lives(&events);
    let execs: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::Exec { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(execs, ["sh", "sleep", "sleep"]);
    let forks = events
        .iter()
        .filter(|event| matches!(event, EngineEvent::ProcessForked { .. }));
    assert_eq!(forks.count(), 1);
    let mapped = events.iter().any(|event| {
        matches!(event, EngineEvent::Mapped(mapping) if mapping.executable && mapping.path.ends_with(b"/sleep"))
    });
    assert!(mapped, "the program's text is mapped");
}

#[test]
fn children_of_the_same_program_are_named_when_attaching() {
    let mut family = Command::new("sh");
    // All end with the input.
    let script = "exec 3<&0; sh -c 'read x; :' <&3 & echo $!; cat <&3 & echo $!; wait";
    family.args(["-c", script]);
    family.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut family = family.spawn().expect("starts");
    let output = family.stdout.take().expect("piped");
    let mut lines = std::io::BufReader::new(output).lines();
    let mut pid = || -> u32 {
        let line = lines.next().expect("a line").expect("readable");
        line.parse().expect("a pid")
    };
    let [worker, other] = [pid(), pid()];
    let program = |pid| std::fs::read_link(format!("/proc/{pid}/exe")).expect("readable");
    while program(other) == program(family.id()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let limits = |pids: &[u32]| {
        let pids: Vec<Pid> = pids.iter().copied().map(Pid).collect();
        let engine = KernelEngine::attach(&pids, &KernelOptions::default());
        engine.map(|engine| engine.description().limits.clone())
    };
    let found = [limits(&[family.id()]), limits(&[family.id(), worker])];
    drop(family.stdin.take());
    family.wait().expect("ends");
    let [alone, both] = match found {
        [Err(error), _] | [_, Err(error)] if forbidden(&error) => return,
        found => found.map(|limits| limits.expect("opens")),
    };
    let told = |limits: &[Limit]| -> Vec<String> {
        let limits = limits.iter();
        let about = limits.filter(|limit| limit.text.contains("child"));
        about.map(|limit| limit.text.clone()).collect()
    };
    assert_eq!(
        told(&alone),
        [format!(
            "child process {worker} runs the same program and is not sampled"
        )],
        "not {other}"
    );
    assert_eq!(told(&both), [""; 0]);
}

/// Attached, each thread has events of its own; the kernel swaps inherited ones without touching the timer.
#[test]
fn switches_of_threads_are_the_reason_for_missing_samples() {
    let mut child = child("ping-pong").spawn().expect("starts");
    let tasks = format!("/proc/{}/task", child.id());
    // The test's main thread waits.
    while std::fs::read_dir(&tasks).expect("lives").count() < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut events = Vec::new();
    let opened = KernelEngine::attach(&[Pid(child.id())], &KernelOptions::default());
    let opened = opened.map(|mut engine| run(&mut engine, Duration::from_secs(2), &mut events));
    child.kill().expect("lives");
    child.wait().expect("ends");
    match opened {
        Err(error) if forbidden(&error) => return,
        opened => opened.expect("opens"),
    }
    let limits = events.iter().filter_map(|event| match event {
        EngineEvent::Limit(limit) if limit.kind == LimitKind::Missing => Some(&limit.text),
        _ => None,
    });
    let texts: Vec<&String> = limits.collect();
    let [text] = texts.as_slice() else {
        panic!("one reason: {texts:?}");
    };
    let switches = text
        .split_ascii_whitespace()
        .find_map(|word| word.parse().ok());
    let switches: u64 = switches.expect("a number of switches");
    assert!((1_000..1_000_000).contains(&switches), "{text}");
}

/// Ends at about 2,800 samples. The test requires a quarter of them only: losses depend on the
/// machine's other work, and the benchmark measures them.
#[test]
fn a_spinning_thread_is_sampled_at_the_rate_in_user_space() {
    let options = KernelOptions {
        call_graph: Some(CallGraph {
            depth: 16,
            from: UserCallers::FramePointers,
        }),
        ..KernelOptions::default()
    };
    let Some(events) = follow(child("spin"), &options) else {
        return;
    };
    check_lives(&events);
    check_sampled_once(&events);
    let ends = ends(&events);
    let busiest = ends.iter().max_by_key(|end| end.cpu).expect("there is one");
    let promised = busiest.cpu.0 / busiest.mean_period.0;
    assert!(busiest.samples * 4 > promised, "{busiest:?}");
    let (mut user, mut chained) = (0u64, 0u64);
    for event in &events {
        let EngineEvent::Sample(sample) = event else {
            continue;
        };
        if sample.tid != busiest.tid || sample.mode != CpuMode::User {
            continue;
        }
        user += 1;
        let detail = sample.detail.as_ref().expect("chains were asked for");
        let chain = detail.chain.as_ref().expect("chains were asked for");
        assert_ne!(chain.user.first(), Some(&sample.pc), "the leaf is left out");
        chained += u64::from(!chain.user.is_empty());
    }
    assert!(user * 2 > busiest.samples, "it spins in user space: {user}");
    assert!(chained > 0, "there are callers");
}

#[test]
fn what_is_no_target_is_told_apart() {
    let open = |pid| KernelEngine::attach(&[Pid(pid)], &KernelOptions::default());
    assert!(matches!(open(0), Err(EngineError::NoSuchProcess { .. })));
    assert!(matches!(
        open(u32::MAX),
        Err(EngineError::NoSuchProcess { .. })
    ));
    let mut dead = Command::new("true").spawn().expect("can fork");
    let until = Instant::now() + Duration::from_secs(20);
    let zombie = loop {
        match open(dead.id()) {
            Ok(_) if Instant::now() < until => {}
            other => break other,
        }
    };
    match zombie {
        Err(EngineError::Zombie { .. } | EngineError::ExitedWhileAttaching { .. }) => {}
        Err(error) if forbidden(&error) => {}
        other => panic!("{other:?}"),
    }
    dead.wait().expect("waits");
    let (tell, told) = std::sync::mpsc::channel();
    let (_see, seen) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let me = std::fs::read_link("/proc/thread-self").expect("is there");
        let tid = me.file_name().and_then(|name| name.to_str()?.parse().ok());
        tell.send(tid.expect("a number")).expect("is heard");
        // Until it was looked at.
        let _ = seen.recv();
    });
    let tid: u32 = told.recv().expect("said");
    match open(tid) {
        Err(EngineError::NotAProcess { pid, .. }) => assert_eq!(pid.0, std::process::id()),
        other => panic!("{other:?}"),
    }
}

/// As an ordinary user: the user's own process is sampled, without the kernel where
/// paranoid is 2; another's is refused by name. Needs root, to become someone else.
#[test]
fn an_ordinary_user_samples_what_is_theirs() {
    let status = std::fs::read_to_string("/proc/self/status").expect("is there");
    if !status.contains("\nUid:\t0\t0")
        || Command::new("setpriv").arg("--version").output().is_err()
    {
        eprintln!("SKIPPED, NOTHING TESTED: needs root and setpriv to become another user");
        return;
    }
    let folder = std::env::temp_dir().join(format!("vmscope-live-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("can write");
    let program = folder.join("live");
    std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("copies");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["as_another_user", "--exact", "--nocapture"])
        .env(ROLE, "nobody")
        .output();
    std::fs::remove_dir_all(&folder).expect("is ours");
    let output = output.expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("as another user: done"), "{said}");
}

#[test]
fn as_another_user() {
    if std::env::var(ROLE).as_deref() != Ok("nobody") {
        return;
    }
    println!("as another user: done");
    let Some(events) = follow(child("spin"), &KernelOptions::default()) else {
        return;
    };
    check_lives(&events);
    let samples = events.iter().filter_map(|event| match event {
        EngineEvent::Sample(sample) => Some(sample.mode),
        _ => None,
    });
    let modes: Vec<CpuMode> = samples.collect();
    assert!(modes.len() > 300, "{} samples", modes.len());
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    if paranoid.is_ok_and(|text| text.trim() == "2") {
        assert!(modes.iter().all(|mode| *mode == CpuMode::User));
    }
    match KernelEngine::attach(&[Pid(1)], &KernelOptions::default()) {
        Err(EngineError::SomeoneElses { owner: 0, .. }) => {}
        other => panic!("{other:?}"),
    }
}
