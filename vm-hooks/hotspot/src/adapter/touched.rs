//! Addresses touched by samples, kept until their code is known. A poll may fail before the
//! search, and the code at an address may appear only in the next reading of the code cache.

use vmscope_process::{MAX_TOUCHED_OF_A_POLL, Poll};
use vmscope_records::{Avma, Stream};

/// Maximum number of addresses: four times the number from one poll.
const MAX_WAITING: usize = 4 * MAX_TOUCHED_OF_A_POLL;

/// Addresses waiting for a search. Ascending, each once.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// All addresses since the last reading of the code cache.
    all: Vec<Avma>,
    /// Addresses among them without any search so far.
    fresh: Vec<Avma>,
    has_told: bool,
}

impl Touched {
    /// Adds addresses touched since the previous poll.
    pub fn take(&mut self, poll: &mut Poll) {
        let too_many = add(&mut self.all, poll.touched());
        // `all` includes the new addresses.
        let _ = add(&mut self.fresh, poll.touched());
        if too_many == 0 {
            return;
        }
        poll.lost(Stream::Adapter, too_many as u64, poll.began());
        if !std::mem::replace(&mut self.has_told, true) {
            let text = format!(
                "more than {MAX_WAITING} addresses were sampled while the code cache was \
                 unreadable: some samples may lack bytecode and line"
            );
            poll.limit(text, "");
        }
    }

    /// All addresses since the last reading of the code cache.
    pub fn all(&self) -> &[Avma] {
        &self.all
    }

    /// Addresses without a search so far.
    pub fn fresh(&self) -> &[Avma] {
        &self.fresh
    }

    /// Ends a search. Unless the code cache `was_read` for it, addresses in code according to
    /// `is_code` are searched again after the next reading. Addresses in `left` (ascending) had
    /// no time; the next poll searches them.
    pub fn looked_up(&mut self, was_read: bool, left: Vec<Avma>, is_code: impl Fn(Avma) -> bool) {
        if was_read {
            self.all.clone_from(&left);
        } else {
            self.all.retain(|at| is_code(*at));
        }
        self.fresh = left;
    }
}

/// Adds addresses; returns the number refused for lack of room.
fn add(to: &mut Vec<Avma>, new: &[Avma]) -> usize {
    if new.is_empty() {
        return 0;
    }
    to.extend_from_slice(new);
    // The sort detects and merges two ascending runs.
    to.sort();
    to.dedup();
    let too_many = to.len().saturating_sub(MAX_WAITING);
    to.truncate(MAX_WAITING);
    too_many
}
