use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use vmscope_records::{BoundaryRule, BytecodePc, CodeChange, Exactness, ProcessKey};

/// A VM with methods; the adapter makes pc maps of touched methods only.
struct Fake {
    name: &'static str,
    is_alone: bool,
    is_never_done: bool,
    asked_over: Arc<AtomicBool>,
}

struct FakeAdapter {
    is_alone: bool,
    is_never_done: bool,
    known: Vec<Constituent>,
}

fn constituent(key: ConstituentKey, number: u64) -> Constituent {
    Constituent {
        key,
        process: ProcessKey(0),
        since: TimeNs(1),
        absent_at: None,
        start: Avma(0x1000 * (number + 1)),
        end: Avma(0x1000 * (number + 1) + 0x800),
        kind: ConstituentKind::Method,
        tier: String::new(),
        name: format!("m{number}"),
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    }
}

impl AdapterFamily for Fake {
    fn name(&self) -> &'static str {
        self.name
    }

    fn recognise(&self, _: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        Ok(Some(Box::new(FakeAdapter {
            is_alone: self.is_alone,
            is_never_done: self.is_never_done,
            known: Vec::new(),
        })))
    }

    fn recording_over(&self) {
        self.asked_over.store(true, Ordering::Relaxed);
    }
}

impl Adapter for FakeAdapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "Fake".to_owned(),
            version: "1".to_owned(),
        }
    }

    fn poll(&mut self, _: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        // The zone is read in three polls.
        if self.known.len() < 3 {
            let one = constituent(poll.keys().constituent(), self.known.len() as u64);
            poll.code(CodeChange::Seen(one.clone()));
            self.known.push(one);
        }
        for one in &mut self.known {
            let in_it = |at: &&Avma| one.start <= **at && **at < one.end;
            if poll.touched().iter().filter(in_it).count() == 2 {
                one.map = PcMap::Boundary {
                    rule: BoundaryRule::AtStart,
                    exactness: Exactness::Exact,
                    entries: vec![(0, BytecodePc(0))],
                };
                poll.code(CodeChange::Seen(one.clone()));
            }
        }
        if self.known.len() < 3 || self.is_never_done {
            poll.code_is_told_until(TimeNs(0));
        }
        Ok(())
    }

    fn tells_all_code(&self) -> bool {
        self.is_alone
    }

    fn next_poll(&self) -> Duration {
        Duration::from_millis(2)
    }
}

fn families(is_alone: bool, is_never_done: bool) -> (Vec<Box<dyn AdapterFamily>>, Arc<AtomicBool>) {
    let asked_over = Arc::new(AtomicBool::new(false));
    let fake = |name| -> Box<dyn AdapterFamily> {
        Box::new(Fake {
            name,
            is_alone,
            is_never_done,
            asked_over: Arc::clone(&asked_over),
        })
    };
    (vec![fake("first"), fake("second")], asked_over)
}

fn view() -> ProcessView {
    ProcessView::exited(Pid(7), Vec::new())
}

#[test]
fn all_code_is_read_with_maps_only_if_asked() {
    for (is_alone, expected) in [(true, 3), (false, 6)] {
        for with_maps in [false, true] {
            let (families, over) = families(is_alone, false);
            let code = read_code(&view(), families, with_maps, &|| false).unwrap();
            assert_eq!(code.vm.kind, "Fake");
            let all = code.table.by_address();
            assert_eq!(all.len(), expected);
            let has_map = |one: &&Constituent| (one.map != PcMap::None) == with_maps;
            assert!(all.iter().all(has_map), "{all:?}");
            assert_eq!(code.table.limits(), [""; 0]);
            assert!(over.load(Ordering::Relaxed));
        }
    }
}

#[test]
fn a_signal_ends_a_reading_without_end_and_the_answer_says_so() {
    let (families, _) = families(true, true);
    let began = Instant::now();
    let is_stopped = || began.elapsed() > Duration::from_millis(100);
    let code = read_code(&view(), families, true, &is_stopped).unwrap();
    assert!(code.table.limits()[0].contains("some is missing"));
    assert!(began.elapsed() < READ_WITHIN);
}

#[test]
fn no_vm_and_another_program_are_errors() {
    let none = read_code(&view(), Vec::new(), true, &|| false).unwrap_err();
    assert!(none.to_string().contains("no known VM"), "{none}");
    let (families, _) = families(true, false);
    let own = ProcessView::open(Pid(std::process::id())).unwrap();
    let view = view();
    let recognised = recognise(&families, &view);
    let mut reading = Reading::new(&view, own.stamp(), recognised).unwrap();
    let ended = reading.poll(Vec::new()).unwrap_err();
    assert!(matches!(ended, CodeError::Ended { pid: Pid(7) }));
}
