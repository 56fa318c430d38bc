//! Samples in generated code: which addresses they touch, and what of registers and stack
//! is worth recording.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use vmscope_process::MapEntry;
use vmscope_records::{Avma, CpuMode, InterpreterRules, InterpreterSource, SampleDetail, Word};

use crate::engine::RawSample;

/// So many pieces of files are known in one address space; code of further ones is taken
/// for generated code, which costs a little and falsifies nothing.
const MAX_PIECES: usize = 1 << 16;

/// What is known of an address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Generated {
    /// Where the code of files is; shared with what it was forked from.
    files: Arc<Files>,
    interpreter: Interpreter,
    /// What samples touched and nobody was told yet.
    touched: FxHashSet<Avma>,
}

/// What is known of a process's interpreters.
#[derive(Clone, Debug, Default)]
enum Interpreter {
    /// Nobody knows the VM (yet): generated code may be one.
    #[default]
    Unknown,
    /// Adapters read it, for which there are these places: generated code may be one,
    /// unless there are none.
    Expected(Vec<InterpreterSource>),
    /// Adapters have told where theirs are.
    Told(Vec<InterpreterRules>),
}

impl Generated {
    /// What a fork of this process has.
    pub fn forked(&self) -> Self {
        Generated {
            files: Arc::clone(&self.files),
            interpreter: self.interpreter.clone(),
            touched: FxHashSet::default(),
        }
    }

    /// Executable memory appeared.
    pub fn mapped(&mut self, entry: &MapEntry) {
        let (start, end) = (entry.start.0, entry.end.0);
        Arc::make_mut(&mut self.files).put(start, end, holds_code_of_file(entry));
    }

    /// Adapters read it, for which there are these places.
    pub fn reads(&mut self, sources: Vec<InterpreterSource>) {
        if !matches!(self.interpreter, Interpreter::Told(_)) {
            self.interpreter = Interpreter::Expected(sources);
        }
    }

    /// An adapter has told where its interpreter is.
    pub fn rules(&mut self, rules: &InterpreterRules) {
        if !matches!(self.interpreter, Interpreter::Told(_)) {
            self.interpreter = Interpreter::Told(Vec::new());
        }
        if let Interpreter::Told(all) = &mut self.interpreter {
            all.retain(|known| known.vm != rules.vm);
            all.push(rules.clone());
        }
    }

    /// Takes from a sample what will not be recorded, and notes what it touched; `sources`
    /// are the places for VMs that nobody has recognised yet.
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

    /// What was touched since this was asked last.
    pub fn take_touched(&mut self) -> impl Iterator<Item = Avma> + '_ {
        self.touched.drain()
    }

    /// Whether anything was.
    pub fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }
}

/// Leaves of a sample's registers and stack what `sources` name, and adds what is there
/// to `values`.
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

/// Whether a mapping is of a file's code: not memory that processes share, into which
/// some VMs generate code.
fn holds_code_of_file(entry: &MapEntry) -> bool {
    let shared: [&[u8]; 3] = [b"/memfd:", b"/dev/zero", b"/SYSV"];
    let is_shared = |path: &[u8]| shared.iter().any(|start| path.starts_with(start));
    entry.is_vdso() || entry.path().is_some_and(|path| !is_shared(path))
}

/// The ranges of an address space that hold code of files: start to end, not overlapping.
#[derive(Clone, Debug, Default)]
struct Files(BTreeMap<u64, u64>);

impl Files {
    fn holds(&self, address: Avma) -> bool {
        let before = self.0.range(..=address.0).next_back();
        before.is_some_and(|(_, &end)| address.0 < end)
    }

    /// `[start, end)` is a file's from now on, or not, whatever was there.
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
