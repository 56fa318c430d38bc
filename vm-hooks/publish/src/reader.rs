//! A profiler's side of the shared memory. The reader trusts no data of the VM.

use std::fs::{DirEntry, File};
use std::io;
use std::sync::atomic::Ordering;

use crate::event::{DecodeError, Event};
use crate::layout::{self, word};
use crate::memory::{self, Memory};
use crate::ring::{self, Cursor, Ring};
use crate::sample::Sample;

pub use error::AttachError;

mod error;
mod requests;

/// Length of a lease in nanoseconds. Renew a lease several times within this length.
pub const LEASE_NS: u64 = 10_000_000_000;

/// Time after which an incomplete record counts as torn, in nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000_000;

/// Opens the memories of publishers in a process: one as a rule, 16 at most. The process may hold
/// memory that it inherited from another process; [`Attached::new`] distinguishes the two.
///
/// # Errors
///
/// If the process's descriptors cannot be listed.
pub fn find(pid: u32) -> io::Result<Vec<File>> {
    let ours = |fd: io::Result<DirEntry>| {
        let fd = fd.ok()?.path();
        let link = std::fs::read_link(&fd).ok()?;
        (link.as_os_str() == layout::LINK).then_some(fd)
    };
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd"))?.filter_map(ours);
    let open = |fd| File::options().read(true).write(true).open(fd).ok();
    Ok(fds.filter_map(open).take(16).collect())
}

/// The VM's identity in the header.
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

/// Result of [`Attached::read`].
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
    /// A malformed event, or an event kind of a later version.
    Undecodable(DecodeError),
    /// The VM overwrote unread events. Ask for a snapshot.
    Overrun {
        /// Number of words in them.
        words: u64,
    },
    /// A record stayed incomplete, or a stalled thread damaged a record. Ask for a snapshot.
    Torn {
        /// Number of words passed over.
        words: u64,
    },
}

/// Result of [`Attached::read_sample`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextSample {
    /// A sample.
    Sample(Sample),
    /// Nothing new.
    Empty,
    /// A malformed sample.
    Undecodable(DecodeError),
    /// Samples were overwritten unread, or stayed incomplete.
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

/// A VM's shared memory, with a lease: the VM publishes while the lease lasts.
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
    /// This profiler reads samples only, so snapshots need not wait for it.
    samples_only: bool,
}

impl Attached {
    /// Attaches to the memory in `file`, a descriptor of the VM's (`/proc/PID/fd/N`) opened for
    /// reading and writing. Reads events published from now on: ask for a snapshot next.
    ///
    /// With `pid`, the process id in the VM's own namespace, inherited memory of another process is
    /// refused.
    ///
    /// # Errors
    ///
    /// If `file` holds no publisher's memory, or the maximum number of profilers already listens.
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
            samples_only: false,
        };
        attached.cursor = match attached.is_expected(memory::now()) {
            true => Cursor::at_oldest(&attached.stream()),
            false => Cursor::at_head(&attached.stream()),
        };
        attached.sample_cursor = Cursor::at_oldest(&attached.samples());
        attached.take_lease(memory::now())?;
        Ok(attached)
    }

    /// Whether the VM's first lease still waits for an expected profiler. Such a VM publishes from
    /// its start.
    fn is_expected(&self, now: u64) -> bool {
        let word = |index| self.memory.word(index).load(Ordering::Relaxed);
        now < word(word::LEASES) && word(word::LEASE_PIDS) == 0
    }

    /// The VM's identity in the header.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Reads the next event. Never waits.
    ///
    /// Read without pauses during a snapshot: the VM waits only briefly for its readers.
    pub fn read(&mut self) -> Next {
        self.read_at(memory::now(), PATIENCE_NS)
    }

    /// Reads the next event of a dead VM: incomplete records count as torn at once.
    pub fn read_of_dead(&mut self) -> Next {
        self.read_at(memory::now(), 0)
    }

    /// Like [`read`](Self::read) at the time `now`. An incomplete record counts as torn after
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
        if self.memory.leases().holds(self.slot, self.lease) {
            self.tell_position();
        }
        next
    }

    /// Reads the next sample of the in-VM sampler, starting with the oldest sample still in the
    /// ring. The sampler may have taken samples before this profiler attached. Never waits.
    pub fn read_sample(&mut self) -> NextSample {
        self.read_sample_at(memory::now(), PATIENCE_NS)
    }

    /// Reads the next sample of a dead VM: incomplete records count as lost at once.
    pub fn read_sample_of_dead(&mut self) -> NextSample {
        self.read_sample_at(memory::now(), 0)
    }

    fn read_sample_at(&mut self, now: u64, patience: u64) -> NextSample {
        let words = (word::SAMPLES_HEAD, word::SAMPLES_FLOOR);
        let ring = ring_of(&self.memory, self.samples, words);
        match (self.sample_cursor).next(&ring, now, patience) {
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

    /// Frees the samples read so far: a sampler that keeps the oldest samples may overwrite them.
    pub fn free_samples(&self) {
        self.samples().free_before(self.sample_cursor.position());
    }

    /// Declares that this profiler reads only samples, no events: the VM's snapshots don't wait for
    /// it.
    pub fn read_samples_only(&mut self) {
        self.samples_only = true;
        self.tell_position();
    }

    /// Number of published words still unread.
    #[must_use]
    pub fn backlog(&self) -> u64 {
        let head = self.stream().head();
        head.saturating_sub(self.cursor.position())
    }

    /// Renews the lease. `false` if the lease had run out: the VM may have skipped events, so ask
    /// for a snapshot.
    ///
    /// # Errors
    ///
    /// If the lease had run out, and the maximum number of other profilers listens.
    pub fn renew(&mut self) -> Result<bool, AttachError> {
        let now = memory::now();
        // Each renewal sets a later end time, which distinguishes this lease from other profilers'
        // leases in the slot.
        let end = now.saturating_add(LEASE_NS).max(self.lease + 1);
        let renewed = self.memory.leases().replace(self.slot, self.lease, end);
        if renewed {
            self.lease = end;
        } else {
            self.take_lease(now)?;
        }
        Ok(renewed)
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
        let end = now.saturating_add(LEASE_NS);
        let pid = |slot| {
            let pid = self.memory.word(word::LEASE_PIDS + slot);
            pid.load(Ordering::Relaxed)
        };
        let Some(slot) = self.memory.leases().take(now, end) else {
            let pids = (0..layout::LEASES).map(pid).collect();
            return Err(AttachError::Full { pids });
        };
        (self.slot, self.lease) = (slot, end);
        let set = |index: usize, value| {
            self.memory
                .word(index + slot)
                .store(value, Ordering::Relaxed);
        };
        set(word::LEASE_PIDS, u64::from(std::process::id()));
        self.tell_position();
        Ok(())
    }

    /// Tells the VM this profiler's position in the stream.
    fn tell_position(&self) {
        let position = match self.samples_only {
            true => u64::MAX,
            false => self.cursor.position(),
        };
        let read = self.memory.word(word::LEASE_READ + self.slot);
        read.store(position, Ordering::Relaxed);
    }
}

impl Drop for Attached {
    /// Ends the lease. The VM soon notices the end, and goes quiet without further leases.
    fn drop(&mut self) {
        // After an expired lease, another profiler may hold the slot. `replace` then changes
        // nothing.
        self.memory.leases().replace(self.slot, self.lease, 0);
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
