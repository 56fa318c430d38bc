//! Makes a finished recording self-contained: embeds symbols of all sampled native code.

use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use vmscope_process::Modules;
use vmscope_records::Record;
use vmscope_records::recording::{RecordingFile, Writer};
use vmscope_sampler::promptly;
use vmscope_symbolizer::Trace;
use vmscope_symbolizer::native::Binaries;

use crate::binaries::SessionBinaries;
use crate::memory::MemoryOption;
use crate::report::{open_recording, resolve_missing};

/// Adds symbols of all sampled native code to the recording at `path`, from the files that its
/// session opened. Memory does not grow with the recording's length, and stays below `memory`. The
/// user waits for it: it runs at real-time priority for at most half a second.
///
/// # Errors
/// Failure to read or extend the recording. It stays readable, with some or no symbols.
pub fn embed_symbols(path: &Path, modules: &Modules, memory: MemoryOption) -> Result<()> {
    promptly(|| embed(path, &SessionBinaries(modules), memory))
}

/// Likewise from `binaries`, at any priority.
///
/// # Errors
/// Likewise.
pub fn embed(path: &Path, binaries: &dyn Binaries, memory: MemoryOption) -> Result<()> {
    let mut reader = open_recording(path)?;
    let max_memory = memory.max_for(reader.progress().1);
    let trace = Trace::read_places(&mut reader, max_memory)?;
    let symbols = resolve_missing(&trace, binaries, memory.max());
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
