//! The sampler's functions.

use std::ffi::c_int;
use std::time::Duration;

use super::Handle;
use super::lists::list;
use super::structs::{CText, Sized_, sized};
use crate::Publisher;
use crate::event::{AddressRange, ThreadRole};
use crate::sampler::{SamplerOptions, slots};

/// `vmscope_sampler_options`.
#[repr(C)]
pub(super) struct CSamplerOptions {
    pub(super) size: usize,
    pub(super) period_ns: u64,
    pub(super) chains: u32,
    pub(super) keep_oldest: u32,
}

// SAFETY: it begins with its size, and holds numbers.
unsafe impl Sized_ for CSamplerOptions {}

/// `vmscope_sampler_status`.
#[repr(C)]
pub(super) struct CSamplerStatus {
    pub(super) size: usize,
    pub(super) period_ns: u64,
    pub(super) ticks: u64,
    pub(super) late: u64,
    pub(super) refused: u64,
    pub(super) cpu_ns: u64,
    pub(super) state: u32,
    pub(super) priority: u32,
    pub(super) nice: i32,
    pub(super) reserved: u32,
}

// SAFETY: it begins with its size, and holds numbers.
unsafe impl Sized_ for CSamplerStatus {}

/// The publisher of a handle.
///
/// # Safety
///
/// `handle` is null or a valid handle.
unsafe fn live<'a>(handle: *const Handle<'a>) -> Option<&'a Publisher> {
    // SAFETY: as promised by the caller.
    match unsafe { handle.as_ref() } {
        Some(Handle::Live(publisher)) => Some(publisher),
        _ => None,
    }
}

fn result(good: bool) -> c_int {
    if good { 0 } else { -1 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_register_thread(
    handle: *const Handle<'_>,
    role: u32,
    name: CText,
    stacks: *const AddressRange,
    count: usize,
) -> c_int {
    // SAFETY: the header demands it.
    let Some(publisher) = (unsafe { live(handle) }) else {
        return -1;
    };
    let mut ranges = [[0; 2]; slots::STACKS];
    // SAFETY: the header demands it.
    for (place, range) in ranges.iter_mut().zip(unsafe { list(stacks, count) }) {
        *place = [range.start, range.end];
    }
    // SAFETY: the header demands it.
    let name = unsafe { name.bytes() };
    let role = ThreadRole::from_number(role.into());
    result(publisher.register(role, name, &ranges).is_ok())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_unregister_thread(handle: *const Handle<'_>) {
    // SAFETY: the header demands it.
    if let Some(publisher) = unsafe { live(handle) } {
        publisher.unregister_thread();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_sampler_signal(handle: *const Handle<'_>, signal: c_int) {
    // SAFETY: the header demands it.
    if let Some(publisher) = unsafe { live(handle) } {
        publisher.set_sampler_signal(signal);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_sampler_start(
    handle: *const Handle<'_>,
    options: *const CSamplerOptions,
) -> c_int {
    // SAFETY: the header demands it.
    let Some(publisher) = (unsafe { live(handle) }) else {
        return -1;
    };
    // SAFETY: the header demands it.
    let Some(given) = (unsafe { sized(options) }) else {
        return -1;
    };
    let mut options = SamplerOptions {
        chains: given.chains != 0,
        keep_oldest: given.keep_oldest != 0,
        ..SamplerOptions::default()
    };
    if given.period_ns != 0 {
        options.period = Duration::from_nanos(given.period_ns);
    }
    result(publisher.start_sampler(&options).is_ok())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_sampler_stop(handle: *const Handle<'_>) {
    // SAFETY: the header demands it.
    if let Some(publisher) = unsafe { live(handle) } {
        publisher.stop_sampler();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_sampler_clear(handle: *const Handle<'_>) {
    // SAFETY: the header demands it.
    if let Some(publisher) = unsafe { live(handle) } {
        publisher.clear_samples();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_sampler_status_now(
    handle: *const Handle<'_>,
    status: *mut CSamplerStatus,
) -> c_int {
    // SAFETY: the header demands it.
    let Some(publisher) = (unsafe { live(handle) }) else {
        return -1;
    };
    // SAFETY: the header demands it.
    let Some(size) = (unsafe { sized(status.cast_const()) }).map(|given| given.size) else {
        return -1;
    };
    let now = publisher.sampler_status();
    let filled = CSamplerStatus {
        size,
        period_ns: u64::try_from(now.options.period.as_nanos()).unwrap_or(u64::MAX),
        ticks: now.ticks,
        late: now.late,
        refused: now.refused,
        cpu_ns: now.cpu_ns,
        state: now.state as u32,
        priority: now.priority as u32,
        nice: now.nice,
        reserved: 0,
    };
    // SAFETY: `sized` checked the struct's size, and the header demands exclusive access during the
    // call.
    unsafe { status.write(filled) };
    0
}
