//! `vmscope report`: a recording as text or JSON.

mod json;
mod options;
mod text;
mod truth;
mod words;

pub use options::ReportOptions;

use crate::binaries::DiskBinaries;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;
use vmscope_records::Symbols;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::native::{Binaries, ResolveOptions, resolve_all, resolve_kernel};
use vmscope_symbolizer::symbols::Hits;
use vmscope_symbolizer::{Filter, Profile, Summary, Trace, profile_of};

/// Opens a recording and makes its profile, resolving from the files on this machine
/// what the recording does not hold itself.
///
/// # Errors
/// When it is not a recording, or holds nothing.
pub fn open_profile(path: &Path, inlined: bool) -> Result<Profile> {
    let trace = read_trace(path)?;
    let symbols = resolve_missing(&trace, &DiskBinaries);
    Ok(profile_of(trace, symbols, inlined))
}

/// Reads a recording.
///
/// # Errors
/// When it is not a recording, or holds nothing.
pub fn read_trace(path: &Path) -> Result<Trace> {
    let mut reader = open_recording(path)?;
    Trace::read(&mut reader).with_context(|| format!("cannot read {}", path.display()))
}

/// Opens a recording.
///
/// # Errors
/// When it is not there, or is no recording.
pub fn open_recording(path: &Path) -> Result<Reader<BufReader<File>>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    Reader::open(BufReader::new(file)).with_context(|| format!("cannot read {shown}"))
}

/// The symbols of all native code that a trace hit and whose symbols it lacks.
pub fn resolve_missing(trace: &Trace, binaries: &dyn Binaries) -> Vec<Symbols> {
    let hits = Hits::missing_in(trace);
    let wanted: Vec<_> = hits
        .modules
        .iter()
        .map(|(module, offsets)| (module, offsets.as_slice()))
        .collect();
    let mut symbols = resolve_all(&wanted, binaries, &ResolveOptions::default());
    if !hits.kernel.is_empty() {
        let kallsyms = binaries.kernel_symbols();
        symbols.push(resolve_kernel(&hits.kernel, kallsyms.as_deref()));
    }
    symbols
}

/// Writes the report of `path` to `out`.
///
/// # Errors
/// When the recording can't be read, a thread or time that was asked for is not in
/// it, or `out` takes nothing.
pub fn run(path: &Path, options: &ReportOptions, out: &mut dyn Write) -> Result<()> {
    let profile = open_profile(path, !options.no_inline)?;
    write(&profile, options, out)
}

/// Writes a profile's report to `out`.
///
/// # Errors
/// When a thread or time that was asked for is not in it, or `out` takes nothing.
pub fn write(profile: &Profile, options: &ReportOptions, out: &mut dyn Write) -> Result<()> {
    let filter: Filter = options.filter(profile)?;
    let summary = Summary::of(profile, &filter);
    if options.json {
        json::write(profile, &summary, &filter, out)
    } else {
        text::write(profile, &summary, &filter, options, out)
    }
}
