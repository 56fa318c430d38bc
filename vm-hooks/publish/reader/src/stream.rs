//! Reads a VM's events on a separate thread. Otherwise the VM could overwrite unread events during
//! a slow adapter's work or a long poll.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use vmscope_publish::event::Event;
use vmscope_publish::memory::now;
use vmscope_publish::reader::{AttachError, Attached, Next};

/// Maximum bytes of unpolled events. Beyond the maximum, reading pauses, and the VM overwrites
/// unread events.
const MAX_HELD_BYTES: u64 = 64 << 20;

/// Maximum number of events read between checks of the lease and the stop flag.
const BURST: usize = 4096;

/// Interval of lease renewals in nanoseconds.
const RENEW_EVERY: u64 = 1_000_000_000;

/// Time in nanoseconds after which an unanswered request for a snapshot is reported.
const ANSWER_WITHIN: u64 = 5_000_000_000;

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// An event, gap or problem in the stream.
#[derive(Debug)]
pub(crate) enum Item {
    /// An event, with the VM's `CLOCK_MONOTONIC` timestamp in nanoseconds.
    Event(u64, Event<'static>),
    /// Events between these times are lost; a snapshot is requested.
    Lost { from: u64, to: u64, words: u64 },
    /// A record of an unknown kind, or with impossible contents.
    Undecodable,
    /// A snapshot request remained unanswered.
    NoAnswer,
    /// vmscope could not renew a lapsed lease.
    Refused(AttachError),
}

/// Items read since the last poll.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub items: Vec<Item>,
    /// This batch and earlier batches contain all events published before this time.
    pub read_until: u64,
    /// Number of events never published, because their size exceeded the VM's memory.
    pub too_long: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Shared {
    batch: Mutex<Batch>,
    is_over: AtomicBool,
    /// The VM's process has ended.
    is_dead: AtomicBool,
}

impl Shared {
    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reading thread.
#[derive(Debug)]
pub(crate) struct Stream {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Stream {
    /// Starts reading, with a request for a snapshot.
    ///
    /// # Errors
    /// The system's, if no thread can start.
    pub fn start(attached: Attached) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let reading = Reading {
            requested: None,
            last_position: None,
            renewed_at: now(),
            shared: Arc::clone(&shared),
            attached,
        };
        let thread = std::thread::Builder::new().name("vmscope-publish".to_owned());
        let thread = thread.spawn(move || reading.run())?;
        Ok(Stream {
            shared,
            thread: Some(thread),
        })
    }

    /// Takes the items read since the last call.
    pub fn take(&self) -> Batch {
        let mut batch = self.shared.batch();
        let next = Batch {
            read_until: batch.read_until,
            too_long: batch.too_long,
            ..Batch::default()
        };
        std::mem::replace(&mut *batch, next)
    }

    /// Ends reading and takes the rest. Nobody completes the events of a dead VM: incomplete events
    /// count as lost.
    pub fn end(&mut self, is_dead: bool) -> Batch {
        self.shared.is_dead.store(is_dead, Ordering::Relaxed);
        self.stop();
        self.take()
    }

    fn stop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the reading thread: the rest of the recording stays useful.
            let _ = thread.join();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Reading {
    attached: Attached,
    shared: Arc<Shared>,
    /// Number and time of the unanswered snapshot request.
    requested: Option<(u64, u64)>,
    last_position: Option<u64>,
    renewed_at: u64,
}

impl Reading {
    fn run(mut self) {
        self.request();
        let mut pause = SHORTEST_PAUSE;
        while !self.shared.is_over.load(Ordering::Acquire) {
            let count = self.read(Attached::read);
            if !self.keep_lease() {
                return;
            }
            self.look_for_answer();
            if count == BURST {
                continue;
            }
            // During a snapshot the VM waits for readers: keep pauses short.
            pause = match count == 0 && self.requested.is_none() {
                true => (pause * 2).min(LONGEST_PAUSE),
                false => SHORTEST_PAUSE,
            };
            std::thread::sleep(pause);
        }
        let next = match self.shared.is_dead.load(Ordering::Relaxed) {
            true => Attached::read_of_dead,
            // A VM thread may be writing an event.
            false => Attached::read,
        };
        while self.read(next) == BURST {}
        self.count_unread();
    }

    /// Counts the events that found no room in the last batch.
    fn count_unread(&mut self) {
        let mut batch = self.shared.batch();
        let (from, to) = (batch.read_until, now());
        if batch.bytes > MAX_HELD_BYTES {
            let words = self.attached.backlog();
            batch.items.push(Item::Lost { from, to, words });
        }
    }

    fn request(&mut self) {
        self.requested = Some((self.attached.request_snapshot(), now()));
    }

    /// Reads up to [`BURST`] events; returns their number.
    fn read(&mut self, next: fn(&mut Attached) -> Next) -> usize {
        if self.shared.batch().bytes > MAX_HELD_BYTES {
            return 0;
        }
        let before = now();
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut read_until = None;
        while items.len() < BURST {
            items.push(match next(&mut self.attached) {
                Next::Event {
                    time,
                    position,
                    event,
                } => {
                    let last = self.last_position.replace(position);
                    // A decoded event takes several times its size in the ring.
                    let words = last.map_or(0, |last| position.saturating_sub(last));
                    bytes += 256 + words.saturating_mul(32);
                    Item::Event(time, event)
                }
                Next::Undecodable(_) => Item::Undecodable,
                Next::Overrun { words } | Next::Torn { words } => {
                    self.request();
                    let from = self.shared.batch().read_until;
                    let to = now();
                    Item::Lost { from, to, words }
                }
                _ => {
                    read_until = Some(before);
                    break;
                }
            });
        }
        let count = items.len();
        let mut batch = self.shared.batch();
        batch.items.append(&mut items);
        batch.bytes = batch.bytes.saturating_add(bytes);
        batch.read_until = read_until.unwrap_or(batch.read_until);
        batch.too_long = self.attached.too_long();
        count
    }

    /// Renews the lease; `false` if the VM refuses.
    fn keep_lease(&mut self) -> bool {
        let now = now();
        if now.saturating_sub(self.renewed_at) < RENEW_EVERY {
            return true;
        }
        self.renewed_at = now;
        match self.attached.renew() {
            Ok(true) => true,
            Ok(false) => {
                // The lease had lapsed: the VM may have skipped events.
                self.request();
                let mut batch = self.shared.batch();
                let (from, to) = (batch.read_until, now);
                let words = 0;
                batch.items.push(Item::Lost { from, to, words });
                true
            }
            Err(error) => {
                self.shared.batch().items.push(Item::Refused(error));
                false
            }
        }
    }

    fn look_for_answer(&mut self) {
        let Some((number, at)) = self.requested else {
            return;
        };
        let (_, done) = self.attached.snapshots();
        if done >= number {
            self.requested = None;
        } else if now().saturating_sub(at) > ANSWER_WITHIN {
            self.requested = Some((number, u64::MAX));
            self.shared.batch().items.push(Item::NoAnswer);
        }
    }
}
