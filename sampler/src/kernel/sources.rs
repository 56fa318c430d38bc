//! Open events and their rings.
//!
//! ```text
//!               CPU 0            CPU 1            any CPU
//!  thread A    event ──┐        event ──┐        counter   ← family A (+ all that
//!  thread B    event ──┤        event ──┤        counter     A starts inherits it)
//!              dummy ──▼ ring   dummy ──▼ ring
//! ```
//!
//! Dummy events on vmscope's own process own the rings, which thus outlive all threads of the
//! target. The fallback (`per thread`) opens one event per thread for all CPUs, with its own ring
//! and without inheritance: the kernel maps inherited events only with a CPU (`perf_mmap`).

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit};
use rustc_hash::FxHashMap;

use super::attr::Recipe;
use super::ring::Ring;
use crate::proc;
use crate::sys;

/// Index of a [`Family`].
pub(super) type FamilyIndex = u32;

/// The events opened on one thread, and their inherited copies; records carry the ids of the opened
/// events.
#[derive(Debug)]
pub(super) struct Family {
    /// The thread of the opened events.
    pub tid: u32,
    /// One event per CPU, or one for all (its ring's slot owns it too); empty once closed.
    events: Vec<Arc<OwnedFd>>,
    /// Current period of the thread, inherited by threads started from now on.
    pub period_ns: u64,
    /// Another thread inherited the events.
    pub forked: bool,
    pub closed: bool,
}

/// A ring and the event that owns it.
#[derive(Debug)]
pub(super) struct Slot {
    pub owner: Arc<OwnedFd>,
    pub ring: Ring,
    /// Time of the last record: start of the next loss.
    pub last_time: u64,
    /// Owner of a per-thread ring.
    pub family: Option<FamilyIndex>,
    /// The thread exited: read once more, then drop.
    pub retired: bool,
    /// The kernel hung up: exclude from polling.
    pub hung_up: bool,
}

/// All events and rings of a target.
#[derive(Debug)]
pub(super) struct Sources {
    pub recipe: Recipe,
    /// CPUs with rings; empty in the per-thread fallback.
    pub cpus: Vec<u32>,
    pub slots: Vec<Slot>,
    pub families: Vec<Family>,
    ids: FxHashMap<u64, FamilyIndex>,
    /// Descriptors left for counters. Events of later threads need the others.
    pub counters: u64,
    /// Pages of a per-thread ring.
    thread_ring_pages: usize,
    page: usize,
}

/// Pages of a per-thread ring: more than a second of plain samples.
const THREAD_RING_PAGES: usize = 16;

/// Pages of all per-thread rings for root, who has no limit on locked memory: 128 MiB.
const ALL_THREAD_RINGS_PAGES: u64 = 1 << 15;

/// Refusal of an event.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// By `perf_event_open(2)` or an ioctl.
    #[error(transparent)]
    Event(#[from] io::Error),
    /// By `mmap(2)`, even of the smallest ring.
    #[error("its ring cannot be mapped: {0}")]
    Ring(io::Error),
}

impl Refused {
    pub fn for_lack_of_descriptors(&self) -> bool {
        let Refused::Event(error) = self else {
            return false;
        };
        matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    }
}

impl Sources {
    pub fn new(recipe: Recipe) -> Self {
        Self {
            recipe,
            cpus: Vec::new(),
            slots: Vec::new(),
            families: Vec::new(),
            ids: FxHashMap::default(),
            counters: 0,
            thread_ring_pages: THREAD_RING_PAGES,
            page: sys::page_size(),
        }
    }

    /// Shares the allowed locked memory among the rings of `threads`.
    pub fn size_thread_rings(&mut self, threads: u64, cpus: u64) {
        let all = match sys::effective_uid() {
            0 => ALL_THREAD_RINGS_PAGES,
            _ => lockable_bytes(cpus) / (self.page as u64).max(1),
        };
        let each = usize::try_from(all / threads.max(1)).unwrap_or(usize::MAX);
        // Without the control page, rounded down to a power of two.
        let each = each.saturating_sub(1).clamp(1, THREAD_RING_PAGES);
        self.thread_ring_pages = 1 << each.ilog2();
        let ring = self.bytes(self.thread_ring_pages);
        self.recipe.extras.fit(ring);
    }

    pub fn per_thread(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Maps a ring per online CPU: `pages` pages, halved until the kernel agrees. Samples copy as much
    /// stack as the smallest ring has room for.
    pub fn open_rings(&mut self, cpus: &[u32], pages: usize) -> Result<(), Refused> {
        let me = std::process::id();
        for &cpu in cpus {
            let mut pages = pages.max(1);
            loop {
                let mut recipe = self.recipe;
                recipe.wakeup_bytes = self.half(pages);
                let owner = match sys::perf_event_open(&recipe.ring_owner(), me, Some(cpu)) {
                    Ok(owner) => owner,
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => break,
                    Err(error) => return Err(Refused::Event(error)),
                };
                match Ring::map(owner.as_fd(), pages, self.page) {
                    Ok(ring) => {
                        self.add_slot(Arc::new(owner), ring, None);
                        self.cpus.push(cpu);
                        let ring = self.bytes(pages);
                        self.recipe.extras.fit(ring);
                        break;
                    }
                    Err(error) if may_be_smaller(&error) && pages > 1 => pages /= 2,
                    Err(error) => return Err(Refused::Ring(error)),
                }
            }
        }
        Ok(())
    }

    fn bytes(&self, pages: usize) -> usize {
        pages.saturating_mul(self.page)
    }

    fn half(&self, pages: usize) -> u32 {
        u32::try_from(self.bytes(pages) / 2).unwrap_or(u32::MAX)
    }

    fn add_slot(&mut self, owner: Arc<OwnedFd>, ring: Ring, family: Option<FamilyIndex>) {
        self.slots.push(Slot {
            owner,
            ring,
            last_time: 0,
            family,
            retired: false,
            hung_up: false,
        });
    }

    /// Opens disabled events on a thread.
    pub fn open_family(&mut self, tid: u32) -> Result<FamilyIndex, Refused> {
        let index = FamilyIndex::try_from(self.families.len()).map_err(io::Error::other)?;
        let mut events = Vec::with_capacity(self.cpus.len().max(1));
        let mut ids = Vec::with_capacity(events.capacity());
        if self.per_thread() {
            let (owner, ring) = self.open_own_ring(tid)?;
            ids.push(sys::perf_id(owner.as_fd())?);
            let owner = Arc::new(owner);
            events.push(Arc::clone(&owner));
            self.add_slot(owner, ring, Some(index));
        } else {
            let attr = self.recipe.sampling();
            for (cpu, slot) in self.cpus.iter().zip(&self.slots) {
                let event = sys::perf_event_open(&attr, tid, Some(*cpu))?;
                sys::perf_set_output(event.as_fd(), slot.owner.as_fd())?;
                ids.push(sys::perf_id(event.as_fd())?);
                events.push(Arc::new(event));
            }
        }
        self.ids.extend(ids.into_iter().map(|id| (id, index)));
        self.families.push(Family {
            tid,
            events,
            period_ns: self.recipe.period_ns,
            forked: false,
            closed: false,
        });
        Ok(index)
    }

    fn open_own_ring(&self, tid: u32) -> Result<(OwnedFd, Ring), Refused> {
        let mut pages = self.thread_ring_pages;
        loop {
            let mut recipe = self.recipe;
            recipe.wakeup_bytes = self.half(pages);
            recipe.extras.fit(self.bytes(pages));
            let owner = sys::perf_event_open(&recipe.sampling(), tid, None)?;
            match Ring::map(owner.as_fd(), pages, self.page) {
                Ok(ring) => return Ok((owner, ring)),
                Err(error) if may_be_smaller(&error) && pages > 1 => pages /= 2,
                Err(error) => return Err(Refused::Ring(error)),
            }
        }
    }

    /// Opens a disabled counter of a thread's CPU time; `None` without a free descriptor.
    pub fn open_counter(&mut self, tid: u32) -> Option<OwnedFd> {
        if self.counters == 0 {
            return None;
        }
        let counter = sys::perf_event_open(&self.recipe.counter(), tid, None).ok()?;
        self.counters -= 1;
        Some(counter)
    }

    /// The family of an event id.
    pub fn family_of(&self, event: u64) -> Option<FamilyIndex> {
        self.ids.get(&event).copied()
    }

    pub fn family(&self, index: FamilyIndex) -> Option<&Family> {
        self.families.get(usize::try_from(index).ok()?)
    }

    pub fn family_mut(&mut self, index: FamilyIndex) -> Option<&mut Family> {
        self.families.get_mut(usize::try_from(index).ok()?)
    }

    pub fn enable(&self, index: FamilyIndex) -> io::Result<()> {
        let family = self.family(index);
        let events = family.map_or(&[][..], |family| &family.events);
        events
            .iter()
            .try_for_each(|event| sys::perf_enable(event.as_fd()))
    }

    /// Disables all events and their inherited copies.
    pub fn disable_all(&self) {
        for event in self.families.iter().flat_map(|family| &family.events) {
            // Failures are harmless: closing follows.
            let _ = sys::perf_disable(event.as_fd());
        }
    }

    /// Closes a family's events and their inherited copies.
    pub fn close_family(&mut self, index: FamilyIndex) {
        let Some(family) = self.family_mut(index) else {
            return;
        };
        family.closed = true;
        family.events = Vec::new();
        for slot in &mut self.slots {
            if slot.family == Some(index) {
                slot.retired = true;
            }
        }
    }

    /// Drops rings of threads that had exited before the last reading.
    pub fn drop_retired(&mut self) {
        self.slots.retain(|slot| !slot.retired);
    }

    /// Re-draws the period of the family's own thread, uniform within ±2 % of the rate; `None` if
    /// the kernel refuses.
    ///
    /// Each CPU's event restarts its period, at a cost of half a period on average: re-draws are
    /// rare, by sample count.
    pub fn redraw(&mut self, index: FamilyIndex, rng: &mut fastrand::Rng) -> Option<u64> {
        let base = self.recipe.period_ns;
        let rate = 0.98 + 0.04 * rng.f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "periods lie between 2e4 and 1e10 ns"
        )]
        let period = (base as f64 / rate).round() as u64;
        self.set_period(index, period)
    }

    /// Sets the period of the family's own thread and of threads started from now on.
    pub fn set_period(&mut self, index: FamilyIndex, period: u64) -> Option<u64> {
        let family = self.family_mut(index)?;
        for event in &family.events {
            sys::perf_set_period(event.as_fd(), period).ok()?;
        }
        family.period_ns = period;
        Some(period)
    }
}

/// Whether a smaller ring may succeed: EPERM beyond the limit on locked memory, ENOMEM without
/// memory.
fn may_be_smaller(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

/// Bytes that a user other than root may lock for rings: `perf_event_mlock_kb` per CPU, which all
/// processes of the user share, and RLIMIT_MEMLOCK.
pub(super) fn lockable_bytes(cpus: u64) -> u64 {
    let kb = proc::kernel_setting("perf_event_mlock_kb").and_then(|kb| u64::try_from(kb).ok());
    let of_perf = kb.unwrap_or(0).saturating_mul(1024).saturating_mul(cpus);
    let limit = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
    of_perf.saturating_add(limit)
}
