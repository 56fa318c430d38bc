//! The `vmscope` command.
#![forbid(unsafe_code)]

mod doctor;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say what can be sampled here, what can't, and what to do about it
    Doctor(doctor::DoctorArgs),
}

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let result = match Cli::parse().command {
        // The sampler will try perf events; until then the settings decide.
        Command::Doctor(args) => doctor::run(&args, |_| None, &mut out),
    };
    match result.and_then(|works| Ok(out.flush().map(|()| works)?)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) if broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to be done where stderr is closed too.
            let _ = writeln!(std::io::stderr(), "vmscope: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Who reads our output may stop reading.
fn broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
