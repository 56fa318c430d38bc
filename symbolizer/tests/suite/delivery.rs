//! Expected samples of truncated or partial recordings: CPU readings arrive about once a second,
//! samples continuously.

use std::io::Cursor;

use vmscope_records::recording::{Reader, Writer};
use vmscope_records::{
    Arch, Avma, CpuMode, DurationNs, Pid, Process, ProcessKey, Record, Sample, SampleClock,
    Session, Thread, ThreadCpu, ThreadKey, ThreadRole, Tid, TimeNs, VmIdentity,
};
use vmscope_symbolizer::{Filter, Summary, Trace, profile_of};

const PERIOD: u64 = 1_000_000;

fn session() -> Session {
    Session {
        time: TimeNs(0),
        wall_clock_unix_ns: 0,
        producer: String::new(),
        vm: VmIdentity {
            kind: "native".to_owned(),
            version: String::new(),
        },
        command: Vec::new(),
        pid: Pid(1),
        launched: false,
        host: String::new(),
        kernel: String::new(),
        arch: Arch::of_this_machine(),
        cpus: 1,
        engine: "kernel".to_owned(),
        engine_reason: String::new(),
        clock: SampleClock::Cpu,
        period: DurationNs(PERIOD),
        kernel_included: true,
        scheduling: String::new(),
    }
}

#[test]
fn samples_after_the_last_reading_count_as_promised() {
    let mut writer = Writer::begin(Vec::new()).expect("memory");
    let (process, thread) = (ProcessKey(0), ThreadKey(0));
    let mut records = vec![
        Record::Session(Box::new(session())),
        Record::Process(Process {
            key: process,
            time: TimeNs(0),
            pid: Pid(1),
            parent: None,
            name: String::new(),
        }),
        Record::Thread(Thread {
            key: thread,
            process,
            tid: Tid(1),
            time: TimeNs(0),
            name: String::new(),
            role: ThreadRole::Other,
            cpu_before: DurationNs(0),
        }),
        // 100 periods have passed; 99 samples arrived.
        Record::ThreadCpu(ThreadCpu {
            key: thread,
            time: TimeNs(100 * PERIOD),
            cpu: DurationNs(100 * PERIOD),
            cpu_user: None,
        }),
    ];
    records.extend((1..150).map(|number| {
        Record::Sample(Sample {
            time: TimeNs(number * PERIOD + 1),
            thread,
            pc: Avma(number),
            mode: CpuMode::User,
            detail: None,
        })
    }));
    for record in records {
        writer.put(record).expect("memory");
    }
    writer.flush().expect("memory");
    let end = vmscope_records::RecordingEnd {
        time: TimeNs(150 * PERIOD),
        reason: vmscope_records::EndReason::Saved,
        detail: String::new(),
        samples: 0,
        recorder_cpu_ns: 0,
    };
    let (bytes, _) = writer.end(end).expect("memory");
    let mut reader = Reader::open(Cursor::new(bytes)).expect("a recording");
    let trace = Trace::read(&mut reader).expect("a recording");
    let profile = profile_of(trace, Vec::new(), true);

    let all = Summary::with_errors(&profile, &Filter::default());
    assert_eq!((all.total, all.after_last_cpu), (149, 50));
    assert_eq!(all.promised, Some(150.0));
    // A filter on earlier times ignores the late samples.
    let before = Filter {
        to: Some(TimeNs(100 * PERIOD)),
        ..Filter::default()
    };
    let before = Summary::with_errors(&profile, &before);
    assert_eq!((before.total, before.after_last_cpu), (99, 0));
    assert_eq!(before.promised, Some(100.0));
}
