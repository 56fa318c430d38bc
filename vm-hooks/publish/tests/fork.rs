//! A VM that forks: the child publishes nothing, and the parent goes on.
#![cfg(not(loom))]
#![allow(unsafe_code, reason = "the test forks")]
#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

use vmscope_publish::event::{Fact, ThreadRole};
use vmscope_publish::reader::{Attached, Next};
use vmscope_publish::sampler::{SamplerError, SamplerOptions};
use vmscope_publish::{Options, Publisher};

/// The child of a fork publishes into nothing.
#[test]
fn a_child_is_quiet() {
    let publisher = Publisher::new(&Options::default()).unwrap();
    let mut attached = Attached::new(publisher.file().try_clone().unwrap(), None).unwrap();
    publisher.start_sampler(&SamplerOptions::default()).unwrap();
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
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
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
