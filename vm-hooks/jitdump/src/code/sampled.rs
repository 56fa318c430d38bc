//! Code of large perf maps: emitted only if a sample hits it.
//!
//! A perf map may have millions of lines, but samples hit only some hundreds. The adapter emits the
//! first [`MAX_UNSAMPLED`] pieces at once, and further pieces after a known sample at one of
//! their addresses; the sample may precede the line. Replaced code stays in memory until all
//! samples of its time are known.

use std::collections::BTreeSet;

use vmscope_process::Poll;
use vmscope_records::{Avma, CodeChange, ConstituentGone, GoneReason, TimeNs};

use super::{CodeLoad, LiveCode, Told};

/// Pieces emitted whether or not a sample hits them: more than ordinary maps have. Samples in
/// mapped files and in forked processes are known to no adapter.
pub(super) const MAX_UNSAMPLED: usize = 1 << 16;

/// Maximum number of known sampled addresses.
const MAX_ADDRESSES: usize = 1 << 20;

/// Samples, and code that waits for them.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    /// All sampled addresses so far.
    addresses: BTreeSet<u64>,
    /// Replaced code without a known sample.
    replaced: Vec<Replaced>,
    /// Memory of `replaced` in bytes, roughly.
    bytes: usize,
}

/// Code that ended without an emitted record.
#[derive(Debug)]
pub(super) struct Replaced {
    pub start: u64,
    pub end: u64,
    pub name: Box<str>,
    pub since: TimeNs,
    pub absent_at: TimeNs,
    pub last_seen: TimeNs,
    pub gone_at: TimeNs,
    pub reason: GoneReason,
}

impl Replaced {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }
}

impl Sampled {
    pub fn is_in(&self, start: u64, end: u64) -> bool {
        self.addresses.range(start..end).next().is_some()
    }

    /// Keeps code until its samples are known; `false` without room.
    pub fn keep(&mut self, code: Replaced, max_bytes: usize) -> bool {
        if self.bytes >= max_bytes {
            return false;
        }
        self.bytes += code.bytes();
        self.replaced.push(code);
        true
    }
}

impl LiveCode {
    /// Takes the addresses that `poll` knows to be sampled, and emits their code.
    pub fn sampled(&mut self, poll: &mut Poll) {
        let mut new = Vec::new();
        for address in poll.touched() {
            if self.sampled.addresses.len() < MAX_ADDRESSES
                && self.sampled.addresses.insert(address.get())
            {
                new.push(address.get());
            }
        }
        let until = poll.touched_until();
        let sampled = &mut self.sampled;
        let replaced = std::mem::take(&mut sampled.replaced);
        let (hit, rest) = replaced
            .into_iter()
            .partition::<Vec<_>, _>(|code| sampled.is_in(code.start, code.end));
        sampled.replaced = rest;
        // No sample before `until` is unknown.
        sampled.replaced.retain(|code| code.gone_at >= until);
        sampled.bytes = sampled.replaced.iter().map(Replaced::bytes).sum();
        for code in hit {
            self.emit_replaced(code, poll);
        }
        for address in new {
            let code = self.by_start.range(..=address).next_back();
            let code = code.filter(|(_, code)| address < code.end);
            if let Some(start) = code.map(|(&start, _)| start) {
                self.emit_sampled(start, poll);
            }
        }
    }

    /// Whether code of a perf map waits for samples.
    pub fn waits_for_samples(&self) -> bool {
        self.unsampled >= self.max_unsampled
    }

    /// Emits the code at `start` unless it was emitted.
    fn emit_sampled(&mut self, start: u64, poll: &mut Poll) {
        let Some(code) = self.by_start.get(&start) else {
            return;
        };
        let Told::Not { absent_at } = code.told else {
            return;
        };
        let load = CodeLoad {
            start: Avma(start),
            size: code.end - start,
            name: code.name.to_string(),
            since: code.since,
            absent_at: Some(absent_at),
            lines: Vec::new(),
        };
        let constituent = self.constituent(load, poll);
        if let Some(code) = self.by_start.get_mut(&start) {
            code.told = Told::As(constituent.key);
        }
        poll.code(CodeChange::Seen(constituent));
    }

    fn emit_replaced(&mut self, code: Replaced, poll: &mut Poll) {
        let load = CodeLoad {
            start: Avma(code.start),
            size: code.end - code.start,
            name: code.name.into(),
            since: code.since,
            absent_at: Some(code.absent_at),
            lines: Vec::new(),
        };
        let constituent = self.constituent(load, poll);
        let key = constituent.key;
        poll.code(CodeChange::Seen(constituent));
        poll.code(CodeChange::Gone(ConstituentGone {
            key,
            last_seen: code.last_seen,
            time: code.gone_at,
            reason: code.reason,
        }));
    }
}
