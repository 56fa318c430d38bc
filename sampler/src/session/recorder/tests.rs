use super::*;
use vmscope_records::Compilation;

fn started(tid: u32, name: Option<&str>, parent: Option<u32>) -> EngineEvent {
    EngineEvent::ThreadStarted {
        time: TimeNs(u64::from(tid)),
        pid: Pid(1),
        tid: Tid(tid),
        parent_tid: parent.map(Tid),
        name: name.map(str::to_owned),
        cpu_before: DurationNs(0),
    }
}

fn names(events: Vec<EngineEvent>) -> Vec<String> {
    let mut recorder = Recorder::default();
    let mut records = Vec::new();
    for event in events {
        recorder.take(event, &mut records);
    }
    records
        .into_iter()
        .filter_map(|record| match record {
            Record::Thread(thread) => Some(thread.name),
            _ => None,
        })
        .collect()
}

#[test]
fn a_thread_has_the_name_of_the_one_that_starts_it() {
    let renamed = EngineEvent::Renamed {
        time: TimeNs(3),
        pid: Pid(1),
        tid: Tid(2),
        name: "worker".to_owned(),
    };
    let events = vec![
        started(1, Some("node"), None),
        started(2, None, Some(1)),
        renamed,
        started(4, None, Some(2)),
        started(5, None, Some(99)),
        started(6, Some("own"), Some(1)),
    ];
    assert_eq!(names(events), ["node", "node", "worker", "", "own"]);
}

#[test]
fn the_kernels_cut_name_does_not_replace_the_full_one() {
    let mut recorder = Recorder::default();
    let mut out = Vec::new();
    recorder.take(started(1, Some("java"), None), &mut out);
    let full = "http-nio-18080-exec-1";
    let update = Record::ThreadUpdate(ThreadUpdate {
        key: ThreadKey::of_tid(Tid(1)),
        time: TimeNs(2),
        name: Some(full.to_owned()),
        role: None,
        process: None,
    });
    recorder.take_poll(ProcessKey(0), vec![update], &mut out);
    for name in ["http-nio-18080-", "http", "other"] {
        let renamed = EngineEvent::Renamed {
            time: TimeNs(3),
            pid: Pid(1),
            tid: Tid(1),
            name: name.to_owned(),
        };
        recorder.take(renamed, &mut out);
    }
    let names = out.into_iter().filter_map(|record| match record {
        Record::ThreadUpdate(update) => update.name,
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), [full, "http", "other"]);
    assert!(is_start("スレッド\u{fffd}", "スレッド番号"));
}

#[test]
fn the_last_compilation_of_an_ended_thread_is_kept() {
    let mut recorder = Recorder::default();
    let mut out = Vec::new();
    recorder.take(started(1, Some("C2"), None), &mut out);
    let process = recorder.processes[&Pid(1)].key;
    let ended = |tid| {
        EngineEvent::ThreadEnded(Box::new(RawThreadEnd {
            time: TimeNs(9),
            pid: Pid(1),
            tid: Tid(tid),
            cpu: DurationNs(5),
            cpu_measured: true,
            cpu_user: None,
            samples: 1,
            mean_period: DurationNs(1),
            alive: true,
        }))
    };
    let compilation = |tid| {
        Record::Compilation(Box::new(Compilation {
            process,
            thread: ThreadKey::of_tid(Tid(tid)),
            ..Compilation::default()
        }))
    };
    recorder.take(ended(1), &mut out);
    let thread = out.iter().find_map(|record| match record {
        Record::Thread(thread) => Some(thread.key),
        _ => None,
    });
    out.clear();
    recorder.take_poll(process, vec![compilation(1)], &mut out);
    recorder.finish(&mut out);
    let [Record::Compilation(one)] = &out[..] else {
        panic!("{out:?}")
    };
    assert_eq!(Some(one.thread), thread);
    // A new thread with the number of an ended one.
    recorder.take(started(1, Some("C1"), None), &mut out);
    out.clear();
    recorder.take_poll(process, vec![compilation(1)], &mut out);
    assert!(matches!(&out[..], [Record::Compilation(one)] if Some(one.thread) != thread));
    // Their number is bounded.
    for tid in 2..(MAX_ENDED as u32 + 10) {
        recorder.take(started(tid, None, None), &mut out);
        recorder.take(ended(tid), &mut out);
    }
    assert!(recorder.ended.len() <= MAX_ENDED);
}
