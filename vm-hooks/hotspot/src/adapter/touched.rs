//! The addresses that samples touched, kept until they were looked up: a poll may fail
//! before that, and the code at an address may be known only after the next reading of
//! the code cache.

use vmscope_process::{MAX_TOUCHED_OF_A_POLL, Poll};
use vmscope_records::{Avma, Stream};

/// So many wait at most, four times what one poll brings.
const MAX_WAITING: usize = 4 * MAX_TOUCHED_OF_A_POLL;

/// Addresses that are still to be looked up. Ascending, each once.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// All since the code cache was last read.
    all: Vec<Avma>,
    /// Those of them that were not looked up at all.
    fresh: Vec<Avma>,
    has_told: bool,
}

impl Touched {
    /// Takes what samples touched since the poll before.
    pub fn take(&mut self, poll: &mut Poll) {
        let too_many = add(&mut self.all, poll.touched());
        // Those are among them.
        let _ = add(&mut self.fresh, poll.touched());
        if too_many == 0 {
            return;
        }
        poll.lost(Stream::Adapter, too_many as u64, poll.began());
        if !std::mem::replace(&mut self.has_told, true) {
            let text = format!(
                "samples fell on more than {MAX_WAITING} addresses while the JVM's code could \
                 not be read: what is at some of them may be resolved to its method only"
            );
            poll.limit(text, "");
        }
    }

    /// All since the code cache was last read.
    pub fn all(&self) -> &[Avma] {
        &self.all
    }

    /// Those that were not looked up yet.
    pub fn fresh(&self) -> &[Avma] {
        &self.fresh
    }

    /// They were looked up, in a code cache that `was_read` for them or was not: then those
    /// in it, as `is_code` says, are looked up again after its next reading. There was no time
    /// for those that are `left`, some of them, ascending: they are looked up the next time.
    pub fn looked_up(&mut self, was_read: bool, left: Vec<Avma>, is_code: impl Fn(Avma) -> bool) {
        if was_read {
            self.all.clone_from(&left);
        } else {
            self.all.retain(|at| is_code(*at));
        }
        self.fresh = left;
    }
}

/// Adds addresses; how many there was no room for.
fn add(to: &mut Vec<Avma>, new: &[Avma]) -> usize {
    if new.is_empty() {
        return 0;
    }
    to.extend_from_slice(new);
    // Two ascending runs, which this finds and merges.
    to.sort();
    to.dedup();
    let too_many = to.len().saturating_sub(MAX_WAITING);
    to.truncate(MAX_WAITING);
    too_many
}
