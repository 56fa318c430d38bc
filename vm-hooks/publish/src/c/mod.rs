//! Implements `include/vmscope_publish.h`. The header documents each function.
//!
//! The header demands that pointers be null or valid during the call, and that a struct be as large
//! as its size says. Nothing here unwinds: nothing panics, and the VM's callbacks must return.
#![allow(
    unsafe_code,
    reason = "C hands over pointers, and finds the functions by their names"
)]

mod lists;
mod sampler;
mod structs;

use std::ffi::{c_int, c_void};
use std::time::Duration;

use lists::{MOST_SOURCES, list, with_cases, with_spaces};
use structs::{
    CCase, CCollected, CCollection, CCompilation, CConstituent, CCounter, CMethod, COptions,
    CPhase, CRegionRule, CSource, CText, Sized_, UNKNOWN, sized,
};

use crate::event::{
    AddressRange, Birth, Body, Cases, Class, CollectionEnd, CompilationEnd, Death, Fact, Frames,
    Gone, GoneReason, Interpreter, Lifetimes, Moved, PhaseEnd, PicCase, Regions, Site, SiteFrame,
    SpaceUse, Survival, SurvivalBucket, Thread, ThreadEnd, ThreadRole,
};
use crate::{Callbacks, Describer, LifetimeRate, Options, Publisher};

/// `vmscope_publisher`: where events go.
enum Handle<'p> {
    /// A publisher.
    Live(Publisher),
    /// The snapshot in a `describe` callback.
    Snapshot(&'p Describer<'p>),
}

impl Handle<'_> {
    #[inline]
    fn publish<B: Body>(&self, body: &B) {
        match self {
            Self::Live(publisher) => publisher.publish(body),
            Self::Snapshot(describer) => describer.publish(body),
        }
    }
}

/// A handle that listens.
///
/// # Safety
///
/// `handle` is null, or comes from `vmscope_open` or a `describe` callback and is still valid.
#[inline]
unsafe fn listening<'a>(handle: *const Handle<'a>) -> Option<&'a Handle<'a>> {
    // SAFETY: as promised by the caller.
    let handle: &Handle<'a> = unsafe { handle.as_ref() }?;
    match handle {
        Handle::Live(publisher) if !publisher.listening() => None,
        _ => Some(handle),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_open(options: *const COptions) -> *mut Handle<'static> {
    // SAFETY: the header demands it.
    let Some(given) = (unsafe { sized(options) }) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the header demands it.
    let name = String::from_utf8_lossy(unsafe { given.name.bytes() });
    // SAFETY: the header demands it.
    let version = String::from_utf8_lossy(unsafe { given.version.bytes() });
    let usual = Options::default();
    let size = |given: u64, usual| match usize::try_from(given) {
        Ok(0) => usual,
        Ok(given) => given,
        Err(_) => usize::MAX,
    };
    let publisher = Publisher::new(&Options {
        name: &name,
        version: &version,
        stream_bytes: size(given.stream_bytes, usual.stream_bytes),
        sample_bytes: size(given.sample_bytes, usual.sample_bytes),
        snapshot_patience: Duration::from_nanos(given.snapshot_patience_ns),
    });
    publisher.map_or(std::ptr::null_mut(), |publisher| {
        Box::into_raw(Box::new(Handle::Live(publisher)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_close(handle: *mut Handle<'static>) {
    // SAFETY: the header demands it.
    if let Some(Handle::Live(_)) = unsafe { handle.as_ref() } {
        // SAFETY: `vmscope_open` made the handle from a box, and the header forbids any later use.
        // The pattern excludes snapshot handles.
        drop(unsafe { Box::from_raw(handle) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_listening(handle: *const Handle<'_>) -> c_int {
    // SAFETY: the header demands it.
    c_int::from(unsafe { listening(handle) }.is_some())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_check_listeners(handle: *const Handle<'_>) -> c_int {
    // SAFETY: the header demands it.
    let Some(Handle::Live(publisher)) = (unsafe { handle.as_ref() }) else {
        return 0;
    };
    c_int::from(publisher.check_listeners())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_await_profiler(handle: *const Handle<'_>, longest: u64) -> c_int {
    // SAFETY: the header demands it.
    let Some(Handle::Live(publisher)) = (unsafe { handle.as_ref() }) else {
        return 0;
    };
    c_int::from(publisher.await_profiler(Duration::from_nanos(longest)))
}

#[unsafe(no_mangle)]
extern "C" fn vmscope_now() -> u64 {
    crate::memory::now()
}

/// `vmscope_callbacks`.
#[derive(Clone, Copy)]
#[repr(C)]
struct CCallbacks {
    size: usize,
    context: *mut c_void,
    describe: Option<unsafe extern "C" fn(*mut c_void, *const Handle<'_>)>,
    collect: Option<unsafe extern "C" fn(*mut c_void)>,
    lifetime_rate: Option<unsafe extern "C" fn(*mut c_void, u32, u64, u32)>,
}

// SAFETY: the struct begins with its size, and its pointers and functions may be null.
unsafe impl Sized_ for CCallbacks {}

/// A VM that gives no callbacks.
const NO_CALLBACKS: CCallbacks = CCallbacks {
    size: size_of::<CCallbacks>(),
    context: std::ptr::null_mut(),
    describe: None,
    collect: None,
    lifetime_rate: None,
};

impl Callbacks for CCallbacks {
    fn can_describe(&self) -> bool {
        self.describe.is_some()
    }

    fn describe(&mut self, describer: &Describer<'_>) {
        if let Some(describe) = self.describe {
            let snapshot = Handle::Snapshot(describer);
            // SAFETY: the VM gave the function and its context.
            unsafe { describe(self.context, &raw const snapshot) };
        }
    }

    fn collect(&mut self) {
        if let Some(collect) = self.collect {
            // SAFETY: the VM gave the function and its context.
            unsafe { collect(self.context) };
        }
    }

    fn lifetime_rate(&mut self, rate: LifetimeRate) {
        if let Some(set) = self.lifetime_rate {
            // SAFETY: the VM gave the function and its context.
            unsafe { set(self.context, rate.unit as u32, rate.distance, rate.callers) };
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_poll(handle: *const Handle<'_>, callbacks: *const CCallbacks) {
    // SAFETY: the header demands it.
    let Some(Handle::Live(publisher)) = (unsafe { handle.as_ref() }) else {
        return;
    };
    if !publisher.has_requests() {
        return;
    }
    // SAFETY: the header demands it.
    let callbacks = unsafe { sized(callbacks) };
    publisher.poll(&mut { *callbacks.unwrap_or(&NO_CALLBACKS) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_constituent_made(
    handle: *const Handle<'_>,
    made: *const CConstituent,
) {
    // SAFETY: the header demands it.
    let Some(handle) = (unsafe { listening(handle) }) else {
        return;
    };
    // SAFETY: the header demands it.
    let Some(made) = (unsafe { sized(made) }) else {
        return;
    };
    let publish = |cases: &[PicCase<'_>]| {
        // SAFETY: the header demands it.
        let constituent = unsafe { made.get(cases) };
        handle.publish(&constituent);
    };
    if made.case_count == 0 {
        return publish(&[]);
    }
    // SAFETY: the header demands it.
    unsafe { with_cases(made.cases, made.case_count, publish) };
}

/// Declares functions that publish a struct.
macro_rules! functions_of_structs {
    ($($name:ident($type:ty);)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: *const Handle<'_>, given: *const $type) {
            // SAFETY: the header demands it.
            let Some(handle) = (unsafe { listening(handle) }) else {
                return;
            };
            // SAFETY: the header demands it.
            let Some(given) = (unsafe { sized(given) }) else {
                return;
            };
            // SAFETY: the header demands it.
            let event = unsafe { given.get() };
            handle.publish(&event);
        })*
    };
}

functions_of_structs! {
    vmscope_method_known(CMethod);
    vmscope_compilation_begin(CCompilation);
    vmscope_phase_begin(CPhase);
    vmscope_counter_read(CCounter);
}

/// Declares functions that publish numbers and texts.
macro_rules! functions_of_values {
    ($($name:ident($($value:ident: $type:ty),*) => $event:expr;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: *const Handle<'_>, $($value: $type),*) {
            // SAFETY: the header demands it.
            let Some(handle) = (unsafe { listening(handle) }) else {
                return;
            };
            handle.publish(&$event);
        })*
    };
}

functions_of_values! {
    vmscope_constituent_gone(id: u64, reason: u32) => Gone {
        id,
        reason: GoneReason::from_number(reason.into()),
    };
    vmscope_constituent_moved(id: u64, to: u64) => Moved { id, to };
    vmscope_class_known(id: u64, name: CText) => Class {
        id,
        // SAFETY: the header demands it.
        name: unsafe { name.get() },
    };
    vmscope_thread_known(tid: u32, role: u32, name: CText) => Thread {
        tid,
        role: ThreadRole::from_number(role.into()),
        // SAFETY: the header demands it.
        name: unsafe { name.get() },
    };
    vmscope_thread_gone(tid: u32) => ThreadEnd { tid };
    vmscope_compilation_end(tid: u32) => CompilationEnd { tid };
    vmscope_phase_end(collection: u64, phase: u32) => PhaseEnd { collection, phase };
    vmscope_fact(name: CText, value: CText) => Fact {
        // SAFETY: the header demands it.
        name: unsafe { name.get() },
        // SAFETY: the header demands it.
        value: unsafe { value.get() },
    };
    vmscope_site_known(id: u64, frames: *const SiteFrame, count: usize) => Site {
        id,
        // SAFETY: the header demands it.
        frames: unsafe { list(frames, count) }.into(),
    };
    vmscope_lifetimes(
        class: u64,
        site: u64,
        objects: u64,
        bytes: u64,
        buckets: *const SurvivalBucket,
        count: usize
    ) => Lifetimes {
        class,
        site,
        objects,
        bytes,
        // SAFETY: the header demands it.
        buckets: unsafe { list(buckets, count) }.into(),
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_cases_changed(
    handle: *const Handle<'_>,
    id: u64,
    cases: *const CCase,
    count: usize,
) {
    // SAFETY: the header demands it.
    let Some(handle) = (unsafe { listening(handle) }) else {
        return;
    };
    let publish = |cases: &[PicCase<'_>]| {
        let cases = cases.into();
        handle.publish(&Cases { id, cases });
    };
    // SAFETY: the header demands it.
    unsafe { with_cases(cases, count, publish) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_collection_begin(
    handle: *const Handle<'_>,
    given: *const CCollection,
) {
    // SAFETY: the header demands it.
    let Some(handle) = (unsafe { listening(handle) }) else {
        return;
    };
    // SAFETY: the header demands it.
    let Some(given) = (unsafe { sized(given) }) else {
        return;
    };
    let publish = |spaces: &[SpaceUse<'_>]| {
        // SAFETY: the header demands it.
        let begin = unsafe { given.get(spaces) };
        handle.publish(&begin);
    };
    // SAFETY: the header demands it.
    unsafe { with_spaces(given.spaces, given.space_count, publish) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_collection_end(handle: *const Handle<'_>, given: *const CCollected) {
    // SAFETY: the header demands it.
    let Some(handle) = (unsafe { listening(handle) }) else {
        return;
    };
    // SAFETY: the header demands it.
    let Some(given) = (unsafe { sized(given) }) else {
        return;
    };
    let known = |number| (number != UNKNOWN).then_some(number);
    let publish = |spaces: &[SpaceUse<'_>]| {
        handle.publish(&CollectionEnd {
            id: given.id,
            spaces: spaces.into(),
            survived_bytes: known(given.survived_bytes),
            tenured_bytes: known(given.tenured_bytes),
            survived_objects: known(given.survived_objects),
            cpu_ns: known(given.cpu_ns),
        });
    };
    // SAFETY: the header demands it.
    unsafe { with_spaces(given.spaces, given.space_count, publish) };
}

/// Declares functions that publish lists of objects.
macro_rules! functions_of_objects {
    ($($name:ident($of:ident: $of_type:ty, $item:ty) => $method:ident;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            handle: *const Handle<'_>,
            $of: $of_type,
            items: *const $item,
            count: usize,
        ) {
            // SAFETY: the header demands it. Snapshots contain no objects.
            if let Some(Handle::Live(publisher)) = unsafe { listening(handle) } {
                // SAFETY: the header demands it.
                publisher.$method($of, unsafe { list(items, count) });
            }
        })*
    };
}

functions_of_objects! {
    vmscope_births(tid: u32, Birth) => births;
    vmscope_survivals(collection: u64, Survival) => survivals;
    vmscope_deaths(collection: u64, Death) => deaths;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_interpreter(
    handle: *const Handle<'_>,
    ranges: *const AddressRange,
    range_count: usize,
    sources: *const CSource,
    source_count: usize,
) {
    // SAFETY: the header demands it.
    let Some(handle) = (unsafe { listening(handle) }) else {
        return;
    };
    // SAFETY: the header demands it.
    let given = unsafe { list(sources, source_count) };
    let mut sources = [const { None }; MOST_SOURCES];
    for (place, given) in sources.iter_mut().zip(given) {
        *place = Some(given.get());
    }
    let sources = sources.map(Option::unwrap_or_default);
    handle.publish(&Interpreter {
        // SAFETY: the header demands it.
        ranges: unsafe { list(ranges, range_count) }.into(),
        sources: sources.get(..given.len()).unwrap_or(&sources).into(),
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_frames(handle: *const Handle<'_>, interpreted_return: u64, next: i32) {
    // SAFETY: the header demands it.
    if let Some(handle) = unsafe { listening(handle) } {
        handle.publish(&Frames {
            interpreted_return,
            next,
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn vmscope_regions(
    handle: *const Handle<'_>,
    rules: *const CRegionRule,
    count: usize,
) {
    // SAFETY: the header demands it.
    let Some(handle) = (unsafe { listening(handle) }) else {
        return;
    };
    // SAFETY: the header demands it.
    let rules = unsafe { list(rules, count) }.iter();
    // SAFETY: the header demands it.
    let rules: Vec<_> = rules.map(|rule| unsafe { rule.get() }).collect();
    handle.publish(&Regions {
        rules: rules.into(),
    });
}

#[cfg(test)]
mod tests;
