//! A file-system driver, and tools for making test programs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests say what went wrong by failing, and what they left out on stderr"
)]
#![allow(
    dead_code,
    reason = "each test file that has this module uses a part of it"
)]

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use vmscope_records::{FileOffset, Module, ModuleKey, ModuleState, TimeNs};
use vmscope_symbolizer::native::{
    Binaries, DebugFile, DebugFileKind, DebugFileRequest, FileBytes, ReadError,
};

/// A file read by `pread`.
pub struct DiskFile(File, u64);

impl DiskFile {
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(DiskFile(file, len))
    }
}

impl FileBytes for DiskFile {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, ReadError> {
        let mut bytes = vec![0; len];
        self.0
            .read_exact_at(&mut bytes, offset)
            .map_err(|source| ReadError::Io {
                offset,
                len,
                source,
            })?;
        Ok(Cow::Owned(bytes))
    }
}

/// Modules by path; debug files by GDB's search rules below `root`.
#[derive(Default)]
pub struct Disk {
    /// Replaces `/usr/lib/debug`.
    pub root: PathBuf,
    /// Requested paths.
    pub asked: Mutex<Vec<String>>,
}

impl Binaries for Disk {
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String> {
        match DiskFile::open(Path::new(&module.path)) {
            Ok(file) => Ok(Arc::new(file)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn debug_file(&self, request: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        self.asked.lock().unwrap().push(format!("{request:?}"));
        let mut paths = Vec::new();
        if let Some(build_id) = request.build_id {
            let hex = build_id.to_string();
            let (dir, file) = hex.split_at(2);
            paths.push(self.root.join(format!(".build-id/{dir}/{file}.debug")));
        }
        if let (Some(name), Some(dir)) = (request.name, Path::new(request.path).parent()) {
            paths.push(dir.join(name));
            if request.kind == DebugFileKind::Separate {
                paths.push(dir.join(".debug").join(name));
            }
        }
        paths
            .into_iter()
            .filter_map(|path| {
                Some(DebugFile {
                    bytes: Arc::new(DiskFile::open(&path).ok()?),
                    path: path.display().to_string(),
                })
            })
            .collect()
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        None
    }
}

/// The module at `path`, without further facts.
pub fn module(path: &Path) -> Module {
    Module {
        key: ModuleKey(1),
        time: TimeNs(0),
        path: path.display().to_string(),
        build_id: None,
        device: 0,
        inode: 0,
        size: 0,
        main: false,
        state: ModuleState::Opened,
    }
}

/// Runs a command line in `dir`, split at blanks. Returns its output, or prints and returns `None`
/// if the tool is missing.
pub fn run(dir: &Path, line: &str) -> Option<String> {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let tool = words.next().unwrap();
    let output = match Command::new(tool).args(words).current_dir(dir).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {tool} is not installed, so `{line}` can't be tested");
            return None;
        }
        Err(error) => panic!("{line}: {error}"),
    };
    assert!(
        output.status.success(),
        "{line}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The program's code segments from readelf: (offset, address, size).
pub fn code_segments(dir: &Path, file: &str) -> Option<Vec<(u64, u64, u64)>> {
    let text = run(dir, &format!("readelf -lW {file}"))?;
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    Some(
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| words.first() == Some(&"LOAD") && words.contains(&"E"))
            .map(|words| (hex(words[1]), hex(words[2]), hex(words[4])))
            .collect(),
    )
}

/// The file offset of an address.
pub fn offset_of(segments: &[(u64, u64, u64)], address: u64) -> Option<FileOffset> {
    segments
        .iter()
        .find(|(_, at, size)| (*at..at + size).contains(&address))
        .map(|(offset, at, _)| FileOffset(address - at + offset))
}

/// Functions listed by `nm`: (address, name), ascending.
pub fn functions(dir: &Path, file: &str) -> Option<Vec<(u64, String)>> {
    let text = run(dir, &format!("nm -n --defined-only {file}"))?;
    Some(
        text.lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let kind = words.next()?;
                let name = words.next()?.to_owned();
                "TtWw".contains(kind).then_some((address, name))
            })
            .collect(),
    )
}
