//! `vmscope report`: a recording as text or JSON.

mod json;
mod options;
pub(crate) mod text;

pub use options::{NarrowOptions, ReportOptions, beginning, percent, seconds};

use crate::binaries::DiskBinaries;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use vmscope_records::Symbols;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::native::{Binaries, ResolveOptions, resolve_all, resolve_kernel};
use vmscope_symbolizer::symbols::Hits;
use vmscope_symbolizer::trace::Progress;
use vmscope_symbolizer::{Making, Profile, Summary, Trace, profile_of_telling};

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

/// The profile of the recording at `path`, resolved from the files on this machine
/// where it does not hold its symbols itself. With `inlined`, a sample in an inlined
/// native function belongs to that.
///
/// # Errors
/// When the recording can't be read.
pub fn load_profile(path: &Path, inlined: bool) -> Result<Profile> {
    load_profile_with(path, inlined, &mut |_| {})
}

/// What opening a recording is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// The file is read; how far.
    Reading(Progress),
    /// Symbols are looked up in the files on this machine.
    Symbols,
    /// A profile is made of it.
    Making(Making),
}

/// The same, telling `watch` how far it is.
///
/// # Errors
/// The same.
pub fn load_profile_with(
    path: &Path,
    inlined: bool,
    watch: &mut dyn FnMut(Loading),
) -> Result<Profile> {
    let mut reader = open_recording(path)?;
    let trace = Trace::read_with(&mut reader, &mut |progress| {
        watch(Loading::Reading(progress));
        ControlFlow::Continue(())
    });
    let trace = trace.with_context(|| format!("cannot read {}", path.display()))?;
    watch(Loading::Symbols);
    let symbols = resolve_missing(&trace, &DiskBinaries);
    let tell = &mut |making| watch(Loading::Making(making));
    Ok(profile_of_telling(trace, symbols, inlined, tell))
}

/// Writes the report of `path` to `out`, resolving from the files on this machine what
/// the recording does not hold itself.
///
/// # Errors
/// When the recording can't be read, a thread or time that was asked for is not in
/// it, or `out` takes nothing.
pub fn run(path: &Path, options: &ReportOptions, out: &mut dyn Write) -> Result<()> {
    let profile = load_profile(path, !options.no_inline)?;
    let filter = options.narrow.filter(&profile, options.to)?;
    let summary = Summary::with_errors(&profile, &filter);
    if options.json {
        json::write(&profile, &summary, &filter, out)
    } else {
        text::write(&profile, &summary, &filter, options, out)
    }
}
