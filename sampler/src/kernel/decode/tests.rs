use super::*;
use crate::kernel::attr::KernelChain;
use proptest::prelude::*;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn two(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn raw(kind: u32, misc: u16, body: &[u8]) -> RawRecord<'_> {
    RawRecord { kind, misc, body }
}

/// { pid 10, tid 11, time 99, id 5 }
fn with_trailer(body: &[u64]) -> Vec<u8> {
    let mut all = words(body);
    all.extend(words(&[two(10, 11), 99, 5]));
    all
}

const LOST: Body = Body::Lost {
    reason: LossReason::RingOverrun,
    count: 17,
    from: 0,
};

const fn chain(depth: u16) -> KernelChain {
    KernelChain { depth, user: true }
}

const PLAIN: Extras = Extras {
    chain: None,
    registers: 0,
    stack_bytes: 0,
    needed_stack: 0,
};

#[test]
fn a_plain_sample() {
    let body = words(&[5, 0x1234, two(10, 11), 99]);
    let decoded = decode(raw(sys::PERF_RECORD_SAMPLE, 2, &body), &PLAIN).expect("is well-formed");
    assert_eq!((decoded.event, decoded.time), (5, 99));
    assert_eq!((decoded.pid, decoded.tid), (10, 11));
    assert_eq!(
        decoded.body,
        Body::Sample {
            pc: 0x1234,
            mode: CpuMode::User,
            detail: None
        }
    );
}

#[test]
fn records_of_every_kind() {
    let body = with_trailer(&[two(1, 2), two(3, 4), 50]);
    let decoded = decode(raw(sys::PERF_RECORD_FORK, 0, &body), &PLAIN).expect("fork");
    assert_eq!((decoded.pid, decoded.tid, decoded.time), (10, 11, 99));
    assert_eq!(
        decoded.body,
        Body::Forked {
            pid: 1,
            parent_pid: 2,
            tid: 3,
            parent_tid: 4
        }
    );
    let decoded = decode(raw(sys::PERF_RECORD_EXIT, 0, &body), &PLAIN).expect("exit");
    assert_eq!(decoded.body, Body::Exited { tid: 3 });
    let comm = with_trailer(&[two(10, 12), u64::from_ne_bytes(*b"worker\0\0")]);
    let decoded = decode(raw(sys::PERF_RECORD_COMM, 1 << 13, &comm), &PLAIN).expect("comm");
    assert_eq!(
        decoded.body,
        Body::Named {
            pid: 10,
            tid: 12,
            name: "worker".into(),
            exec: true
        }
    );
    let lost = with_trailer(&[5, 17]);
    let decoded = decode(raw(sys::PERF_RECORD_LOST, 0, &lost), &PLAIN).expect("lost");
    assert_eq!(decoded.body, LOST);
    let lost = with_trailer(&[17]);
    let decoded = decode(raw(sys::PERF_RECORD_LOST_SAMPLES, 0, &lost), &PLAIN).expect("lost");
    assert_eq!(decoded.body, LOST);
    let throttle = with_trailer(&[99, 5, 6]);
    for (kind, body) in [
        (sys::PERF_RECORD_THROTTLE, Body::Throttled),
        (sys::PERF_RECORD_UNTHROTTLE, Body::Unthrottled),
        (9999, Body::Nothing),
    ] {
        let decoded = decode(raw(kind, 0, &throttle), &PLAIN).expect("has a trailer");
        assert_eq!(decoded.body, body);
    }
}

#[test]
fn a_mapping() {
    let path = u64::from_ne_bytes(*b"/lib/x\0\0");
    let body = with_trailer(&[
        two(10, 11),
        0x7000,
        0x1000,
        0x2000,
        two(8, 1),
        77,
        0,
        two(5, 2),
        path,
    ]);
    let decoded = decode(raw(sys::PERF_RECORD_MMAP2, 2, &body), &PLAIN).expect("mmap2");
    let Body::Mapped(mapping) = decoded.body else {
        panic!("{decoded:?}")
    };
    assert_eq!(mapping.path, b"/lib/x");
    assert_eq!((mapping.major, mapping.minor, mapping.inode), (8, 1, 77));
    assert_eq!((mapping.start, mapping.len), (Avma(0x7000), 0x1000));
    assert_eq!(mapping.offset, FileOffset(0x2000));
    assert!(mapping.executable);
}

#[test]
fn chains_are_cut_at_their_marks() {
    let extras = Extras {
        chain: Some(chain(6)),
        ..PLAIN
    };
    let kernel = sys::PERF_CONTEXT_KERNEL;
    let user = sys::PERF_CONTEXT_USER;
    let sample = |misc, chain: &[u64]| {
        let mut body = vec![5, 0x1, two(10, 11), 99, chain.len() as u64];
        body.extend(chain);
        let body = words(&body);
        match decode(raw(sys::PERF_RECORD_SAMPLE, misc, &body), &extras)
            .expect("well-formed")
            .body
        {
            Body::Sample {
                detail: Some(detail),
                ..
            } => detail.chain.expect("asked for"),
            other => panic!("{other:?}"),
        }
    };
    let chain = sample(2, &[user, 1, 2, 3]);
    assert_eq!(chain.user, vec![Avma(2), Avma(3)]);
    assert!(chain.kernel.is_empty() && chain.end == ChainEnd::Unknown);
    let chain = sample(1, &[kernel, 1, 2, user, 3, 4]);
    assert_eq!(chain.kernel, vec![Avma(2)]);
    assert_eq!(
        chain.user,
        vec![Avma(3), Avma(4)],
        "begins with the user pc"
    );
    assert_eq!(sample(1, &[kernel, 1, 2, 3, 4, 5, 6]).end, ChainEnd::Depth);
    assert!(sample(2, &[user]).user.is_empty());
}

#[test]
fn registers_and_stack() {
    let extras = Extras {
        chain: None,
        registers: 1 << SP_REGISTER | 1,
        stack_bytes: 16,
        needed_stack: 16,
    };
    let mut body = words(&[5, 1, two(10, 11), 99, 2, 42, 0x7ff0, 16]);
    body.extend([1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.extend(words(&[8]));
    let decoded = decode(raw(sys::PERF_RECORD_SAMPLE, 2, &body), &extras).expect("well-formed");
    let Body::Sample {
        detail: Some(detail),
        ..
    } = decoded.body
    else {
        panic!("asked for")
    };
    assert_eq!(detail.registers.expect("taken").values, vec![42, 0x7ff0]);
    let stack = detail.stack.expect("taken");
    assert_eq!(stack.sp, Avma(0x7ff0));
    assert_eq!(stack.bytes, vec![1, 2, 3, 4, 5, 6, 7, 8]);
}

proptest! {
    #[test]
    fn no_bytes_can_do_harm(
        kind in 0u32..24,
        misc in any::<u16>(),
        mut body in prop::collection::vec(any::<u8>(), 0..400),
        small in prop::collection::vec((0usize..400, 0u8..4), 0..40),
    ) {
        // Small numbers among the noise, so that some counts fit.
        for (at, value) in small {
            if let Some(byte) = body.get_mut(at) { *byte = value; }
        }
        let all = Extras { chain: Some(chain(64)), registers: 0xff, stack_bytes: 64, needed_stack: 64 };
        for extras in [PLAIN, all] {
            let _ = decode(raw(kind, misc, &body), &extras);
        }
    }
}
