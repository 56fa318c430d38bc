//! Resolves addresses spread over a file's code and says what that took: the bench
//! by hand for large binaries.
//!
//! `cargo run --release --example native_resolve -- FILE [HITS] [print]`
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for developers: it prints, and stops where it can't go on"
)]

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use vmscope_records::{FileOffset, Module, ModuleKey, ModuleState, TimeNs};
use vmscope_symbolizer::native::{
    Binaries, DebugFile, DebugFileRequest, FileBytes, ReadError, ResolveOptions, resolve_module,
};

struct Disk(File, u64);

impl FileBytes for Disk {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, ReadError> {
        let mut bytes = vec![0; len];
        let read = self.0.read_exact_at(&mut bytes, offset);
        read.map_err(|source| ReadError::Io {
            offset,
            len,
            source,
        })?;
        Ok(Cow::Owned(bytes))
    }
}

struct ByPath;

impl Binaries for ByPath {
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String> {
        let file = File::open(&module.path).map_err(|error| error.to_string())?;
        let len = file.metadata().map_err(|error| error.to_string())?.len();
        Ok(Arc::new(Disk(file, len)))
    }

    fn debug_file(&self, _: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        Vec::new()
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        None
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).unwrap();
    let count: usize = arguments
        .get(2)
        .map_or(2000, |count| count.parse().unwrap());
    let bytes = std::fs::File::open(path).unwrap();
    let number = |at: u64, len: usize| {
        let mut number = vec![0; len];
        bytes.read_exact_at(&mut number, at).unwrap();
        number
            .iter()
            .rev()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    // The largest segment of code, by its program header (ELF64, little-endian).
    let first = number(32, 8);
    let (offset, size) = (0..number(56, 2))
        .map(|index| first + index * 56)
        .filter(|at| number(*at, 4) == 1 && number(at + 4, 4) & 1 != 0)
        .map(|at| (number(at + 8, 8), number(at + 32, 8)))
        .max_by_key(|(_, size)| *size)
        .unwrap();
    let mut seed = 88_172_645_463_325_252_u64;
    let mut hits: Vec<FileOffset> = (0..count)
        .map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            FileOffset(offset + seed % size)
        })
        .collect();
    hits.sort_unstable();
    hits.dedup();
    let module = Module {
        key: ModuleKey(0),
        time: TimeNs(0),
        path: path.clone(),
        build_id: None,
        device: 0,
        inode: 0,
        size: 0,
        main: false,
        state: ModuleState::Opened,
    };
    let mut options = ResolveOptions::default();
    options.lines = !arguments.iter().any(|word| word == "names");
    let start = Instant::now();
    let symbols = resolve_module(&module, &hits, &ByPath, &options);
    let took = start.elapsed();
    let pieces: usize = symbols.functions.iter().map(|f| f.lines.len()).sum();
    let named = symbols.functions.iter().filter(|f| !f.name.is_empty());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!(
        "{} hits: {} functions, {} of them named, {pieces} line pieces; {took:?}, {} ({})",
        hits.len(),
        symbols.functions.len(),
        named.count(),
        peak.unwrap_or_default(),
        symbols.note,
    );
    if arguments.iter().any(|word| word == "print") {
        for function in &symbols.functions {
            println!("{function:#?}");
        }
    }
}
