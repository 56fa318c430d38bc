//! Samples in generated code: sampled addresses, and the registers and stack words to record.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::MapEntry;
use vmscope_records::{
    Avma, CpuMode, FileOffset, InterpreterRules, InterpreterSource, Mapping, Ranges, SampleDetail,
    Word,
};

use super::native_hits::NativeHits;
use super::unwind::CodeMapping;
use crate::engine::RawSample;

/// Mappings per address space. Code of further files counts as generated, and repeated mappings are
/// recorded: slightly more work, no wrong result.
const MAX_PIECES: usize = 1 << 16;

/// Maximum number of return addresses in memory, per address space.
const MAX_RETURNS: usize = 1 << 16;

/// Sample-related state of an address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Generated {
    /// Executable mappings, each with whether it holds file code; shared with the fork parent.
    mappings: Arc<Ranges<Mapped>>,
    interpreter: Interpreter,
    /// Sampled addresses, not yet published.
    touched: FxHashSet<Avma>,
    /// Sampled return addresses since the last change of the mappings, each with whether it lies in file
    /// code. Their native places are known.
    returns: FxHashMap<Avma, bool>,
}

/// A mapping, and whether it holds file code.
type Mapped = (Arc<Mapping>, bool);

/// Knowledge of a process's interpreters.
#[derive(Clone, Debug, Default)]
enum Interpreter {
    /// Unrecognised VM: generated code may be an interpreter.
    #[default]
    Unknown,
    /// Adapters read the process, without code so far: with sources, any user code may be an interpreter.
    Expected(Vec<InterpreterSource>),
    /// Adapters have emitted the interpreters' ranges.
    Told(Vec<InterpreterRules>),
}

impl Generated {
    /// State of a fork.
    pub fn forked(&self) -> Self {
        Generated {
            mappings: Arc::clone(&self.mappings),
            interpreter: self.interpreter.clone(),
            touched: FxHashSet::default(),
            returns: FxHashMap::default(),
        }
    }

    /// Takes a mapping; returns whether it changes the address space. The kernel reports all
    /// protection changes, and JIT compilers make thousands a second.
    pub fn mapped(&mut self, entry: &MapEntry, mapping: &Mapping) -> bool {
        let (start, end) = (entry.start.0, entry.end.0);
        let known = self.mappings.around(start, end);
        if known.is_some_and(|(known, _)| mapping.repeats(known)) {
            return false;
        }
        self.returns.clear();
        let mappings = Arc::make_mut(&mut self.mappings);
        mappings.cut(start, end);
        if mappings.len() < MAX_PIECES {
            let mapping = Arc::new(mapping.clone());
            mappings.put(start, end, (mapping, holds_code_of_file(entry)));
        }
        true
    }

    /// Whether all executable mappings are known.
    pub fn has_room(&self) -> bool {
        self.mappings.len() < MAX_PIECES
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

    /// An adapter has emitted code. An interpreter that is not known by now is not expected: all samples would
    /// keep registers for it.
    pub fn has_code(&mut self) {
        if matches!(self.interpreter, Interpreter::Expected(_)) {
            self.interpreter = Interpreter::Told(Vec::new());
        }
    }

    /// Strips a sample of contents not to be recorded, and notes its addresses in generated and in
    /// native code; `sources` are for unrecognised VMs.
    pub fn sampled(
        &mut self,
        sample: &mut RawSample,
        sources: &[InterpreterSource],
        hits: &mut NativeHits,
    ) {
        let is_user = sample.mode == CpuMode::User;
        let is_generated = self.touch_pc(sample.mode, sample.pc);
        match sample.mode {
            CpuMode::Kernel => hits.kernel(sample.pc),
            // Its place is no address.
            CpuMode::Idle => {}
            _ => self.hit(sample.pc, hits),
        }
        let Some(detail) = sample.detail.as_mut() else {
            return;
        };
        if let Some(chain) = &detail.chain {
            for at in &chain.kernel {
                hits.kernel(call_before(*at));
            }
            let mut callers = chain.user.as_slice();
            if let Some((pc, rest)) = callers.split_first()
                && sample.mode == CpuMode::Kernel
            {
                callers = rest;
                self.hit(*pc, hits);
                if !is_file(&self.mappings, *pc) {
                    self.touched.insert(*pc);
                }
            }
            for at in callers {
                if !self.returns_to_file(*at, hits) {
                    self.touched.insert(*at);
                }
            }
        }
        let sources = match &self.interpreter {
            _ if !is_user => &[],
            Interpreter::Unknown if is_generated => sources,
            // Some interpreters are code of a file.
            Interpreter::Expected(sources) => sources,
            Interpreter::Told(rules) => {
                let here = rules.iter().find(|rules| rules.covers(sample.pc));
                here.map_or(&[][..], |rules| &rules.sources)
            }
            _ => &[],
        };
        keep(detail, sources, &mut self.touched);
        detail.stack = None;
        if **detail == SampleDetail::default() {
            sample.detail = None;
        }
    }

    /// Notes a sampled pc of generated code; returns whether it is one.
    pub fn touch_pc(&mut self, mode: CpuMode, pc: Avma) -> bool {
        let is_generated = mode == CpuMode::User && !is_file(&self.mappings, pc);
        if is_generated {
            self.touched.insert(pc);
        }
        is_generated
    }

    /// The executable mapping at an address.
    pub fn code_at(&self, at: u64) -> Option<CodeMapping> {
        let (start, end, (mapping, is_file)) = self.mappings.range_at(at)?;
        let offset = (mapping.offset.get()).wrapping_add(start.wrapping_sub(mapping.start.0));
        Some(CodeMapping {
            start,
            end,
            file: (mapping.module.filter(|_| *is_file)).map(|module| (module, offset)),
        })
    }

    /// Notes the native place of a sampled pc, or of a call.
    fn hit(&self, at: Avma, hits: &mut NativeHits) {
        if let Some((mapping, _)) = self.mappings.at(at.0)
            && let Some(module) = mapping.module
        {
            hits.native(module, FileOffset(at.0.wrapping_add(mapping.base())));
        }
    }

    /// Whether a return address lies in file code; notes the native place of its call.
    fn returns_to_file(&mut self, at: Avma, hits: &mut NativeHits) -> bool {
        if let Some(is_file) = self.returns.get(&at) {
            return *is_file;
        }
        self.hit(call_before(at), hits);
        let is_file = is_file(&self.mappings, at);
        if self.returns.len() >= MAX_RETURNS {
            self.returns.clear();
        }
        self.returns.insert(at, is_file);
        is_file
    }

    /// Adds values that adapters shall name.
    pub fn touch(&mut self, values: impl IntoIterator<Item = Avma>) {
        self.touched.extend(values);
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
        mask |= source.place.registers();
        if let Some(at) = source.place.address(detail)
            && !words.iter().any(|word| word.at == at)
        {
            words.push(Word { at, value });
        }
    }
    detail.words = words;
    detail.registers = detail.registers.take().and_then(|all| all.only(mask));
}

/// A return address belongs to the call before it.
fn call_before(at: Avma) -> Avma {
    Avma(at.0.saturating_sub(1))
}

/// Whether an address lies in file code.
fn is_file(mappings: &Ranges<Mapped>, address: Avma) -> bool {
    mappings.at(address.0).is_some_and(|(_, is_file)| *is_file)
}

/// Whether a mapping holds file code; `false` for shared memory, into which some VMs generate code.
fn holds_code_of_file(entry: &MapEntry) -> bool {
    entry.is_vdso() || entry.is_of_file()
}

#[cfg(test)]
mod tests;
