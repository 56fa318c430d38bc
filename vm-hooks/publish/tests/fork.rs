//! A VM that forks: the child publishes nothing, and the parent goes on.
#![cfg(not(loom))]
#![allow(unsafe_code, reason = "the test forks")]
#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

use vmscope_publish::event::{Fact, ThreadRole};
use vmscope_publish::reader::{Attached, Next};
use vmscope_publish::sampler::{SamplerError, SamplerOptions};
use vmscope_publish::{Options, Publisher};

/// Starts the process's only sampler; another test may hold it.
fn start_sampler(publisher: &Publisher) {
    while publisher.start_sampler(&SamplerOptions::default()) == Err(SamplerError::Busy) {
        std::thread::yield_now();
    }
}

/// Waits for the end of a child, and returns its status.
fn wait(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// The child of a fork publishes into nothing.
#[test]
fn a_child_is_quiet() {
    let publisher = Publisher::new(&Options::default()).unwrap();
    let mut attached = Attached::new(publisher.file().try_clone().unwrap(), None).unwrap();
    start_sampler(&publisher);
    // SAFETY: the child calls what a VM's child would, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        publisher.publish(&Fact::default());
        let sampler = publisher.start_sampler(&SamplerOptions::default());
        let thread = publisher.register_thread(ThreadRole::Other, "child");
        publisher.stop_sampler();
        let quiet = publisher.is_in_child()
            && !publisher.listening()
            && sampler == Err(SamplerError::Child)
            && thread == Err(SamplerError::Child);
        drop(publisher);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!quiet)) };
    }
    let status = wait(child);
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "{status:x}"
    );
    assert_eq!(attached.read(), Next::Empty);
    assert!(!publisher.is_in_child());
    publisher.publish(&Fact::default());
    assert!(matches!(attached.read(), Next::Event { .. }));
    publisher.stop_sampler();
}

/// Signals of other senders keep their effect: without an earlier handler, SIGPROF ends the process.
#[test]
fn a_signal_of_others_without_a_handler_ends_the_process() {
    let publisher = Publisher::new(&Options::default()).unwrap();
    start_sampler(&publisher);
    // SAFETY: the child raises a signal, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: plain system call.
        unsafe { libc::raise(libc::SIGPROF) };
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    publisher.stop_sampler();
    let status = wait(child);
    assert!(
        libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGPROF,
        "{status:x}"
    );
}
