//! The VM's side: a VM makes one [`Publisher`], publishes what happens, and calls
//! [`Publisher::poll`] at its safe points.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::callbacks::{Callbacks, LifetimeRate, LifetimeUnit};
use crate::event::wire::{Length, Sink, Wire};
use crate::event::{self, Birth, Births, Body, Death, Deaths, Survival, Survivals};
use crate::fork;
use crate::layout::{self, word};
use crate::memory::{self, Memory};
use crate::ring::{Reservation, Ring};
use crate::sync::AtomicU64;

pub use describer::Describer;
pub use options::{Options, PublishError};

mod describer;
mod options;
mod sampling;

use sampling::Control;

/// Interval between two checks of the profilers' leases while publishing, in nanoseconds.
const LEASE_CHECK_NS: u64 = 100_000_000;
/// Sleep of a VM that waits for a profiler.
const NAP: Duration = Duration::from_millis(1);
/// Most objects in one record of the `births`, `survivals` and `deaths`.
const BATCH: usize = 256;

/// A VM's self-description. Clones share one description, which ends with the last clone.
///
/// All methods are thread-safe. While no profiler listens, a method costs one load and a branch. In
/// a forked child, the methods do nothing.
#[derive(Clone, Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    _owner: Arc<Owner>,
}

/// Stops the sampler when the last clone is dropped. Registered threads may keep the memory longer.
#[derive(Debug)]
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end_sampler();
    }
}

/// Where a ring lies in the memory.
#[derive(Clone, Copy, Debug)]
struct Part {
    offset: usize,
    words: usize,
}

/// State shared by all clones.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) memory: Memory,
    stream: Part,
    samples: Part,
    patience: Duration,
    /// Set in a forked child of the process that made the memory.
    child: AtomicBool,
    /// Set while a thread answers requests.
    answering: AtomicBool,
    /// Time of the next check of the leases.
    next_check: AtomicU64,
    pub(crate) sampler: Control,
}

/// Writes an event into the ring.
struct Writer<'m>(Reservation<'m>);

impl Sink for Writer<'_> {
    #[inline]
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}

impl Publisher {
    /// Makes the shared memory. Call it early: a profiler that attaches later sees all things that
    /// exist at that time.
    ///
    /// # Errors
    ///
    /// If a ring's size is out of range, memory creation fails, or the process has too many
    /// publishers.
    pub fn new(options: &Options<'_>) -> Result<Self, PublishError> {
        let ring = |bytes: usize| {
            let size = bytes.checked_next_power_of_two().unwrap_or(usize::MAX);
            let possible = layout::SMALLEST_RING..=layout::LARGEST_RING;
            (possible.contains(&size).then_some(size)).ok_or(PublishError::RingSize(bytes))
        };
        let (stream, samples) = (ring(options.stream_bytes)?, ring(options.sample_bytes)?);
        let samples_at = layout::HEADER_BYTES + layout::THREADS_BYTES;
        let stream_at = samples_at + samples;
        let memory = Memory::create(stream_at + stream).map_err(PublishError::Memory)?;
        let part = |offset, bytes| Part {
            offset,
            words: bytes / 8,
        };
        let shared = Arc::new(Shared {
            memory,
            stream: part(stream_at, stream),
            samples: part(samples_at, samples),
            patience: options.snapshot_patience,
            child: AtomicBool::new(false),
            answering: AtomicBool::new(false),
            next_check: AtomicU64::new(0),
            sampler: Control::default(),
        });
        shared.fill_header(options);
        if !fork::remember(&shared) {
            return Err(PublishError::TooMany);
        }
        let owner = Arc::new(Owner(Arc::clone(&shared)));
        Ok(Self {
            shared,
            _owner: owner,
        })
    }

    /// Whether a profiler listens. Ask before you gather the data of an event.
    #[must_use]
    #[inline]
    pub fn listening(&self) -> bool {
        self.shared.listening()
    }

    /// Publishes an event with the current time.
    #[inline]
    pub fn publish<B: Body>(&self, body: &B) {
        if self.listening() {
            self.shared.emit(B::KIND, memory::now(), body);
        }
    }

    /// Publishes an event with the time of its occurrence, in nanoseconds of `CLOCK_MONOTONIC`.
    #[inline]
    pub fn publish_at<B: Body>(&self, time: u64, body: &B) {
        if self.listening() {
            self.shared.emit(B::KIND, time, body);
        }
    }

    /// Publishes any number of allocations of one thread.
    pub fn births(&self, tid: u32, births: &[Birth]) {
        for births in births.chunks(BATCH) {
            let births = births.into();
            self.publish(&Births { tid, births });
        }
    }

    /// Publishes any number of objects that survived a collection.
    pub fn survivals(&self, collection: u64, survivals: &[Survival]) {
        for survivals in survivals.chunks(BATCH) {
            let survivals = survivals.into();
            self.publish(&Survivals {
                collection,
                survivals,
            });
        }
    }

    /// Publishes any number of dead objects. `collection` is 0 if no collection observed the
    /// deaths.
    pub fn deaths(&self, collection: u64, deaths: &[Death]) {
        for deaths in deaths.chunks(BATCH) {
            let deaths = deaths.into();
            self.publish(&Deaths { collection, deaths });
        }
    }

    /// Answers profilers' requests. Call `poll` at safe points: the callbacks run on the calling
    /// thread, one at a time. Without requests, a poll costs one load and a branch.
    #[inline]
    pub fn poll(&self, callbacks: &mut dyn Callbacks) {
        if self.has_requests() {
            self.shared.answer(callbacks);
        }
    }

    /// Whether a request waits for [`poll`](Self::poll).
    #[must_use]
    #[inline]
    pub fn has_requests(&self) -> bool {
        let attention = self.shared.memory.word(word::ATTENTION);
        attention.load(Ordering::Relaxed) != 0
    }

    /// If a profiler started this process, waits until the profiler has read all published events, at
    /// most for `longest`. Call it once, after the first events and before the
    /// program: the profile then covers the first instruction, too. Returns whether the profiler is there.
    pub fn await_profiler(&self, longest: Duration) -> bool {
        if std::env::var_os(layout::EXPECT).is_none() || self.is_in_child() {
            return false;
        }
        let end = Instant::now() + longest;
        let head = self.shared.stream().head();
        while !self.shared.has_reader_at(head) {
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(NAP);
        }
        true
    }

    /// Checks the profilers' leases, and returns whether a profiler still listens. Only VMs that
    /// publish rarely need this call: publishing checks the leases ten times a second.
    pub fn check_listeners(&self) -> bool {
        self.shared.check_leases(memory::now());
        self.listening()
    }

    /// Whether this process is a forked child of the publisher's process.
    #[must_use]
    pub fn is_in_child(&self) -> bool {
        self.shared.child.load(Ordering::Relaxed)
    }

    /// Number of events left out because their length exceeds the ring's limit.
    #[must_use]
    pub fn too_long(&self) -> u64 {
        let count = self.shared.memory.word(word::TOO_LONG);
        count.load(Ordering::Relaxed)
    }

    /// The memory's file. In-process profilers attach to it.
    #[must_use]
    pub fn file(&self) -> &std::fs::File {
        self.shared.memory.file()
    }
}

impl Shared {
    fn fill_header(&self, options: &Options<'_>) {
        let memory = &self.memory;
        let set = |index: usize, value: u64| memory.word(index).store(value, Ordering::Relaxed);
        set(
            word::VERSION,
            u64::from(layout::MAJOR) << 32 | u64::from(layout::MINOR),
        );
        set(word::HEADER_BYTES, layout::HEADER_BYTES as u64);
        set(word::TOTAL_BYTES, memory.bytes() as u64);
        set(word::PID, u64::from(std::process::id()));
        set(word::CREATED, memory::now());
        set(word::START_TICKS, start_ticks().unwrap_or(0));
        for (index, text) in [
            (word::VM_NAME, options.name),
            (word::VM_VERSION, options.version),
        ] {
            let bytes = text.as_bytes();
            for (at, chunk) in bytes.chunks(8).take(layout::NAME_WORDS).enumerate() {
                let bytes = chunk.iter().rev();
                let value = bytes.fold(0, |word, &byte| word << 8 | u64::from(byte));
                set(index + at, value);
            }
        }
        set(word::STREAM_OFFSET, self.stream.offset as u64);
        set(word::STREAM_WORDS, self.stream.words as u64);
        set(word::SAMPLES_OFFSET, self.samples.offset as u64);
        set(word::SAMPLES_WORDS, self.samples.words as u64);
        set(word::THREADS_OFFSET, layout::HEADER_BYTES as u64);
        set(word::THREADS, layout::THREADS as u64);
        if std::env::var_os(layout::EXPECT).is_some() {
            set(
                word::LEASES,
                memory::now().saturating_add(layout::EXPECTED_NS),
            );
            // The expected profiler has nothing to read yet, so snapshots need not wait.
            set(word::LEASE_READ, u64::MAX);
            set(word::LISTENING, 1);
        }
        let magic = memory.word(word::MAGIC);
        magic.store(layout::MAGIC, Ordering::Release);
    }

    #[inline]
    pub(crate) fn listening(&self) -> bool {
        self.memory.word(word::LISTENING).load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn stream(&self) -> Ring<'_> {
        let Part { offset, words } = self.stream;
        let (head, floor) = (word::STREAM_HEAD, word::STREAM_FLOOR);
        let words = self.memory.part(offset, words).unwrap_or_default();
        Ring::new(self.memory.word(head), self.memory.word(floor), words)
    }

    fn emit<B: Wire>(&self, kind: u8, time: u64, body: &B) {
        let mut length = Length::default();
        body.encode(&mut length);
        if let Some(record) = self.stream().reserve(kind, time, length.0) {
            let mut writer = Writer(record);
            body.encode(&mut writer);
            writer.0.commit();
        } else {
            let count = self.memory.word(word::TOO_LONG);
            count.fetch_add(1, Ordering::Relaxed);
        }
        if time > self.next_check.load(Ordering::Relaxed) {
            self.check_leases(memory::now());
        }
    }

    /// Ends expired leases, and goes quiet without living leases.
    pub(crate) fn check_leases(&self, now: u64) {
        let next = now.saturating_add(LEASE_CHECK_NS);
        self.next_check.store(next, Ordering::Relaxed);
        let (expired, went_quiet) = self.memory.leases().check(now);
        self.add(word::LEASES_EXPIRED, expired);
        let rate = self.memory.word(word::RATE_DISTANCE);
        if went_quiet && rate.swap(0, Ordering::Relaxed) != 0 {
            // The last profiler left, so nobody wants lifetimes: the VM hears of the change at its
            // next poll.
            let requests = self.memory.word(word::RATES_REQUESTED);
            requests.fetch_add(1, Ordering::Release);
            let attention = self.memory.word(word::ATTENTION);
            attention.store(1, Ordering::Release);
        }
    }

    #[cold]
    fn answer(self: &Arc<Self>, callbacks: &mut dyn Callbacks) {
        let attention = self.memory.word(word::ATTENTION);
        // A profiler first counts its request up, then sets `ATTENTION`. Every request whose
        // `ATTENTION` is cleared here is therefore visible in its count below. Later requests set
        // `ATTENTION` again.
        attention.swap(0, Ordering::AcqRel);
        if self.answering.swap(true, Ordering::SeqCst) {
            // Another thread answers, and may have missed this request. The next poll looks again.
            attention.store(1, Ordering::SeqCst);
            return;
        }
        let _done = Answering(&self.answering);
        self.check_leases(memory::now());
        self.sampler_command(|_| true);
        if let Some(number) = self.request(word::RATES_REQUESTED, word::RATES_DONE) {
            let rate = LifetimeRate {
                unit: LifetimeUnit::from_number(
                    self.memory.word(word::RATE_UNIT).load(Ordering::Relaxed),
                ),
                distance: self
                    .memory
                    .word(word::RATE_DISTANCE)
                    .load(Ordering::Relaxed),
                callers: self.rate_callers(),
            };
            callbacks.lifetime_rate(rate);
            self.finish(word::RATES_DONE, number);
        }
        if let Some(number) = self.request(word::COLLECTIONS_REQUESTED, word::COLLECTIONS_DONE) {
            callbacks.collect();
            self.finish(word::COLLECTIONS_DONE, number);
        }
        if callbacks.can_describe()
            && let Some(number) = self.request(word::SNAPSHOTS_REQUESTED, word::SNAPSHOTS_DONE)
        {
            self.finish(word::SNAPSHOTS_BEGUN, number);
            let snapshot = event::Snapshot { number };
            self.emit(event::SNAPSHOT_BEGIN, memory::now(), &snapshot);
            callbacks.describe(&Describer::new(self, self.patience));
            self.emit(event::SNAPSHOT_END, memory::now(), &snapshot);
            self.finish(word::SNAPSHOTS_DONE, number);
        }
    }

    /// Requested number of callers in a site. A profiler may write any number.
    fn rate_callers(&self) -> u32 {
        let callers = self.memory.word(word::RATE_CALLERS).load(Ordering::Relaxed);
        u32::try_from(callers).map_or(LifetimeRate::MOST_CALLERS, |callers| {
            callers.min(LifetimeRate::MOST_CALLERS)
        })
    }

    /// The newest request, if it is newer than the newest answer.
    fn request(&self, requested: usize, done: usize) -> Option<u64> {
        let requested = self.memory.word(requested).load(Ordering::Acquire);
        let done = self.memory.word(done).load(Ordering::Relaxed);
        (requested != done).then_some(requested)
    }

    fn finish(&self, done: usize, number: u64) {
        self.memory.word(done).store(number, Ordering::Release);
    }

    /// Whether an attached profiler, not only an expected one, has read the stream up to `head`.
    fn has_reader_at(&self, head: u64) -> bool {
        let leases = self.memory.leases();
        leases.alive(memory::now()).any(|slot| {
            let value = |index: usize| self.memory.word(index + slot).load(Ordering::Relaxed);
            value(word::LEASE_PIDS) != 0 && value(word::LEASE_READ) >= head
        })
    }

    /// Number of words in the stream that the slowest profiler has not read.
    fn unread(&self) -> u64 {
        let head = self.stream().head();
        let leases = self.memory.leases();
        let unread = leases.alive(memory::now()).map(|slot| {
            let read = self.memory.word(word::LEASE_READ + slot);
            head.saturating_sub(read.load(Ordering::Relaxed))
        });
        unread.max().unwrap_or(0)
    }

    /// Cuts all ties to the parent, in a forked child.
    pub(crate) fn disconnect(&self) {
        self.child.store(true, Ordering::Relaxed);
        self.sampler.stop();
        self.memory.disconnect();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        fork::forget(self);
    }
}

/// Lets other threads answer, also if a callback unwinds.
struct Answering<'p>(&'p AtomicBool);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Start time of this process in clock ticks, from the 22nd field of `/proc/self/stat`.
fn start_ticks() -> Option<u64> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    // The name of the program may hold anything, also spaces and brackets.
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
