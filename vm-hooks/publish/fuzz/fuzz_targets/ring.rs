//! A VM's memory that changes in any way while it is read: each call ends, and reading goes on.
#![no_main]

use std::sync::atomic::Ordering;

use libfuzzer_sys::fuzz_target;
use vmscope_publish::event::{Fact, Gone};
use vmscope_publish::memory::Memory;
use vmscope_publish::reader::{Attached, Next, NextSample};
use vmscope_publish::{Options, Publisher};

/// Reads to the end; each call skips words or reports the end.
fn read(attached: &mut Attached, now: u64) {
    for _ in 0..2000 {
        match attached.read_at(now, 2) {
            Next::Empty => break,
            Next::Event { .. }
            | Next::Undecodable(_)
            | Next::Overrun { .. }
            | Next::Torn { .. } => {}
            _ => unreachable!("a result of a later version"),
        }
    }
    for _ in 0..2000 {
        if attached.read_sample() == NextSample::Empty {
            break;
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let publisher = Publisher::new(&Options {
        stream_bytes: 4096,
        sample_bytes: 4096,
        ..Options::default()
    })
    .expect("memory");
    let file = || publisher.file().try_clone().expect("a descriptor");
    let memory = Memory::open(file()).expect("the same memory");
    let Ok(mut attached) = Attached::new(file(), None) else {
        unreachable!("it was just made");
    };
    let words = memory.all();
    // Steps of 12 bytes: an action, a place, and values for the action.
    for (now, step) in input.as_chunks::<12>().0.iter().enumerate() {
        let [what, low, high, detail, rest @ ..] = *step;
        let value = u64::from_le_bytes(rest);
        let at = usize::from(u16::from_le_bytes([low, high]));
        // The header, or the rings behind the rows of threads.
        let place = if at < 512 { at } else { words.len() - 1 - at % 1024 };
        let word = &words[place];
        match what % 8 {
            0 => word.store(value, Ordering::Relaxed),
            1 => word.store(u64::from(detail), Ordering::Relaxed),
            2 => {
                word.fetch_xor(1 << (detail % 64), Ordering::Relaxed);
            }
            3 => {
                word.fetch_add(u64::from(detail), Ordering::Relaxed);
            }
            4 => publisher.publish(&Gone::default()),
            5 => publisher.publish(&Fact {
                name: step[4..].into(),
                ..Fact::default()
            }),
            6 => read(&mut attached, now as u64),
            _ => {
                // The damaged header, seen by a new profiler and by an attached profiler.
                let _ = attached.renew();
                let _ = (attached.sampler_status(), attached.sampled_threads());
                if let Ok(mut other) = Attached::new(file(), None) {
                    read(&mut other, now as u64);
                }
            }
        }
    }
    read(&mut attached, u64::MAX);
});
