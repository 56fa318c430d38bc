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

use rustc_hash::FxHashMap;

use super::attr::Recipe;
use super::ring::Ring;
use crate::sys;

/// Index of a [`Family`].
pub(super) type FamilyIndex = u32;

/// The events opened on one thread, and their inherited copies; records carry the ids of the opened
/// events.
#[derive(Debug)]
pub(super) struct Family {
    /// The thread of the opened events.
    pub tid: u32,
    /// One event per CPU, or one for all; empty once closed.
    events: Vec<OwnedFd>,
    /// Current period of the thread, inherited by threads started from now on.
    pub period_ns: u64,
    /// Another thread inherited the events.
    pub forked: bool,
    pub closed: bool,
}

/// A ring and the event that owns it.
#[derive(Debug)]
pub(super) struct Slot {
    pub owner: OwnedFd,
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
    /// Remaining descriptors.
    pub budget: u64,
    page: usize,
}

/// Pages of a per-thread ring: more than a second of plain samples.
const THREAD_RING_PAGES: usize = 16;

impl Sources {
    pub fn new(recipe: Recipe, budget: u64) -> Self {
        Self {
            recipe,
            cpus: Vec::new(),
            slots: Vec::new(),
            families: Vec::new(),
            ids: FxHashMap::default(),
            budget,
            page: sys::page_size(),
        }
    }

    pub fn per_thread(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Maps a ring per online CPU: `pages` pages, halved until the kernel agrees.
    pub fn open_rings(&mut self, cpus: &[u32], pages: usize) -> io::Result<()> {
        let me = std::process::id();
        for &cpu in cpus {
            let mut pages = pages.max(1);
            loop {
                let mut recipe = self.recipe;
                recipe.wakeup_bytes = self.half(pages);
                let owner = match sys::perf_event_open(&recipe.ring_owner(), me, Some(cpu)) {
                    Ok(owner) => owner,
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => break,
                    Err(error) => return Err(error),
                };
                match Ring::map(owner.as_fd(), pages, self.page) {
                    Ok(ring) => {
                        self.add_slot(owner, ring, None);
                        self.cpus.push(cpu);
                        break;
                    }
                    Err(error) if may_be_smaller(&error) && pages > 1 => pages /= 2,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn half(&self, pages: usize) -> u32 {
        u32::try_from(pages.saturating_mul(self.page) / 2).unwrap_or(u32::MAX)
    }

    fn add_slot(&mut self, owner: OwnedFd, ring: Ring, family: Option<FamilyIndex>) {
        self.budget = self.budget.saturating_sub(1);
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
    pub fn open_family(&mut self, tid: u32) -> io::Result<FamilyIndex> {
        let index = FamilyIndex::try_from(self.families.len()).map_err(io::Error::other)?;
        let mut events = Vec::with_capacity(self.cpus.len().max(1));
        let mut ids = Vec::with_capacity(events.capacity());
        if self.per_thread() {
            let (owner, ring) = self.open_own_ring(tid)?;
            ids.push(sys::perf_id(owner.as_fd())?);
            events.push(owner.try_clone()?);
            self.budget = self.budget.saturating_sub(1);
            self.add_slot(owner, ring, Some(index));
        } else {
            let attr = self.recipe.sampling();
            for (cpu, slot) in self.cpus.iter().zip(&self.slots) {
                let event = sys::perf_event_open(&attr, tid, Some(*cpu))?;
                sys::perf_set_output(event.as_fd(), slot.owner.as_fd())?;
                ids.push(sys::perf_id(event.as_fd())?);
                events.push(event);
            }
            let opened = u64::try_from(events.len()).unwrap_or(u64::MAX);
            self.budget = self.budget.saturating_sub(opened);
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

    fn open_own_ring(&self, tid: u32) -> io::Result<(OwnedFd, Ring)> {
        let mut pages = THREAD_RING_PAGES;
        loop {
            let mut recipe = self.recipe;
            recipe.wakeup_bytes = self.half(pages);
            let owner = sys::perf_event_open(&recipe.sampling(), tid, None)?;
            match Ring::map(owner.as_fd(), pages, self.page) {
                Ok(ring) => return Ok((owner, ring)),
                Err(error) if may_be_smaller(&error) && pages > 1 => pages /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens a disabled counter of a thread's CPU time; `None` without a free descriptor.
    pub fn open_counter(&mut self, tid: u32) -> Option<OwnedFd> {
        if self.budget == 0 {
            return None;
        }
        let counter = sys::perf_event_open(&self.recipe.counter(), tid, None).ok()?;
        self.budget -= 1;
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
        let freed = u64::try_from(family.events.len()).unwrap_or(0);
        family.events = Vec::new();
        self.budget = self.budget.saturating_add(freed);
        for slot in &mut self.slots {
            if slot.family == Some(index) {
                slot.retired = true;
            }
        }
    }

    /// Drops rings of threads that had exited before the last reading.
    pub fn drop_retired(&mut self) {
        let before = self.slots.len();
        self.slots.retain(|slot| !slot.retired);
        let freed = u64::try_from(before - self.slots.len()).unwrap_or(0);
        self.budget = self.budget.saturating_add(freed);
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
