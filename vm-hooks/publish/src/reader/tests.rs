#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

use std::os::fd::{AsRawFd as _, FromRawFd as _};

use super::*;
use crate::event::Fact;
use crate::{Options, Publisher};

fn small() -> Publisher {
    Publisher::new(&Options {
        stream_bytes: 1 << 14,
        sample_bytes: 1 << 12,
        ..Options::default()
    })
    .unwrap()
}

fn file(publisher: &Publisher) -> File {
    publisher.file().try_clone().unwrap()
}

#[test]
fn a_profiler_finds_the_memory_among_the_descriptors() {
    let publisher = small();
    let fd = publisher.file().as_raw_fd();
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
    assert_eq!(link.to_str(), Some(layout::LINK));
    let opened = File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{fd}"));
    let mut attached = Attached::new(opened.unwrap(), None).unwrap();
    publisher.publish(&Fact::default());
    assert!(matches!(attached.read(), Next::Event { .. }));
}

#[test]
fn the_ninth_profiler_is_told_why_not() {
    let publisher = small();
    let mut all: Vec<_> = (0..layout::LEASES)
        .map(|_| Attached::new(file(&publisher), None).unwrap())
        .collect();
    let error = Attached::new(file(&publisher), None).unwrap_err();
    let AttachError::Full { pids } = &error else {
        panic!("{error}");
    };
    assert_eq!(*pids, [u64::from(std::process::id()); layout::LEASES]);
    assert!(error.to_string().starts_with("8 profilers listen"));
    all.pop();
    assert!(Attached::new(file(&publisher), None).is_ok());
}

#[test]
fn all_profilers_read_everything() {
    let publisher = small();
    let mut readers = [(); 3].map(|()| Attached::new(file(&publisher), None).unwrap());
    for _ in 0..5 {
        publisher.publish(&Fact::default());
    }
    for reader in &mut readers {
        let events = std::iter::from_fn(|| match reader.read() {
            Next::Event { .. } => Some(()),
            _ => None,
        });
        assert_eq!(events.count(), 5);
    }
}

#[test]
fn nobody_waits_for_a_reader_of_samples_only() {
    let publisher = small();
    let mut attached = Attached::new(file(&publisher), None).unwrap();
    attached.read_samples_only();
    let read = |attached: &Attached| {
        let read = attached.memory.word(word::LEASE_READ + attached.slot);
        read.load(Ordering::Relaxed)
    };
    assert_eq!(read(&attached), u64::MAX);
    // Also with a new lease.
    let lease = attached.memory.word(word::LEASES + attached.slot);
    lease.store(0, Ordering::Relaxed);
    assert!(!attached.renew().unwrap());
    assert_eq!(read(&attached), u64::MAX);
    assert_eq!(attached.read_sample_of_dead(), NextSample::Empty);
}

#[test]
fn a_lease_is_renewed_or_taken_anew() {
    let publisher = small();
    let mut attached = Attached::new(file(&publisher), None).unwrap();
    assert!(attached.renew().unwrap());
    // The VM ended it, because it ran out while the profiler was stopped.
    let lease = word::LEASES + attached.slot;
    attached.memory.word(lease).store(0, Ordering::Relaxed);
    assert!(!publisher.check_listeners());
    assert!(!attached.renew().unwrap());
    assert!(publisher.listening());
    // Another profiler has its slot by now.
    attached
        .memory
        .word(lease)
        .store(memory::now() + LEASE_NS + 77, Ordering::Relaxed);
    assert!(!attached.renew().unwrap());
    assert_ne!(word::LEASES + attached.slot, lease);
}

#[test]
fn memory_of_another_process_is_refused() {
    let publisher = small();
    let error = Attached::new(file(&publisher), Some(1)).unwrap_err();
    let own = u64::from(std::process::id());
    assert!(matches!(error, AttachError::Inherited { owner } if owner == own));
}

fn memfd(bytes: u64) -> File {
    #[expect(unsafe_code, reason = "a file in memory without our seals")]
    // SAFETY: the name ends with 0.
    let fd = unsafe { libc::memfd_create(c"other".as_ptr(), libc::MFD_ALLOW_SEALING) };
    #[expect(unsafe_code, reason = "the descriptor is made here")]
    // SAFETY: the descriptor is new.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes).unwrap();
    file
}

#[test]
fn files_that_could_shrink_are_refused() {
    let error = Attached::new(memfd(1 << 20), None).unwrap_err();
    assert!(matches!(error, AttachError::Memory(_)));
    assert!(error.to_string().contains("not sealed"), "{error}");
    let error = Attached::new(tempfile(), None).unwrap_err();
    assert!(matches!(error, AttachError::Memory(_)));
}

fn tempfile() -> File {
    File::open("/proc/self/exe").unwrap()
}

#[test]
fn a_damaged_header_is_refused() {
    let refuse = |index: usize, value: u64| {
        let publisher = small();
        let memory = Memory::open(file(&publisher)).unwrap();
        memory.word(index).store(value, Ordering::Relaxed);
        Attached::new(file(&publisher), None)
    };
    assert!(matches!(refuse(word::MAGIC, 0), Err(AttachError::Magic(0))));
    let expected = (layout::MAJOR + 1, 7);
    let version = refuse(word::VERSION, u64::from(expected.0) << 32 | 7);
    assert!(
        matches!(version, Err(AttachError::Version { major, minor }) if (major, minor) == expected)
    );
    assert!(
        refuse(word::VERSION, u64::from(layout::MAJOR) << 32 | 7).is_ok(),
        "any minor version"
    );
    for (index, values) in [
        (word::STREAM_OFFSET, [0, 4097, 1 << 40, u64::MAX]),
        (word::STREAM_WORDS, [0, 1000, 1 << 20, u64::MAX]),
        (word::SAMPLES_OFFSET, [8, 4095, 1 << 30, 1 << 63]),
        (word::SAMPLES_WORDS, [1, 3, 1 << 30, 1 << 63]),
    ] {
        for value in values {
            let result = refuse(index, value);
            assert!(
                matches!(result, Err(AttachError::Part { .. })),
                "{index} {value}"
            );
        }
    }
}

/// A VM that writes nonsense everywhere while it is read: reading goes on, and ends.
#[test]
fn memory_that_changes_while_it_is_read() {
    let publisher = small();
    let mut attached = Attached::new(file(&publisher), None).unwrap();
    let memory = Memory::open(file(&publisher)).unwrap();
    let mut random = 0x1234_5678_9abc_def1_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let places = memory.all().len() as u64;
    let mut seen = [0; 4];
    for round in 0..200_000_u64 {
        let place = &memory.all()[(next() % places) as usize];
        let word = match round % 3 {
            0 => next(),
            1 => next() >> 40,
            _ => place.load(Ordering::Relaxed) ^ (1 << (next() % 64)),
        };
        place.store(word, Ordering::Relaxed);
        if round % 7 == 0 {
            memory
                .word(word::STREAM_HEAD)
                .fetch_add(next() % 64, Ordering::Relaxed);
        }
        if round % 11 == 0 {
            publisher.publish(&Fact::default());
        }
        let kind = match attached.read_at(round, 3) {
            Next::Event { .. } => 0,
            Next::Empty => 1,
            Next::Overrun { .. } => 2,
            Next::Torn { .. } | Next::Undecodable(_) => 3,
        };
        seen[kind] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}
