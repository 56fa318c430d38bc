//! Recordings: append-only files of framed, checksummed, compressed chunks.
//!
//! [`Writer`] writes one, [`Reader`] reads one, whole or damaged; [`KeepLast`] keeps the newest
//! part, in a file or in memory. `FORMAT.md` describes the bytes.

mod chunk;
mod file;
mod frame;
mod gather;
mod keep;
mod lives;
mod mappings;
mod newest;
mod reader;
mod residents;
mod state;
mod writer;

pub use chunk::{Chunk, Item};
pub use file::{RecordingFile, create_private, earlier};
pub use frame::{MAX_RAW_BYTES, VERSION_MAJOR, VERSION_MINOR};
#[doc(hidden)]
pub use gather::plain_recording;
pub use keep::KeepLast;
pub use reader::{Damage, Ending, ReadError, Reader};
pub use writer::{Store, WriteError, Writer, Written};
