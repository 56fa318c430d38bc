//! The sampler on threads that run, sleep, allocate and lock.
//!
//! There is one sampler in a process, so the tests take turns.
#![cfg(not(loom))]
#![allow(unsafe_code, reason = "signals, masks and an allocator of the test")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

mod guard;

use std::ffi::c_int;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use guard::{GUARDED, pthread_mutex_lock};
use vmscope_publish::event::ThreadRole;
use vmscope_publish::reader::{Attached, NextSample};
use vmscope_publish::sample::Sample;
use vmscope_publish::sampler::{
    Priority, SHORTEST_PERIOD, SamplerError, SamplerOptions, SamplerState,
};
use vmscope_publish::{Callbacks, Describer, Options, Publisher};

static OTHER_SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn other_handler(_: c_int) {
    OTHER_SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// One test at a time, after the handler of another profiler was installed.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static INSTALL: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    INSTALL.call_once(|| {
        // SAFETY: the handler only adds to an atomic.
        unsafe { libc::signal(libc::SIGPROF, other_handler as *const () as usize) };
    });
    turn
}

fn publisher() -> Publisher {
    Publisher::new(&Options {
        stream_bytes: 1 << 14,
        ..Options::default()
    })
    .unwrap()
}

fn attach(publisher: &Publisher) -> Attached {
    Attached::new(publisher.file().try_clone().unwrap(), None).unwrap()
}

/// As often as possible.
fn fast() -> SamplerOptions {
    SamplerOptions {
        period: SHORTEST_PERIOD * 4,
        ..SamplerOptions::default()
    }
}

fn samples(attached: &mut Attached) -> Vec<Sample> {
    let mut samples = Vec::new();
    loop {
        match attached.read_sample() {
            NextSample::Sample(sample) => samples.push(sample),
            NextSample::Empty => return samples,
            other => panic!("{other:?}"),
        }
    }
}

/// Number of samples of the calling thread so far.
fn taken(publisher: &Publisher) -> u64 {
    // SAFETY: plain system call.
    let tid = unsafe { libc::gettid() }.cast_unsigned();
    let attached = attach(publisher);
    let threads = attached.sampled_threads();
    threads
        .iter()
        .find(|t| t.tid == tid)
        .map_or(0, |t| t.samples)
}

/// Runs `work` until the thread has `count` samples.
fn run_until(publisher: &Publisher, count: u64, mut work: impl FnMut()) {
    while taken(publisher) < count {
        for _ in 0..200 {
            work();
        }
    }
}

#[inline(never)]
fn spin(rounds: u64) -> u64 {
    let mut value = rounds;
    for round in 0..rounds {
        value = black_box(value ^ round).wrapping_mul(3);
    }
    value
}

#[test]
fn samples_without_a_profiler_are_there_for_a_later_one() {
    let _turn = turn();
    let publisher = publisher();
    publisher
        .register_thread(ThreadRole::Mutator, "runs")
        .unwrap();
    publisher.start_sampler(&fast()).unwrap();
    run_until(&publisher, 100, || {
        black_box(spin(2000));
    });
    publisher.stop_sampler();
    let status = publisher.sampler_status();
    assert_eq!(status.state, SamplerState::Stopped);
    assert_ne!(status.priority, Priority::None);
    assert!(status.ticks >= 100 && status.started > 0, "{status:?}");

    let mut attached = attach(&publisher);
    let [thread] = attached.sampled_threads()[..] else {
        panic!("{:?}", attached.sampled_threads());
    };
    assert_eq!(thread.role, ThreadRole::Mutator);
    assert!(thread.ticks <= status.ticks && thread.cpu_ns > 0);
    assert_eq!(
        thread.ticks,
        thread.idle + thread.signalled + thread.pending
    );
    let samples = samples(&mut attached);
    assert_eq!(samples.len() as u64, thread.samples);
    assert!(
        samples
            .iter()
            .all(|sample| sample.tid == thread.tid && sample.chain.is_empty())
    );
    assert!(samples.is_sorted_by_key(|sample| sample.time));
    let start = spin as *const () as u64;
    let inside = samples
        .iter()
        .filter(|s| (start..start + 512).contains(&s.pc));
    let inside = inside.count();
    assert!(inside * 2 > samples.len(), "{inside} of {}", samples.len());
    publisher.unregister_thread();
    assert!(attached.sampled_threads().is_empty());
}

#[test]
fn the_handler_neither_allocates_nor_locks() {
    let _turn = turn();
    let publisher = publisher();
    publisher
        .register_thread(ThreadRole::Mutator, "allocates")
        .unwrap();
    publisher
        .start_sampler(&SamplerOptions {
            chains: true,
            ..fast()
        })
        .unwrap();
    // SAFETY: plain system call.
    GUARDED.store(unsafe { libc::gettid() }.cast_unsigned(), Ordering::Relaxed);
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    run_until(&publisher, 200, || {
        // Signals arrive inside the allocator and while the lock is held, too.
        black_box(vec![black_box(1_u8); 300]);
        // SAFETY: the mutex is initialized.
        unsafe { pthread_mutex_lock(&raw mut mutex) };
        black_box(spin(50));
        // SAFETY: this thread has locked it.
        unsafe { libc::pthread_mutex_unlock(&raw mut mutex) };
    });
    GUARDED.store(0, Ordering::Relaxed);
    publisher.stop_sampler();
    publisher.unregister_thread();
}

/// The guard itself works: what allocates or locks while the signal is blocked dies.
#[test]
fn what_allocates_or_locks_in_a_handler_would_be_noticed() {
    let _turn = turn();
    for locks in [false, true] {
        // SAFETY: the child does nothing but what follows.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: a set of bits.
            let mut prof: libc::sigset_t = unsafe { std::mem::zeroed() };
            // SAFETY: changes the local set.
            unsafe { libc::sigaddset(&raw mut prof, libc::SIGPROF) };
            // SAFETY: reads the local set.
            unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const prof, std::ptr::null_mut())
            };
            // SAFETY: plain system call.
            GUARDED.store(unsafe { libc::gettid() }.cast_unsigned(), Ordering::Relaxed);
            if locks {
                let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
                // SAFETY: the mutex is initialized.
                unsafe { pthread_mutex_lock(&raw mut mutex) };
            } else {
                black_box(Box::new(black_box(1)));
            }
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for the child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT);
    }
}

#[test]
fn errno_stays_and_signals_of_others_reach_their_handler() {
    let _turn = turn();
    let publisher = publisher();
    publisher
        .register_thread(ThreadRole::Mutator, "runs")
        .unwrap();
    let before = OTHER_SIGNALS.load(Ordering::Relaxed);
    publisher.start_sampler(&fast()).unwrap();
    run_until(&publisher, 100, || {
        // SAFETY: the thread's own errno.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { errno.write(4711) };
        black_box(spin(500));
        // SAFETY: as above.
        assert_eq!(unsafe { errno.read_volatile() }, 4711);
    });
    assert_eq!(
        OTHER_SIGNALS.load(Ordering::Relaxed),
        before,
        "ours are not handed on"
    );
    // SAFETY: there is a handler.
    unsafe { libc::raise(libc::SIGPROF) };
    assert_eq!(OTHER_SIGNALS.load(Ordering::Relaxed), before + 1);
    publisher.stop_sampler();
    publisher.unregister_thread();
}

#[test]
fn a_sleeping_thread_is_left_alone() {
    let _turn = turn();
    let publisher = publisher();
    let (stop, interrupted) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            publisher
                .register_thread(ThreadRole::Mutator, "sleeps")
                .unwrap();
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: waits without descriptors. The kernel never restarts a poll.
                if unsafe { libc::poll(std::ptr::null_mut(), 0, 20) } != 0 {
                    interrupted.fetch_add(1, Ordering::Relaxed);
                }
            }
            publisher.unregister_thread();
        });
        publisher
            .register_thread(ThreadRole::Mutator, "runs")
            .unwrap();
        publisher.start_sampler(&fast()).unwrap();
        run_until(&publisher, 500, || {
            black_box(spin(2000));
        });
        publisher.stop_sampler();
        let threads = attach(&publisher).sampled_threads();
        // SAFETY: plain system call.
        let mine = unsafe { libc::gettid() }.cast_unsigned();
        let sleeps = threads.iter().find(|thread| thread.tid != mine).unwrap();
        assert!(sleeps.idle * 10 > sleeps.ticks * 9, "{sleeps:?}");
        // A tick may hit the moments of waking and falling asleep.
        let few = sleeps.signalled.max(1);
        assert!(
            interrupted.load(Ordering::Relaxed) <= few && few * 20 < sleeps.ticks,
            "{sleeps:?}"
        );
        stop.store(true, Ordering::Relaxed);
        sleeper.join().unwrap();
        publisher.unregister_thread();
    });
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".globl vmscope_test_outer, vmscope_test_inner, vmscope_test_end",
    "vmscope_test_outer:",
    "push rbp",
    "mov rbp, rsp",
    "call vmscope_test_inner",
    "pop rbp",
    "ret",
    "vmscope_test_inner:",
    "push rbp",
    "mov rbp, rsp",
    "2: dec rdi",
    "jnz 2b",
    "pop rbp",
    "ret",
    "vmscope_test_end:",
    "ret",
);

#[cfg(target_arch = "x86_64")]
#[test]
fn chains_follow_frame_pointers() {
    unsafe extern "C" {
        fn vmscope_test_outer(rounds: u64);
        fn vmscope_test_inner(rounds: u64);
        fn vmscope_test_end();
    }
    let _turn = turn();
    let publisher = publisher();
    publisher
        .register_thread(ThreadRole::Mutator, "calls")
        .unwrap();
    publisher
        .start_sampler(&SamplerOptions {
            chains: true,
            ..fast()
        })
        .unwrap();
    // SAFETY: it counts down and returns.
    run_until(&publisher, 300, || unsafe { vmscope_test_outer(5000) });
    publisher.stop_sampler();
    let samples = samples(&mut attach(&publisher));
    let outer = vmscope_test_outer as *const () as u64;
    let inner = vmscope_test_inner as *const () as u64;
    let end = vmscope_test_end as *const () as u64;
    // Behind the push and the move.
    let inside: Vec<_> = samples
        .iter()
        .filter(|s| (inner + 4..end - 2).contains(&s.pc))
        .collect();
    assert!(
        inside.len() > samples.len() / 2,
        "{} of {}",
        inside.len(),
        samples.len()
    );
    for sample in inside {
        assert!((outer..inner).contains(&sample.chain[0]), "{sample:x?}");
    }
    publisher.unregister_thread();
}

#[test]
fn the_oldest_or_the_newest_stay() {
    let _turn = turn();
    for keep_oldest in [false, true] {
        let publisher = Publisher::new(&Options {
            stream_bytes: 1 << 14,
            sample_bytes: 1 << 12,
            ..Options::default()
        })
        .unwrap();
        publisher
            .register_thread(ThreadRole::Mutator, "runs")
            .unwrap();
        let options = SamplerOptions {
            keep_oldest,
            ..fast()
        };
        publisher.start_sampler(&options).unwrap();
        let work = || {
            black_box(spin(2000));
        };
        if keep_oldest {
            while publisher.sampler_status().refused < 50 {
                work();
            }
        } else {
            run_until(&publisher, 200, work);
        }
        publisher.stop_sampler();
        // 512 words hold 73 samples of 7 words.
        let mut attached = attach(&publisher);
        assert_eq!(samples(&mut attached).len(), 73);
        publisher.clear_samples();
        assert!(samples(&mut attach(&publisher)).is_empty());
        if keep_oldest {
            publisher.start_sampler(&options).unwrap();
            while samples(&mut attached).is_empty() {
                work();
            }
            publisher.stop_sampler();
        }
        publisher.unregister_thread();
    }
}

struct Nothing;

impl Callbacks for Nothing {
    fn describe(&mut self, _: &Describer<'_>) {}
}

#[test]
fn a_profiler_starts_it_and_it_ends_with_the_last_profiler() {
    let _turn = turn();
    let publisher = publisher();
    publisher
        .register_thread(ThreadRole::Mutator, "runs")
        .unwrap();
    let attached = attach(&publisher);
    let number = attached.start_sampler(&SamplerOptions {
        period: Duration::from_millis(1),
        ..SamplerOptions::default()
    });
    assert_eq!(attached.sampler_status().state, SamplerState::Stopped);
    publisher.poll(&mut Nothing);
    assert_eq!(attached.sampler_commands_done(), number);
    let status = attached.sampler_status();
    assert_eq!(status.state, SamplerState::Running);
    assert_eq!(status.options.period, Duration::from_millis(1));
    // Stopped by the thread itself, without a poll.
    attached.stop_sampler();
    while attached.sampler_status().state != SamplerState::Stopped {
        std::thread::yield_now();
    }
    attached.start_sampler(&fast());
    publisher.poll(&mut Nothing);
    assert_eq!(attached.sampler_status().state, SamplerState::Running);
    drop(attached);
    while publisher.sampler_status().state != SamplerState::Stopped {
        black_box(spin(100));
    }
    publisher.unregister_thread();
}

#[test]
fn there_is_one_sampler_and_threads_end_without_a_word() {
    let _turn = turn();
    let (first, second) = (publisher(), publisher());
    first.start_sampler(&fast()).unwrap();
    assert_eq!(second.start_sampler(&fast()), Err(SamplerError::Busy));
    first.register_thread(ThreadRole::Mutator, "runs").unwrap();
    let other = second.register_thread(ThreadRole::Mutator, "runs");
    assert_eq!(other, Err(SamplerError::Busy));
    first.unregister_thread();
    std::thread::scope(|scope| {
        let thread = || first.register_thread(ThreadRole::Mutator, "ends").unwrap();
        scope.spawn(thread).join().unwrap();
    });
    while !attach(&first).sampled_threads().is_empty() {
        std::thread::yield_now();
    }
    drop(first);
    second.start_sampler(&fast()).unwrap();
}

#[test]
fn the_handler_runs_on_the_alternate_stack() {
    const PATTERN: u64 = 0xaaaa_5555_aaaa_5555;
    let _turn = turn();
    let publisher = publisher();
    publisher
        .register_thread(ThreadRole::Mutator, "runs")
        .unwrap();
    let mut memory = vec![PATTERN; 1 << 14];
    let mut stack = libc::stack_t {
        ss_sp: memory.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: memory.len() * 8,
    };
    // SAFETY: the stack lives until it is disabled below.
    let set = unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    publisher.start_sampler(&fast()).unwrap();
    run_until(&publisher, 20, || {
        black_box(spin(2000));
    });
    publisher.stop_sampler();
    publisher.unregister_thread();
    stack.ss_flags = libc::SS_DISABLE;
    // SAFETY: disables it.
    unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
    let memory = black_box(memory);
    assert!(memory.iter().any(|&word| word != PATTERN));
}
