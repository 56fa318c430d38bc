//! Collections and their phases, from begin to end.

use std::collections::BTreeMap;

use vmscope_process::Poll;
use vmscope_publish::event::{self as e, Event};
use vmscope_records::{Collection, CollectionKey, Phase, SpaceUse, ThreadKey, Tid, TimeNs};

use crate::convert;

/// Maximum number of collections that run at a time.
const MAX_OPEN: usize = 256;

/// Maximum number of phases of a collection.
const MAX_PHASES: usize = 1 << 12;

/// Maximum number of remembered keys of finished collections, for survivals and deaths that follow.
const MAX_KEYS: usize = 1 << 16;

/// Running collections, and the keys of recent collections.
#[derive(Debug, Default)]
pub(super) struct Collections {
    open: BTreeMap<u64, Collection>,
    keys: BTreeMap<u64, CollectionKey>,
}

impl Collections {
    /// Takes an event of a collection; `false` if the event is invalid. `tid` finds threads.
    pub fn take(
        &mut self,
        time: TimeNs,
        event: &Event<'_>,
        tid: impl FnMut(u32) -> Option<Tid>,
        poll: &mut Poll,
    ) -> bool {
        match event {
            Event::CollectionBegin(begin) => self.begin(time, begin, poll),
            Event::CollectionEnd(end) => self.end(time, end, poll),
            Event::PhaseBegin(phase) => self.begin_phase(time, phase, tid),
            Event::PhaseEnd(end) => self.end_phase(time, end),
            _ => true,
        }
    }

    /// Key of a collection.
    pub fn key(&self, id: u64) -> Option<CollectionKey> {
        self.keys.get(&id).copied()
    }

    /// Emits unfinished collections.
    pub fn finish(&mut self, poll: &mut Poll) {
        for collection in std::mem::take(&mut self.open).into_values() {
            poll.collection(collection);
        }
    }

    fn begin(&mut self, time: TimeNs, begin: &e::CollectionBegin<'_>, poll: &mut Poll) -> bool {
        if self.open.len() >= MAX_OPEN || self.open.contains_key(&begin.id) {
            return false;
        }
        let key = poll.keys().collection();
        while self.keys.len() >= MAX_KEYS {
            self.keys.pop_first();
        }
        self.keys.insert(begin.id, key);
        let spaces = begin.spaces.iter().map(|space| SpaceUse {
            name: space.name.to_string(),
            before: space.used,
            after: None,
            capacity: space.capacity,
        });
        let collection = Collection {
            key,
            process: poll.process(),
            time,
            collector: begin.collector.to_string(),
            kind: begin.kind.to_string(),
            cause: begin.cause.to_string(),
            number: begin.id,
            begin: Some(time),
            scope: convert::scope(begin.scope),
            spaces: spaces.collect(),
            ..Collection::default()
        };
        self.open.insert(begin.id, collection);
        true
    }

    fn end(&mut self, time: TimeNs, end: &e::CollectionEnd<'_>, poll: &mut Poll) -> bool {
        let Some(mut collection) = self.open.remove(&end.id) else {
            return false;
        };
        collection.time = time;
        collection.end = Some(time);
        collection.survived_bytes = end.survived_bytes;
        collection.tenured_bytes = end.tenured_bytes;
        collection.survived_objects = end.survived_objects;
        collection.cpu_ns = end.cpu_ns;
        for after in end.spaces.iter() {
            let name = after.name.to_str();
            let mut spaces = collection.spaces.iter_mut();
            match spaces.find(|space| space.name == name) {
                Some(space) => {
                    space.after = after.used;
                    space.capacity = after.capacity.or(space.capacity);
                }
                None => collection.spaces.push(SpaceUse {
                    name: name.into_owned(),
                    before: None,
                    after: after.used,
                    capacity: after.capacity,
                }),
            }
        }
        poll.collection(collection);
        true
    }

    fn begin_phase(
        &mut self,
        time: TimeNs,
        begin: &e::PhaseBegin<'_>,
        mut tid: impl FnMut(u32) -> Option<Tid>,
    ) -> bool {
        let Some(collection) = self.open.get_mut(&begin.collection) else {
            return false;
        };
        let phases = &mut collection.phases;
        let is_next = usize::try_from(begin.phase) == Ok(phases.len());
        let is_within = begin.within.is_none_or(|outer| outer < begin.phase);
        if !is_next || !is_within || phases.len() >= MAX_PHASES {
            return false;
        }
        let thread = (begin.tid != 0).then(|| tid(begin.tid)).flatten();
        phases.push(Phase {
            name: begin.name.to_string(),
            within: begin.within,
            begin: Some(time),
            end: None,
            stop_the_world: begin.stop_the_world,
            thread: thread.map(ThreadKey::of_tid),
        });
        true
    }

    fn end_phase(&mut self, time: TimeNs, end: &e::PhaseEnd) -> bool {
        let collection = self.open.get_mut(&end.collection);
        let number = usize::try_from(end.phase).unwrap_or(usize::MAX);
        let phase = collection.and_then(|collection| collection.phases.get_mut(number));
        let Some(phase) = phase.filter(|phase| phase.end.is_none()) else {
            return false;
        };
        phase.end = Some(time);
        true
    }
}
