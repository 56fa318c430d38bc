//! Memory of a core file, completed from mapped files.
//!
//! The kernel omits unmodified file mappings (`coredump_filter`, core(5)): code and constants of
//! libraries. The files supply them if their build-ids match those kept by the kernel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use vmscope_records::{Avma, ModuleState};

use crate::elf_memory::build_id_in_memory;
use crate::opening::{build_id, header_of};
use crate::process::display;
use crate::{CoreFile, MapEntry, Memory, MemoryError, ModuleFile, ReadAt as _, Root, SymbolError};

const MAX_FILES: usize = 4096;

/// Size of the page with the ELF header, which the kernel dumps of each ELF file.
const FIRST_PAGE: usize = 4096;

/// Open files by path; `None` if the file on disk differs from the mapped one.
type Opened = HashMap<Vec<u8>, Option<Arc<ModuleFile>>>;

pub(crate) struct CoreMemory {
    core: CoreFile,
    root: Arc<Root>,
    mappings: Arc<[MapEntry]>,
    open: Mutex<Opened>,
}

impl CoreMemory {
    pub fn new(core: CoreFile, root: Arc<Root>, mappings: Arc<[MapEntry]>) -> Self {
        CoreMemory {
            core,
            root,
            mappings,
            open: Mutex::default(),
        }
    }

    fn mapping_at(&self, at: Avma) -> Option<&MapEntry> {
        MapEntry::find(&self.mappings, at).filter(|entry| entry.path().is_some())
    }

    fn file(&self, entry: &MapEntry) -> Option<Arc<ModuleFile>> {
        let path = entry.path()?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(path) {
            return file.clone();
        }
        if open.len() >= MAX_FILES {
            return None;
        }
        let file = open_same(&self.root, path, entry, &self.core, &self.mappings).ok();
        open.insert(path.to_vec(), file.clone());
        file
    }

    /// Reads memory missing in the core file, up to its next piece.
    fn read_file(&self, at: Avma, buffer: &mut [u8]) -> usize {
        let Some((entry, file)) = self
            .mapping_at(at)
            .and_then(|entry| Some((entry, self.file(entry)?)))
        else {
            return 0;
        };
        let end = self
            .core
            .next_piece(at)
            .map_or(entry.end, |next| next.min(entry.end));
        let length = usize::try_from(end.0.saturating_sub(at.0)).unwrap_or(usize::MAX);
        let length = length.min(buffer.len());
        let within = at.0.saturating_sub(entry.start.0);
        match (entry.offset.0.checked_add(within), buffer.get_mut(..length)) {
            (Some(offset), Some(part)) => file.read_some(offset, part).unwrap_or(0),
            _ => 0,
        }
    }
}

impl Memory for CoreMemory {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let mut got = 0;
        loop {
            let rest = buffer.get_mut(got..).unwrap_or_default();
            let Some(from) = at.checked_add(got as u64).filter(|_| !rest.is_empty()) else {
                return Ok(got);
            };
            let mut read = self.core.read_partial(from, rest)?;
            // Truncated memory has unknown contents: the process may have modified it.
            if read == 0 && !self.core.claims(from) {
                read = self.read_file(from, rest);
            }
            if read == 0 {
                return Ok(got);
            }
            got += read;
        }
    }

    fn pointer_bytes(&self) -> usize {
        self.core.pointer_bytes()
    }
}

/// Opens the file of mapping `entry` beneath `root` if it is the file in the core file: by its
/// build-id, or without one by its first page, where the ELF header tells the sizes of all parts.
pub(crate) fn open_same(
    root: &Root,
    path: &[u8],
    entry: &MapEntry,
    memory: &dyn Memory,
    mappings: &[MapEntry],
) -> Result<Arc<ModuleFile>, SymbolError> {
    let not_opened = |why: String| SymbolError::NotOpened {
        path: display(path),
        state: ModuleState::Unreadable(why),
    };
    let file = root
        .open(path)
        .map_err(|error| not_opened(error.to_string()))?;
    let file = Arc::new(file);
    let header_at = header_of(entry, mappings);
    let own = build_id(&file);
    let dumped = header_at.and_then(|at| build_id_in_memory(memory, at).ok().flatten());
    let is_same = match (&own, &dumped) {
        (None, None) => header_at.is_some_and(|at| {
            let mut pages = [[0; FIRST_PAGE]; 2];
            let [on_disk, in_memory] = &mut pages;
            file.read_some(0, on_disk).is_ok_and(|got| got > 0)
                && memory.read_partial(at, in_memory).is_ok()
                && on_disk == in_memory
        }),
        _ => own == dumped,
    };
    match is_same {
        true => Ok(file),
        false => Err(not_opened("the process had mapped another file".to_owned())),
    }
}
