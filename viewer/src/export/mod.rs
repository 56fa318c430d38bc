//! `vmscope export`: recordings in formats of other tools (docs/export.md).

mod firefox;
mod flamegraph;
pub(crate) mod frames;
pub(crate) mod output;
mod pprof;
mod speedscope;
pub(crate) mod tree;
mod who;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use flate2::{Compression, GzBuilder};
use std::io::{BufWriter, IntoInnerError, Write};
use std::path::PathBuf;
use tree::LabelTree;
use vmscope_records::Session;
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::{Filter, IndexVec, Profile, SiteId, Summary};

use crate::memory::MemoryOption;
use crate::present::numbers::{count, some};
use crate::print::{Printer, say};
use crate::queries::truth::truth_of;
use crate::record::DEFAULT_OUTPUT;
use crate::report::{NarrowOptions, load_profile, seconds};
use output::Output;

#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// The recording
    #[arg(default_value = DEFAULT_OUTPUT)]
    file: PathBuf,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Output file, or `-` for standard output (default: a file beside the recording;
    /// collapsed: standard output, unless it is a terminal)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long)]
    force: bool,
    /// Give each thread its own root (collapsed and flamegraph; other formats always separate
    /// threads)
    #[arg(long)]
    by_thread: bool,
    /// Omit inlined functions: their samples count for the outer function
    #[arg(long)]
    no_inline: bool,
    #[command(flatten)]
    narrow: NarrowOptions,
    #[command(flatten)]
    memory: MemoryOption,
    /// Only samples before this second of the recording
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    until: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for each stack: `frame;frame;frame count`
    Collapsed,
    /// A flame graph, as HTML page
    Flamegraph,
    /// JSON for the Firefox Profiler (profiler.firefox.com)
    Firefox,
    /// A profile.proto for pprof and compatible tools
    Pprof,
    /// JSON for speedscope (speedscope.app): every sample in time order, by thread
    Speedscope,
}

impl Format {
    /// Extension of an export, as readers of the format expect.
    fn extension(self) -> &'static str {
        match self {
            Format::Collapsed => "collapsed",
            Format::Flamegraph => "html",
            Format::Firefox => "json.gz",
            Format::Pprof => "pb.gz",
            Format::Speedscope => "speedscope.json",
        }
    }
}

/// Input of an export.
struct Export<'a> {
    profile: &'a Profile,
    filter: &'a Filter,
    summary: &'a Summary,
    /// Whether inlined functions have frames of their own.
    inlined: bool,
    /// Whether each thread gets a root.
    by_thread: bool,
}

/// Writes a recording in another format.
///
/// # Errors
/// An unreadable recording, unknown threads or times, an empty selection, a failed write. Existing
/// files are replaced on request only.
pub fn run(args: &ExportArgs, out: &mut Printer<'_>) -> Result<()> {
    let output = Output::choose(args.output.as_deref(), &args.file, args.to);
    // Early: loading may take seconds.
    output.check(args.force)?;
    let profile = load_profile(&args.file, false, args.memory)?;
    let filter = args.narrow.filter(&profile, args.until)?;
    let summary = Summary::with_errors(&profile, &filter);
    if summary.total == 0 {
        bail!("nothing to export: no samples match this filter");
    }
    let export = Export {
        profile: &profile,
        filter: &filter,
        summary: &summary,
        inlined: !args.no_inline,
        by_thread: args.by_thread,
    };
    let compressed = output.is_compressed(args.to);
    output.write(args.force, out.data(), |out| match args.to {
        Format::Collapsed => collapsed(&export, out),
        Format::Flamegraph => flamegraph::write(&export, out),
        Format::Firefox => gzipped(compressed, out, |out| firefox::write(&export, out)),
        Format::Speedscope => speedscope::write(&export, out),
        Format::Pprof => gzipped(compressed, out, |out| pprof::write(&export, out)),
    })?;
    for line in remarks(&export, &output) {
        say(&line);
    }
    Ok(())
}

/// Collapsed stacks: a line `frame;frame;frame count` per stack.
fn collapsed(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    let tree = LabelTree::of(export);
    tree.each_line(|stack, samples| writeln!(out, "{stack} {samples}"))?;
    Ok(())
}

/// Runs `produce`, through gzip on request.
fn gzipped(
    is_compressed: bool,
    out: &mut dyn Write,
    produce: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    if !is_compressed {
        return produce(out);
    }
    // The header has neither time nor name: equal recordings yield equal files.
    let gzip = GzBuilder::new().write(out, Compression::fast());
    let mut buffer = BufWriter::new(gzip);
    produce(&mut buffer)?;
    let gzip = buffer.into_inner().map_err(IntoInnerError::into_error)?;
    gzip.finish()?;
    Ok(())
}

impl Export<'_> {
    fn session(&self) -> Option<&Session> {
        self.profile.trace.session.as_ref()
    }

    /// VM and version; `None` for a native program.
    fn vm(&self) -> Option<String> {
        let vm = &self.session()?.vm;
        let name = format!("{} {}", vm.kind, vm.version);
        (vm.kind != "native").then(|| name.trim_end().to_owned())
    }

    fn command(&self) -> String {
        self.session()
            .map_or_else(String::new, |session| session.command.join(" "))
    }

    /// First non-empty `of` among the places of each site.
    fn first_places<T: Clone>(
        &self,
        of: impl Fn(&Place) -> Option<T>,
    ) -> IndexVec<SiteId, Option<T>> {
        let mut first = self.profile.sites.with_each(None);
        let places = &self.profile.trace.places;
        for (place, &site) in places.iter().zip(&self.profile.site_of_place) {
            let first = &mut first[site];
            *first = first.take().or_else(|| of(place));
        }
        first
    }
}

/// Remarks beside the data.
fn remarks(export: &Export<'_>, output: &Output) -> Vec<String> {
    let mut lines = Vec::new();
    let samples = &export.profile.trace.samples;
    if samples.chains.is_empty() {
        lines.push(
            "no caller chains recorded (--call-graph=off): each stack is one function with its \
             inlined functions"
                .to_owned(),
        );
    }
    if samples.chain_ends.depth > 0 {
        lines.push(format!(
            "{} cut off at the maximum depth: outermost callers are missing; record with a greater \
             --max-depth",
            some(samples.chain_ends.depth, "caller chain", "caller chains"),
        ));
    }
    let limits = truth_of(export.profile, export.summary).len();
    if limits > 0 {
        lines.push(format!(
            "{} of accuracy: see `vmscope report`",
            some(limits as u64, "limit", "limits"),
        ));
    }
    let total = count(export.summary.total);
    lines.push(match output {
        Output::Stdout => format!("{total} samples exported"),
        Output::File(path) => format!("{total} samples exported to {}", path.display()),
    });
    lines
}
