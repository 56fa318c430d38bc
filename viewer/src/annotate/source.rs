//! Source files on this machine.
//!
//! Recordings name these files, and recordings may come from strangers. Hence: only regular files,
//! at most [`MAX_BYTES`], with the user's rights; only a few lines around samples, only to the
//! user's terminal, never into JSON. With `--source`, only files beneath those folders.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use vmscope_process::{ModuleFile, ReadAt, Root, own_root};

/// Larger files are not written by people.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum length of a line.
const MAX_LINE_BYTES: usize = 1000;

/// Distance of tab stops.
const TAB: usize = 8;

/// Remark about [`Source::changed`].
pub const CHANGED: &str = "(file changed since the recording began: lines may differ)";

#[derive(Clone, Debug)]
pub struct Source {
    lines: Vec<String>,
    /// Whether the file changed after the recording began.
    pub changed: bool,
}

impl Source {
    /// Reads the file that a recording calls `name`: with `roots`, the longest end of its path that
    /// exists beneath one of them; else the file at its absolute path.
    ///
    /// # Errors
    /// The reason, as a sentence.
    pub fn find(name: &str, roots: &[PathBuf], recorded_ns: u64) -> Result<Self, String> {
        let path = name.strip_prefix("file://").unwrap_or(name);
        if path.is_empty() {
            return Err("the recording names no source file".to_owned());
        }
        if roots.is_empty() {
            if !path.starts_with('/') {
                return Err(format!(
                    "{name} is not an absolute path: give its folder with --source DIR"
                ));
            }
            let file = own_root().and_then(|root| root.open(path.as_bytes()));
            let file = file.map_err(|error| format!("{name}: {error}"))?;
            return read(&file, recorded_ns).map_err(|error| format!("{name}: {error}"));
        }
        for root in roots {
            if let Some(file) = beneath(root, path)? {
                return read(&file, recorded_ns).map_err(|error| format!("{name}: {error}"));
            }
        }
        Err(format!("{name} is not in a --source folder"))
    }

    /// A line, 1-based, tabs expanded; `None` behind the end.
    pub fn line(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(index).map(String::as_str)
    }
}

/// The file at the longest end of `path` that exists beneath `root`.
fn beneath(root: &Path, path: &str) -> Result<Option<ModuleFile>, String> {
    let opened = Root::at(root).map_err(|error| format!("--source {}: {error}", root.display()))?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ends = (0..parts.len()).filter_map(|first| parts.get(first..));
    for end in ends {
        let end = PathBuf::from_iter(end);
        if let Ok(file) = opened.open(end.as_os_str().as_bytes()) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn read(file: &ModuleFile, recorded_ns: u64) -> Result<Source, String> {
    let length = ReadAt::len(file);
    if length > MAX_BYTES {
        return Err(format!("too large for a source file ({length} bytes)"));
    }
    let length = usize::try_from(length).map_err(|error| error.to_string())?;
    let bytes = file.read_at(0, length).map_err(|error| error.to_string())?;
    let changed = file.metadata().ok().flatten();
    let changed = changed.and_then(|metadata| metadata.modified().ok());
    let recorded = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(recorded_ns));
    Ok(Source {
        lines: bytes.split(|&byte| byte == b'\n').map(text_of).collect(),
        changed: changed
            .zip(recorded)
            .is_some_and(|(changed, at)| changed > at),
    })
}

fn text_of(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.get(..MAX_LINE_BYTES).unwrap_or(line);
    let mut text = String::with_capacity(line.len());
    let mut column = 0;
    for c in String::from_utf8_lossy(line).chars() {
        let spaces = TAB - column % TAB;
        if c == '\t' {
            text.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            text.push(c);
            column += 1;
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_where_it_is_named_or_beneath_a_root_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let src = folder.path().join("src/deep");
        std::fs::create_dir_all(&src).unwrap();
        let file = src.join("a.js");
        std::fs::write(&file, "one\r\n\ttwo\nthree").unwrap();
        let name = file.to_str().unwrap();
        let source = Source::find(name, &[], u64::MAX).unwrap();
        assert_eq!(source.line(1), Some("one"));
        assert_eq!(source.line(2), Some("        two"));
        assert_eq!((source.line(0), source.line(4)), (None, None));
        assert!(!source.changed);
        assert!(
            Source::find(&format!("file://{name}"), &[], 0)
                .unwrap()
                .changed
        );
        let roots = [folder.path().to_owned()];
        for name in ["/build/machine/src/deep/a.js", "deep/a.js", "src/deep/a.js"] {
            let found = Source::find(name, &roots, 0);
            assert_eq!(found.is_ok(), name != "deep/a.js", "{name}");
        }
        // Existing file outside the root.
        assert!(Source::find("/etc/hostname", &roots, 0).is_err());
        assert!(Source::find("../../../../etc/hostname", &roots, 0).is_err());
        assert!(Source::find("src/deep/a.js", &[], 0).is_err());
    }

    #[test]
    fn only_regular_files_of_a_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "/dev/zero",
            "/proc/self",
            folder.path().to_str().unwrap(),
            "",
        ] {
            assert!(Source::find(name, &[], 0).is_err(), "{name}");
        }
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Source::find(fifo.to_str().unwrap(), &[], 0).is_err());
        let large = folder.path().join("large");
        let file = std::fs::File::create(&large).unwrap();
        file.set_len(MAX_BYTES + 1).unwrap();
        assert!(Source::find(large.to_str().unwrap(), &[], 0).is_err());
    }
}
