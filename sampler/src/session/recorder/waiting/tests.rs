use super::*;
use crate::engine::{EngineEvent, RawMapping};
use crate::session::process_table::ProcessTable;
use vmscope_process::FramePointers;
use vmscope_records::{
    Arch, Avma, CpuMode, FileOffset, ProcessKey, Registers, SampleDetail, StackBytes, Tid,
};

/// Beyond the greatest process id.
const PROGRAM: Pid = Pid(1 << 30);

const BEGAN: u64 = 1000;

fn thread_started() -> EngineEvent {
    EngineEvent::ThreadStarted {
        time: TimeNs(BEGAN),
        pid: PROGRAM,
        tid: Tid(PROGRAM.0),
        parent_tid: None,
        name: None,
        cpu_before: DurationNs(0),
    }
}

fn exec(time: u64) -> EngineEvent {
    EngineEvent::Exec {
        time: TimeNs(time),
        pid: PROGRAM,
        tid: Tid(PROGRAM.0),
        name: "vm".to_owned(),
    }
}

/// Code without a file at 0x1000.
fn mapped() -> EngineEvent {
    EngineEvent::Mapped(Box::new(RawMapping {
        time: TimeNs(BEGAN),
        pid: PROGRAM,
        start: Avma(0x1000),
        len: 0x1000,
        offset: FileOffset(0),
        major: 0,
        minor: 0,
        inode: 0,
        executable: true,
        path: b"//anon".to_vec(),
    }))
}

/// A frame at 0x1100, called from 0x1200. `None`: of the kernel, without user registers.
fn sample(time: u64, pc: Option<u64>) -> EngineEvent {
    let stack = [0_u64, 0x1200, 0, 0];
    let detail = SampleDetail {
        registers: pc.map(|pc| Registers {
            arch: Arch::of_this_machine(),
            mask: 0b1_1100_0000,
            values: vec![0x7000, 0x7000, pc],
        }),
        stack: pc.map(|_| StackBytes {
            sp: Avma(0x7000),
            bytes: stack.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }),
        ..SampleDetail::default()
    };
    EngineEvent::Sample(RawSample {
        time: TimeNs(time),
        pid: PROGRAM,
        tid: Tid(PROGRAM.0),
        pc: Avma(pc.unwrap_or(u64::MAX - 0xfff)),
        mode: match pc {
            Some(_) => CpuMode::User,
            None => CpuMode::Kernel,
        },
        detail: Some(Box::new(detail)),
    })
}

struct Run {
    recorder: Recorder,
    out: Vec<Record>,
}

impl Run {
    fn new() -> Self {
        let table = Some(ProcessTable::new(&[]));
        let mut run = Run {
            recorder: Recorder::new(table, Vec::new(), Some(64)),
            out: Vec::new(),
        };
        run.take([thread_started(), mapped()]);
        run
    }

    fn take<const N: usize>(&mut self, events: [EngineEvent; N]) {
        for event in events {
            self.recorder.take(event, &mut self.out);
        }
    }

    fn release(&mut self, now: u64) {
        self.recorder.release(TimeNs(now), &mut self.out);
    }

    /// Times of the samples passed on since the last call, each with its number of user callers.
    fn passed(&mut self) -> Vec<(u64, usize)> {
        let samples = self.out.drain(..).filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        });
        let callers = samples.map(|sample| {
            let chain = sample.detail.and_then(|detail| detail.chain);
            (sample.time.0, chain.map_or(0, |chain| chain.user.len()))
        });
        callers.collect()
    }
}

#[test]
fn samples_of_a_young_program_wait_for_its_vms_rules() {
    let mut run = Run::new();
    run.take([sample(2000, Some(0x1100)), sample(2001, None)]);
    run.take([sample(2002, Some(0x1104))]);
    assert_eq!(run.passed(), [], "all in the order of their times");
    assert_eq!(run.recorder.waiting_since(), Some(TimeNs(2000)));
    let touched: Vec<Avma> = run
        .recorder
        .processes
        .get_mut(&PROGRAM)
        .unwrap()
        .generated
        .take_touched()
        .collect();
    assert!(
        touched.contains(&Avma(0x1100)),
        "adapters read its code meanwhile"
    );
    // A poll without rules changes nothing.
    run.recorder
        .take_poll(ProcessKey(0), Vec::new(), &mut run.out);
    run.release(3000);
    assert_eq!(run.passed(), []);
    let rules = (0, Box::new(FramePointers) as _);
    run.recorder.take_unwinder(ProcessKey(0), rules);
    run.release(3001);
    assert_eq!(run.passed(), [], "the rules know no code before a poll");
    run.recorder
        .take_poll(ProcessKey(0), Vec::new(), &mut run.out);
    run.release(3002);
    assert_eq!(run.passed(), [(2000, 1), (2001, 0), (2002, 1)]);
    assert_eq!(run.recorder.waiting_since(), None);
    // From now on, nothing waits: this frame pointer alone proves no caller.
    run.take([sample(4000, Some(0x1100))]);
    assert_eq!(run.passed(), [(4000, 1)]);
    assert_eq!(run.recorder.samples, 4);
}

#[test]
fn samples_wait_a_short_time_and_for_the_same_program() {
    let mut run = Run::new();
    run.take([sample(2000, Some(0x1100))]);
    run.release(BEGAN + YOUNG.0 - 1);
    assert_eq!(run.passed(), []);
    run.release(BEGAN + YOUNG.0);
    assert_eq!(run.passed(), [(2000, 0)], "no VM");
    run.take([sample(BEGAN + YOUNG.0, Some(0x1100))]);
    assert_eq!(run.passed().len(), 1, "an old program");

    // An exec begins another program.
    run.take([exec(BEGAN + YOUNG.0 + 1), mapped()]);
    run.take([sample(BEGAN + YOUNG.0 + 2, Some(0x1100))]);
    assert_eq!(run.passed(), []);
    run.take([exec(BEGAN + YOUNG.0 + 3)]);
    assert_eq!(run.passed(), [(BEGAN + YOUNG.0 + 2, 0)]);

    let mut run = Run::new();
    run.take([sample(2000, Some(0x1100))]);
    run.recorder.finish(&mut run.out);
    assert_eq!(run.passed(), [(2000, 0)], "the recording's end");
}

#[test]
fn few_stacks_wait() {
    let mut run = Run::new();
    for number in 0..MAX_WAITING as u64 {
        run.take([sample(2000 + number, Some(0x1100))]);
    }
    assert_eq!(run.passed(), []);
    run.take([sample(9000, Some(0x1100))]);
    assert_eq!(run.passed().len(), MAX_WAITING);
    run.recorder.finish(&mut run.out);
    assert_eq!(run.passed().len(), 1);
}
