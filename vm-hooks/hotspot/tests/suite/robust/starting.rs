//! A JVM that starts.

use std::sync::Arc;

use vmscope_hotspot::HotSpotAdapter;
use vmscope_process::{Adapter as _, AdapterError, KeySource, Poll, ProcessView};
use vmscope_records::{ProcessKey, TimeNs};

use super::readings::{fields, write};
use crate::snapshot_files::snapshot;

/// While the VM makes the interpreter, the buffer of codelets has room behind the last one. What a poll reads
/// then must not count for the whole recording.
#[test]
fn an_interpreter_that_is_being_made_is_read_later() {
    for name in ["jdk17", "jdk25"] {
        let whole = snapshot(name);
        let entries = fields(&whole);
        let entry = |structure: &str, field: &str| {
            let mut all = entries.iter();
            let found = all.find(|one| one.structure == structure && one.field == field);
            found.unwrap()
        };
        // Snapshots lack the interpreter's queue of codelets.
        let queue: u64 = 0x7000_0000_0000;
        let with_room = |room: u32| {
            let mut other = whole.clone();
            write(
                &mut other,
                entry("AbstractInterpreter", "_code").address,
                &queue.to_le_bytes(),
            );
            write(&mut other, queue, &[0; 256]);
            let limit = queue + entry("StubQueue", "_buffer_limit").offset;
            write(&mut other, limit, &room.to_le_bytes());
            other.process()
        };
        let (keys, mut adapter) = (KeySource::new(), HotSpotAdapter::new());
        let mut poll = |process: &ProcessView| {
            let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(|| TimeNs(7)));
            adapter
                .poll(process, &mut poll)
                .map(|()| poll.finish().len())
        };
        let started = poll(&with_room(8192));
        assert!(
            matches!(started, Err(AdapterError::NotReady { .. })),
            "{name} {started:?}"
        );
        let records = poll(&with_room(0)).unwrap();
        assert!(records > 100, "{name}: {records}");
    }
}
