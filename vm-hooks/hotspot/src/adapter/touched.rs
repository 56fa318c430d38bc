//! Addresses touched by samples, kept until their code is known. A poll may fail before the
//! search, and the code at an address may appear only in the next reading of the code cache.

use rustc_hash::FxHashSet;
use vmscope_process::{MAX_TOUCHED_OF_A_POLL, Poll};
use vmscope_records::{Avma, Stream};

/// Maximum number of addresses: four times the number from one poll.
const MAX_WAITING: usize = 4 * MAX_TOUCHED_OF_A_POLL;

/// Addresses waiting for a search.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// All addresses since the last reading of the code cache.
    all: FxHashSet<Avma>,
    /// Addresses among them without any search so far; ascending, each once.
    fresh: Vec<Avma>,
    has_told: bool,
}

impl Touched {
    /// Adds addresses touched since the previous poll.
    pub fn take(&mut self, poll: &mut Poll) {
        let mut too_many = 0_u64;
        for at in poll.touched() {
            if self.all.len() < MAX_WAITING {
                self.all.insert(*at);
                self.fresh.push(*at);
            } else {
                too_many += u64::from(!self.all.contains(at));
            }
        }
        self.fresh.sort_unstable();
        self.fresh.dedup();
        if too_many == 0 {
            return;
        }
        poll.lost(Stream::Adapter, too_many, poll.began());
        if !std::mem::replace(&mut self.has_told, true) {
            let text = format!(
                "more than {MAX_WAITING} addresses were sampled while the code cache was \
                 unreadable: some samples may lack bytecode and line"
            );
            poll.limit(text, "");
        }
    }

    /// All addresses since the last reading of the code cache, ascending.
    pub fn all(&self) -> Vec<Avma> {
        let mut all: Vec<Avma> = self.all.iter().copied().collect();
        all.sort_unstable();
        all
    }

    /// Addresses without a search so far, ascending.
    pub fn fresh(&self) -> &[Avma] {
        &self.fresh
    }

    /// Ends a search. Unless the code cache `was_read` for it, addresses in code according to
    /// `is_code` are searched again after the next reading. Addresses in `left` (ascending) had
    /// no time; the next poll searches them.
    pub fn looked_up(&mut self, was_read: bool, left: Vec<Avma>, is_code: impl Fn(Avma) -> bool) {
        if was_read {
            self.all = left.iter().copied().collect();
        } else {
            for at in self.fresh.iter().filter(|at| !is_code(**at)) {
                self.all.remove(at);
            }
        }
        self.fresh = left;
    }
}
