//! A small Smalltalk VM, modelled on Cog and Spur. See `DESIGN.md`.
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_imports, reason = "only the JIT uses it")
)]

pub mod compiler;
pub mod image;
pub mod interpreter;
mod jit;
pub mod memory;
mod publish;
pub mod syntax;

pub use interpreter::{Options, Outcome, StartError, Vm};
pub use jit::{JitEvents, JitOptions};
pub use publish::{LifetimeObserver, LifetimeOptions};
pub use vmscope_publish::{LifetimeRate, LifetimeUnit};

/// Declares a list of source files: names and texts.
macro_rules! sources {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../smalltalk/", $name)))),*]
    };
}

/// An embedded program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// One-line description of the program.
    pub summary: &'static str,
    /// Options of `vmscope reference-vm` that the program needs.
    pub options: &'static [&'static str],
    /// Its source.
    pub text: &'static str,
}

/// Concatenates files from the programs folder.
macro_rules! text {
    ($($name:literal)*) => {
        concat!($(include_str!(concat!("../smalltalk/programs/", $name, ".st"))),*)
    };
}

/// Declares the embedded programs.
macro_rules! programs {
    ($($name:literal $summary:literal [$($option:literal)*] $($file:literal)+;)*) => {
        &[$(Program {
            name: $name,
            summary: $summary,
            options: &[$($option),*],
            text: text!($($file)+),
        }),*]
    };
}

/// The embedded programs: each prints a known result.
pub const PROGRAMS: &[Program] = programs! {
    "tinyBenchmarks" "the classics: a sieve, rich in bytecodes, and Fibonacci numbers, rich in sends" [] "tinyBenchmarks";
    "polymorphic" "sends to one, four and nine classes: inline caches, closed and open PICs" [] "polymorphic";
    "codezone" "several programs in a small code zone, which is full again and again" ["--code-size" "64K"]
        "richards" "deltablue" "json" "csv" "strings";
    "garbage" "objects that live for a while: scavenges and full collections" [] "garbage";
    "richards" "the scheduler of a small operating system" [] "richards";
    "deltablue" "an incremental solver of constraints" [] "deltablue";
    "json" "a document is generated, printed and parsed" [] "json";
    "nbody" "the motion of the planets: Floats" [] "nbody";
    "binarytrees" "trees that are built and thrown away" [] "binarytrees";
    "csv" "a text is loaded into columns of exact numbers" [] "csv";
    "dataframe" "a text is loaded into a data frame: Strings that live long, parsers that die young" [] "dataframe";
    "particles" "a flock of birds: vectors that die young, a grid for each step" [] "particles";
    "predatorprey" "wolves, goats and their genealogy: objects with all lifetimes" [] "predatorprey";
    "collections" "queues, dictionaries, sets and sorting" [] "collections";
    "strings" "texts are built, searched, split and replaced" [] "strings";
};

/// Class library, in load order.
const LIBRARY: &[(&str, &str)] = sources! {
    "kernel/01-object.st"
    "kernel/02-boolean.st"
    "kernel/03-number.st"
    "kernel/04-exception.st"
    "kernel/05-collection.st"
    "kernel/06-string.st"
    "kernel/07-hashed.st"
    "kernel/08-stream.st"
    "kernel/09-process.st"
    "kernel/10-system.st"
    "kernel/11-test.st"
};

/// Lists the bytecodes of all methods and blocks whose names contain a text, in conventional
/// notation.
#[must_use]
pub fn listing(vm: &Vm, text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for method in &vm.image.methods {
        let title = method.title();
        if title.contains(text) {
            let _ = writeln!(out, "{title}");
            for line in compiler::disassembler::listing(&method.code, method.first_pc()) {
                let bytes: Vec<String> = line
                    .bytes
                    .iter()
                    .map(|byte| format!("{byte:02X}"))
                    .collect();
                let _ = writeln!(out, "{:>5} <{}> {}", line.pc, bytes.join(" "), line.text);
            }
            out.push('\n');
        }
    }
    out
}
