//! The recording: one append-only file of framed, checksummed, compressed chunks.
//!
//! [`Writer`] makes one, [`Reader`] reads one, whole or damaged; [`KeepLast`] holds
//! only the newest part in memory until it is saved. `FORMAT.md` beside this
//! crate's `Cargo.toml` describes the bytes.

mod chunk;
mod file;
mod frame;
mod gather;
mod keep;
mod lives;
mod mappings;
mod reader;
mod state;
mod writer;

pub use chunk::{Chunk, Item};
pub use file::{RecordingFile, create_private};
pub use frame::{MAX_RAW_BYTES, VERSION_MAJOR, VERSION_MINOR};
#[doc(hidden)]
pub use gather::plain_recording;
pub use keep::KeepLast;
pub use reader::{Damage, Ending, ReadError, Reader};
pub use writer::{Store, WriteError, Writer, Written};
