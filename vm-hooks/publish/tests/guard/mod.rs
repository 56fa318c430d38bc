//! An allocator and a lock that abort inside the sampler's signal handler.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The thread that must neither allocate nor lock inside a signal handler.
pub static GUARDED: AtomicU32 = AtomicU32::new(0);

/// Aborts inside a handler of SIGPROF on the guarded thread: only there is the signal blocked.
fn not_in_a_handler() {
    // SAFETY: plain system call.
    if GUARDED.load(Ordering::Relaxed) != unsafe { libc::gettid() }.cast_unsigned() {
        return;
    }
    // SAFETY: a set of bits.
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: fills the local set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask) };
    // SAFETY: reads the local set.
    if unsafe { libc::sigismember(&raw const mask, libc::SIGPROF) } == 1 {
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

struct Guarded;

// SAFETY: the system's allocator, or no return.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        not_in_a_handler();
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        not_in_a_handler();
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

type Lock = unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int;

/// Stands before the C library's.
///
/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut libc::pthread_mutex_t) -> c_int {
    static REAL: OnceLock<Lock> = OnceLock::new();
    not_in_a_handler();
    let real = REAL.get_or_init(|| {
        // SAFETY: the name ends with 0.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_mutex_lock".as_ptr()) };
        // SAFETY: the symbol `pthread_mutex_lock` has this type.
        unsafe { std::mem::transmute::<*mut c_void, Lock>(found) }
    });
    // SAFETY: as promised by the caller.
    unsafe { real(mutex) }
}
