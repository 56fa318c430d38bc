//! Native functions that were hit and are not known yet.

use crate::native::{Binaries, ResolveOptions, resolve_all, resolve_kernel};
use crate::profile::Profile;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};
use vmscope_records::{Avma, FileOffset, Module, SymbolOwner, Symbols};

/// Resolving that took t is followed by a pause of at least this many t: when a function
/// gets its name depends on that, which it gets does not. After the first times, which name
/// most of what is hit, the pauses are longer.
const PAUSE_FACTOR: u32 = 500;
const FIRST_PAUSE_FACTOR: u32 = 200;

/// So many are the first.
const FIRST: u32 = 4;

/// No pause is longer. Debug information that takes half a second to read is read anew for
/// each new function.
const LONGEST_PAUSE: Duration = Duration::from_secs(100);

/// So many addresses are kept in mind that were asked for.
const MAX_ASKED: usize = 1 << 20;

/// What is to be asked of files.
#[derive(Debug)]
pub(super) struct Natives {
    pub lines: bool,
    wanted: FxHashMap<SymbolOwner, Vec<FileOffset>>,
    asked: FxHashSet<(SymbolOwner, FileOffset)>,
    /// Those whose symbols the recording holds.
    told: FxHashSet<SymbolOwner>,
    not_before: Option<Instant>,
    /// How often files were asked.
    times: u32,
}

impl Natives {
    pub fn new(lines: bool) -> Self {
        Natives {
            lines,
            wanted: FxHashMap::default(),
            asked: FxHashSet::default(),
            told: FxHashSet::default(),
            not_before: None,
            times: 0,
        }
    }

    /// The recording holds these.
    pub fn told(&mut self, symbols: &Symbols) {
        // What could not be read when it was recorded may be readable here.
        if !symbols.functions.is_empty() {
            self.told.insert(symbols.owner);
            self.wanted.remove(&symbols.owner);
        }
    }

    /// A place was hit whose function is not known; it is asked for once.
    pub fn want(&mut self, owner: SymbolOwner, at: FileOffset) {
        if self.told.contains(&owner) || self.asked.len() >= MAX_ASKED {
            return;
        }
        if self.asked.insert((owner, at)) {
            self.wanted.entry(owner).or_default().push(at);
        }
    }

    /// Places were forgotten: what is hit again may be asked for again.
    pub fn forget_asked(&mut self) {
        let waiting = self.wanted.iter();
        self.asked = waiting
            .flat_map(|(owner, all)| all.iter().map(|at| (*owner, *at)))
            .collect();
    }

    /// Asks for what is wanted, unless it is too soon for that and not `urgent`.
    pub fn resolve(
        &mut self,
        profile: &RwLock<Profile>,
        binaries: &dyn Binaries,
        urgent: bool,
    ) -> Vec<Symbols> {
        let began = Instant::now();
        let is_soon = self.not_before.is_some_and(|at| began < at);
        if self.wanted.is_empty() || (is_soon && !urgent) {
            return Vec::new();
        }
        let mut modules: Vec<(Module, Vec<FileOffset>)> = Vec::new();
        let mut kernel: Vec<Avma> = Vec::new();
        {
            let profile = profile.read().unwrap_or_else(PoisonError::into_inner);
            for (owner, mut hits) in self.wanted.drain() {
                hits.sort_unstable();
                match owner {
                    SymbolOwner::Kernel => kernel.extend(hits.iter().map(|at| Avma(at.0))),
                    SymbolOwner::Module(key) => {
                        let module = profile.trace.modules.get(&key);
                        modules.extend(module.map(|module| (module.clone(), hits)));
                    }
                }
            }
        }
        modules.sort_by_key(|(module, _)| module.key);
        let wanted: Vec<(&Module, &[FileOffset])> = (modules.iter())
            .map(|(module, hits)| (module, hits.as_slice()))
            .collect();
        let options = ResolveOptions {
            lines: self.lines,
            threads: 1,
            ..ResolveOptions::default()
        };
        let mut found = resolve_all(&wanted, binaries, &options);
        if !kernel.is_empty() {
            let text = binaries.kernel_symbols();
            found.push(resolve_kernel(&kernel, text.as_deref()));
        }
        self.times = self.times.saturating_add(1);
        let factor = match self.times {
            0..=FIRST => FIRST_PAUSE_FACTOR,
            _ => PAUSE_FACTOR,
        };
        let pause = began.elapsed().saturating_mul(factor);
        self.not_before = Some(Instant::now() + pause.min(LONGEST_PAUSE));
        found
    }
}
