//! `vmscope lifetimes` and `vmscope gc`: lifetimes of objects, and the collector's work for them.

mod activity;
pub mod cache;
mod callers;
pub mod collector;
mod histograms;
mod holders;
mod html;
mod living;
pub mod names;
pub mod objects;
mod single;

use crate::export::output::Output;
use crate::memory::MemoryOption;
use crate::present::document::{Chart, Document, Part, Value};
use crate::present::encode::{Format, encode};
use crate::present::numbers::{brief, some};
use crate::print::Printer;
use crate::record::DEFAULT_OUTPUT;
use crate::report::open_recording;
use anyhow::{Context, Result, anyhow, bail};
use callers::GraphOptions;
use clap::{Args, ValueEnum};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use vmscope_symbolizer::lifetimes::groups::{Grouping, Thresholds};
use vmscope_symbolizer::lifetimes::read::{Limits, Skipped};
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure, Object};
use vmscope_symbolizer::{Stop, Trace};

/// Memory of an object while lifetimes are read, in bytes.
const OBJECT_BYTES: u64 = 128;

/// Most rows of single objects in a document.
const MAX_LISTED: usize = 100_000;

/// Rows of groups in a text.
const ROWS: usize = 20;

/// Objects in a block of CSV.
const BLOCK: usize = 4096;

/// How to record lifetimes.
pub const HOW: &str = "Record with --lifetimes=1/100, a VM that tells them: `vmscope demo dataframe \
                       --lifetimes=1/100`, `vmscope record --lifetimes=1/100 -- vmscope reference-vm \
                       dataframe`. A run that was recorded so was too short: no object was sampled.";

#[derive(Args, Clone, Debug)]
pub struct LifetimesArgs {
    /// The recording
    #[arg(default_value = DEFAULT_OUTPUT)]
    file: PathBuf,
    /// What to group objects by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Site)]
    by: By,
    /// Groups with at least this share of all objects, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    most_allocated: f64,
    /// Objects are short-lived if they live at most this share of the run on average, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    short_lived: f64,
    /// Unit of the table of lifetimes and of the survival curves
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = Unit::Time)]
    measure: Unit,
    /// List so many single objects, by birth; --csv lists all if this is not given
    #[arg(long, value_name = "N")]
    objects: Option<usize>,
    #[command(flatten)]
    graph: GraphOptions,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    memory: MemoryOption,
}

#[derive(Args, Clone, Debug)]
pub struct GcArgs {
    /// The recording
    #[arg(default_value = DEFAULT_OUTPUT)]
    file: PathBuf,
    /// What to group objects by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Site)]
    by: By,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    memory: MemoryOption,
}

#[derive(Args, Clone, Debug)]
struct OutputOptions {
    /// Print JSON, with full numbers
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the tables as CSV
    #[arg(long)]
    csv: bool,
    /// Write a page for browsers: tables and charts in one file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the charts as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the charts as PNG, without flame graphs
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

impl OutputOptions {
    /// Whether files are written instead of standard output.
    fn is_file(&self) -> bool {
        self.html.is_some() || self.svg.is_some() || self.png.is_some()
    }

    /// Whether CSV goes to standard output.
    fn is_csv(&self) -> bool {
        self.csv && !self.is_file()
    }

    /// Most rows of groups: a program reads all.
    fn rows(&self) -> usize {
        match self.csv || self.json {
            true => MAX_LISTED,
            false => ROWS,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Class
    Class,
    /// Allocating bytecode
    Site,
    /// Allocating method
    Method,
    /// Class and allocating bytecode
    ClassAndSite,
}

/// Units of lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Seconds
    Time,
    /// Share of the run
    Share,
    /// Bytes that the program allocated meanwhile
    Bytes,
    /// Survived scavenges
    Scavenges,
    /// Survived full collections
    FullCollections,
}

impl Unit {
    pub const fn measure(self) -> Measure {
        match self {
            Unit::Time => Measure::Time,
            Unit::Share => Measure::Relative,
            Unit::Bytes => Measure::AllocatedBytes,
            Unit::Scavenges => Measure::Scavenges,
            Unit::FullCollections => Measure::FullCollections,
        }
    }
}

/// What the user wants to see.
pub struct Wanted {
    pub grouping: Grouping,
    /// The grouping's noun.
    pub by: &'static str,
    pub thresholds: Thresholds,
    /// Unit of lifetimes.
    pub unit: Unit,
    /// The part of the call graph.
    pub graph: callers::Wanted,
    /// Most rows of single objects and collections.
    pub objects: usize,
    /// Most groups of the collector's time and of the holders with rows of their own.
    pub rows: usize,
}

impl Wanted {
    pub fn new(by: By) -> Self {
        let (grouping, by) = match by {
            By::Class => (Grouping::Class, "class"),
            By::Site => (Grouping::Site, "site"),
            By::Method => (Grouping::Method, "method"),
            By::ClassAndSite => (Grouping::ClassAndSite, "class and site"),
        };
        Wanted {
            grouping,
            by,
            thresholds: Thresholds::default(),
            unit: Unit::Time,
            graph: callers::Wanted::default(),
            objects: 0,
            rows: ROWS,
        }
    }

    /// Single objects of the wanted class.
    pub fn objects_of<'a>(&self, lifetimes: &'a Lifetimes) -> impl Iterator<Item = &'a Object> {
        let class = self.graph.selection.class;
        let objects = lifetimes.objects.iter();
        objects.filter(move |object| class.is_none_or(|class| object.class == class))
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self::new(By::Site)
    }
}

/// The first lines of a report on a recording with lifetimes, with their titles.
pub fn headline(trace: &Trace, path: &Path, memory: MemoryOption) -> Vec<(&'static str, String)> {
    let lifetimes = match of_recording(trace, path, memory, |_, _| ControlFlow::Continue(())) {
        Ok(Some(lifetimes)) if has_any(&lifetimes) => lifetimes,
        Ok(_) => return Vec::new(),
        Err(error) => return vec![("Lifetimes:", format!("cannot be read: {error:#}"))],
    };
    let collector = collector::Collector::of(&lifetimes, &Wanted::default());
    collector.headline(&names::Names::new(trace, &lifetimes))
}

/// The documents of `vmscope gc` and `vmscope lifetimes`, as text or as JSON; `None` without lifetimes.
///
/// # Errors
/// An unreadable recording.
pub fn documents(
    trace: &Trace,
    path: &Path,
    memory: MemoryOption,
    is_json: bool,
) -> Result<Option<[Document; 2]>> {
    let read = of_recording(trace, path, memory, |_, _| ControlFlow::Continue(()))?;
    let read = read.filter(has_any);
    Ok(read.map(|lifetimes| {
        let loaded = Loaded {
            trace,
            lifetimes: &lifetimes,
        };
        let wanted = Wanted {
            rows: if is_json { MAX_LISTED } else { ROWS },
            ..Wanted::default()
        };
        [
            collector::document(&loaded, &wanted),
            objects::document(&loaded, &wanted),
        ]
    }))
}

/// The lifetimes in the recording at `path`; `None` without any, or after a stop by `watch`, which
/// gets the read bytes and the file's size.
///
/// # Errors
/// An unreadable recording.
pub fn of_recording(
    trace: &Trace,
    path: &Path,
    memory: MemoryOption,
    watch: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<Lifetimes>> {
    if trace.classes.is_empty() && trace.collections.is_empty() {
        return Ok(None);
    }
    let mut reader = open_recording(path)?;
    let limits = limits(memory.max_for(reader.progress().1));
    let read = Lifetimes::read_with(&mut reader, trace, limits, watch);
    read.with_context(|| format!("cannot read {}", path.display()))
}

/// Whether any object was recorded or counted.
pub fn has_any(lifetimes: &Lifetimes) -> bool {
    !lifetimes.objects.is_empty() || !lifetimes.counts.is_empty()
}

fn limits(max_memory: u64) -> Limits {
    Limits {
        max_objects: usize::try_from(max_memory / OBJECT_BYTES).unwrap_or(usize::MAX),
        ..Limits::default()
    }
}

/// A recording with its lifetimes.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<'a> {
    pub trace: &'a Trace,
    pub lifetimes: &'a Lifetimes,
}

/// Calls with a recording and its lifetimes. `suffices` decides whether they hold anything.
///
/// # Errors
/// An unreadable recording, or a recording without lifetimes.
fn with_loaded<T>(
    (path, memory): (&Path, MemoryOption),
    suffices: impl FnOnce(&Lifetimes) -> bool,
    call: impl FnOnce(&Loaded<'_>) -> Result<T>,
) -> Result<T> {
    let shown = path.display();
    let mut reader = open_recording(path)?;
    let max_memory = memory.max_for(reader.progress().1);
    let trace = Trace::read_with(&mut reader, max_memory, &mut |_| ControlFlow::Continue(()))
        .with_context(|| format!("cannot read {shown}"))?;
    let lifetimes = of_recording(&trace, path, memory, |_, _| ControlFlow::Continue(()))?;
    match lifetimes.filter(suffices) {
        Some(lifetimes) => call(&Loaded {
            trace: &trace,
            lifetimes: &lifetimes,
        }),
        None => bail!("{shown} has no lifetimes of objects. {HOW}"),
    }
}

/// Runs `vmscope lifetimes`.
///
/// # Errors
/// An unreadable recording, a recording without lifetimes, a failed write.
pub fn lifetimes(args: &LifetimesArgs, out: &mut Printer<'_>) -> Result<()> {
    with_loaded((&args.file, args.memory), has_any, |loaded| {
        let Loaded { trace, lifetimes } = *loaded;
        let names = names::Names::new(trace, lifetimes);
        let wanted = Wanted {
            thresholds: Thresholds {
                most_allocated: args.most_allocated / 100.0,
                short_lived: args.short_lived / 100.0,
            },
            unit: args.measure,
            graph: callers::Wanted::of(&args.graph, lifetimes, &names)?,
            objects: args.objects.unwrap_or(0).min(MAX_LISTED),
            rows: args.output.rows(),
            ..Wanted::new(args.by)
        };
        print(&objects::document(loaded, &wanted), &args.output, out)?;
        if args.output.is_csv() && args.objects.is_none() {
            print_objects(lifetimes, &names, &wanted, out)?;
        }
        Ok(())
    })
}

/// Prints all objects as CSV, with memory for a block of them.
fn print_objects(
    lifetimes: &Lifetimes,
    names: &names::Names<'_>,
    wanted: &Wanted,
    out: &mut Printer<'_>,
) -> Result<()> {
    let mut objects = wanted.objects_of(lifetimes).peekable();
    let mut is_first = true;
    while objects.peek().is_some() {
        let block = single::table(lifetimes, names, objects.by_ref().take(BLOCK));
        let text = encoded(
            &Document {
                title: String::new(),
                parts: vec![Part::Table(block)],
            },
            Format::Csv,
        )?;
        let text = String::from_utf8_lossy(&text);
        // The headings are those of the first block.
        let rows = text.split_once('\n').map_or("", |(_, rows)| rows);
        let text = if is_first {
            format!("\n{text}")
        } else {
            rows.to_owned()
        };
        out.text(&text)?;
        is_first = false;
    }
    Ok(())
}

fn encoded(document: &Document, format: Format) -> Result<Vec<u8>> {
    let encoded = encode(document, format, &Stop::new());
    encoded
        .unwrap_or_else(|| Err("stopped".to_owned()))
        .map_err(|sentence| anyhow!(sentence))
}

/// Runs `vmscope gc`.
///
/// # Errors
/// The same.
pub fn gc(args: &GcArgs, out: &mut Printer<'_>) -> Result<()> {
    let wanted = Wanted {
        // A table of all collections.
        objects: if args.output.is_csv() { MAX_LISTED } else { 0 },
        rows: args.output.rows(),
        ..Wanted::new(args.by)
    };
    let has_collections =
        |lifetimes: &Lifetimes| has_any(lifetimes) || !lifetimes.collections.is_empty();
    with_loaded((&args.file, args.memory), has_collections, |loaded| {
        print(&collector::document(loaded, &wanted), &args.output, out)
    })
}

fn print(document: &Document, options: &OutputOptions, out: &mut Printer<'_>) -> Result<()> {
    let encoded = |format| match format {
        Format::Text => encoded(&without_charts(document), format),
        _ => encoded(document, format),
    };
    let mut write = |path: &Path, bytes: &[u8]| {
        let file = Output::File(path.to_owned());
        file.write(options.force, out.data(), |out| Ok(out.write_all(bytes)?))
    };
    for (path, format) in [(&options.svg, Format::Svg), (&options.png, Format::Png)] {
        if let Some(path) = path {
            write(path, &encoded(format)?)?;
        }
    }
    if let Some(path) = &options.html {
        write(path, html::page(document).as_bytes())?;
    }
    if options.is_file() {
        return Ok(());
    }
    let format = match (options.json, options.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Text,
    };
    out.text(&String::from_utf8_lossy(&encoded(format)?))?;
    Ok(())
}

/// A text has heat maps; columns of numbers are no chart.
fn without_charts(document: &Document) -> Document {
    let parts = document.parts.iter();
    let parts = parts.filter(|part| match part {
        Part::Chart(chart) => matches!(chart, Chart::Heat { .. }),
        Part::Text(_) | Part::Table(_) => true,
    });
    Document {
        title: document.title.clone(),
        parts: parts.cloned().collect(),
    }
}

/// An estimated number.
fn rounded(value: f64) -> Value {
    Value::Count(value.max(0.0).round() as u64)
}

/// An estimated size in bytes.
fn sized(value: f64) -> Value {
    Value::Bytes(value.max(0.0).round() as u64)
}

/// A sentence about objects that wait for finalization at the end, by the VM's figures.
fn unfinalized(trace: &Trace) -> Option<String> {
    let newest = |name| {
        let mut counters = trace.counters.iter().rev();
        counters.find(|one| one.section == "Finalization" && one.name == name)
    };
    let waiting = newest("waiting").filter(|one| one.value >= 1.0)?;
    let time = newest("waiting for").filter(|one| one.process == waiting.process);
    let time = time.map_or(String::new(), |one| {
        let time = brief(one.value.max(0.0) as u64);
        format!("; the queue was never empty in the last {time}")
    });
    let objects = some(waiting.value as u64, "object waits", "objects wait");
    Some(format!("{objects} for finalization at the end{time}"))
}

/// A warning where the errors do not hold.
fn dependent_samples(lifetimes: &Lifetimes) -> Option<String> {
    lifetimes.dependent_samples.map(|way| {
        format!(
            "All ± hold for independent samples. The way of sampling here ({way}) takes objects that depend on each \
             other: true errors may be many times as large"
        )
    })
}

/// Sentences about records that do not count.
fn counted(lifetimes: &Lifetimes) -> Vec<String> {
    let Skipped {
        other_processes,
        births_left_out,
        births_without_class,
        births_without_site,
        duplicate_births,
        bad_weights,
        fates_without_birth,
        fates_before_birth,
        fates_after_death,
        duplicate_fates,
        fates_without_collection,
        fates_without_holder,
        bad_counts,
    } = lifetimes.skipped;
    let nonsense = births_without_class
        + duplicate_births
        + bad_weights
        + fates_before_birth
        + fates_after_death
        + duplicate_fates
        + bad_counts;
    let all = [
        (lifetimes.lost, "lifetime records were lost"),
        (
            births_left_out,
            "births were left out for --max-memory; the weights of the others make up for them",
        ),
        (other_processes, "records of other processes are left out"),
        (births_without_site, "objects have an unknown site"),
        (
            fates_without_birth,
            "observations of objects from before the recording",
        ),
        (
            fates_without_collection,
            "observations without a known collection",
        ),
        (
            fates_without_holder,
            "observations with a holder of an unknown class",
        ),
        (nonsense, "records make no sense"),
    ];
    let all = all.into_iter().filter(|(number, _)| *number > 0);
    all.map(|(number, text)| format!("{} {text}", crate::present::numbers::count(number)))
        .collect()
}
