use crossbeam_channel::{Receiver, unbounded};
use vmscope_process::testing::FakeMemory;
use vmscope_process::{FramePointers, Unwinder};
use vmscope_records::Pid;

use super::*;

/// Emits the next text in each poll, and the touched addresses.
struct Talker {
    texts: Vec<String>,
}

impl Adapter for Talker {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "talker".to_owned(),
            version: String::new(),
        }
    }

    fn poll(&mut self, _: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        for text in &self.texts {
            poll.limit(text.clone(), "");
        }
        let touched = format!("{:?}", poll.touched());
        poll.fact("touched", touched);
        Ok(())
    }

    fn unwinder(&mut self, _: &ProcessView) -> Option<Box<dyn Unwinder>> {
        Some(Box::new(FramePointers))
    }

    fn next_poll(&self) -> Duration {
        Duration::ZERO
    }
}

fn running(texts: Vec<String>) -> RunningAdapter {
    RunningAdapter::new((0, "talker"), Box::new(Talker { texts }))
}

fn view(pid: u32) -> ProcessView {
    ProcessView::fake(Pid(pid), Arc::new(FakeMemory::new()), Vec::new())
}

fn limits(inbox: &Receiver<AdapterMessage>) -> Vec<String> {
    let mut texts = Vec::new();
    for found in inbox.try_iter() {
        match found {
            AdapterMessage::Limit(limit) => texts.push(limit.text),
            AdapterMessage::Poll(_, records) => {
                texts.extend(records.into_iter().filter_map(|record| match record {
                    Record::Limit(limit) => Some(limit.text),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    texts
}

#[test]
fn what_many_processes_say_is_said_once_and_not_without_end() {
    let (out, inbox) = unbounded();
    let mut emitter = Emitter::new(KeySource::new(), out, TouchedAddresses::default());
    for pid in 1..5 {
        let mut same = running(vec!["no names".to_owned()]);
        same.poll(&view(pid), &mut emitter);
        same.finish(&view(pid), &mut emitter);
    }
    assert_eq!(limits(&inbox), ["no names"]);
    for pid in 1..1000 {
        let mut own = running(vec![format!("no names in {pid}")]);
        own.poll(&view(pid), &mut emitter);
    }
    let said = limits(&inbox);
    assert_eq!(said.len(), MAX_LIMITS);
    assert!(said[MAX_LIMITS - 1].starts_with("further VM limits"));
    emitter.emit_limit("another".to_owned(), "");
    assert!(limits(&inbox).is_empty());
}

#[test]
fn what_samples_touched_is_told_once_in_the_next_look() {
    let (out, inbox) = unbounded();
    let mut emitter = Emitter::new(KeySource::new(), out, TouchedAddresses::default());
    let mut adapter = running(Vec::new());
    adapter.touch(&[Avma(1), Avma(5)], TimeNs(0), &emitter);
    adapter.touch(&[Avma(3), Avma(5)], TimeNs(0), &emitter);
    adapter.poll(&view(1), &mut emitter);
    adapter.touch(&[Avma(9)], TimeNs(0), &emitter);
    adapter.finish(&view(1), &mut emitter);
    let mut facts = Vec::new();
    for found in inbox.try_iter() {
        if let AdapterMessage::Poll(_, records) = found {
            facts.extend(records.into_iter().filter_map(|record| match record {
                Record::Fact(fact) => Some(fact.value),
                _ => None,
            }));
        }
    }
    assert_eq!(facts, ["[Avma(0x1), Avma(0x3), Avma(0x5)]", "[Avma(0x9)]"]);
}

#[test]
fn of_too_many_addresses_some_are_counted() {
    let (out, _inbox) = unbounded();
    let emitter = Emitter::new(KeySource::new(), out, TouchedAddresses::default());
    let mut adapter = running(Vec::new());
    let most = MAX_TOUCHED_OF_A_POLL as u64;
    let addresses: Vec<Avma> = (0..most + 7).map(Avma).collect();
    adapter.touch(&addresses, TimeNs(0), &emitter);
    assert_eq!(adapter.touched.len(), MAX_TOUCHED_OF_A_POLL);
    assert_eq!(emitter.missed_touched(), 7);
}

/// Samples wait for it, and a first poll may take long.
#[test]
fn the_unwinder_comes_before_the_first_poll_once() {
    let (out, inbox) = unbounded();
    let mut emitter = Emitter::new(KeySource::new(), out, TouchedAddresses::default());
    let mut adapter = running(vec!["text".to_owned()]);
    adapter.poll(&view(1), &mut emitter);
    adapter.poll(&view(1), &mut emitter);
    let is_unwinder = |found| matches!(found, AdapterMessage::Unwinder(..));
    let order: Vec<bool> = inbox.try_iter().map(is_unwinder).collect();
    assert_eq!(order.iter().filter(|is| **is).count(), 1);
    assert!(order[0]);
}
