//! Readings of snapshots of Node.js and of the data of programs without symbols, for tests from files, fuzzing and
//! benchmarks; regions of functions.

use std::sync::Arc;

use vmscope_process::testing::FakeMemory;
use vmscope_process::{
    Adapter, AdapterError, AdapterFamily as _, KeySource, Poll, ProcessView, Symbol,
};
use vmscope_records::{
    Avma, Constituent, ConstituentKind, FunctionName, PcMap, ProcessKey, Record, Region,
    ThreadRole, TimeNs,
};

use crate::collector::search;
use crate::contents::{Contents, Piece};
use crate::fit::Fit;
use crate::isolate::Isolate;
use crate::versions::Layout;
use crate::{Family, V8, builtins, bytecodes, regions};

/// Begins of the names of all symbols that the reader asks for, and of V8's own code.
pub const SYMBOLS: [&str; 11] = [
    "v8dbg_",
    "Builtins_",
    "_ZN2v88internal7Version",
    "_ZN2v88internal2V89platform_E",
    "_ZN2v88internal22ExternalReferenceTable9ref_name_E",
    "_ZN2v88internal17abort_with_reasonEi",
    "_ZN2v88internal10RootsTable11root_names_E",
    "_ZN2v88internal15ThreadIsolation13trusted_data_E",
    "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE",
    crate::wasm::STATE,
    crate::wasm::GETTER,
];

/// Region, part and shown name that [`regions::rules`] give a function of `node`, by its demangled name;
/// `None` without a rule.
#[must_use]
pub fn place_of_function(name: &str) -> Option<(Region, String, String)> {
    regions::rules(&["node".to_owned()])
        .into_iter()
        .find_map(|rule| {
            let shown = rule.apply(FunctionName::new(name), ThreadRole::Other)?;
            let shown = shown.to_owned();
            Some((rule.region, rule.part, shown))
        })
}

/// An adapter's polls, with a clock that stands still or leaps.
pub struct Polls {
    adapter: Box<dyn Adapter>,
    keys: KeySource,
    now: TimeNs,
}

impl std::fmt::Debug for Polls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Polls").field("now", &self.now).finish()
    }
}

/// Nanoseconds from a poll to the next after which every reading is due: a thousand seconds.
const LEAP: u64 = 1_000_000_000_000;

/// Nanoseconds from a poll to the next that reads the code of samples only: longer than the pause between
/// polls, shorter than the pause between readings of all code.
const SOON: u64 = 900_000_000;

impl Polls {
    /// The adapter of the V8 in `process`; `None` if it has none.
    ///
    /// # Errors
    /// As [`Family::recognise`](vmscope_process::AdapterFamily::recognise).
    pub fn open(process: &ProcessView) -> Result<Option<Self>, AdapterError> {
        let adapter = Family.recognise(process)?;
        Ok(adapter.map(|adapter| Polls {
            adapter,
            keys: KeySource::new(),
            now: TimeNs(LEAP),
        }))
    }

    fn poll_with(&self, touched: Vec<Avma>) -> Poll {
        let now = self.now;
        let poll = Poll::new(self.keys.clone(), ProcessKey(1), Arc::new(move || now));
        poll.with_touched(touched)
    }

    /// A poll that looks at all code.
    ///
    /// # Errors
    /// As [`Adapter::poll`].
    pub fn look(&mut self, process: &ProcessView) -> Result<Vec<Record>, AdapterError> {
        self.now.0 = self.now.0.saturating_add(LEAP);
        self.poll(process, Vec::new())
    }

    /// A poll soon after the last one, with these addresses of samples (ascending). The first such poll
    /// after [`Polls::look`] does not read all code.
    ///
    /// # Errors
    /// As [`Adapter::poll`].
    pub fn hits(
        &mut self,
        process: &ProcessView,
        touched: Vec<Avma>,
    ) -> Result<Vec<Record>, AdapterError> {
        self.now.0 = self.now.0.saturating_add(SOON);
        self.poll(process, touched)
    }

    fn poll(
        &mut self,
        process: &ProcessView,
        touched: Vec<Avma>,
    ) -> Result<Vec<Record>, AdapterError> {
        let mut poll = self.poll_with(touched);
        self.adapter.poll(process, &mut poll)?;
        Ok(poll.finish())
    }

    /// The last poll.
    ///
    /// # Errors
    /// As [`Adapter::finish`].
    pub fn finish(&mut self, process: &ProcessView) -> Result<Vec<Record>, AdapterError> {
        let mut poll = self.poll_with(Vec::new());
        self.adapter.finish(process, &mut poll)?;
        Ok(poll.finish())
    }
}

/// Pieces of code among `records`.
pub fn constituents(records: &[Record]) -> impl Iterator<Item = &Constituent> {
    records.iter().filter_map(|record| match record {
        Record::Constituent(one) => Some(&**one),
        _ => None,
    })
}

/// New compiled functions and regular expressions among `records`: no maps of known ones, no handlers of
/// bytecodes.
pub fn new_code(records: &[Record]) -> impl Iterator<Item = &Constituent> {
    constituents(records).filter(|one| {
        let is_compiled = matches!(one.kind, ConstituentKind::Method | ConstituentKind::RegExp);
        is_compiled && one.map == PcMap::None
    })
}

/// Addresses in the middle of pieces of code, as samples have them, ascending.
#[must_use]
pub fn middles(records: &[Record]) -> Vec<Avma> {
    let middle = |one: &Constituent| Avma(one.start.0 + (one.end.0 - one.start.0) / 2);
    let mut middles: Vec<Avma> = new_code(records).map(middle).collect();
    middles.sort_unstable();
    middles.dedup();
    middles
}

/// Three polls: a reading of all code, samples in all code, the last poll.
///
/// # Errors
/// As [`Adapter::poll`].
pub fn all_code(process: &ProcessView) -> Result<Vec<Record>, AdapterError> {
    let Some(mut polls) = Polls::open(process)? else {
        return Ok(Vec::new());
    };
    let mut all = polls.look(process)?;
    let touched = middles(&all);
    all.extend(polls.hits(process, touched)?);
    all.extend(polls.finish(process)?);
    Ok(all)
}

/// The checks of a layout, as of an unknown version, and the search for collectors.
///
/// # Errors
/// As [`V8::open`] and [`V8::fit_layout`].
pub fn check_layout(process: &ProcessView) -> Result<Option<Fit>, AdapterError> {
    let Some(mut vm) = V8::open(process)? else {
        return Ok(None);
    };
    for isolate in vm.isolates(process.memory())? {
        let always = TimeNs(0)..=TimeNs(u64::MAX);
        // Most damaged isolates have none.
        let _ = search::find(isolate, process.memory(), &always);
    }
    let candidates = Layout::nearest((12, 4), &vm.debug);
    vm.fit_layout(process, &candidates).map(Some)
}

/// Addresses of the parts of a [`StrippedProgram`].
const CONSTANTS: Avma = Avma(0x10_0000);
const VARIABLES: Avma = Avma(0x20_0000);
const ISOLATE: Avma = Avma(0x30_0000);

/// Data of a program without symbols.
#[derive(Clone, Debug, Default)]
pub struct StrippedProgram {
    /// Constant data, at 0x10_0000.
    pub constants: Vec<u8>,
    /// Variables, at 0x20_0000.
    pub variables: Vec<u8>,
    /// First bytes of an isolate, at 0x30_0000.
    pub isolate: Vec<u8>,
    /// V8's table of handlers.
    pub handlers: Vec<u64>,
}

/// Symbols that vmscope makes for a program without symbols: of V8's tables, and of its builtins.
#[must_use]
pub fn made_symbols(program: StrippedProgram) -> [Vec<Symbol>; 2] {
    let contents = Contents {
        variables: vec![Piece {
            at: VARIABLES,
            bytes: program.variables,
        }],
        constants: Piece {
            at: CONSTANTS,
            bytes: program.constants,
        },
    };
    let mut memory = FakeMemory::new();
    memory.put(ISOLATE, program.isolate);
    let tables = bytecodes::search::symbols(&contents);
    let isolate = Isolate(ISOLATE);
    // Memory that is made has no failed reads.
    let builtins = builtins::symbols(&contents, isolate, &program.handlers, &memory);
    [tables, builtins.unwrap_or_default()]
}
