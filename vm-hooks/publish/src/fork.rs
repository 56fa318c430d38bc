//! Forks of the VM: the child must not publish into its parent's memory.
//!
//! `pthread_atfork` calls [`in_child`] in the child, which disconnects every publisher. A child
//! that was made without these handlers (`vfork`, `clone`) still shares the memory. Such a child
//! must not publish, and readers recognise it by its process id.
#![allow(
    unsafe_code,
    reason = "a handler that runs in a forked child reaches the publishers through pointers"
)]

use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::publisher::Shared;

/// Maximum number of publishers in a process.
pub(crate) const MOST: usize = 16;

static PUBLISHERS: [AtomicPtr<Shared>; MOST] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST];
static INSTALL: Once = Once::new();

/// Remembers a publisher until [`forget`]. `false` if the table is full, or the fork handler cannot
/// be installed.
pub(crate) fn remember(shared: &Shared) -> bool {
    static INSTALLED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    INSTALL.call_once(|| {
        // SAFETY: the handler is a function of this library, which must therefore stay loaded: a
        // VM does not unload it.
        let result = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        INSTALLED.store(result == 0, Ordering::Relaxed);
    });
    let shared = ptr::from_ref(shared).cast_mut();
    INSTALLED.load(Ordering::Relaxed)
        && PUBLISHERS.iter().any(|place| {
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            place
                .compare_exchange(ptr::null_mut(), shared, order.0, order.1)
                .is_ok()
        })
}

/// Removes a publisher from the table before its drop.
pub(crate) fn forget(shared: &Shared) {
    let shared = ptr::from_ref(shared).cast_mut();
    for place in &PUBLISHERS {
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        // The exchange succeeds only in the publisher's own place.
        let _ = place.compare_exchange(shared, ptr::null_mut(), order.0, order.1);
    }
}

unsafe extern "C" fn in_child() {
    for place in &PUBLISHERS {
        let shared = place.load(Ordering::Acquire);
        // SAFETY: a publisher leaves the table before its drop. The child has a single thread, so
        // no publisher is dropped during this loop.
        if let Some(shared) = unsafe { shared.as_ref() } {
            shared.disconnect();
        }
    }
}
