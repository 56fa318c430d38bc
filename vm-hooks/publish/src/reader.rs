//! A profiler's side of the shared memory. It believes nothing that the VM wrote.

use std::fs::File;
use std::sync::atomic::Ordering;

use crate::callbacks::LifetimeRate;
use crate::event::{DecodeError, Event};
use crate::layout::{self, word};
use crate::memory::{self, Memory};
use crate::ring::{self, Cursor, Ring};
use crate::sample::Sample;
use crate::sampler::{SamplerCommand, SamplerOptions, SamplerStatus, ThreadTicks};
use crate::sync::fence;

pub use error::AttachError;

mod error;

/// Length of a lease in nanoseconds. Renew it several times meanwhile.
pub const LEASE_NS: u64 = 10_000_000_000;

/// Time after which an incomplete record counts as torn, in nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000_000;

/// What the header says about the VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Process id in the VM's own namespace.
    pub pid: u64,
    /// Start time of the process as in `/proc/PID/stat`, in clock ticks; 0 if unknown.
    pub start_ticks: u64,
    /// Time of the memory's creation in nanoseconds of `CLOCK_MONOTONIC`.
    pub created: u64,
    /// Minor version of the layout.
    pub minor: u32,
}

/// What [`Attached::read`] found.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "most are events, and each is made and taken apart once"
)]
#[non_exhaustive]
pub enum Next {
    /// An event.
    Event {
        /// Its time in nanoseconds of `CLOCK_MONOTONIC`, as the VM gave it.
        time: u64,
        /// Position in the stream.
        position: u64,
        /// The event.
        event: Event<'static>,
    },
    /// Nothing new.
    Empty,
    /// A record that is no event, or one of a later version.
    Undecodable(DecodeError),
    /// The VM overwrote events that were not read yet. Ask for a snapshot.
    Overrun {
        /// Number of words in them.
        words: u64,
    },
    /// A record was not completed, or was damaged by a thread that stalled. Ask for a snapshot.
    Torn {
        /// Number of words passed over.
        words: u64,
    },
}

/// What [`Attached::read_sample`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextSample {
    /// A sample.
    Sample(Sample),
    /// Nothing new.
    Empty,
    /// A record that is no sample.
    Undecodable(DecodeError),
    /// Samples were overwritten before they were read, or not completed.
    Lost {
        /// Number of words in them.
        words: u64,
    },
}

/// Where a ring lies.
#[derive(Clone, Copy, Debug)]
struct Part {
    offset: usize,
    words: usize,
}

/// A VM's shared memory, with a lease: the VM publishes while it lasts.
#[derive(Debug)]
pub struct Attached {
    memory: Memory,
    identity: Identity,
    stream: Part,
    samples: Part,
    slot: usize,
    lease: u64,
    cursor: Cursor,
    sample_cursor: Cursor,
}

impl Attached {
    /// Attaches to the memory in `file`, a descriptor of the VM's (`/proc/PID/fd/N`) opened for
    /// reading and writing. Reads what is published from now on: ask for a snapshot next.
    ///
    /// With `pid`, the process id in the VM's own namespace, memory that the process inherited
    /// from another one is refused.
    ///
    /// # Errors
    ///
    /// If this is no memory of a publisher, or as many profilers listen as can.
    pub fn new(file: File, pid: Option<u64>) -> Result<Self, AttachError> {
        let memory = Memory::open(file).map_err(AttachError::Memory)?;
        let magic = memory.word(word::MAGIC).load(Ordering::Acquire);
        if magic != layout::MAGIC {
            return Err(AttachError::Magic(magic));
        }
        let identity = Identity::read(&memory)?;
        if pid.is_some_and(|pid| pid != identity.pid) {
            let owner = identity.pid;
            return Err(AttachError::Inherited { owner });
        }
        let stream = part(&memory, word::STREAM_OFFSET, word::STREAM_WORDS)?;
        let samples = part(&memory, word::SAMPLES_OFFSET, word::SAMPLES_WORDS)?;
        let mut attached = Self {
            memory,
            identity,
            stream,
            samples,
            slot: 0,
            lease: 0,
            cursor: Cursor::default(),
            sample_cursor: Cursor::default(),
        };
        attached.cursor = Cursor::at_head(&attached.stream());
        attached.sample_cursor = Cursor::at_oldest(&attached.samples());
        attached.take_lease(memory::now())?;
        Ok(attached)
    }

    /// What the header says about the VM.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Reads the next event. Never waits.
    ///
    /// Read without pauses while a snapshot is on its way: the VM waits a little for its readers,
    /// but not for long.
    pub fn read(&mut self) -> Next {
        self.read_at(memory::now(), PATIENCE_NS)
    }

    /// Reads the next event of a VM that is gone: what is not complete now will never be.
    pub fn read_of_dead(&mut self) -> Next {
        self.read_at(memory::now(), 0)
    }

    /// Like [`read`](Self::read) at the time `now`, for records that may stay incomplete for
    /// `patience` nanoseconds.
    pub fn read_at(&mut self, now: u64, patience: u64) -> Next {
        let ring = ring_of(
            &self.memory,
            self.stream,
            (word::STREAM_HEAD, word::STREAM_FLOOR),
        );
        let next = match self.cursor.next(&ring, now, patience) {
            ring::Next::Record(record) => match Event::decode(record.kind, record.payload) {
                Ok(event) => Next::Event {
                    time: record.time,
                    position: record.position,
                    event,
                },
                Err(error) => Next::Undecodable(error),
            },
            ring::Next::Empty => Next::Empty,
            ring::Next::Overrun { words } => Next::Overrun { words },
            ring::Next::Torn { words } => Next::Torn { words },
        };
        if self.holds_lease() {
            let read = self.memory.word(word::LEASE_READ + self.slot);
            read.store(self.cursor.position(), Ordering::Relaxed);
        }
        next
    }

    /// Reads the next sample of the in-VM sampler, also those that it took before a profiler was
    /// there, if they were not overwritten. Never waits.
    pub fn read_sample(&mut self) -> NextSample {
        let words = (word::SAMPLES_HEAD, word::SAMPLES_FLOOR);
        let ring = ring_of(&self.memory, self.samples, words);
        match (self.sample_cursor).next(&ring, memory::now(), PATIENCE_NS) {
            ring::Next::Record(record) => match Sample::decode(record.time, record.payload) {
                Ok(sample) => NextSample::Sample(sample),
                Err(error) => NextSample::Undecodable(error),
            },
            ring::Next::Empty => NextSample::Empty,
            ring::Next::Overrun { words } | ring::Next::Torn { words } => {
                NextSample::Lost { words }
            }
        }
    }

    /// Says that the samples that were read so far may be overwritten, where the oldest stay.
    pub fn free_samples(&self) {
        self.samples().free_before(self.sample_cursor.position());
    }

    /// Starts the VM's sampler at its next safe point, or changes its options. A sampler that a
    /// profiler started ends with the last profiler. Whether it started, its status says.
    pub fn start_sampler(&self, options: &SamplerOptions) -> u64 {
        let set = |index, value| self.memory.word(index).store(value, Ordering::Relaxed);
        set(word::SAMPLER_PERIOD, options.period_ns());
        set(word::SAMPLER_OPTIONS, options.bits());
        self.sampler_command(SamplerCommand::Start)
    }

    /// Stops the VM's sampler at its next tick.
    pub fn stop_sampler(&self) -> u64 {
        self.sampler_command(SamplerCommand::Stop)
    }

    /// Drops the samples in the ring at the next tick or safe point.
    pub fn clear_samples(&self) -> u64 {
        self.sampler_command(SamplerCommand::Clear)
    }

    /// Number of the newest command to the sampler that was carried out.
    #[must_use]
    pub fn sampler_commands_done(&self) -> u64 {
        self.memory.word(word::SAMPLER_DONE).load(Ordering::Acquire)
    }

    /// What the VM's sampler does and did.
    #[must_use]
    pub fn sampler_status(&self) -> SamplerStatus {
        SamplerStatus::read(&self.memory)
    }

    /// What the ticks found of the VM's registered threads.
    #[must_use]
    pub fn sampled_threads(&self) -> Vec<ThreadTicks> {
        ThreadTicks::read(&self.memory)
    }

    fn sampler_command(&self, command: SamplerCommand) -> u64 {
        let place = self.memory.word(word::SAMPLER_COMMAND);
        place.store(command as u64, Ordering::Relaxed);
        self.request(word::SAMPLER_REQUESTED)
    }

    /// Number of words that were published and not read yet.
    #[must_use]
    pub fn backlog(&self) -> u64 {
        let head = self.stream().head();
        head.saturating_sub(self.cursor.position())
    }

    /// Renews the lease. `false` if it had run out, so that the VM may have been quiet meanwhile:
    /// ask for a snapshot.
    ///
    /// # Errors
    ///
    /// If it had run out, and as many other profilers listen as can.
    pub fn renew(&mut self) -> Result<bool, AttachError> {
        let now = memory::now();
        let renewed = self.swap_lease(self.slot, self.lease, now);
        if renewed {
            self.say_listening();
        } else {
            self.take_lease(now)?;
        }
        Ok(renewed)
    }

    /// Asks for a snapshot, and returns its number. The VM answers at a safe point, between
    /// `SnapshotBegin` and `SnapshotEnd` with this number or a greater one.
    pub fn request_snapshot(&self) -> u64 {
        self.request(word::SNAPSHOTS_REQUESTED)
    }

    /// Number of the newest snapshot that the VM began, and of the newest one that it finished.
    #[must_use]
    pub fn snapshots(&self) -> (u64, u64) {
        let number = |index| self.memory.word(index).load(Ordering::Acquire);
        (number(word::SNAPSHOTS_BEGUN), number(word::SNAPSHOTS_DONE))
    }

    /// Asks for a full collection, and returns the request's number.
    pub fn request_collection(&self) -> u64 {
        self.request(word::COLLECTIONS_REQUESTED)
    }

    /// Number of the newest request for a collection that the VM answered.
    #[must_use]
    pub fn collections_done(&self) -> u64 {
        let done = self.memory.word(word::COLLECTIONS_DONE);
        done.load(Ordering::Acquire)
    }

    /// Sets which objects' lifetimes the VM publishes, for all profilers.
    pub fn set_lifetime_rate(&self, rate: LifetimeRate) -> u64 {
        let set = |index, value| self.memory.word(index).store(value, Ordering::Relaxed);
        set(word::RATE_UNIT, rate.unit as u64);
        set(word::RATE_DISTANCE, rate.distance);
        self.request(word::RATES_REQUESTED)
    }

    /// Number of events that were too long for the stream, by the VM's count.
    #[must_use]
    pub fn too_long(&self) -> u64 {
        self.memory.word(word::TOO_LONG).load(Ordering::Relaxed)
    }

    fn request(&self, index: usize) -> u64 {
        let number = self.memory.word(index).fetch_add(1, Ordering::Release);
        let attention = self.memory.word(word::ATTENTION);
        attention.store(1, Ordering::Release);
        number.wrapping_add(1)
    }

    fn stream(&self) -> Ring<'_> {
        let words = (word::STREAM_HEAD, word::STREAM_FLOOR);
        ring_of(&self.memory, self.stream, words)
    }

    fn samples(&self) -> Ring<'_> {
        let words = (word::SAMPLES_HEAD, word::SAMPLES_FLOOR);
        ring_of(&self.memory, self.samples, words)
    }

    fn take_lease(&mut self, now: u64) -> Result<(), AttachError> {
        for slot in 0..layout::LEASES {
            let lease = self.memory.word(word::LEASES + slot);
            let end = lease.load(Ordering::Relaxed);
            let alive = now < end && end <= now.saturating_add(layout::LONGEST_LEASE_NS);
            if alive || !self.swap_lease(slot, end, now) {
                continue;
            }
            self.slot = slot;
            let set = |index: usize, value| {
                self.memory
                    .word(index + slot)
                    .store(value, Ordering::Relaxed);
            };
            set(word::LEASE_PIDS, u64::from(std::process::id()));
            set(word::LEASE_READ, self.cursor.position());
            self.say_listening();
            return Ok(());
        }
        let pid = |slot| {
            let pid = self.memory.word(word::LEASE_PIDS + slot);
            pid.load(Ordering::Relaxed)
        };
        let pids = (0..layout::LEASES).map(pid).collect();
        Err(AttachError::Full { pids })
    }

    /// Replaces a lease by a new one of ours.
    fn swap_lease(&mut self, slot: usize, from: u64, now: u64) -> bool {
        let lease = self.memory.word(word::LEASES + slot);
        // The time identifies the holder: another one's differs, also if it was taken at the same
        // nanosecond.
        let to = now.saturating_add(LEASE_NS) + slot as u64;
        let swapped = lease.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed);
        if swapped.is_ok() {
            self.lease = to;
        }
        swapped.is_ok()
    }

    fn say_listening(&self) {
        // Pairs with the fence of the VM, which may be about to go quiet.
        fence(Ordering::SeqCst);
        let listening = self.memory.word(word::LISTENING);
        listening.store(1, Ordering::SeqCst);
    }

    fn holds_lease(&self) -> bool {
        let lease = self.memory.word(word::LEASES + self.slot);
        lease.load(Ordering::Relaxed) == self.lease
    }
}

impl Drop for Attached {
    /// Ends the lease. The VM notices it soon, and goes quiet if it was the last.
    fn drop(&mut self) {
        let lease = self.memory.word(word::LEASES + self.slot);
        let order = Ordering::Relaxed;
        // If it ran out, the lease may be another profiler's by now.
        let _ = lease.compare_exchange(self.lease, 0, order, order);
    }
}

impl Identity {
    fn read(memory: &Memory) -> Result<Self, AttachError> {
        let get = |index: usize| memory.word(index).load(Ordering::Relaxed);
        let version = get(word::VERSION);
        let (major, minor) = ((version >> 32) as u32, version as u32);
        if major != layout::MAJOR {
            return Err(AttachError::Version { major, minor });
        }
        let text = |index: usize| {
            let words = (index..index + layout::NAME_WORDS).map(get);
            let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let end = bytes.iter().position(|&byte| byte == 0);
            bytes.truncate(end.unwrap_or(bytes.len()));
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(Self {
            name: text(word::VM_NAME),
            version: text(word::VM_VERSION),
            pid: get(word::PID),
            start_ticks: get(word::START_TICKS),
            created: get(word::CREATED),
            minor,
        })
    }
}

/// The place of a ring, checked.
fn part(memory: &Memory, offset: usize, words: usize) -> Result<Part, AttachError> {
    let (index, at) = (offset, memory.word(offset).load(Ordering::Relaxed));
    let count = memory.word(words).load(Ordering::Relaxed);
    let damaged = AttachError::Part {
        word: index,
        offset: at,
        words: count,
    };
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let (offset, words) = (size(at), size(count));
    let possible = layout::SMALLEST_RING / 8..=layout::LARGEST_RING / 8;
    let fits = offset >= layout::HEADER_BYTES
        && offset.is_multiple_of(layout::HEADER_BYTES)
        && words.is_power_of_two()
        && possible.contains(&words)
        && memory.part(offset, words).is_some();
    fits.then_some(Part { offset, words }).ok_or(damaged)
}

fn ring_of(memory: &Memory, part: Part, (head, floor): (usize, usize)) -> Ring<'_> {
    let words = memory.part(part.offset, part.words).unwrap_or_default();
    Ring::new(memory.word(head), memory.word(floor), words)
}

#[cfg(test)]
mod tests;
