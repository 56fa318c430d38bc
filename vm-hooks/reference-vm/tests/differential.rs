//! Differential test: generated programs print equal output in the VM and a simple evaluator.
//!
//! `VMSCOPE_DIFFERENTIAL_PROGRAMS` sets the number of programs, `VMSCOPE_DIFFERENTIAL_SEED` the
//! seed. The test shrinks and prints differing programs. Before each run, the test writes the
//! program to `tmp/differential-<seed>.st` in the target folder: the file survives a hanging VM.

#![expect(clippy::print_stdout, reason = "says how much was tested")]

#[path = "differential/collections.rs"]
mod collections;
mod common;
#[path = "differential/evaluator.rs"]
mod evaluator;
#[path = "differential/exceptions.rs"]
mod exceptions;
#[path = "differential/generator.rs"]
mod generator;
#[path = "differential/library.rs"]
mod library;
#[path = "differential/numbers.rs"]
mod numbers;
#[path = "differential/value.rs"]
mod value;

use std::cell::{Cell, RefCell};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use vmscope_reference_vm::memory::{Parameters, Stress};
use vmscope_reference_vm::{JitOptions, Outcome, syntax};

use common::Running;

/// Programs per VM. A VM keeps all their classes.
const PROGRAMS_OF_A_VM: usize = 50;

/// A VM that restarts after [`PROGRAMS_OF_A_VM`] programs.
struct Machine {
    memory: Parameters,
    jit: JitOptions,
    running: Option<Running>,
    programs: usize,
}

impl Machine {
    fn new(memory: Parameters, jit: JitOptions) -> RefCell<Self> {
        RefCell::new(Self {
            memory,
            jit,
            running: None,
            programs: 0,
        })
    }

    /// Output of a program.
    fn output(&mut self, text: &str) -> String {
        if self.programs.is_multiple_of(PROGRAMS_OF_A_VM) {
            self.running = None;
        }
        self.programs += 1;
        let running = self
            .running
            .get_or_insert_with(|| common::vm_with(self.memory.clone(), self.jit, &[]));
        let outcome = running.load(text);
        let mut output = running.output.take();
        match outcome {
            Ok(Outcome::Value(_)) => {}
            Ok(Outcome::Quit(_)) => self.programs = 0,
            Err(error) => output += &error.to_string(),
        }
        output
    }
}

/// Collects at every 37th allocation; every third collection is full. Tenures all survivors.
fn stressed() -> Parameters {
    Parameters {
        eden_bytes: 64 << 10,
        growth_headroom: 256 << 10,
        shrink_threshold: 512 << 10,
        tenuring_threshold: 0,
        stress: Stress {
            collect_every: 37,
            full_every: 3,
            verify: true,
        },
        ..Parameters::default()
    }
}

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

fn in_a_large_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(512 << 20);
    let result = thread.spawn(test).expect("a thread").join();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn generated_programs_print_what_a_simple_evaluator_prints() {
    in_a_large_stack(run);
}

fn run() {
    let programs = number("VMSCOPE_DIFFERENTIAL_PROGRAMS", 120);
    let seed = number("VMSCOPE_DIFFERENTIAL_SEED", 1);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("differential-{seed}.st"));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: u32::try_from(programs).expect("fewer programs"),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let machines = [
        ("interpreted", Parameters::default(), common::interpreted()),
        ("interpreted, stressed", stressed(), common::interpreted()),
        ("jitted", Parameters::default(), common::compiled_at_once()),
        (
            "jitted, stressed",
            stressed(),
            common::compiled_in_a_tiny_zone(),
        ),
    ]
    .map(|(name, memory, jit)| (name, Machine::new(memory, jit)));
    let (count, lines, discarded) = (Cell::new(0), Cell::new(0), RefCell::new(Vec::new()));
    let result = runner.run(&generator::programs(), |program| {
        count.set(count.get() + 1);
        let text = program.source(count.get());
        std::fs::write(&file, &text).expect("the file can be written");
        let fail = |reason: String| Err(TestCaseError::fail(reason + "\n" + &text));
        let items = match syntax::parse_file("program", &text) {
            Ok(items) => items,
            Err(error) => return fail(error.to_string()),
        };
        let expected = match evaluator::output(&items) {
            Ok(output) => output,
            Err(reason) => {
                discarded.borrow_mut().push(reason);
                return Ok(());
            }
        };
        lines.set(lines.get() + expected.lines().count());
        for (name, machine) in &machines {
            let output = machine.borrow_mut().output(&text);
            if output != expected {
                machine.borrow_mut().programs = 0;
                return fail(format!(
                    "{name}: the VM prints\n{output}\nthe evaluator\n{expected}"
                ));
            }
        }
        Ok(())
    });
    let failure = result.err().map(|error| error.to_string());
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    let discarded = discarded.into_inner();
    if std::env::var("VMSCOPE_DIFFERENTIAL_PROGRAMS").is_ok() {
        println!(
            "{} programs, {} lines, discarded: {discarded:?}",
            count.get(),
            lines.get()
        );
    }
    assert!(
        discarded.len() * 10 < count.get(),
        "too many programs beyond the evaluator: {discarded:?}"
    );
}
