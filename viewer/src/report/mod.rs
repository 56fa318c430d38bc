//! `vmscope report`: a recording as text or JSON.

mod accuracy;
mod brief;
mod calls;
mod compilers;
mod entries;
mod handlers;
mod lifetimes;
mod matrix;
mod options;
pub(crate) mod page;
mod parts;
mod session;
mod threads;
mod totals;
mod vm;

pub use options::{NarrowOptions, ReportOptions, beginning, percent, seconds};

use crate::binaries::DiskBinaries;
use crate::lifetimes::documents;
use crate::memory::{Bounded, MemoryOption};
use crate::present::encode::json_value;
use crate::print::Printer;
use anyhow::{Context, Result};
use page::Page;
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;
use vmscope_records::Symbols;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::native::{Binaries, ResolveOptions, resolve_all, resolve_kernel};
use vmscope_symbolizer::symbols::Hits;
use vmscope_symbolizer::trace::Progress;
use vmscope_symbolizer::{Making, Profile, Stop, Summary, Trace, profile_of_telling};

/// Version of the JSON schema: minor versions add fields, major versions change some.
const SCHEMA: &str = "vmscope-report/2.5";

/// Opens a recording.
///
/// # Errors
/// A missing file, or no recording.
pub fn open_recording(path: &Path) -> Result<Reader<BufReader<File>>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    Reader::open(BufReader::new(file)).with_context(|| format!("cannot read {shown}"))
}

/// Symbols of all sampled native code that the trace lacks, in at most `max_memory` bytes.
pub fn resolve_missing(trace: &Trace, binaries: &dyn Binaries, max_memory: u64) -> Vec<Symbols> {
    resolve(&Hits::missing_in(trace), binaries, max_memory)
}

/// Symbols of these places, in at most `max_memory` bytes.
pub fn resolve(hits: &Hits, binaries: &dyn Binaries, max_memory: u64) -> Vec<Symbols> {
    let binaries = &Bounded {
        binaries,
        max_memory,
    };
    let wanted: Vec<_> = hits
        .modules
        .iter()
        .map(|(module, offsets)| (module, offsets.as_slice()))
        .collect();
    let mut options = ResolveOptions::default();
    let one_of_all = max_memory / (2 * options.threads as u64).max(1);
    options.debug_bytes_max = options.debug_bytes_max.min(one_of_all);
    let mut symbols = resolve_all(&wanted, binaries, &options);
    if !hits.kernel.is_empty() {
        let kallsyms = binaries.kernel_symbols();
        symbols.push(resolve_kernel(&hits.kernel, kallsyms.as_deref()));
    }
    symbols
}

/// Profile of the recording at `path`. Files on this machine supply missing symbols. With
/// `inlined`, samples in inlined native functions belong to them.
///
/// # Errors
/// An unreadable recording.
pub fn load_profile(path: &Path, inlined: bool, memory: MemoryOption) -> Result<Profile> {
    load_profile_with(path, inlined, memory, &mut |_| {})
}

/// Stage of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// Reading the file.
    Reading(Progress),
    /// Looking up symbols on this machine.
    Symbols,
    /// Making the profile.
    Making(Making),
}

/// The same, with progress.
///
/// # Errors
/// The same.
pub fn load_profile_with(
    path: &Path,
    inlined: bool,
    memory: MemoryOption,
    watch: &mut dyn FnMut(Loading),
) -> Result<Profile> {
    let mut reader = open_recording(path)?;
    let max_memory = memory.max_for(reader.progress().1);
    let trace = Trace::read_with(&mut reader, max_memory, &mut |progress| {
        watch(Loading::Reading(progress));
        ControlFlow::Continue(())
    });
    let trace = trace.with_context(|| format!("cannot read {}", path.display()))?;
    watch(Loading::Symbols);
    let symbols = resolve_missing(&trace, &DiskBinaries, memory.max());
    let tell = &mut |making| watch(Loading::Making(making));
    Ok(profile_of_telling(trace, symbols, inlined, tell))
}

/// Writes the report of `path` to `out`.
///
/// # Errors
/// An unreadable recording, unknown threads, times or functions, no recorded callers, a failed write.
pub fn run(path: &Path, options: &ReportOptions, out: &mut Printer<'_>) -> Result<()> {
    let profile = load_profile(path, options.inlined, options.memory)?;
    let filter = options.narrow.filter(&profile, options.to)?;
    let summary = Summary::with_errors(&profile, &filter);
    let page = Page::new(&profile, &summary, &filter, options);
    if options.calls.is_asked() {
        let calls = calls::calls(&page)?;
        return match options.json {
            true => out.json(&calls::json(&page, &calls)?),
            false => Ok(out.text(&calls::text(&page, &calls))?),
        };
    }
    match (options.json, options.full) {
        (true, _) => out.json(&json(&page, path)?)?,
        (false, true) => out.text(&text(&page, path)?)?,
        (false, false) => out.styled(&brief::text(&page, path), options.color)?,
    }
    Ok(())
}

/// VMProfiler's report: all sections as text. A section is a module with `text` and `json`.
fn text(page: &Page<'_>, path: &Path) -> Result<String> {
    let lifetimes = documents(&page.profile.trace, path, page.options.memory, false)?;
    let mut out = String::new();
    accuracy::text(page, &mut out);
    session::text(page, &mut out);
    totals::text(page, &mut out);
    parts::text(page, &mut out);
    entries::text(page, &mut out);
    handlers::text(page, &mut out);
    vm::text(page, &mut out);
    lifetimes::text(page, lifetimes.as_ref(), &mut out);
    compilers::text(page, &mut out);
    matrix::text(page, &mut out);
    threads::text(page, &mut out);
    Ok(out)
}

/// All sections as one JSON object (docs/report-json.md).
fn json(page: &Page<'_>, path: &Path) -> Result<Value> {
    let mut report = json!({
        "schema": SCHEMA,
        "session": session::json(page)?,
        "samples": accuracy::json(page),
        "regions": totals::json(page),
        "parts": parts::json(page),
        "threads": threads::json(page),
        "entries": entries::json(page),
        "handlers": handlers::json(page),
        "vm": vm::json(page),
        "compilers": compilers::json(page),
        "matrix": matrix::json(page)?,
    });
    if let Some(marks) = session::marks_json(page) {
        report["marks"] = marks;
    }
    let lifetimes = documents(&page.profile.trace, path, page.options.memory, true)?;
    let fields = ["collector_costs", "lifetimes"];
    for (field, document) in fields.into_iter().zip(lifetimes.iter().flatten()) {
        report[field] = json_value(document, &Stop::new()).into();
    }
    Ok(report)
}
