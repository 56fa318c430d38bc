//! Source of a JVM's perf data: its mapped file, else its memory.

use std::sync::Arc;

use vmscope_process::{MemoryError, ModuleFile, ProcessView, ReadAt as _};
use vmscope_records::Avma;

use super::format::{FormatError, HEADER_BYTES, Layout, MAX_BYTES, Slot};
use crate::layout::VmStructs;

/// Error on reading a JVM's perf data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// The JVM keeps no perf data.
    #[error("the JVM keeps no perf data (-XX:-UsePerfData)")]
    Off,
    /// The process maps no file of perf data, and their address is unknown.
    #[error("the JVM's perf data was not found: its file is not mapped")]
    NotFound,
    /// Unreadable memory.
    #[error("cannot read the JVM's perf data from its memory")]
    Memory(#[from] MemoryError),
    /// Unreadable file.
    #[error("cannot read the JVM's perf data from its file")]
    File(#[from] std::io::Error),
    /// Invalid perf data.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl PerfDataError {
    /// Whether perf data may appear later during the VM's start.
    #[must_use]
    pub fn is_early(&self) -> bool {
        matches!(self, Self::Format(FormatError::NotReady))
    }
}

/// Source of perf data.
#[derive(Clone, Debug)]
pub enum Place {
    /// The JVM's mapped file, readable even after the JVM's end.
    File(Arc<ModuleFile>),
    /// The JVM's memory.
    Memory {
        /// First address.
        start: Avma,
        /// Number of bytes.
        capacity: usize,
    },
}

/// A JVM's perf data at the last read.
#[derive(Debug)]
pub struct PerfData {
    place: Place,
    layout: Layout,
    bytes: Vec<u8>,
}

impl PerfData {
    /// Finds and reads the perf data of `process`: the mapped file `hsperfdata_USER/PID`, or
    /// else the data that `memory` points to.
    ///
    /// # Errors
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

    /// Reads the values again. Returns whether entries were added; slots need a new search then.
    ///
    /// # Errors
    /// [`PerfDataError`]; earlier data remain.
    pub fn refresh(&mut self, process: &ProcessView) -> Result<bool, PerfDataError> {
        self.place.read(process, &mut self.bytes)?;
        if !self.layout.is_outdated(&self.bytes) {
            return Ok(false);
        }
        *self = Self::at(self.place.clone(), process)?;
        Ok(true)
    }

    /// Source of the data.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Slots of the values.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of the last read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number `name`.
    #[must_use]
    pub fn long(&self, name: &str) -> Option<i64> {
        self.layout.slot(name)?.long(&self.bytes)
    }

    /// Text `name`; `None` if absent or empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let text = self.layout.slot(name)?.text(&self.bytes)?;
        (!text.is_empty()).then_some(text)
    }

    /// Number at `slot`; 0 for a text or a missing value.
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

/// Opens the perf data file that `process` maps, if owned by the process's user or root. Checks the
/// mapped identity: containers with a common `/tmp` may have equal file names.
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

/// The JVM's variables with the address of its perf data.
#[derive(Clone, Copy, Debug)]
pub struct PerfMemory {
    start: Avma,
    capacity: Avma,
}

impl PerfMemory {
    /// Addresses of the variables in `structs`; `None` if absent.
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
