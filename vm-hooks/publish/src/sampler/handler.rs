//! The signal handler of sampled threads. Its steps:
//!
//! 1. Read the clock.
//! 2. Save `errno`, and restore it at the end.
//! 3. Recognise the sampler's own signals by their value, which points to the thread's slot.
//!    Signals of other senders go to the previous handler.
//! 4. Read registers from the signal's context and, on request, frames from the thread's own
//!    stacks.
//! 5. Reserve a record in the ring of samples, and fill the record.
//!
//! The handler allocates nothing, takes no lock, formats nothing, and uses no thread-local memory
//! (other than `errno`). The one system call besides the clock is `gettid`. All memory used by the
//! handler exists while the thread is registered.
#![allow(
    unsafe_code,
    reason = "a signal handler gets pointers from the kernel, and reads its thread's stack"
)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use super::registers::{Registers, registers};
use super::slots::{self, Slot};
use super::{CHAINS, KEEP_OLDEST, SamplerError};
use crate::layout::{thread, word};
use crate::memory;
use crate::sample::{self, LONGEST_CHAIN};

/// The sampler's signal; 0 before the handler is installed.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Address and flags of the previous handler.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
static BEFORE_FLAGS: AtomicI32 = AtomicI32::new(0);
static INSTALLING: Mutex<()> = Mutex::new(());

/// The signal of the sampler; 0 if its handler was never installed.
pub(super) fn signal() -> i32 {
    SIGNAL.load(Ordering::Acquire)
}

/// Installs the handler, once. It stays: a signal may be handled late.
pub(crate) fn install(number: i32) -> Result<(), SamplerError> {
    let _one = INSTALLING.lock();
    match signal() {
        0 => {}
        installed if installed == number => return Ok(()),
        _ => return Err(SamplerError::Signal(number)),
    }
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks for the present handler.
    if unsafe { libc::sigaction(number, ptr::null(), &raw mut before) } != 0 {
        return Err(SamplerError::Signal(number));
    }
    BEFORE.store(before.sa_sigaction, Ordering::Release);
    BEFORE_FLAGS.store(before.sa_flags, Ordering::Release);
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    action.sa_mask = before.sa_mask;
    // SAFETY: the handler is a function of this library, which stays loaded.
    if unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) } != 0 {
        return Err(SamplerError::Signal(number));
    }
    SIGNAL.store(number, Ordering::Release);
    Ok(())
}

unsafe extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let time = memory::now();
    // SAFETY: the thread's own errno, which always exists.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { errno.read() };
    // SAFETY: the kernel passes valid pointers to a handler with SA_SIGINFO, for the time of the
    // call.
    let given = unsafe { info.as_ref() };
    // SAFETY: as above.
    let registers_of = unsafe { context.cast::<libc::ucontext_t>().as_ref() };
    let ours = given.and_then(slot_of).zip(registers_of);
    if let Some(((index, slot), context)) = ours {
        sample(time, index, slot, registers(context));
    } else {
        // SAFETY: the kernel's arguments are handed on unchanged.
        unsafe { hand_on(number, info, context) };
    }
    // SAFETY: as above.
    unsafe { errno.write(kept) };
}

/// Finds the slot named by a sampler signal.
fn slot_of(info: &libc::siginfo_t) -> Option<(usize, &'static Slot)> {
    if info.si_code != libc::SI_QUEUE {
        return None;
    }
    // SAFETY: every queued signal carries a value.
    let value = unsafe { info.si_value() };
    slots::slot_at(value.sival_ptr.addr())
}

fn sample(time: u64, index: usize, slot: &Slot, registers: Registers) {
    // A late signal may be addressed to an earlier thread of this slot.
    if slot.tid() != Some(slots::current()) || slot.pending.swap(0, Ordering::Relaxed) == 0 {
        return;
    }
    // SAFETY: this is the slot's own thread.
    let Some(shared) = (unsafe { slot.owner() }) else {
        return;
    };
    let options = shared.memory.word(word::SAMPLER_OPTIONS_NOW);
    let options = options.load(Ordering::Relaxed);
    let mut chain = [0; LONGEST_CHAIN];
    let length = if options & CHAINS != 0 {
        follow(slot, registers, &mut chain)
    } else {
        0
    };
    let (ring, payload) = (shared.samples(), sample::HEAD_WORDS + length);
    let record = if options & KEEP_OLDEST != 0 {
        ring.reserve_free(sample::KIND, time, payload)
    } else {
        ring.reserve(sample::KIND, time, payload)
    };
    let Some(mut record) = record else {
        let refused = shared.memory.word(word::SAMPLES_REFUSED);
        refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let tid = slot.tid().unwrap_or(0);
    record.push(u64::from(tid) | (length as u64) << 32);
    record.push(registers.pc);
    record.push(registers.fp);
    record.push(registers.sp);
    for &address in chain.iter().take(length) {
        record.push(address);
    }
    record.commit();
    shared.count(index, thread::SAMPLES);
}

/// Follows frame pointers, and returns the number of return addresses. Each caller's frame lies at
/// a higher address of the same stack.
///
/// ```text
/// fp      the caller's fp
/// fp + 8  return address
/// ```
fn follow(slot: &Slot, registers: Registers, chain: &mut [u64; LONGEST_CHAIN]) -> usize {
    let Registers { sp, mut fp, .. } = registers;
    let Some((start, end)) = slot.stack(fp) else {
        return 0;
    };
    // On the current stack, addresses below the stack pointer may be unmapped.
    let mut lowest = if (start..end).contains(&sp) {
        sp
    } else {
        start
    };
    for (length, place) in chain.iter_mut().enumerate() {
        let last = end.saturating_sub(16);
        if fp % 8 != 0 || fp < lowest || fp > last {
            return length;
        }
        // SAFETY: the words lie aligned on a stack of this thread, above its stack pointer, or on a
        // stack that the VM promised to keep mapped.
        let caller = unsafe { ptr::with_exposed_provenance::<u64>(fp as usize).read_volatile() };
        let next = ptr::with_exposed_provenance::<u64>(fp as usize + 8);
        // SAFETY: as above.
        let address = unsafe { next.read_volatile() };
        if address == 0 {
            return length;
        }
        *place = address;
        lowest = fp + 16;
        fp = caller;
    }
    LONGEST_CHAIN
}

/// Passes a foreign signal to the previous handler.
///
/// # Safety
///
/// The arguments come unchanged from the kernel.
unsafe fn hand_on(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    type Plain = unsafe extern "C" fn(c_int);
    type Informed = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    let before = BEFORE.load(Ordering::Acquire);
    match before {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // The default action applies: most signals end the process once this handler has
            // returned.
            // SAFETY: plain system call.
            unsafe { libc::signal(number, libc::SIG_DFL) };
            // SAFETY: plain system call.
            unsafe { libc::raise(number) };
        }
        _ if BEFORE_FLAGS.load(Ordering::Acquire) & libc::SA_SIGINFO != 0 => {
            // SAFETY: the process had installed this address as a handler with information.
            let handler: Informed = unsafe { std::mem::transmute(before) };
            // SAFETY: called as the kernel would.
            unsafe { handler(number, info, context) };
        }
        _ => {
            // SAFETY: the process had installed this address as a plain handler.
            let handler: Plain = unsafe { std::mem::transmute(before) };
            // SAFETY: called as the kernel would.
            unsafe { handler(number) };
        }
    }
}
