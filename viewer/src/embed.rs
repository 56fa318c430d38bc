//! Makes a finished recording self-contained: embeds symbols of all sampled native code.

use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use vmscope_process::Modules;
use vmscope_records::recording::{RecordingFile, Writer};
use vmscope_records::{Record, Symbols};
use vmscope_sampler::promptly;
use vmscope_sampler::session::{NativeHits, Outcome};
use vmscope_symbolizer::Trace;
use vmscope_symbolizer::native::Binaries;
use vmscope_symbolizer::symbols::Hits;

use crate::binaries::SessionBinaries;
use crate::memory::MemoryOption;
use crate::report::{open_recording, resolve, resolve_missing};

/// Adds symbols of all sampled native code to the recording at `path`, from the files that its
/// session opened. Memory does not grow with the recording's length, and stays below `memory`. The
/// user waits for it: it runs at real-time priority for at most half a second.
///
/// # Errors
/// Failure to read or extend the recording. It stays readable, with some or no symbols.
pub fn embed_symbols(path: &Path, modules: &Modules, memory: MemoryOption) -> Result<()> {
    promptly(|| embed(path, &SessionBinaries(modules), memory))
}

/// Likewise for a finished session that wrote all its samples to `path`: mostly without a reading of
/// the recording.
///
/// # Errors
/// Likewise.
pub fn embed_symbols_of(outcome: &Outcome, path: &Path, memory: MemoryOption) -> Result<()> {
    if !outcome.hits.are_all() {
        return embed_symbols(path, &outcome.modules, memory);
    }
    promptly(|| {
        let hits = hits_of(&outcome.hits, &outcome.modules);
        let binaries = SessionBinaries(&outcome.modules);
        append(path, resolve(&hits, &binaries, memory.max()))
    })
}

fn hits_of(hits: &NativeHits, known: &Modules) -> Hits {
    let modules = hits.modules();
    let modules = modules.filter_map(|(key, places)| Some((known.module(key)?.clone(), places)));
    let mut modules: Vec<_> = modules.collect();
    modules.sort_by_key(|(module, _)| module.key);
    Hits {
        modules,
        kernel: hits.kernel_places(),
    }
}

/// Likewise from `binaries`, at any priority.
///
/// # Errors
/// Likewise.
pub fn embed(path: &Path, binaries: &dyn Binaries, memory: MemoryOption) -> Result<()> {
    let mut reader = open_recording(path)?;
    let max_memory = memory.max_for(reader.progress().1);
    let trace = Trace::read_places(&mut reader, max_memory)?;
    append(path, resolve_missing(&trace, binaries, memory.max()))
}

fn append(path: &Path, symbols: Vec<Symbols>) -> Result<()> {
    let shown = path.display();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
        .with_context(|| format!("cannot add symbols to {shown}"))?;
    let store =
        RecordingFile::append_to(file).with_context(|| format!("cannot add symbols to {shown}"))?;
    let mut writer = Writer::resume(store);
    for one in symbols {
        writer.put(Record::Symbols(one))?;
    }
    let store = writer
        .close()
        .with_context(|| format!("cannot add symbols to {shown}"))?;
    // Returns the store's reserve.
    store
        .finish()
        .with_context(|| format!("cannot add symbols to {shown}"))?;
    Ok(())
}
