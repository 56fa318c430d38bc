//! Reads and decodes chunks ahead, on a separate thread.

use super::{TraceError, Watch, tell};
use std::io::{Read, Seek};
use std::sync::mpsc::sync_channel;
use std::thread;
use vmscope_records::Content;
use vmscope_records::recording::{Item, ReadError, Reader};

/// The number of chunks decoded ahead: some tens of MiB at most.
const CHUNKS: usize = 4;

/// A decoded chunk.
struct Decoded {
    content: Content,
    items: Vec<Item>,
    /// The reader's progress after it.
    progress: (u64, u64),
}

/// Hands the items of all chunks with `wanted` content to `take`, in order, with their chunk's
/// content.`pass` numbers the passes over the file.
pub(super) fn each_item<R: Read + Seek + Send>(
    reader: &mut Reader<R>,
    wanted: Content,
    (pass, watch): (u64, Watch),
    mut take: impl FnMut(Content, Item),
) -> Result<(), TraceError> {
    reader.rewind();
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(CHUNKS);
        let decode = move || -> Result<(), ReadError> {
            while let Some(chunk) = reader.next_chunk(wanted)? {
                let decoded = Decoded {
                    content: chunk.content(),
                    items: chunk.items().collect(),
                    progress: reader.progress(),
                };
                if sender.send(decoded).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("decode".into());
        let thread = thread
            .spawn_scoped(scope, decode)
            .map_err(|source| ReadError::Io { offset: 0, source })?;
        // An early return drops the receiver, which ends the other thread.
        for decoded in receiver {
            tell(watch, pass, decoded.progress)?;
            for item in decoded.items {
                take(decoded.content, item);
            }
        }
        match thread.join() {
            Ok(read) => Ok(read?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
