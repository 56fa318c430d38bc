//! Where a JVM's perf data is: in the file that it maps, else in its memory.

use std::sync::Arc;

use vmscope_process::{MemoryError, ModuleFile, ProcessView, ReadAt as _};
use vmscope_records::Avma;

use super::format::{FormatError, HEADER_BYTES, Layout, MAX_BYTES, Slot};
use crate::layout::VmStructs;

/// Why a JVM's perf data can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// It keeps none.
    #[error("the JVM keeps no perf data (-XX:-UsePerfData)")]
    Off,
    /// No file of it is mapped, and where it is in memory is not known.
    #[error("the JVM's perf data is not to be found: no file of it is mapped")]
    NotFound,
    /// Its memory can't be read.
    #[error("the JVM's perf data can't be read from its memory")]
    Memory(#[from] MemoryError),
    /// Its file can't be read.
    #[error("the JVM's perf data can't be read from its file")]
    File(#[from] std::io::Error),
    /// It is not as it should be.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl PerfDataError {
    /// Whether it may be there when the VM has got further in its start.
    #[must_use]
    pub fn is_early(&self) -> bool {
        matches!(self, Self::Format(FormatError::NotReady))
    }
}

/// Where perf data is read from.
#[derive(Clone, Debug)]
pub enum Place {
    /// The file that the JVM maps. It can still be read when the JVM is over.
    File(Arc<ModuleFile>),
    /// Its memory.
    Memory {
        /// The first byte.
        start: Avma,
        /// How many bytes there are.
        capacity: usize,
    },
}

/// A JVM's perf data as it was read last.
#[derive(Debug)]
pub struct PerfData {
    place: Place,
    layout: Layout,
    bytes: Vec<u8>,
}

impl PerfData {
    /// Finds and reads the perf data of `process`: the file that is mapped into it as
    /// `hsperfdata_USER/PID`, else where `memory` leads to.
    ///
    /// # Errors
    ///
    /// [`PerfDataError`].
    pub fn open(process: &ProcessView, memory: Option<PerfMemory>) -> Result<Self, PerfDataError> {
        let in_file = mapped_file(process).map(Place::File);
        let opened = in_file.map(|place| Self::at(place, process));
        match (opened, memory) {
            (Some(Ok(data)), _) => Ok(data),
            (_, Some(memory)) => Self::at(memory.place(process)?, process),
            (Some(Err(error)), None) => Err(error),
            (None, None) => Err(PerfDataError::NotFound),
        }
    }

    fn at(place: Place, process: &ProcessView) -> Result<Self, PerfDataError> {
        let capacity = match &place {
            Place::File(file) => usize::try_from(file.len_now()?).unwrap_or(MAX_BYTES),
            Place::Memory { capacity, .. } => *capacity,
        };
        let mut header = vec![0; capacity.min(HEADER_BYTES)];
        place.read(process, &mut header)?;
        let (used, _) = Layout::extent_of(&header)?;
        let mut bytes = vec![0; used.min(capacity).min(MAX_BYTES)];
        place.read(process, &mut bytes)?;
        let layout = Layout::parse(&bytes)?;
        Ok(Self {
            place,
            layout,
            bytes,
        })
    }

    /// Reads the values again; whether there are new entries, so that what was looked
    /// up is to be looked up again.
    ///
    /// # Errors
    ///
    /// [`PerfDataError`]; what was read before stays.
    pub fn refresh(&mut self, process: &ProcessView) -> Result<bool, PerfDataError> {
        self.place.read(process, &mut self.bytes)?;
        if !self.layout.is_outdated(&self.bytes) {
            return Ok(false);
        }
        *self = Self::at(self.place.clone(), process)?;
        Ok(true)
    }

    /// Where it is read from.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Where its values are.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its bytes as they were read last.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number `name`.
    #[must_use]
    pub fn long(&self, name: &str) -> Option<i64> {
        self.layout.slot(name)?.long(&self.bytes)
    }

    /// The text `name`; `None` also where it is empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let text = self.layout.slot(name)?.text(&self.bytes)?;
        (!text.is_empty()).then_some(text)
    }

    /// The number that is at `slot`; 0 where there is none.
    #[must_use]
    pub fn long_at(&self, slot: Slot) -> i64 {
        slot.long(&self.bytes).unwrap_or_default()
    }
}

impl Place {
    /// Fills `buffer` from the first byte on.
    fn read(&self, process: &ProcessView, buffer: &mut [u8]) -> Result<(), PerfDataError> {
        match self {
            Place::File(file) => {
                if file.read_some(0, buffer)? < buffer.len() {
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
            }
            Place::Memory { start, .. } => process.memory().read_into(*start, buffer)?,
        }
        Ok(())
    }
}

/// The perf data file that `process` has mapped, if it can be opened, and is its
/// user's or root's. The process has mapped this very file: another JVM's of the same
/// inner pid, in a `/tmp` that two containers share, is not taken for it.
fn mapped_file(process: &ProcessView) -> Option<Arc<ModuleFile>> {
    let maps = process.mappings();
    let is_it = |path: &[u8]| {
        let mut parts = path.rsplit(|byte| *byte == b'/');
        let number = parts.next().unwrap_or_default();
        let folder = parts.next().unwrap_or_default();
        folder.starts_with(b"hsperfdata_")
            && !number.is_empty()
            && number.iter().all(u8::is_ascii_digit)
    };
    let entry = maps.iter().find(|entry| entry.path().is_some_and(is_it))?;
    let file = process.open_mapped(entry).ok()?;
    let owner = owner_of(&file)?;
    (owner == 0 || Some(owner) == process.user()).then_some(file)
}

fn owner_of(file: &ModuleFile) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Some(file.metadata().ok()??.uid())
}

/// The variables in which a JVM has where its perf data is.
#[derive(Clone, Copy, Debug)]
pub struct PerfMemory {
    start: Avma,
    capacity: Avma,
}

impl PerfMemory {
    /// Where `structs` say that they are; `None` where they do not.
    #[must_use]
    pub fn find(structs: &VmStructs) -> Option<Self> {
        Some(Self {
            start: structs.optional_static("PerfMemory", "_start")?,
            capacity: structs.optional_static("PerfMemory", "_capacity")?,
        })
    }

    fn place(self, process: &ProcessView) -> Result<Place, PerfDataError> {
        let memory = process.memory();
        let start = memory.read_pointer(self.start)?;
        let capacity = memory.read_u64(self.capacity)?;
        if start.0 == 0 {
            return Err(PerfDataError::Off);
        }
        let capacity = usize::try_from(capacity)
            .unwrap_or(MAX_BYTES)
            .min(MAX_BYTES);
        Ok(Place::Memory { start, capacity })
    }
}
