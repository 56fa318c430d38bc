//! Files of users, read whole up to a maximum.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The file at `path`.
///
/// # Errors
/// A missing or unreadable file, more than `max` bytes.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    read_rest(open(path)?, path, max)
}

/// Opens a file.
///
/// # Errors
/// A missing or unreadable file.
pub fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// The rest of an open file.
///
/// # Errors
/// An unreadable file, more than `max` bytes.
pub fn read_rest(file: File, path: &Path, max: u64) -> Result<Vec<u8>> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = file.take(max.saturating_add(1)).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > max {
        bail!("{shown} has more than {} MiB", max >> 20);
    }
    Ok(bytes)
}
