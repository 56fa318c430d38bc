//! The `vmscope` command: parses arguments, dispatches, and alone decides the exit code.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "tests may fail by panicking"
    )
)]

mod annotate;
mod binaries;
mod constituents;
mod demo;
mod doctor;
mod dump;
mod embed;
mod examples;
mod export;
mod generate;
mod import;
mod inputs;
mod lifetimes;
mod memory;
mod pager;
mod present;
mod print;
mod queries;
mod record;
#[cfg(test)]
#[path = "../../symbolizer/tests/recordings/mod.rs"]
mod recordings;
mod reference_vm;
mod report;
mod signals;
mod symbols_file;
mod target;
mod tui;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use print::Printer;
use record::Ended;
use vmscope_sampler::Favoured;

/// Exit codes: 0 success, 1 problem of the target, 2 problem of vmscope or its options; `record`
/// passes the command's own.
const TARGET: u8 = 1;
const FAILED: u8 = 2;

/// A sampling profiler for running virtual machines and native programs
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = examples::ALL)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Profile the embedded VM: needs nothing else
    ///
    /// Runs a program on the embedded Smalltalk VM, attaches to it from outside, and prints the report.
    #[command(after_help = examples::DEMO)]
    Demo(demo::DemoArgs),
    /// Start a program and profile it
    #[command(after_help = examples::RECORD)]
    Record(record::RecordArgs),
    /// Profile running processes, until they end or Ctrl-C
    ///
    /// HotSpot JVMs, Node.js and Cog VMs need no preparation. Other VMs need a jitdump or a perf map
    /// for the names of JIT code; if both are missing, the report says how to start the VM.
    #[command(after_help = examples::ATTACH)]
    Attach(record::AttachArgs),
    /// Report on a recording, as text or JSON
    #[command(after_help = examples::REPORT)]
    Report {
        /// The recording
        #[arg(default_value = record::DEFAULT_OUTPUT)]
        file: PathBuf,
        #[command(flatten)]
        options: report::ReportOptions,
        #[command(flatten)]
        pager: pager::PagerOptions,
    },
    /// Profile running processes live in the terminal
    ///
    /// Shows the views of `vmscope view` during sampling, for the last seconds or since the start.
    #[command(after_help = examples::TOP)]
    Top(tui::TopArgs),
    /// Show a recording in the terminal
    #[command(after_help = examples::VIEW)]
    View(tui::ViewArgs),
    /// Show a method's bytecodes or source lines with the samples of each
    ///
    /// METHOD is a full name or an unambiguous part of it; default: the method with most samples.
    #[command(after_help = examples::ANNOTATE)]
    Annotate(annotate::AnnotateArgs),
    /// What a program allocated, and how long the objects lived
    ///
    /// Recordings have lifetimes if made with --lifetimes, of VMs that tell them.
    #[command(after_help = examples::LIFETIMES)]
    Lifetimes(lifetimes::LifetimesArgs),
    /// Whom the garbage collector works for, and what would help
    ///
    /// Joins the collections of a recording with lifetimes of objects, and predicts what changes save.
    #[command(after_help = examples::GC)]
    Gc(lifetimes::GcArgs),
    /// Write a recording for other tools: flame graphs, the Firefox Profiler, pprof, speedscope
    #[command(after_help = examples::EXPORT)]
    Export(export::ExportArgs),
    /// Make a recording from files of another profiler
    Import(import::ImportArgs),
    /// Print the stacks of all threads of a running process
    ///
    /// vmscope stops each thread for some tens of microseconds, a few threads at a time. It asks
    /// nothing of the VM: a VM that hangs has stacks, too.
    #[command(after_help = examples::DUMP)]
    Dump(dump::DumpArgs),
    /// List the JIT code of a running VM: addresses, kinds, tiers, names
    ///
    /// Nothing is sampled, and the VM is not stopped. Of a JVM, --detailed infers the bytecode of each
    /// piece of machine code: some seconds of CPU time for thousands of methods.
    #[command(after_help = examples::CONSTITUENTS)]
    Constituents(constituents::ConstituentsArgs),
    /// Run the embedded Smalltalk VM
    ///
    /// A small VM in the manner of Cog: a target to try vmscope on, and one whose truth is known.
    #[command(name = "reference-vm", after_help = examples::REFERENCE_VM)]
    ReferenceVm(reference_vm::ReferenceVmArgs),
    /// Check whether this machine allows sampling, with remedies
    #[command(after_help = examples::DOCTOR)]
    Doctor(doctor::DoctorArgs),
    /// Print a man page or shell completions, for packages
    #[command(hide = true)]
    Generate(generate::GenerateArgs),
}

fn main() -> ExitCode {
    // First: where a thousand threads are busy, each millisecond of work before takes a second.
    let favoured = Favoured::begin();
    let command = Cli::parse_from(record::joined(std::env::args_os())).command;
    if !matches!(
        command,
        Command::Attach(_) | Command::Top(_) | Command::Dump(_) | Command::Demo(_)
    ) {
        // They may start programs.
        favoured.end();
    }
    let mut out = print::stdout();
    let result = run(command, &favoured, &mut Printer::new(&mut out));
    match result.and_then(|code| Ok(out.flush().map(|()| code)?)) {
        Ok(code) => ExitCode::from(code),
        // The reader of a pipe may stop.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            print::say_error(&error);
            ExitCode::from(code_of(&error))
        }
    }
}

fn run(command: Command, favoured: &Favoured, out: &mut Printer<'_>) -> anyhow::Result<u8> {
    let code_of_recording = |ended| match ended {
        Ended::Well => 0,
        Ended::Command(code) => code,
        Ended::Incomplete => FAILED,
    };
    Ok(match command {
        Command::Demo(args) => code_of_recording(demo::run(&args, favoured, out)?),
        Command::Record(args) => code_of_recording(record::record(&args, out)?),
        Command::Attach(args) => code_of_recording(record::attach(&args, favoured, out)?),
        Command::Report {
            file,
            options,
            pager,
        } => {
            let mut text = Vec::new();
            report::run(&file, &options, &mut Printer::new(&mut text))?;
            pager::show(&text, pager, out.data())?;
            0
        }
        Command::Top(args) => code_of_recording(tui::top(&args, favoured)?),
        Command::View(args) => {
            tui::view(&args)?;
            0
        }
        Command::Annotate(args) => {
            annotate::run(&args, out)?;
            0
        }
        Command::Lifetimes(args) => {
            lifetimes::lifetimes(&args, out)?;
            0
        }
        Command::Gc(args) => {
            lifetimes::gc(&args, out)?;
            0
        }
        Command::Export(args) => {
            export::run(&args, out)?;
            0
        }
        Command::Import(args) => {
            import::run(&args)?;
            0
        }
        Command::Dump(args) => {
            dump::run(&args, out)?;
            0
        }
        Command::Constituents(args) => {
            constituents::run(&args, out)?;
            0
        }
        Command::ReferenceVm(args) => reference_vm::run(&args)?,
        Command::Generate(args) => {
            generate::run(&args, Cli::command(), out.data())?;
            0
        }
        Command::Doctor(args) => {
            let works = doctor::run(
                &args,
                probe,
                || record::families::FamilyOptions::default().attaching(None),
                out,
            )?;
            if works { 0 } else { TARGET }
        }
    })
}

/// Tries to open the default recording's events, for the doctor.
fn probe(pid: Option<i32>) -> Option<doctor::facts::PerfProbe> {
    let pid = match pid {
        Some(pid) => Some(vmscope_records::Pid(u32::try_from(pid).ok()?)),
        None => None,
    };
    let tried = vmscope_sampler::kernel::probe(pid);
    let errno =
        |error: std::io::Error| nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or(0));
    Some(doctor::facts::PerfProbe {
        user: tried.user.map_err(errno),
        kernel: tried.kernel.map_err(errno),
    })
}

fn code_of(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<record::Interrupted>().is_some() {
        return signals::INTERRUPTED;
    }
    let launch = error.downcast_ref().and_then(record::launch_code);
    launch.unwrap_or(if record::is_about_target(error) {
        TARGET
    } else {
        FAILED
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let kind = match cause.downcast_ref::<std::io::Error>() {
            Some(error) => Some(error.kind()),
            // The error names inner sources only.
            None => cause
                .downcast_ref::<serde_json::Error>()
                .and_then(serde_json::Error::io_error_kind),
        };
        kind == Some(std::io::ErrorKind::BrokenPipe)
    })
}
