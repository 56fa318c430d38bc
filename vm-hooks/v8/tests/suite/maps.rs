//! Maps of sampled code, against V8's own records: the dump for `perf` of the same process has each
//! source position of optimised code with the innermost function's line.
//!
//! Sparkplug's maps, against its code: a call of the builtin `Add_Baseline` is in the code of bytecode
//! `Add`.
//!
//! The comparison leaves out positions without code, which the next position replaces, and code that
//! V8 freed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::common::nodes::{Node, nodes};
use crate::common::say;
use crate::common::stopped::Stopped;
use iced_x86::{Code, DecoderOptions};
use vmscope_jitdump::dump::{Decoder, Event, LineStart, Load, Step};
use vmscope_process::{Adapter, AdapterFamily as _, KeySource, Poll, ProcessView, monotonic_time};
use vmscope_records::{
    Avma, ChainFrame, Constituent, ConstituentKey, Exactness, Method, MethodKey, PcMap, Position,
    ProcessKey, Record,
};

/// V8 adds the size of an ELF header to the addresses of source positions.
const BIAS: u64 = 0x40;

const PROGRAM: &str = "optimised.js";

/// What an adapter told.
#[derive(Default)]
pub(super) struct Told {
    keys: KeySource,
    pub code: HashMap<ConstituentKey, Constituent>,
    pub methods: HashMap<MethodKey, Method>,
}

impl Told {
    /// The last poll reads at once; others keep to the adapter's pauses.
    fn poll(&mut self, adapter: &mut dyn Adapter, process: &ProcessView, touched: Vec<Avma>) {
        let clock = Arc::new(|| monotonic_time().unwrap());
        let mut poll = Poll::new(self.keys.clone(), ProcessKey(1), clock).with_touched(touched);
        adapter.finish(process, &mut poll).unwrap();
        for record in poll.finish() {
            match record {
                Record::Constituent(one) => drop(self.code.insert(one.key, *one)),
                Record::ConstituentGone(gone) => drop(self.code.remove(&gone.key)),
                Record::Method(method) => drop(self.methods.insert(method.key, *method)),
                Record::Limit(limit) => {
                    let is_ours = ["lines", "bytecodes"].map(|word| limit.text.contains(word));
                    assert_eq!(is_ours, [false; 2], "{limit:?}");
                }
                _ => {}
            }
        }
    }

    pub fn line(&self, frame: &ChainFrame) -> Option<u32> {
        match frame.position {
            Position::Line(line) => Some(line),
            Position::Unknown => None,
            Position::Bytecode(pc) => {
                let lines = &self.methods[&frame.method].lines;
                let after = lines.partition_point(|entry| entry.from <= pc);
                Some(lines.get(after.checked_sub(1)?)?.line)
            }
        }
    }
}

/// Texts of the program's scripts: its file, and one script per made function.
struct Sources<'a> {
    made: Vec<&'a str>,
}

impl<'a> Sources<'a> {
    fn of(output: &'a str) -> Self {
        Sources {
            made: output.split('\0').collect(),
        }
    }

    /// The script of a method; `None` for other programs' methods.
    fn of_method(&self, method: &Method) -> Option<&'a str> {
        match &*method.name {
            _ if method.file.ends_with(PROGRAM) => Some(include_str!("../programs/optimised.js")),
            "(anonymous)" if method.file.is_empty() => self.made.first().copied(),
            "wide" if method.file.is_empty() => self.made.get(1).copied(),
            _ => None,
        }
    }

    /// The line that the dump means; `None` in scripts of Node.js, if this needs their text. For Maglev's code, V8 looks an inlined
    /// function's offset up in the script of the code's own function.
    fn line(
        &self,
        dumped: &LineStart,
        code: &Constituent,
        chain: &[ChainFrame],
        told: &Told,
    ) -> Option<u32> {
        let method = |frame: &ChainFrame| &told.methods[&frame.method];
        let (inner, outer) = (method(&chain[0]), method(chain.last()?));
        if code.tier != "Maglev" || (inner.file == outer.file && !inner.file.is_empty()) {
            return Some(dumped.line);
        }
        let (inner, outer) = (self.of_method(inner)?, self.of_method(outer)?);
        let above = outer.split_inclusive('\n').take(dumped.line as usize - 1);
        let above: usize = above.map(|line| line.chars().count()).sum();
        let before = inner.chars().take(above + dumped.column as usize - 1);
        u32::try_from(before.filter(|it| *it == '\n').count() + 1).ok()
    }
}

/// All loads of a dump, by address; a later one replaces an earlier one.
fn loads(dump: &[u8]) -> HashMap<Avma, Load> {
    let mut loads = HashMap::new();
    let mut decoder = Decoder::new();
    let length = dump.len() as u64;
    loop {
        let window = &dump[usize::try_from(decoder.offset()).unwrap().min(dump.len())..];
        match decoder.step(window, length).unwrap() {
            Step::Event(Event::Load(load)) => drop(loads.insert(load.address, load)),
            Step::Event(_) => {}
            Step::Need(_) | Step::NotYet => return loads,
        }
    }
}

/// The adapter's records of a Node.js at the end of a program, after samples in all code.
pub(super) fn told(node: &Node, options: &[&str]) -> (Stopped, Told) {
    let stopped = Stopped::run(node, options, PROGRAM);
    let process = stopped.view();
    let mut adapter = vmscope_v8::Family.recognise(&process).unwrap().expect("V8");
    let mut told = Told::default();
    told.poll(&mut *adapter, &process, Vec::new());
    let mut starts: Vec<Avma> = told.code.values().map(|one| one.start).collect();
    starts.sort();
    told.poll(&mut *adapter, &process, starts);
    (stopped, told)
}

#[test]
fn positions_are_those_of_the_dump() {
    for node in nodes() {
        let (stopped, told) = told(&node, &["--perf-prof"]);
        let output = stopped.output.clone();
        let sources = Sources::of(&output);
        let loads = loads(&stopped.dump());
        let (mut codes, mut compared, mut left_out, mut inlined) = (0, 0, 0, 0);
        for one in told.code.values() {
            let PcMap::Covers { covers, chains } = &one.map else {
                continue;
            };
            let load = loads.get(&one.start);
            let load = load.filter(|load| load.size == one.end.0 - one.start.0);
            let Some(load) = load.filter(|load| !load.lines.is_empty()) else {
                continue;
            };
            assert!(covers.iter().all(|c| c.exactness == Exactness::Approximate));
            codes += 1;
            inlined += chains.iter().filter(|chain| chain.len() > 1).count();
            let offset = |index: usize| {
                let line = load.lines.get(index)?;
                u32::try_from(line.address.0 - load.address.0 - BIAS).ok()
            };
            for (index, line) in load.lines.iter().enumerate() {
                let at = offset(index).unwrap();
                let is_replaced = offset(index + 1).is_some_and(|next| next <= at);
                if is_replaced || line.line == 0 {
                    continue;
                }
                let (_, chain) = one.map.cover(at).unwrap_or_else(|| {
                    panic!("{node:?} {} has no cover at {at}", one.name);
                });
                let Some(expected) = sources.line(line, one, chain, &told) else {
                    left_out += 1;
                    continue;
                };
                let own = told.line(&chain[0]);
                let at = format!("{node:?} {} {} at {at}: {chain:?}", one.tier, one.name);
                assert_eq!(own, Some(expected), "{at}, {line:?}");
                compared += 1;
            }
        }
        say(&format!(
            "Node {}: {codes} optimised codes, {compared} positions, {left_out} left out, {inlined} \
             inlined chains",
            node.release
        ));
        assert!(codes >= 5 && compared > 100 && inlined > 5, "{node:?}");
    }
}

/// Without options, too: functions have lines, bytecodes and listings; maps are inside their code.
#[test]
fn every_sampled_function_has_a_map() {
    for node in nodes() {
        let (_, told) = told(&node, &[]);
        let (mut covers, mut boundaries, mut none) = (0, 0, 0);
        let compilers = ["Sparkplug", "Maglev", "TurboFan"];
        let is_compiled = |one: &&Constituent| compilers.contains(&&*one.tier);
        for one in told.code.values().filter(is_compiled) {
            let size = u32::try_from(one.end.0 - one.start.0).unwrap();
            match &one.map {
                PcMap::None => none += usize::from(one.method.is_some()),
                PcMap::Covers { covers: all, .. } => {
                    covers += 1;
                    assert!(all.iter().all(|it| it.start < it.end && it.end <= size));
                    assert!(all.windows(2).all(|two| two[0].end <= two[1].start));
                }
                PcMap::Boundary { entries, .. } => {
                    boundaries += 1;
                    assert!(entries.windows(2).all(|two| two[0].0 < two[1].0));
                    assert!(entries.iter().all(|(at, _)| *at < size), "{}", one.name);
                    let method = &told.methods[&one.method.unwrap()];
                    let last = entries.last().unwrap().1.0 as usize;
                    assert!(last < method.bytecodes.len(), "{}", one.name);
                    assert!(!method.listing.is_empty() && !method.lines.is_empty());
                    assert!(method.line > 0, "{method:?}");
                }
            }
        }
        say(&format!(
            "Node {}: {covers} covers, {boundaries} boundary maps, {none} codes without a map",
            node.release
        ));
        assert!(covers >= 5 && boundaries >= 5, "{node:?}");
        let all = covers + boundaries;
        assert!(none * 20 <= all, "{node:?}: {none} of {all} have no map");
    }
}

/// Builtins of Sparkplug by their place in the file of V8, without prefix and suffix. V8 calls them in a
/// second mapping of the file.
fn builtins(process: &ProcessView) -> HashMap<u64, String> {
    let vm = vmscope_v8::V8::open(process).unwrap().expect("V8");
    let symbols = process.symbols_beginning(&vm.product.module, &["Builtins_"], 1 << 14);
    let place = |at| place_in_file(process, at);
    let named = symbols.unwrap().into_iter().filter_map(|symbol| {
        let name = symbol.name.strip_prefix("Builtins_")?;
        let name = name.strip_suffix("_Baseline")?;
        Some((place(symbol.address)?, name.to_owned()))
    });
    named.collect()
}

fn place_in_file(process: &ProcessView, at: Avma) -> Option<u64> {
    let entry = process.mapping_at(at)?;
    entry.path()?;
    Some(entry.offset.0 + at.0 - entry.start.0)
}

#[test]
fn calls_of_builtins_are_in_the_bytecodes_that_need_them() {
    for node in nodes() {
        // The options make Sparkplug compile all functions, and keep them from other compilers.
        let options = ["--always-sparkplug", "--max-optimized-bytecode-size=1"];
        let (stopped, told) = told(&node, &options);
        let process = stopped.view();
        let builtins = builtins(&process);
        let memory = process.memory();
        let mut calls = 0;
        for one in told.code.values() {
            let PcMap::Boundary { .. } = &one.map else {
                continue;
            };
            let method = &told.methods[&one.method.unwrap()];
            let size = one.end.0 - one.start.0;
            let code = memory.read_vec(one.start, size, 1 << 24).unwrap();
            let start = one.start.0;
            let mut decoder = iced_x86::Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
            while decoder.can_decode() {
                let instruction = decoder.decode();
                if instruction.code() != Code::Call_rel32_64 {
                    continue;
                }
                let target = place_in_file(&process, Avma(instruction.near_branch_target()));
                let Some(builtin) = target.and_then(|target| builtins.get(&target)) else {
                    continue;
                };
                let at = u32::try_from(instruction.ip() - start).unwrap();
                let range = one.map.boundary_range(at).unwrap();
                let pc = range.from.expect("a bytecode");
                let text = method.listing.iter().find(|line| line.0 == pc);
                let text = &text.expect("an instruction").1;
                let name = text.split([' ', '.']).next().unwrap();
                if Some(name) == bytecode_of(builtin) {
                    calls += 1;
                } else if bytecode_of(builtin).is_some() {
                    panic!("{node:?} {}: {builtin} called by {text}", one.name);
                }
            }
        }
        say(&format!("Node {}: {calls} calls of builtins", node.release));
        // V8 10 calls builtins by a table.
        assert!(calls > 100 || node.release < 20, "{node:?}: {calls}");
    }
}

/// The only bytecode that calls a builtin; `None` for builtins of several bytecodes.
fn bytecode_of(builtin: &str) -> Option<&str> {
    Some(match builtin {
        "Equal" => "TestEqual",
        "StrictEqual" => "TestEqualStrict",
        "LessThan" => "TestLessThan",
        "LessThanOrEqual" => "TestLessThanOrEqual",
        "GreaterThan" => "TestGreaterThan",
        "GreaterThanOrEqual" => "TestGreaterThanOrEqual",
        "InstanceOf" => "TestInstanceOf",
        "Subtract" => "Sub",
        "SubtractSmi" => "SubSmi",
        "Multiply" => "Mul",
        "MultiplySmi" => "MulSmi",
        "Divide" => "Div",
        "Modulus" => "Mod",
        "Increment" => "Inc",
        "Decrement" => "Dec",
        "Add"
        | "AddSmi"
        | "BitwiseAnd"
        | "BitwiseAndSmi"
        | "BitwiseNot"
        | "BitwiseOr"
        | "BitwiseOrSmi"
        | "BitwiseXor"
        | "BitwiseXorSmi"
        | "CallWithSpread"
        | "Construct"
        | "ConstructWithSpread"
        | "Negate"
        | "ShiftLeft"
        | "ShiftRight"
        | "ShiftRightLogical"
        | "ToNumber"
        | "ToNumeric" => builtin,
        _ => return None,
    })
}
