//! Threads of the fictitious JVM and their activities.

use super::super::{Draw, PROCESS, Recording, session};
use super::collections::{self, COLLECTORS, Happened, is_marking, pause_at};
use super::figures::{self, C1, C2, Compiled, LOST, LOST_MS};
use super::leaves::{Leaf, Leaves};
use super::zone::{REUSED_MS, Zone};
use super::{BEGIN, MS, PERIOD, SECONDS, file, libraries, ms};
use vmscope_records::{
    Avma, CpuMode, DurationNs, EndReason, Pid, ProcessEnd, Record, RecordingEnd, Sample, Session,
    Thread, ThreadCpu, ThreadEnd, ThreadKey, ThreadRole, Tid, TimeNs, VmIdentity,
};

/// Main thread and VM thread.
const MAIN: ThreadKey = ThreadKey(1);
const VM_THREAD: ThreadKey = ThreadKey(9);

/// Name, role, start and end (ms) of each thread; keys start at 1.
const THREADS: [(&str, ThreadRole, u64, u64); 9] = [
    ("main", ThreadRole::Mutator, 0, SECONDS * 1_000),
    ("worker-0", ThreadRole::Mutator, 0, SECONDS * 1_000),
    ("worker-1", ThreadRole::Mutator, 0, SECONDS * 1_000),
    ("worker-2", ThreadRole::Mutator, 6_000, 14_000),
    ("C1 CompilerThre", ThreadRole::Compiler, 0, SECONDS * 1_000),
    ("C2 CompilerThre", ThreadRole::Compiler, 0, SECONDS * 1_000),
    ("GC Thread#0", ThreadRole::Collector, 0, SECONDS * 1_000),
    ("GC Thread#1", ThreadRole::Collector, 0, SECONDS * 1_000),
    ("VM Thread", ThreadRole::Vm, 0, SECONDS * 1_000),
];

/// All threads are idle in this span (ms).
const IDLE_MS: (u64, u64) = (15_000, 16_000);

/// Samples with two possible methods.
const DOUBTFUL: u64 = 9;

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Java,
    /// Kind of pause, and elapsed percentage.
    Pause(&'static str, u64),
    Marking,
    Compiling,
    Operations,
}

/// A thread with its CPU time so far.
struct Running {
    key: ThreadKey,
    from: u64,
    to: u64,
    cpu: u64,
    user: u64,
}

struct Player<'a> {
    zone: &'a Zone,
    stops: Vec<Happened>,
    compiled: Vec<Compiled>,
    draw: Draw,
    lost: u64,
}

impl Player<'_> {
    /// A thread's activity, and the busy fraction of its time.
    fn work(&self, key: ThreadKey, time: u64) -> Option<(Work, f64)> {
        let at_ms = (time - BEGIN) / MS;
        if (IDLE_MS.0..IDLE_MS.1).contains(&at_ms) {
            return None;
        }
        let pause = pause_at(&self.stops, time).map(|(kind, over)| Work::Pause(kind, over));
        if COLLECTORS.contains(&key) {
            let marks = key == COLLECTORS[1] && is_marking(&self.stops, time);
            return (pause.map(|pause| (pause, 0.94)))
                .or_else(|| marks.then_some((Work::Marking, 0.6)));
        }
        if key == C1 || key == C2 {
            let of_thread = |one: &&Compiled| one.thread == key;
            let mut all = self.compiled.iter().filter(of_thread);
            let compiles = all.any(|one| one.begin <= time && time < one.end);
            return compiles.then_some((Work::Compiling, 0.97));
        }
        if key == VM_THREAD {
            return pause.map(|_| (Work::Operations, 0.15));
        }
        // Stop-the-world pause.
        if pause.is_some() {
            return None;
        }
        let part = match (key, at_ms) {
            (MAIN, 0..3_000) => 0.62,
            (MAIN, _) => 0.03,
            (_, 0..900) => 0.01,
            (_, 900..3_000) => 0.09,
            (_, 10_000..12_000) => 0.17,
            _ => 0.075,
        };
        Some((Work::Java, part))
    }

    fn play(&mut self, recording: &mut Recording, threads: &mut [Running]) {
        let mut leaves = Leaves::new(self.zone);
        let mut next_second = 1;
        for tick in 0..SECONDS * 1_000_000_000 / PERIOD {
            let tick = BEGIN + tick * PERIOD;
            if tick >= ms(next_second * 1_000) {
                tell_cpu(recording, threads, ms(next_second * 1_000));
                next_second += 1;
            }
            // Spreads the threads' ticks over a period.
            for (thread, number) in threads.iter_mut().zip(0..) {
                let time = tick + number * PERIOD / 9 + self.draw.below(40_000);
                let there = thread.from <= time && time < thread.to;
                let Some((work, part)) = self.work(thread.key, time).filter(|_| there) else {
                    continue;
                };
                if self.draw.unit() >= part {
                    continue;
                }
                let leaf = leaves.at(work, (thread.key, time), &mut self.draw);
                thread.cpu += PERIOD;
                thread.user += if leaf.mode == CpuMode::User {
                    PERIOD
                } else {
                    0
                };
                let in_loss = (ms(LOST_MS.0)..ms(LOST_MS.1)).contains(&time);
                if in_loss && self.lost < LOST {
                    self.lost += 1;
                    continue;
                }
                put(recording, thread.key, time, leaf);
            }
        }
        tell_cpu(recording, threads, ms(SECONDS * 1_000) - 1);
        assert_eq!(self.lost, LOST, "all fit between the times of the loss");
    }

    /// Samples at an address whose code changed between two polls.
    fn doubtful(&mut self, recording: &mut Recording, thread: &mut Running) {
        let step = (REUSED_MS.1 - REUSED_MS.0) / (DOUBTFUL + 1);
        for number in 1..=DOUBTFUL {
            let time = ms(REUSED_MS.0 + number * step) + 123;
            let leaf = Leaves::new(self.zone).reused(time, &mut self.draw);
            thread.cpu += PERIOD;
            thread.user += PERIOD;
            put(recording, thread.key, time, leaf);
        }
    }
}

fn put(recording: &mut Recording, thread: ThreadKey, time: u64, leaf: Leaf) {
    recording.put(Record::Sample(Sample {
        time: TimeNs(time),
        thread,
        pc: Avma(leaf.pc),
        mode: leaf.mode,
        detail: leaf.detail.map(Box::new),
    }));
}

fn tell_cpu(recording: &mut Recording, threads: &[Running], time: u64) {
    let there = |one: &&Running| one.from < time && time < one.to;
    for thread in threads.iter().filter(there) {
        recording.put(Record::ThreadCpu(ThreadCpu {
            key: thread.key,
            time: TimeNs(time),
            cpu: DurationNs(thread.cpu),
            cpu_user: Some(DurationNs(thread.user)),
        }));
    }
}

fn begin(recording: &mut Recording) -> Vec<Running> {
    recording.put(Record::Session(Box::new(Session {
        time: TimeNs(BEGIN),
        vm: VmIdentity {
            kind: "HotSpot".into(),
            version: "21.0.9+10-acme".into(),
        },
        command: [
            "/opt/acme-jdk/bin/java",
            "-Xmx512m",
            "-cp",
            "exchange.jar",
            "com.acme.Main",
        ]
        .map(String::from)
        .to_vec(),
        pid: Pid(4_242),
        launched: false,
        host: "exchange-7".into(),
        kernel: "Linux 6.12.48".into(),
        cpus: 8,
        engine_reason: "perf events are allowed".into(),
        period: DurationNs(PERIOD),
        scheduling: "nice 0".into(),
        ..session("HotSpot")
    })));
    recording.process(PROCESS, BEGIN, 4_242, None);
    let mut threads = Vec::new();
    for (number, (name, role, from, to)) in (1..).zip(THREADS) {
        let key = ThreadKey(number);
        recording.put(Record::Thread(Thread {
            key,
            process: PROCESS,
            tid: Tid(4_242 + number),
            time: TimeNs(ms(from)),
            name: name.into(),
            role,
            cpu_before: DurationNs(if from == 0 { 40 * MS } else { 0 }),
        }));
        threads.push(Running {
            key,
            from: ms(from),
            to: ms(to),
            cpu: 0,
            user: 0,
        });
    }
    threads
}

fn end(recording: &mut Recording, threads: &[Running]) {
    let end = ms(SECONDS * 1_000);
    for thread in threads {
        recording.put(Record::ThreadEnd(ThreadEnd {
            key: thread.key,
            time: TimeNs(thread.to),
            alive: thread.to == end,
            cpu: DurationNs(thread.cpu),
            cpu_measured: true,
            cpu_user: Some(DurationNs(thread.user)),
        }));
    }
    let sum = |of: fn(&Running) -> u64| DurationNs(threads.iter().map(of).sum());
    recording.put(Record::ProcessEnd(ProcessEnd {
        key: PROCESS,
        time: TimeNs(end),
        alive: true,
        cpu: Some(sum(|one| one.cpu)),
        cpu_user: Some(sum(|one| one.user)),
    }));
    recording.put(Record::End(RecordingEnd {
        time: TimeNs(end),
        reason: EndReason::DurationOver,
        detail: String::new(),
        samples: 0,
        recorder_cpu_ns: 61 * MS,
    }));
}

pub fn java() -> Vec<u8> {
    let zone = Zone::new();
    let stops = collections::all();
    let mut recording = Recording::empty();
    let mut threads = begin(&mut recording);
    libraries::record(&mut recording);
    zone.record(&mut recording);
    figures::record(&mut recording, &zone, &stops);
    let mut player = Player {
        zone: &zone,
        compiled: figures::compilations(&zone),
        stops,
        draw: Draw(20),
        lost: 0,
    };
    player.doubtful(&mut recording, &mut threads[2]);
    player.play(&mut recording, &mut threads);
    end(&mut recording, &threads);
    file(recording)
}
