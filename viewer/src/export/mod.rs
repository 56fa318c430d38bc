//! `vmscope export`: a recording in the formats of other tools (docs/export.md).

mod collapsed;
mod firefox;
mod flamegraph;
pub(crate) mod frames;
mod output;
mod pprof;
pub(crate) mod tree;
mod who;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use vmscope_symbolizer::{Filter, Profile, Summary};

use crate::present::numbers::{count, some};
use crate::record::DEFAULT_OUTPUT;
use crate::report::{NarrowOptions, load_profile, seconds};
use output::Output;

/// `vmscope export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// The recording
    #[arg(default_value = DEFAULT_OUTPUT)]
    file: PathBuf,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Where to: a file, or `-` for the standard output (default: beside the recording;
    /// collapsed: the standard output, unless that is a terminal)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output file if it is there already
    #[arg(long)]
    force: bool,
    /// Give each thread a root of its own (collapsed and flamegraph; the other formats
    /// tell threads apart in any case)
    #[arg(long)]
    by_thread: bool,
    /// Leave inlined functions out: what they did counts for the function that they were
    /// inlined into
    #[arg(long)]
    no_inline: bool,
    #[command(flatten)]
    narrow: NarrowOptions,
    /// Only samples before this second of the recording
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    until: Option<f64>,
}

/// The formats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for each stack: `frame;frame;frame count`
    Collapsed,
    /// A flame graph, as SVG
    Flamegraph,
    /// JSON for the Firefox Profiler (profiler.firefox.com)
    Firefox,
    /// A profile.proto for pprof and what reads its format
    Pprof,
}

impl Format {
    /// What replaces the recording's extension, as the readers of each format expect it.
    fn extension(self) -> &'static str {
        match self {
            Format::Collapsed => "collapsed",
            Format::Flamegraph => "svg",
            Format::Firefox => "json.gz",
            Format::Pprof => "pb.gz",
        }
    }
}

/// What an export is made from.
struct Export<'a> {
    profile: &'a Profile,
    filter: &'a Filter,
    summary: &'a Summary,
    /// Whether inlined functions are frames of their own.
    inlined: bool,
    /// Whether each thread gets a root.
    by_thread: bool,
}

/// Writes a recording in another format.
///
/// # Errors
/// When the recording can't be read, a thread or time that was asked for is not in it,
/// nothing is to be exported, or the output can't be written; what is there already
/// is not replaced unless that was asked for.
pub fn run(args: &ExportArgs, out: &mut dyn Write) -> Result<()> {
    let output = Output::choose(args.output.as_deref(), &args.file, args.to);
    // Before the work, which may take seconds.
    output.check(args.force)?;
    let profile = load_profile(&args.file, !args.no_inline)?;
    let filter = args.narrow.filter(&profile, args.until)?;
    let summary = Summary::with_errors(&profile, &filter);
    if summary.total == 0 {
        bail!("there is nothing to export: no samples are in that part of the recording");
    }
    let export = Export {
        profile: &profile,
        filter: &filter,
        summary: &summary,
        inlined: !args.no_inline,
        by_thread: args.by_thread,
    };
    let compressed = output.is_compressed(args.to);
    output.write(args.force, out, |out| match args.to {
        Format::Collapsed => collapsed::write(&export, out),
        Format::Flamegraph => flamegraph::write(&export, out),
        Format::Firefox => firefox::write(&export, compressed, out),
        Format::Pprof => pprof::write(&export, compressed, out),
    })?;
    for line in remarks(&export, &output) {
        // Where stderr is closed, nobody listens.
        let _ = writeln!(std::io::stderr(), "vmscope: {line}");
    }
    Ok(())
}

/// What there is to say beside the data.
fn remarks(export: &Export<'_>, output: &Output) -> Vec<String> {
    let mut lines = Vec::new();
    let samples = &export.profile.trace.samples;
    if samples.chains.is_empty() {
        lines.push(
            "this recording has no caller chains: each stack is one function and what was \
             inlined into it; `vmscope record --call-graph=fp` records them"
                .to_owned(),
        );
    }
    if samples.truncated_chains > 0 {
        lines.push(format!(
            "{} were cut off at the bound on their depth and lack their outermost callers; \
             `--max-depth` raises it",
            some(samples.truncated_chains, "caller chain", "caller chains"),
        ));
    }
    let limits = crate::queries::truth::truth_of(export.profile, export.summary).len();
    if limits > 0 {
        lines.push(format!(
            "{} its truth: `vmscope report` says what",
            some(limits as u64, "thing limits", "things limit"),
        ));
    }
    let total = count(export.summary.total);
    lines.push(match output {
        Output::Stdout => format!("{total} samples exported"),
        Output::File(path) => format!("{total} samples exported to {}", path.display()),
    });
    lines
}
