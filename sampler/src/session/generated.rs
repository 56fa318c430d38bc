//! Samples in generated code: sampled addresses, and the registers and stack words to record.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use vmscope_process::MapEntry;
use vmscope_records::{Avma, CpuMode, InterpreterRules, InterpreterSource, SampleDetail, Word};

use crate::engine::RawSample;

/// File ranges per address space. Code of further files counts as generated: slightly more work, no
/// wrong result.
const MAX_PIECES: usize = 1 << 16;

/// Sample-related state of an address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Generated {
    /// Ranges with file code; shared with the fork parent.
    files: Arc<Files>,
    interpreter: Interpreter,
    /// Sampled addresses, not yet published.
    touched: FxHashSet<Avma>,
}

/// Knowledge of a process's interpreters.
#[derive(Clone, Debug, Default)]
enum Interpreter {
    /// Unrecognised VM: generated code may be an interpreter.
    #[default]
    Unknown,
    /// Adapters read the process: generated code may be an interpreter if there are sources.
    Expected(Vec<InterpreterSource>),
    /// Adapters have emitted the interpreters' ranges.
    Told(Vec<InterpreterRules>),
}

impl Generated {
    /// State of a fork.
    pub fn forked(&self) -> Self {
        Generated {
            files: Arc::clone(&self.files),
            interpreter: self.interpreter.clone(),
            touched: FxHashSet::default(),
        }
    }

    pub fn mapped(&mut self, entry: &MapEntry) {
        let (start, end) = (entry.start.0, entry.end.0);
        Arc::make_mut(&mut self.files).put(start, end, holds_code_of_file(entry));
    }

    /// Adapters read the process, with these sources.
    pub fn reads(&mut self, sources: Vec<InterpreterSource>) {
        if !matches!(self.interpreter, Interpreter::Told(_)) {
            self.interpreter = Interpreter::Expected(sources);
        }
    }

    /// An adapter has emitted its interpreter's ranges.
    pub fn rules(&mut self, rules: &InterpreterRules) {
        if !matches!(self.interpreter, Interpreter::Told(_)) {
            self.interpreter = Interpreter::Told(Vec::new());
        }
        if let Interpreter::Told(all) = &mut self.interpreter {
            all.retain(|known| known.vm != rules.vm);
            all.push(rules.clone());
        }
    }

    /// Strips a sample of contents not to be recorded, and notes its addresses in generated code;
    /// `sources` are for unrecognised VMs.
    pub fn sampled(&mut self, sample: &mut RawSample, sources: &[InterpreterSource]) {
        let is_user = sample.mode == CpuMode::User;
        let is_generated = is_user && !self.files.holds(sample.pc);
        if is_generated {
            self.touched.insert(sample.pc);
        }
        let Some(detail) = &mut sample.detail else {
            return;
        };
        if let Some(chain) = &detail.chain {
            let callers = chain.user.iter().copied();
            let callers = callers.filter(|address| !self.files.holds(*address));
            self.touched.extend(callers);
        }
        let sources = match &self.interpreter {
            _ if !is_user => &[],
            Interpreter::Unknown if is_generated => sources,
            Interpreter::Expected(sources) if is_generated => sources,
            Interpreter::Told(rules) => {
                let here = rules.iter().find(|rules| rules.covers(sample.pc));
                here.map_or(&[][..], |rules| &rules.sources)
            }
            _ => &[],
        };
        keep(detail, sources, &mut self.touched);
        if **detail == SampleDetail::default() {
            sample.detail = None;
        }
    }

    pub fn take_touched(&mut self) -> impl Iterator<Item = Avma> + '_ {
        self.touched.drain()
    }

    pub fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }
}

/// Reduces a sample's registers and stack to those in `sources`, and adds their contents to
/// `values`.
fn keep(detail: &mut SampleDetail, sources: &[InterpreterSource], values: &mut FxHashSet<Avma>) {
    let mut mask = 0;
    let mut words = std::mem::take(&mut detail.words);
    for source in sources {
        let Some(value) = source.place.value(detail) else {
            continue;
        };
        values.insert(Avma(value));
        mask |= 1u64.checked_shl(source.place.register()).unwrap_or(0);
        if let Some(at) = source.place.address(detail)
            && !words.iter().any(|word| word.at == at)
        {
            words.push(Word { at, value });
        }
    }
    detail.words = words;
    detail.stack = None;
    detail.registers = detail.registers.take().and_then(|all| all.only(mask));
}

/// Whether a mapping holds file code; `false` for shared memory, into which some VMs generate code.
fn holds_code_of_file(entry: &MapEntry) -> bool {
    let shared: [&[u8]; 3] = [b"/memfd:", b"/dev/zero", b"/SYSV"];
    let is_shared = |path: &[u8]| shared.iter().any(|start| path.starts_with(start));
    entry.is_vdso() || entry.path().is_some_and(|path| !is_shared(path))
}

/// Disjoint ranges with file code: start to end.
#[derive(Clone, Debug, Default)]
struct Files(BTreeMap<u64, u64>);

impl Files {
    fn holds(&self, address: Avma) -> bool {
        let before = self.0.range(..=address.0).next_back();
        before.is_some_and(|(_, &end)| address.0 < end)
    }

    /// Marks `[start, end)` as file code or other memory.
    fn put(&mut self, start: u64, end: u64, is_file: bool) {
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.0.range(..end).next_back() {
            if to <= start {
                break;
            }
            self.0.remove(&from);
            if to > end {
                self.0.insert(end, to);
            }
            if from < start {
                self.0.insert(from, start);
                break;
            }
        }
        if is_file && self.0.len() < MAX_PIECES {
            self.0.insert(start, end);
        }
    }
}

#[cfg(test)]
mod tests;
