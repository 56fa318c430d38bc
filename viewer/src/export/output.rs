//! Target of an export or a page: standard output, or a file readable by its owner alone, written as a whole
//! or not at all.

use super::Format;
use crate::print::is_stdout_terminal;
use anyhow::{Context, Result, bail};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 256 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    File(PathBuf),
}

impl Output {
    /// The requested target, else the usual one of the format.
    pub(super) fn choose(asked: Option<&Path>, recording: &Path, format: Format) -> Self {
        match asked {
            Some(path) if path == Path::new("-") => Output::Stdout,
            Some(path) => Output::File(path.to_owned()),
            None if format == Format::Collapsed && !is_stdout_terminal() => Output::Stdout,
            None => Output::File(recording.with_extension(format.extension())),
        }
    }

    /// Whether to compress: default of the format, unless the file's name says otherwise.
    pub(super) fn is_compressed(&self, format: Format) -> bool {
        match (self, format) {
            (_, Format::Collapsed | Format::Flamegraph | Format::Speedscope) => false,
            (Output::Stdout, Format::Firefox) => false,
            (Output::Stdout, Format::Pprof) => true,
            (Output::File(path), Format::Firefox) => !has_extension(path, "json"),
            (Output::File(path), Format::Pprof) => !has_extension(path, "pb"),
        }
    }

    /// Reports early what [`Output::write`] would report late.
    pub(super) fn check(&self, force: bool) -> Result<()> {
        let Output::File(path) = self else {
            return Ok(());
        };
        let shown = path.display();
        let metadata = match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.with_context(|| format!("cannot write {shown}"))?,
        };
        if metadata.is_dir() {
            bail!("{shown} is a directory: name a file in it");
        }
        let is_own = metadata.is_file() && metadata.uid() == nix::unistd::geteuid().as_raw();
        if !is_own {
            bail!("{shown} exists and is not your file: name another file");
        }
        if !force {
            bail!("{shown} exists: --force replaces it; or name another file");
        }
        Ok(())
    }

    /// Runs `produce`. The file appears complete, readable by its owner alone.
    pub(crate) fn write(
        &self,
        force: bool,
        stdout: &mut dyn Write,
        produce: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let path = match self {
            Output::Stdout => return produce(stdout),
            Output::File(path) => path,
        };
        let shown = path.display();
        let cannot = || format!("cannot write {shown}: name another file");
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Created with O_EXCL and mode 0600, removed on drop.
        let draft = tempfile::Builder::new()
            .prefix(".vmscope-export-")
            .tempfile_in(folder)
            .with_context(cannot)?;
        let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, draft);
        produce(&mut buffer).with_context(cannot)?;
        let draft = buffer
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .with_context(cannot)?;
        // A file may have appeared meanwhile.
        self.check(force)?;
        let kept = if force {
            draft.persist(path)
        } else {
            draft.persist_noclobber(path)
        };
        kept.map_err(|error| error.error).with_context(cannot)?;
        Ok(())
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}
