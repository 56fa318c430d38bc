//! Making a recording self-contained: the symbols of the native code that was hit go
//! into it when it has ended.

use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use vmscope_process::Modules;
use vmscope_records::Record;
use vmscope_records::recording::{RecordingFile, Writer};
use vmscope_symbolizer::Trace;

use crate::binaries::SessionBinaries;
use crate::report::{open_recording, resolve_missing};

/// Adds the symbols of all native code that the recording at `path` hit, from the
/// files that its session opened, in memory that does not grow with its length.
///
/// # Errors
/// When the recording can't be read or added to. It is then as it was, or has its
/// symbols in part; either way it is readable.
pub fn embed_symbols(path: &Path, modules: &Modules) -> Result<()> {
    let trace = Trace::read_places(&mut open_recording(path)?)?;
    let symbols = resolve_missing(&trace, &SessionBinaries(modules));
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
    // Gives back what the store set aside.
    store
        .finish()
        .with_context(|| format!("cannot add symbols to {shown}"))?;
    Ok(())
}
