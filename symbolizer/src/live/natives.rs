//! Native functions with samples and without symbols yet.

use crate::native::{Binaries, ResolveOptions, resolve_all, resolve_kernel};
use crate::profile::Profile;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};
use vmscope_records::{Avma, FileOffset, SymbolOwner, Symbols};

/// Resolving a file in time t is followed by a pause of this many t at least. Each later pause
/// is four times as long …
const FIRST_PAUSE_FACTOR: u32 = 50;

/// … up to this many t. The pauses delay names, and never change them.
const PAUSE_FACTOR: u32 = 1000;

/// The longest pause. Each resolving reads a file's debug information again, which may take
/// half a second.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Maximum number of remembered addresses.
const MAX_ASKED: usize = 1 << 20;

/// Addresses to resolve in files.
#[derive(Debug)]
pub(super) struct Natives {
    pub lines: bool,
    wanted: FxHashMap<SymbolOwner, Vec<FileOffset>>,
    asked: FxHashSet<(SymbolOwner, FileOffset)>,
    /// Owners with symbols in the recording.
    recorded: FxHashSet<SymbolOwner>,
    paces: FxHashMap<SymbolOwner, Pace>,
}

/// A file's pause before the next resolving.
#[derive(Clone, Copy, Debug)]
struct Pace {
    not_before: Instant,
    factor: u32,
}

impl Pace {
    /// The pace after one more resolving.
    fn after(before: Option<Pace>, now: Instant, took: Duration) -> Pace {
        let factor = before.map_or(FIRST_PAUSE_FACTOR, |pace| {
            pace.factor.saturating_mul(4).min(PAUSE_FACTOR)
        });
        let pause = took.saturating_mul(factor).min(LONGEST_PAUSE);
        Pace {
            not_before: now + pause,
            factor,
        }
    }
}

impl Natives {
    pub fn new(lines: bool) -> Self {
        Natives {
            lines,
            wanted: FxHashMap::default(),
            asked: FxHashSet::default(),
            recorded: FxHashSet::default(),
            paces: FxHashMap::default(),
        }
    }

    /// Takes symbols of the recording.
    pub fn note_recorded(&mut self, symbols: &Symbols) {
        // This machine may read files that the recorder could not.
        if !symbols.functions.is_empty() {
            self.recorded.insert(symbols.owner);
            self.wanted.remove(&symbols.owner);
        }
    }

    /// Wants the function at an address, once.
    pub fn want(&mut self, owner: SymbolOwner, at: FileOffset) {
        if self.recorded.contains(&owner) || self.asked.len() >= MAX_ASKED {
            return;
        }
        if self.asked.insert((owner, at)) {
            self.wanted.entry(owner).or_default().push(at);
        }
    }

    /// Forgets resolved addresses, after places were dropped.
    pub fn forget_asked(&mut self) {
        let waiting = self.wanted.iter();
        self.asked = waiting
            .flat_map(|(owner, all)| all.iter().map(|at| (*owner, *at)))
            .collect();
    }

    /// Resolves the wanted addresses of all files whose pause is over; with `urgent`, of all
    /// files.
    pub fn resolve(
        &mut self,
        profile: &RwLock<Profile>,
        binaries: &dyn Binaries,
        urgent: bool,
    ) -> Vec<Symbols> {
        let now = Instant::now();
        let is_soon = |owner: &SymbolOwner| {
            let pace = self.paces.get(owner);
            pace.is_some_and(|pace| now < pace.not_before)
        };
        let owners = self.wanted.keys().copied();
        let mut owners: Vec<SymbolOwner> =
            owners.filter(|owner| urgent || !is_soon(owner)).collect();
        owners.sort_unstable_by_key(|owner| match owner {
            SymbolOwner::Module(key) => (0, key.0),
            SymbolOwner::Kernel => (1, 0),
        });
        let mut found = Vec::new();
        for owner in owners {
            let mut hits = self.wanted.remove(&owner).unwrap_or_default();
            hits.sort_unstable();
            let began = Instant::now();
            found.extend(self.symbols_of(owner, &hits, profile, binaries));
            let ended = Instant::now();
            let before = self.paces.get(&owner).copied();
            let took = ended.duration_since(began);
            self.paces.insert(owner, Pace::after(before, ended, took));
        }
        found
    }

    /// The symbols at ascending addresses of a file.
    fn symbols_of(
        &self,
        owner: SymbolOwner,
        hits: &[FileOffset],
        profile: &RwLock<Profile>,
        binaries: &dyn Binaries,
    ) -> Vec<Symbols> {
        match owner {
            SymbolOwner::Kernel => {
                let hits: Vec<Avma> = hits.iter().map(|at| Avma(at.0)).collect();
                let text = binaries.kernel_symbols();
                vec![resolve_kernel(&hits, text.as_deref())]
            }
            SymbolOwner::Module(key) => {
                let profile = profile.read().unwrap_or_else(PoisonError::into_inner);
                let module = profile.trace.modules.get(&key).cloned();
                drop(profile);
                let options = ResolveOptions {
                    lines: self.lines,
                    threads: 1,
                    ..ResolveOptions::default()
                };
                let Some(module) = module else {
                    return Vec::new();
                };
                resolve_all(&[(&module, hits)], binaries, &options)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slow_to_read_is_read_less_and_less_often() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let took = Duration::from_millis(20);
        let mut pace = None;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            let after = Pace::after(pace, now, took);
            pauses.push(after.not_before - now);
            pace = Some(after);
        }
        assert_eq!(
            pauses,
            [1, 4, 16, 20, 20, 20, 20].map(|times| times * second)
        );
        let after = Pace::after(pace, now, second);
        assert_eq!(after.not_before - now, LONGEST_PAUSE);
    }
}
