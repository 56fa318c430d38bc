//! The entry of the fuzz target: resolves symbols of an arbitrary file.

use std::sync::Arc;

use vmscope_records::{FileOffset, Module, ModuleKey, ModuleState, TimeNs};

use super::bytes::{Binaries, DebugFile, DebugFileRequest, FileBytes, MemoryFile};
use super::elf::Elf;
use super::{ResolveOptions, resolve_module};

/// One file as module, debug file, and dwz's file.
struct OneFile(Arc<MemoryFile>);

impl Binaries for OneFile {
    fn module(&self, _: &Module) -> Result<Arc<dyn FileBytes>, String> {
        Ok(Arc::<MemoryFile>::clone(&self.0))
    }

    fn debug_file(&self, _: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        vec![DebugFile {
            path: String::new(),
            bytes: Arc::<MemoryFile>::clone(&self.0),
        }]
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Resolves hits all over a file with these bytes, and checks invariants of the result. Returns the
/// number of functions. Only for the fuzz target.
///
/// # Panics
/// On a violated invariant.
#[must_use]
pub fn fuzz_elf(bytes: &[u8]) -> usize {
    let file = Arc::new(MemoryFile(bytes.to_vec()));
    let mut hits: Vec<FileOffset> = (0..64)
        .map(|n| FileOffset(bytes.len() as u64 / 64 * n))
        .collect();
    if let Ok(elf) = Elf::open(&*file) {
        let executable = elf.segments.iter().filter(|segment| segment.executable);
        for segment in executable.take(4) {
            let step = (segment.file_size / 64).max(1);
            hits.extend((0..64).map(|n| FileOffset(segment.offset.wrapping_add(step * n))));
        }
    }
    hits.sort_unstable();
    hits.dedup();
    let module = Module {
        key: ModuleKey(0),
        time: TimeNs(0),
        path: String::new(),
        build_id: None,
        device: 0,
        inode: 0,
        size: 0,
        main: false,
        state: ModuleState::Opened,
    };
    let options = ResolveOptions {
        threads: 1,
        ..ResolveOptions::default()
    };
    let symbols = resolve_module(&module, &hits, &OneFile(file), &options);
    let mut end = 0;
    for function in &symbols.functions {
        assert!(function.start.0 >= end && function.size > 0, "{symbols:?}");
        end = function.start.0.saturating_add(function.size);
        let mut line_end = function.start.0;
        for lines in &function.lines {
            assert!(line_end <= lines.start.0, "{function:?}");
            assert!(
                lines.start < lines.end && lines.end.0 <= end,
                "{function:?}"
            );
            assert!(!lines.frames.is_empty(), "{function:?}");
            line_end = lines.end.0;
        }
        let hit = |hit: &FileOffset| hit.0 >= function.start.0 && hit.0 < end;
        assert!(hits.iter().any(hit), "{function:?}");
    }
    symbols.functions.len()
}
