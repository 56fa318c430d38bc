//! `vmscope reference-vm`: runs the embedded Smalltalk VM.

use crate::memory::parse_bytes;
use crate::print;
use crate::record::lifetime_rate::parse_rate;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vmscope_reference_vm::memory::{Parameters, Stress};
use vmscope_reference_vm::{
    JitOptions, LifetimeObserver, LifetimeOptions, LifetimeRate, LifetimeUnit, Options, Outcome,
    PROGRAMS, Vm, listing, syntax,
};

#[derive(Args, Clone, Debug)]
pub struct ReferenceVmArgs {
    /// Smalltalk source files in the chunk format, loaded in this order; or names of embedded programs
    /// (`vmscope demo --list`)
    files: Vec<PathBuf>,
    /// Evaluate an expression after the files, and print its value
    #[arg(long, short = 'e', value_name = "SMALLTALK")]
    expression: Vec<String>,
    /// The program's arguments (Smalltalk arguments)
    #[arg(last = true)]
    arguments: Vec<String>,
    /// Run the last file or expression again and again, for this many seconds
    #[arg(long, value_name = "SECS")]
    seconds: Option<u64>,
    /// Collect all garbage before the program begins
    #[arg(long)]
    gc_before: bool,
    /// Print the bytecodes of the methods whose name contains TEXT, after loading
    #[arg(long, value_name = "TEXT")]
    list: Option<String>,
    /// Size of eden
    #[arg(long, value_name = "SIZE", default_value = "15M", value_parser = parse_bytes, help_heading = "Memory")]
    eden_size: u64,
    /// Use of the survivor space above which the next scavenge tenures older survivors (0: each tenures all survivors, 100: none that fit)
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 90,
        value_parser = clap::value_parser!(u8).range(..=100),
        help_heading = "Memory"
    )]
    tenuring_threshold: u8,
    /// Size of a new segment of old space
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_bytes, help_heading = "Memory")]
    growth_headroom: u64,
    /// Free memory in old space above which empty segments are given back
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_bytes, help_heading = "Memory")]
    shrink_threshold: u64,
    /// Growth of old space since the last full collection that asks for the next
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 33,
        help_heading = "Memory"
    )]
    full_gc_ratio: u32,
    /// Maximum size of old space
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_bytes, help_heading = "Memory")]
    max_heap: u64,
    /// Allocate in old space: all instances of a class, or what an allocation site makes ('Foo>>bar@PC', with the bytecode pc of the send)
    #[arg(long, value_name = "CLASS|SITE", help_heading = "Memory")]
    pretenure: Vec<String>,
    /// Observe lifetimes of sampled objects, even if no profiler listens: a part of the objects (1/1 is every object, 1/100 one of a hundred), or
    /// one object per SIZE allocated bytes. WAY is how they are chosen: random (usual), every-nth, windows, threads or buffers, as `vmscope help
    /// record` says
    #[arg(long, value_name = "1/N|SIZE[,WAY]", value_parser = parse_rate, help_heading = "Lifetimes")]
    lifetimes: Option<LifetimeRate>,
    /// Who observes them
    #[arg(
        long,
        value_enum,
        default_value_t,
        requires = "lifetimes",
        help_heading = "Lifetimes"
    )]
    lifetimes_by: LifetimesBy,
    /// Interpret all code: compile nothing to machine code
    #[arg(long)]
    interpret: bool,
    /// Size of the zone of machine code
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = parse_bytes)]
    code_size: u64,
    /// Do not describe the VM to profilers
    #[arg(long)]
    no_publish: bool,
    /// Collect at every n-th allocation (at the next safe point)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Tests of the VM"
    )]
    stress_allocations: u64,
    /// Make every n-th collection a full one
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Tests of the VM"
    )]
    stress_full: u64,
    /// Check the whole heap after each collection
    #[arg(long, help_heading = "Tests of the VM")]
    verify_heap: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LifetimesBy {
    /// The collectors
    #[default]
    Vm,
    /// Smalltalk code: an ephemeron for every n-th object
    Finalization,
    /// The same, with the ephemerons in old space
    FinalizationPretenured,
}

/// The VM's options for lifetimes.
fn lifetimes(args: &ReferenceVmArgs) -> Result<LifetimeOptions> {
    let Some(mut rate) = args.lifetimes else {
        return Ok(LifetimeOptions::default());
    };
    let pretenured = args.lifetimes_by == LifetimesBy::FinalizationPretenured;
    let observer = match args.lifetimes_by {
        LifetimesBy::Vm => LifetimeObserver::Vm,
        _ if matches!(rate.unit, LifetimeUnit::Objects | LifetimeUnit::EveryNth) => {
            rate.unit = LifetimeUnit::EveryNth;
            LifetimeObserver::Finalization { pretenured }
        }
        _ => bail!("--lifetimes-by finalization counts every n-th object: give --lifetimes as 1/N"),
    };
    Ok(LifetimeOptions {
        rate,
        observer,
        ..LifetimeOptions::default()
    })
}

/// Runs the VM, and returns the program's exit code.
pub fn run(args: &ReferenceVmArgs) -> Result<u8> {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (mut classes, mut sites) = (Vec::new(), Vec::new());
    for one in &args.pretenure {
        match one.rsplit_once('@') {
            None => classes.push(one.clone()),
            Some((method, pc)) => {
                let pc = pc
                    .parse()
                    .with_context(|| format!("--pretenure {one}: '{pc}' is not a bytecode pc"))?;
                sites.push((method.to_owned(), pc));
            }
        }
    }
    let mut vm = Vm::new(Options {
        memory: Parameters {
            eden_bytes: size(args.eden_size),
            tenuring_threshold: args.tenuring_threshold.into(),
            growth_headroom: size(args.growth_headroom),
            shrink_threshold: size(args.shrink_threshold),
            full_gc_ratio: f64::from(args.full_gc_ratio) / 100.0,
            max_old_bytes: size(args.max_heap),
            stress: Stress {
                collect_every: args.stress_allocations,
                full_every: args.stress_full,
                verify: args.verify_heap,
            },
        },
        arguments: args.arguments.clone(),
        output: print::program_output(),
        errors: print::program_errors(),
        publish: !args.no_publish,
        pretenured_classes: classes,
        pretenured_sites: sites,
        jit: JitOptions {
            on: !args.interpret && JitOptions::default().on,
            zone_bytes: size(args.code_size),
            ..JitOptions::default()
        },
        lifetimes: lifetimes(args)?,
    })?;
    if let Some(trouble) = vm.publication_trouble() {
        print::say(&format!(
            "the VM does not describe itself to profilers: {trouble}"
        ));
    }
    if let Some(trouble) = vm.jit_trouble() {
        print::say(&format!("the VM interprets all methods: {trouble}"));
    }
    if let Some(seconds) = args.seconds {
        vm.end_after(Duration::from_secs(seconds));
    }
    if args.gc_before {
        vm.evaluate(&syntax::parse_expression(
            "expression",
            "Smalltalk garbageCollect",
        )?)?;
    }
    for file in &args.files {
        let name = file.display().to_string();
        let text = text_of(file)?;
        if let Outcome::Quit(code) = vm.load(&name, &text)? {
            return Ok(exit_code(code));
        }
    }
    for class in vm.unknown_pretenured_classes() {
        print::say(&format!("--pretenure {class}: no such class"));
    }
    for text in &args.expression {
        let statements = syntax::parse_expression("expression", text)?;
        match vm.evaluate_and_print(&statements)? {
            Outcome::Quit(code) => return Ok(exit_code(code)),
            Outcome::Value(_) => {}
        }
    }
    if args.seconds.is_some()
        && let Outcome::Quit(code) = vm.repeat()
    {
        return Ok(exit_code(code));
    }
    if let Some(text) = &args.list {
        vm.print(&listing(&vm, text));
    }
    Ok(0)
}

/// Text of a source file or embedded program.
fn text_of(file: &Path) -> Result<String> {
    let mut programs = PROGRAMS.iter();
    let embedded = programs.find(|program| file.as_os_str() == program.name && !file.exists());
    match embedded {
        Some(program) => Ok(program.text.to_owned()),
        None => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
        }
    }
}

/// A program's exit code, in the system's range.
fn exit_code(code: i32) -> u8 {
    code.to_le_bytes()[0]
}
