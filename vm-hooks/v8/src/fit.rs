//! Layout of a V8 of an unknown version, made of parts of known layouts that V8's own objects confirm.
//!
//! A part fits if V8's objects, read by this part, refer to each other as V8's rules require. Versions next to
//! the unknown version come first. Some fields have no check: the number of `r0`, scopes of modules, the number
//! of builtins among kinds of code. They are those of the nearest version (kinds: with V8's own constant).

use std::ops::RangeInclusive;

use rustc_hash::FxHashSet;
use vmscope_process::pages::Pages;
use vmscope_process::{AdapterError, ProcessView, known};
use vmscope_records::Avma;

use crate::bytecodes::InstructionSet;
use crate::code::{self, Code, Kind};
use crate::isolate::{Isolate, Tables};
use crate::object::{Heap, Tagged};
use crate::owners::Owners;
use crate::positions::positions;
use crate::versions::Layout;
use crate::vm::V8;

/// Minimum number of objects that a part describes.
const LEAST: usize = 8;

/// Minimum share of those that confirm the part, in percent.
const SHARE: usize = 90;

/// Minimum number of functions with bytecodes. A started Node.js has 400.
const FUNCTIONS: usize = 100;

/// Number of functions that are looked at, at most twice as many, and their maximum bytes of bytecodes.
const SAMPLED: usize = 256;
const MAX_BYTECODES: i32 = 1 << 14;

/// Maximum bytes of a function's source positions, and their name in messages.
const MAX_POSITIONS: usize = 1 << 16;
const POSITIONS: &str = "source positions";

/// Possible offsets of the first bytecode, and of the fields with constants and source positions.
const FIRST_BYTECODES: RangeInclusive<u64> = 48..=72;
const BYTECODE_FIELDS: RangeInclusive<u64> = 16..=48;

/// Begins of a function's instructions; none of damaged bytecodes.
type Starts = FxHashSet<i64>;

/// What confirmed a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Number of functions that were looked at.
    pub functions: usize,
    /// Number of pieces of compiled code.
    pub code: usize,
}

/// Count of objects.
#[derive(Clone, Copy, Debug, Default)]
struct Checked {
    all: usize,
    right: usize,
}

impl Checked {
    fn add(&mut self, is_right: bool) {
        self.all += 1;
        self.right += usize::from(is_right);
    }

    fn fits(self) -> bool {
        self.all >= LEAST && self.right * 100 >= self.all * SHARE
    }
}

impl V8 {
    /// Makes the layout of a V8 whose version is unknown. `candidates`: known layouts, that of the nearest
    /// version first.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] while V8 has too few objects; [`AdapterError::OtherVm`] names the part
    /// that no known layout describes; failed reads.
    pub fn fit_layout(
        &mut self,
        process: &ProcessView,
        candidates: &[Layout],
    ) -> Result<Fit, AdapterError> {
        let vm = self;
        let pages = Pages::new(process.memory());
        let isolates = vm.isolates(&pages)?;
        let first = isolates.first().copied();
        let isolate = first.ok_or(AdapterError::NotReady { what: "isolate" })?;
        let tables = vm.tables(isolate, &pages)?;
        let root = |name| tables.root(isolate, name, &pages);
        let mut search = Search {
            process,
            pages: &pages,
            isolate,
            bytecodes: root("bytecode_array_map")?,
            function: root("shared_function_info_map")?,
            tables,
            candidates,
            version: vm.version.clone(),
        };
        let functions = search.functions(vm)?;
        search.bytecodes(vm, &functions)?;
        let code = search.code(vm)?;
        vm.layout.collector = None;
        vm.layout.spaces = None;
        Ok(Fit {
            functions: functions.len(),
            code,
        })
    }
}

/// Different values of a part of the candidates, in their order.
fn values<T: Copy + PartialEq>(candidates: &[Layout], part: impl Fn(&Layout) -> T) -> Vec<T> {
    let mut values: Vec<T> = Vec::new();
    for value in candidates.iter().map(part) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

struct Search<'a> {
    process: &'a ProcessView,
    pages: &'a Pages<'a>,
    isolate: Isolate,
    tables: Tables,
    /// Maps of bytecodes and of functions.
    bytecodes: Tagged,
    function: Tagged,
    candidates: &'a [Layout],
    version: String,
}

/// A function with its bytecodes.
#[derive(Clone, Copy, Debug)]
struct Owned {
    function: Tagged,
    bytecodes: Tagged,
}

impl Search<'_> {
    fn refused(&self, why: &'static str) -> AdapterError {
        AdapterError::OtherVm {
            vm: format!("V8 {}", self.version),
            why,
            remedy: "",
        }
    }

    /// Whether `object` has the map `map`.
    fn has_map(&self, heap: &Heap<'_>, object: Tagged, map: Tagged) -> Result<bool, AdapterError> {
        Ok(known(heap.field(object, 0, "map"))? == Some(map))
    }

    /// Finds the fields of functions: they name a script, and a position in its text.
    fn functions(&mut self, vm: &mut V8) -> Result<Vec<Owned>, AdapterError> {
        let mut most = 0;
        for fields in values(self.candidates, |layout| layout.function) {
            vm.layout.function = fields;
            let heap = vm.heap(self.pages);
            let owners = Owners::read(&heap, &[self.isolate], &self.tables)?;
            let mut all: Vec<Owned> = owners
                .iter()
                .map(|(bytecodes, function)| Owned {
                    function,
                    bytecodes,
                })
                .collect();
            most = most.max(all.len());
            all.sort_unstable_by_key(|one| one.function);
            let step = (all.len() / SAMPLED).max(1);
            let mut all: Vec<Owned> = all.into_iter().step_by(step).collect();
            all.retain(|one| is_short(&heap, one.bytecodes));
            for scope in values(self.candidates, |layout| layout.scope) {
                vm.layout.scope = scope;
                let (heap, mut checked) = (vm.heap(self.pages), Checked::default());
                for one in &all {
                    checked.add(is_in_its_script(&heap, one.function)?);
                }
                if checked.fits() {
                    return Ok(all);
                }
            }
        }
        match most {
            ..FUNCTIONS => Err(AdapterError::NotReady { what: "functions" }),
            _ => Err(self.refused("no known layout fits its functions")),
        }
    }

    /// Finds the fields of bytecodes, and the form of source positions: instructions end where the
    /// bytecodes end, and positions belong to instructions.
    fn bytecodes(&mut self, vm: &mut V8, functions: &[Owned]) -> Result<(), AdapterError> {
        let set = InstructionSet::read(self.process, vm, (self.isolate, &self.tables))?;
        let whole = FIRST_BYTECODES.step_by(2).find_map(|first| {
            vm.layout.bytecodes.first = first;
            let starts = self.starts(&vm.heap(self.pages), functions, &set);
            starts.transpose()
        });
        let refused = || self.refused("no known layout fits its bytecodes");
        let starts = whole.ok_or_else(refused)??;
        let arrays = ["fixed_array_map", "trusted_fixed_array_map"];
        let arrays = arrays.map(|name| self.tables.root(self.isolate, name, self.pages).ok());
        let is_constants = |offset: &u64| {
            let heap = vm.heap(self.pages);
            let mut checked = Checked::default();
            for one in functions {
                let constants = heap.field(one.bytecodes, *offset, "constants");
                let map = constants.and_then(|constants| heap.field(constants, 0, "map"));
                checked.add(map.is_ok_and(|map| arrays.contains(&Some(map))));
            }
            checked.fits()
        };
        let constants = BYTECODE_FIELDS.step_by(8).find(is_constants);
        vm.layout.bytecodes.constants = constants.ok_or_else(refused)?;
        // Greatest number of functions with positions.
        let mut most = 0;
        for form in values(self.candidates, |layout| layout.positions) {
            for offset in BYTECODE_FIELDS.step_by(8) {
                vm.layout.positions = form;
                vm.layout.bytecodes.positions = offset;
                let checked = positions_of(&vm.heap(self.pages), functions, &starts)?;
                if checked.fits() {
                    return Ok(());
                }
                most = most.max(checked.all);
            }
        }
        match most {
            LEAST.. => Err(refused()),
            _ => Err(AdapterError::NotReady {
                what: "source positions, by which vmscope checks the layout of an unknown V8,",
            }),
        }
    }

    /// Begins of the instructions of each function; `None` if instructions do not end where the bytecodes
    /// end.
    fn starts(
        &self,
        heap: &Heap<'_>,
        functions: &[Owned],
        set: &InstructionSet,
    ) -> Result<Option<Vec<Starts>>, AdapterError> {
        let mut checked = Checked::default();
        let mut all = Vec::with_capacity(functions.len());
        for one in functions {
            let bytes = known(heap.bytecodes(one.bytecodes))?.unwrap_or_default();
            let starts = set.instructions(&bytes);
            let starts = starts.map(|it| it.map(|it| i64::from(it.pc.0)));
            let starts: Starts = starts.collect::<Result<_, _>>().unwrap_or_default();
            checked.add(!starts.is_empty());
            all.push(starts);
        }
        Ok(checked.fits().then_some(all))
    }

    /// Finds the fields of machine code; returns the number of pieces of compiled code.
    fn code(&mut self, vm: &mut V8) -> Result<usize, AdapterError> {
        // Greatest number of pieces of compiled code that some layout describes.
        let mut most = None;
        for registry in values(self.candidates, |layout| layout.registry) {
            for (stream, code) in values(self.candidates, |layout| (layout.stream, layout.code)) {
                (vm.layout.registry, vm.layout.stream, vm.layout.code) = (registry, stream, code);
                let place = (&self.tables, self.isolate);
                let streams = vm.streams(self.process, &vm.heap(self.pages), place);
                let streams = match streams {
                    // V8 lacks this form of registry.
                    Err(AdapterError::MissingSymbol { .. } | AdapterError::MissingField { .. }) => {
                        None
                    }
                    streams => known(streams)?,
                };
                let Some(streams) = streams.filter(|streams| streams.damage.is_none()) else {
                    continue;
                };
                for kinds in values(self.candidates, |layout| layout.kinds) {
                    vm.layout.kinds = kinds;
                    let codes = code::describe(&vm.heap(self.pages), &streams.addresses)?;
                    if !are_apart(&streams.addresses, &codes) {
                        continue;
                    }
                    for fields in values(self.candidates, |layout| layout.optimised) {
                        vm.layout.optimised = fields;
                        let checked = self.compiled(&vm.heap(self.pages), &codes)?;
                        if checked.fits() {
                            return Ok(checked.all);
                        }
                        most = most.max(Some(checked.all));
                    }
                }
            }
        }
        match most {
            None | Some(LEAST..) => Err(self.refused("no known layout fits its machine code")),
            Some(_) => Err(AdapterError::NotReady {
                what: "compiled code, by which vmscope checks the layout of an unknown V8,",
            }),
        }
    }

    /// Checks compiled code: optimised code names a function, Sparkplug's code bytecodes.
    fn compiled(&self, heap: &Heap<'_>, codes: &[Code]) -> Result<Checked, AdapterError> {
        let mut checked = Checked::default();
        for code in codes {
            match code.kind {
                Kind::Baseline => checked.add(self.has_map(heap, code.data, self.bytecodes)?),
                Kind::Maglev | Kind::Turbofan => {
                    let function = known(heap.function_of_optimised(code))?;
                    let function = function.unwrap_or_default();
                    checked.add(self.has_map(heap, function, self.function)?);
                }
                Kind::Builtin | Kind::RegExp | Kind::Wasm | Kind::Interpreted => {}
            }
        }
        Ok(checked)
    }
}

/// Whether bytecodes are few: hostile memory must not cost much.
fn is_short(heap: &Heap<'_>, bytecodes: Tagged) -> bool {
    let length = heap.integer(bytecodes, 8, "bytecodes");
    length.is_ok_and(|length| length <= MAX_BYTECODES)
}

/// Whether a function has a script whose text contains the function's position.
fn is_in_its_script(heap: &Heap<'_>, function: Tagged) -> Result<bool, AdapterError> {
    let Some(function) = known(heap.function(function))? else {
        return Ok(false);
    };
    let Some((script, position)) = function.script.zip(function.position) else {
        return Ok(false);
    };
    let Some(script) = known(heap.script(script))? else {
        return Ok(false);
    };
    let length = known(heap.string_length(script.source))?;
    Ok(length.is_some_and(|length| u64::from(position) <= length))
}

/// Counts functions with source positions, and those whose positions begin instructions.
fn positions_of(
    heap: &Heap<'_>,
    functions: &[Owned],
    starts: &[Starts],
) -> Result<Checked, AdapterError> {
    let mut checked = Checked::default();
    for (one, starts) in functions.iter().zip(starts) {
        let table = heap.field(one.bytecodes, heap.layout.bytecodes.positions, POSITIONS);
        let table = table.and_then(|table| heap.bytes(table, MAX_POSITIONS, POSITIONS));
        let table = known(table)?.unwrap_or_default();
        let mut entries = positions(&table, heap.layout.positions);
        let is_start = |code: i64| code == -1 || starts.contains(&code);
        let are_right = entries.all(|entry| entry.is_ok_and(|entry| is_start(entry.code)));
        if !table.is_empty() && !starts.is_empty() {
            checked.add(are_right);
        }
    }
    Ok(checked)
}

/// Whether nearly all streams are code, and no code reaches into the next one.
fn are_apart(streams: &[Avma], codes: &[Code]) -> bool {
    let neighbours = codes.iter().zip(codes.iter().skip(1));
    let right = neighbours.filter(|(one, next)| one.end <= next.start);
    let checked = Checked {
        all: streams.len(),
        right: right.count() + usize::from(!codes.is_empty()),
    };
    checked.fits()
}
