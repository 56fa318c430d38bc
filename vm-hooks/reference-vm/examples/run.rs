//! Runs Smalltalk files: `cargo run -p vmscope-reference-vm --example run -- FILE.st … [-- ARGUMENT …]`.
#![allow(clippy::print_stderr, clippy::exit, reason = "a program")]

use vmscope_reference_vm::{Options, Outcome, Vm};

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let split = files.iter().position(|argument| argument == "--");
    let arguments = split.map_or_else(Vec::new, |at| files.split_off(at).split_off(1));
    let options = Options {
        arguments,
        output: Box::new(std::io::stdout()),
        errors: Box::new(std::io::stderr()),
        publish: true,
        ..Options::default()
    };
    match run(options, &files) {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

fn run(options: Options, files: &[String]) -> Result<i32, Box<dyn std::error::Error>> {
    let mut vm = Vm::new(options)?;
    for file in files {
        let text = std::fs::read_to_string(file)?;
        if let Outcome::Quit(code) = vm.load(file, &text)? {
            return Ok(code);
        }
    }
    Ok(0)
}
