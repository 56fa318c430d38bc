//! The adapter on a JVM's memory with overwritten parts: two polls, the second with samples, and
//! `finish`.
#![no_main]

mod patched;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use vmscope_hotspot::HotSpotAdapter;
use vmscope_records::{Avma, ProcessKey, Record, TimeNs};
use vmscope_process::{Adapter as _, KeySource, Poll};

/// Every so many-th piece of code gets a sample: pc maps take most of the time.
const SAMPLED: usize = 23;

fuzz_target!(|input: &[u8]| {
    let Some(process) = patched::process(input) else {
        return;
    };
    let (keys, mut adapter) = (KeySource::new(), HotSpotAdapter::new());
    let mut touched: Vec<Avma> = Vec::new();
    for round in 0..3 {
        let poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(|| TimeNs(7)));
        let mut poll = poll.with_touched(std::mem::take(&mut touched));
        let result = if round < 2 {
            adapter.poll(&process, &mut poll)
        } else {
            adapter.finish(&process, &mut poll)
        };
        let records = poll.finish();
        assert!(records.len() < 1_000_000);
        for record in records {
            let Record::Constituent(one) = record else {
                continue;
            };
            assert!(one.start <= one.end);
            touched.push(Avma(one.start.0 + (one.end.0 - one.start.0) / 2));
        }
        touched = touched.into_iter().step_by(SAMPLED).collect();
        touched.sort_unstable();
        touched.dedup();
        if let Err(error) = result {
            assert!(!error.to_string().is_empty());
            if error.is_final() {
                return;
            }
        }
    }
});
