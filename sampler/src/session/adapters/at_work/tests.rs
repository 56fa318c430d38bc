use crossbeam_channel::{Receiver, unbounded};
use vmscope_records::{Avma, Pid, TimeNs};
use vmscope_target::testing::FakeMemory;

use super::*;

/// Says what it is to say in each look, and tells of a method without a map.
struct Talker {
    texts: Vec<String>,
    has_late_maps: bool,
}

impl Adapter for Talker {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "talker".to_owned(),
            version: String::new(),
        }
    }

    fn look(&mut self, _: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        for text in &self.texts {
            look.limit(text.clone(), "");
        }
        let key = look.keys().constituent();
        look.code(CodeChange::Seen(Constituent {
            key,
            process: look.process(),
            since: TimeNs(1),
            absent_at: None,
            start: Avma(0x1000),
            end: Avma(0x1100),
            kind: ConstituentKind::Method,
            tier: String::new(),
            name: "method".to_owned(),
            method: None,
            cases: Vec::new(),
            map: PcMap::None,
        }));
        Ok(())
    }

    fn has_late_maps(&self) -> bool {
        self.has_late_maps
    }

    fn next_look(&self) -> Duration {
        Duration::ZERO
    }
}

fn at_work(texts: Vec<String>, has_late_maps: bool) -> AtWork {
    let talker = Talker {
        texts,
        has_late_maps,
    };
    AtWork::new("talker", Box::new(talker))
}

fn view(pid: u32) -> ProcessView {
    ProcessView::made_up(Pid(pid), Arc::new(FakeMemory::new()), Vec::new())
}

fn limits(inbox: &Receiver<Found>) -> Vec<String> {
    let mut texts = Vec::new();
    for found in inbox.try_iter() {
        let Found::Looked(records, _) = found else {
            continue;
        };
        texts.extend(records.into_iter().filter_map(|record| match record {
            Record::Limit(limit) => Some(limit.text),
            _ => None,
        }));
    }
    texts
}

#[test]
fn what_many_processes_say_is_said_once_and_not_without_end() {
    let (out, inbox) = unbounded();
    let mut teller = Teller::new(KeySource::new(), out);
    for pid in 1..5 {
        let mut same = at_work(vec!["no names".to_owned()], false);
        same.look(&view(pid), &mut teller);
        same.finish(&view(pid), &mut teller);
    }
    assert_eq!(limits(&inbox), ["no names"]);
    for pid in 1..1000 {
        let mut own = at_work(vec![format!("no names in {pid}")], false);
        own.look(&view(pid), &mut teller);
    }
    let said = limits(&inbox);
    assert_eq!(said.len(), MAX_TROUBLES);
    assert!(said[MAX_TROUBLES - 1].starts_with("further troubles"));
    teller.limit("another".to_owned(), "");
    assert!(limits(&inbox).is_empty());
}

#[test]
fn only_what_may_get_a_map_later_waits_for_it() {
    let (out, _inbox) = unbounded();
    let mut teller = Teller::new(KeySource::new(), out);
    for (has_late_maps, waiting) in [(false, 0), (true, 1)] {
        let mut adapter = at_work(Vec::new(), has_late_maps);
        adapter.look(&view(1), &mut teller);
        assert_eq!((adapter.waiting.len(), teller.waiting), (waiting, waiting));
    }
}
