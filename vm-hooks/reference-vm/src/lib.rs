//! A small Smalltalk VM in the manner of Cog and Spur. `DESIGN.md` describes it.
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
    /// Its source.
    pub text: &'static str,
}

impl Program {
    /// What it does, in a line: the start of the comment at its head.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_matches('"')
    }
}

/// Declares the embedded programs.
macro_rules! programs {
    ($($name:literal)*) => {
        &[$(Program {
            name: $name,
            text: include_str!(concat!("../smalltalk/programs/", $name, ".st")),
        }),*]
    };
}

/// The embedded programs: each prints a known result.
pub const PROGRAMS: &[Program] = programs! {
    "tinyBenchmarks" "richards" "deltablue" "json" "nbody" "binarytrees" "csv" "collections" "strings"
};

/// The class library, in the order of loading.
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

/// The bytecodes of all methods and blocks whose name contains a text, in the conventional form.
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
