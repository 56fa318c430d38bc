//! A program with an interpreter in generated code, sampled by the kernel from its first
//! instruction: what its samples carry, and which addresses its adapter hears of.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "tests may fail by panicking, and skip loudly"
)]
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, Launch, Poll, ProcessView, SampleNeeds,
};
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{
    Avma, Content, CpuMode, InterpreterSource, InterpreterValue, Sample, SamplePlace, VmIdentity,
};
use vmscope_sampler::session::{Readers, Session, SessionOptions};
use vmscope_sampler::{EngineError, HeldCommand, KernelEngine, KernelOptions, SamplingRate};

// Where `programs/interpreter.c` puts what.
const INTERPRETER: u64 = 0x2_0000_0000;
const COMPILED: u64 = INTERPRETER + 0x1000;
const BYTECODES: u64 = 0x2_0001_0000;
const METHOD: u64 = BYTECODES + 0x1000;

// Registers, as `perf_regs.h` numbers them.
const BP: u32 = 6;
const SP: u32 = 7;
const R13: u32 = 21;

const SOURCES: [InterpreterSource; 2] = [
    InterpreterSource {
        place: SamplePlace::Register(R13),
        holds: InterpreterValue::Bytecode,
    },
    InterpreterSource {
        place: SamplePlace::Stack {
            base: BP,
            offset: -24,
        },
        holds: InterpreterValue::Method,
    },
];

type Addresses = Arc<Mutex<BTreeSet<u64>>>;

#[derive(Default)]
struct Family(Addresses);

struct Reads(Addresses);

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn recognise(&self, view: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let is_there = (view.mappings().iter()).any(|entry| entry.start == Avma(INTERPRETER));
        Ok(is_there.then(|| Box::new(Reads(Arc::clone(&self.0))) as Box<dyn Adapter>))
    }

    fn launch_needs(&self, _: &Launch) -> SampleNeeds {
        SampleNeeds {
            registers: 1 << BP | 1 << SP | 1 << R13,
            stack_bytes: 256,
            sources: SOURCES.to_vec(),
        }
    }
}

impl Adapter for Reads {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "Interpreter".to_owned(),
            version: String::new(),
        }
    }

    fn sample_needs(&self) -> SampleNeeds {
        Family::default().launch_needs(&Launch::default())
    }

    fn poll(&mut self, _: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let mut touched = self.0.lock().unwrap();
        touched.extend(poll.touched().iter().map(|at| at.0));
        let ranges = vec![(Avma(INTERPRETER), Avma(INTERPRETER + 0x1000))];
        poll.interpreter("interpreter", ranges, SOURCES.to_vec());
        Ok(())
    }

    fn next_poll(&self) -> Duration {
        Duration::from_millis(10)
    }
}

fn samples_of(path: &Path) -> Vec<Sample> {
    let mut reader = Reader::open(File::open(path).unwrap()).unwrap();
    let mut samples = Vec::new();
    while let Some(chunk) = reader.next_chunk(Content::SAMPLES).unwrap() {
        for item in chunk.items() {
            if let Item::Samples(batch) = item {
                samples.extend(batch);
            }
        }
    }
    samples
}

#[test]
fn what_an_interpreter_executes_is_recorded_and_nothing_else_of_its_registers() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("interpreter");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/interpreter.c");
    let compiler = Command::new("cc")
        .args(["-O1", "-o"])
        .args([&program, &source])
        .status();
    match compiler {
        Ok(status) => assert!(status.success(), "{}", source.display()),
        Err(error) => {
            eprintln!("SKIPPED, NOTHING TESTED: no C compiler (cc): {error}");
            return;
        }
    }
    let family = Family::default();
    let touched = Arc::clone(&family.0);
    let mut readers = Readers::later(vec![Box::new(family)]);
    readers.launching(&Launch::default());
    let needs = readers.sample_needs();
    let mut command = Command::new(&program);
    command.arg("3");
    let held = HeldCommand::start(command).unwrap();
    let options = KernelOptions {
        rate: SamplingRate::DEFAULT,
        registers: needs.registers,
        stack_bytes: u16::try_from(needs.stack_bytes).unwrap(),
        ..KernelOptions::default()
    };
    let engine = match KernelEngine::follow(&held, &options) {
        Err(error @ EngineError::Forbidden { .. }) => {
            eprintln!("SKIPPED, NOTHING TESTED: {error}");
            return;
        }
        engine => Box::new(engine.unwrap()),
    };
    let output = folder.path().join("a.vmscope");
    let options = SessionOptions {
        pids: vec![held.pid()],
        launched: true,
        command: vec!["interpreter".to_owned()],
        output: Some(output.clone()),
        ..SessionOptions::default()
    };
    let session = Session::start(engine, readers, options).unwrap();
    let mut running = held.release().unwrap();
    let outcome = session.finish().unwrap();
    assert!(running.wait().unwrap().success());

    let samples = samples_of(&output);
    let in_code = |sample: &&Sample, at: u64| {
        let is_there = (at..at + 0x1000).contains(&sample.pc.0);
        is_there && sample.mode == CpuMode::User
    };
    // Bytecode 0, bytecode 5, the entry: one, three and two parts.
    let mut counts = [0usize; 3];
    for sample in samples.iter().filter(|one| in_code(one, INTERPRETER)) {
        let detail = sample.detail.as_ref().unwrap();
        assert_eq!(detail.stack, None);
        let value = |index: usize| SOURCES[index].place.value(detail);
        match (value(0), value(1)) {
            (Some(BYTECODES), Some(METHOD)) => counts[0] += 1,
            (Some(at), Some(METHOD)) if at == BYTECODES + 5 => counts[1] += 1,
            (Some(0), Some(METHOD)) => counts[2] += 1,
            // Where the frame is made or left.
            _ => {}
        }
    }
    let all: usize = counts.iter().sum();
    let of_interpreter = samples.iter().filter(|one| in_code(one, INTERPRETER));
    let of_interpreter = of_interpreter.count();
    assert!(
        of_interpreter > 1000,
        "{of_interpreter} samples, lost {}",
        outcome.lost
    );
    assert!(
        all * 100 >= of_interpreter * 98,
        "{counts:?} of {of_interpreter}"
    );
    // Ten standard deviations of a share among a thousand samples.
    for (count, parts) in counts.iter().zip([1.0, 3.0, 2.0]) {
        let share = *count as f64 / all as f64;
        assert!((share - parts / 6.0).abs() < 0.15, "{counts:?}");
    }
    // Until the adapter reports the interpreter, all code without a file may belong to it. The first
    // compiled sample without registers comes after that report.
    let mut compiled = samples.iter().filter(|one| in_code(one, COMPILED));
    let told = compiled.find(|one| one.detail.is_none());
    let told = told.expect("the interpreter was told of").time;
    let elsewhere = samples.iter().filter(|one| !in_code(one, INTERPRETER));
    let mut with_detail = elsewhere.filter(|one| one.time > told && one.detail.is_some());
    assert_eq!(with_detail.next(), None, "told at {told}");

    let touched = touched.lock().unwrap();
    let is_touched = |from: u64| touched.range(from..from + 0x400).next().is_some();
    for address in [INTERPRETER, COMPILED, BYTECODES, BYTECODES + 5, METHOD] {
        assert!(is_touched(address), "{address:#x}: {touched:x?}");
    }
    assert!(touched.contains(&(BYTECODES + 5)), "{touched:x?}");
    // Bytes that samples take on disk, for whoever wants to see them.
    let bytes = outcome.written.sample_bytes as f64 / outcome.written.samples as f64;
    eprintln!(
        "{bytes:.1} bytes a sample, {of_interpreter} of {} in the interpreter",
        samples.len()
    );
}
