//! Starting and stopping the sampler, by the VM and by profilers.
#![allow(
    unsafe_code,
    reason = "the sampler's thread starts with blocked signals"
)]

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{Part, Publisher, Shared};
use crate::event::{Thread, ThreadEnd, ThreadRole};
use crate::layout::{self, thread, word};
use crate::memory;
use crate::ring::Ring;
use crate::sampler::{
    SamplerCommand, SamplerError, SamplerOptions, SamplerState, SamplerStatus, handler, slots,
    ticker,
};

/// Set while a sampler runs in this process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Control of the sampler's thread by other threads.
#[derive(Debug, Default)]
pub(crate) struct Control {
    thread: Mutex<Option<JoinHandle<()>>>,
    running: AtomicBool,
    /// A profiler started the sampler, so the sampler ends with the last profiler.
    for_profiler: AtomicBool,
    /// Signal that the VM chose; 0 for `SIGPROF`.
    signal: AtomicI32,
}

impl Control {
    pub(crate) fn running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub(crate) fn is_for_profiler(&self) -> bool {
        self.for_profiler.load(Ordering::Relaxed)
    }

    /// Lets the thread end at its next tick. Async-signal-safe.
    pub(crate) fn stop(&self) {
        self.running.store(false, Ordering::Release);
    }
}

impl Publisher {
    /// Sets the sampler's signal, which is `SIGPROF` otherwise. Call it before the sampler starts
    /// for the first time in the process; later calls have no effect.
    pub fn set_sampler_signal(&self, signal: i32) {
        self.shared.sampler.signal.store(signal, Ordering::Relaxed);
    }

    /// Starts the sampler, or changes its options while it runs.
    ///
    /// # Errors
    ///
    /// If another publisher of the process samples, the signal's handler cannot be installed, or
    /// the thread cannot be started.
    pub fn start_sampler(&self, options: &SamplerOptions) -> Result<(), SamplerError> {
        let sampler = &self.shared.sampler;
        sampler.for_profiler.store(false, Ordering::Relaxed);
        self.shared.start_sampler(*options)
    }

    /// Stops the sampler, and waits until its thread has ended. Its samples stay.
    pub fn stop_sampler(&self) {
        self.shared.end_sampler();
    }

    /// Drops all samples in the ring.
    pub fn clear_samples(&self) {
        self.shared.clear_samples();
    }

    /// State and counters of the sampler.
    #[must_use]
    pub fn sampler_status(&self) -> SamplerStatus {
        SamplerStatus::read(&self.shared.memory)
    }

    /// Registers the calling thread for sampling, and publishes it.
    ///
    /// # Errors
    ///
    /// If the thread table is full, another publisher has registered the thread, or this process is
    /// a forked child.
    pub fn register_thread(&self, role: ThreadRole, name: &str) -> Result<(), SamplerError> {
        self.register(role, name.as_bytes(), &[])
    }

    /// Like [`register_thread`](Self::register_thread), for a thread with further stacks. Each pair
    /// in `stacks` holds a stack's first address, and the first address after the stack. The
    /// sampler follows call chains on these stacks. Only the first three pairs count.
    ///
    /// # Errors
    ///
    /// As above.
    ///
    /// # Safety
    ///
    /// All of these stacks stay readable until the thread is unregistered.
    #[expect(unsafe_code, reason = "the sampler reads these addresses")]
    pub unsafe fn register_thread_with_stacks(
        &self,
        role: ThreadRole,
        name: &str,
        stacks: &[[u64; 2]],
    ) -> Result<(), SamplerError> {
        self.register(role, name.as_bytes(), stacks)
    }

    pub(crate) fn register(
        &self,
        role: ThreadRole,
        name: &[u8],
        stacks: &[[u64; 2]],
    ) -> Result<(), SamplerError> {
        let shared = &self.shared;
        if self.is_in_child() {
            return Err(SamplerError::Child);
        }
        let tid = slots::current();
        self.publish(&Thread {
            tid,
            role,
            name: name.into(),
        });
        if let Some((_, slot)) = slots::mine() {
            let known = slot.is_of(shared);
            return known.then_some(()).ok_or(SamplerError::Busy);
        }
        let mut ranges = [[0; 2]; slots::STACKS];
        let own = slots::own_stack();
        let all = own.into_iter().chain(stacks.iter().copied());
        for (place, range) in ranges.iter_mut().zip(all) {
            *place = range;
        }
        let Some(index) = slots::take(shared, &ranges) else {
            shared.add(word::SAMPLER_NO_ROW, 1);
            return Err(SamplerError::NoRow);
        };
        for place in thread::ROLE..layout::THREAD_WORDS {
            shared.set(index, place, 0);
        }
        shared.set(index, thread::ROLE, role as u64);
        shared.set(index, thread::TID, u64::from(tid));
        Ok(())
    }

    /// Ends the sampling of the calling thread. Call it before the thread ends.
    pub fn unregister_thread(&self) {
        let tid = slots::current();
        if let Some((index, slot)) = slots::mine()
            && slot.is_of(&self.shared)
        {
            slot.free(tid);
            self.shared.set(index, thread::TID, 0);
        }
        self.publish(&ThreadEnd { tid });
    }
}

impl Shared {
    pub(crate) fn samples(&self) -> Ring<'_> {
        let Part { offset, words } = self.samples;
        let (head, floor) = (word::SAMPLES_HEAD, word::SAMPLES_FLOOR);
        let words = self.memory.part(offset, words).unwrap_or_default();
        Ring::new(self.memory.word(head), self.memory.word(floor), words)
    }

    /// A word of the header.
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.memory.word(index).load(Ordering::Relaxed)
    }

    /// Adds `count` to a header word.
    pub(crate) fn add(&self, index: usize, count: u64) {
        self.memory.word(index).fetch_add(count, Ordering::Relaxed);
    }

    /// Sets a word of a thread's row.
    pub(crate) fn set(&self, row: usize, index: usize, value: u64) {
        let row = layout::HEADER_BYTES + row * layout::THREAD_WORDS * 8;
        if let Some(words) = self.memory.part(row, layout::THREAD_WORDS)
            && let Some(word) = words.get(index)
        {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Adds one to a word of a thread's row.
    pub(crate) fn count(&self, row: usize, index: usize) {
        let row = layout::HEADER_BYTES + row * layout::THREAD_WORDS * 8;
        if let Some(words) = self.memory.part(row, layout::THREAD_WORDS)
            && let Some(word) = words.get(index)
        {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn clear_samples(&self) {
        let ring = self.samples();
        ring.free_before(ring.head());
    }

    fn start_sampler(self: &Arc<Self>, options: SamplerOptions) -> Result<(), SamplerError> {
        if self.child.load(Ordering::Relaxed) {
            return Err(SamplerError::Child);
        }
        let control = &self.sampler;
        let mut thread = control
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let set = |index: usize, value| self.memory.word(index).store(value, Ordering::Relaxed);
        let options_to_words = || {
            set(word::SAMPLER_PERIOD_NOW, options.period_ns());
            set(word::SAMPLER_OPTIONS_NOW, options.bits());
        };
        if control.running() {
            options_to_words();
            return Ok(());
        }
        if let Some(ended) = thread.take() {
            // The thread was stopped, and ends at its next tick.
            let _ = ended.join();
            TAKEN.store(false, Ordering::Release);
        }
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(SamplerError::Busy);
        }
        let started = self.start_thread(options_to_words);
        match started {
            Ok(handle) => {
                set(word::SAMPLER_STARTED, memory::now());
                *thread = Some(handle);
                Ok(())
            }
            Err(error) => {
                control.stop();
                set(word::SAMPLER_STATE, SamplerState::Stopped as u64);
                TAKEN.store(false, Ordering::Release);
                Err(error)
            }
        }
    }

    fn start_thread(
        self: &Arc<Self>,
        options_to_words: impl FnOnce(),
    ) -> Result<JoinHandle<()>, SamplerError> {
        let signal = match self.sampler.signal.load(Ordering::Relaxed) {
            0 => libc::SIGPROF,
            signal => signal,
        };
        handler::install(signal)?;
        options_to_words();
        let state = self.memory.word(word::SAMPLER_STATE);
        state.store(SamplerState::Running as u64, Ordering::Relaxed);
        self.sampler.running.store(true, Ordering::Release);
        let shared = Arc::clone(self);
        let builder = std::thread::Builder::new().name("vmscope-sampler".to_owned());
        let _blocked = Blocked::all();
        let started = builder.spawn(move || ticker::run(&shared));
        started.map_err(|_| SamplerError::Thread)
    }

    /// Stops the sampler and waits for the end of its thread.
    pub(super) fn end_sampler(&self) {
        self.sampler.stop();
        let thread = &self.sampler.thread;
        if self.child.load(Ordering::Relaxed) {
            // The sampler's thread exists in the parent only, and may have held the lock during the
            // fork.
            if let Ok(mut thread) = thread.try_lock() {
                std::mem::forget(thread.take());
            }
            return;
        }
        let mut thread = thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = thread.take() {
            let _ = running.join();
            TAKEN.store(false, Ordering::Release);
        }
    }

    /// Carries out a profiler's pending command if `can` accepts the command.
    pub(crate) fn sampler_command(self: &Arc<Self>, can: impl FnOnce(SamplerCommand) -> bool) {
        let requested = self.memory.word(word::SAMPLER_REQUESTED);
        let requested = requested.load(Ordering::Acquire);
        let done = self.memory.word(word::SAMPLER_DONE);
        let before = done.load(Ordering::Relaxed);
        let command = SamplerCommand::from_number(self.word(word::SAMPLER_COMMAND));
        if requested == before || !can(command) {
            return;
        }
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        if (done.compare_exchange(before, requested, order.0, order.1)).is_err() {
            return;
        }
        match command {
            SamplerCommand::Start => {
                let was_running = self.sampler.running();
                let period = self.word(word::SAMPLER_PERIOD);
                let options = SamplerOptions::from_words(period, self.word(word::SAMPLER_OPTIONS));
                // The status tells the profiler whether the start succeeded.
                if self.start_sampler(options).is_ok() && !was_running {
                    self.sampler.for_profiler.store(true, Ordering::Relaxed);
                }
            }
            SamplerCommand::Stop => self.sampler.stop(),
            SamplerCommand::Clear => self.clear_samples(),
            SamplerCommand::None => {}
        }
    }
}

/// Blocks all signals in this thread until dropped. A thread that starts meanwhile inherits the
/// blocked signals.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Self {
        // SAFETY: a set of bits, for which zeros are valid.
        let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut before = all;
        // SAFETY: fills the local set.
        unsafe { libc::sigfillset(&raw mut all) };
        // SAFETY: reads and writes local sets.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        Self(before)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let before = &raw const self.0;
        // SAFETY: reads the set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
    }
}
