use super::*;

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
