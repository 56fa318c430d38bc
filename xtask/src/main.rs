//! Commands for developers of vmscope: `cargo xtask test` before a commit (CI runs the same), and
//! `cargo xtask deep` before a release and after changes of code that `deep`
//! covers.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool: it talks to whoever started it"
)]

mod run;
mod steps;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let steps = match arguments.next().as_deref() {
        Some("test") => steps::TEST,
        Some("deep") => steps::DEEP,
        _ => {
            eprintln!(
                "cargo xtask test [WORD]   format, lints, tests, documentation, short fuzzing\n\
                 cargo xtask deep [WORD]   what takes longer\n\n\
                 With WORD only the steps whose names contain it."
            );
            return ExitCode::from(2);
        }
    };
    let word = arguments.next().unwrap_or_default();
    let chosen: Vec<&run::Step> = steps
        .iter()
        .filter(|step| step.name.contains(&word))
        .collect();
    if chosen.is_empty() {
        eprintln!("no step's name contains {word:?}");
        return ExitCode::from(2);
    }
    if run::all(&chosen) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
