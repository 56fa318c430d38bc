//! Reads and decodes chunks ahead, on a separate thread.

use super::{TraceError, Watch, tell};
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::thread;
use vmscope_records::Content;
use vmscope_records::recording::{Item, ReadError, Reader};

/// The number of parts decoded ahead.
const PARTS: usize = 4;

/// A part ends at this memory, in bytes: small records take a hundred times their bytes in the file.
const PART_MEMORY: usize = 1 << 20;

/// Smaller files are decoded without a thread, which takes longer to start on a busy machine.
const SMALL_BYTES: u64 = 16 << 10;

/// A decoded part of a chunk.
struct Decoded {
    content: Content,
    /// The chunk's offset in the file.
    offset: u64,
    /// Items, each with its memory in bytes.
    items: Vec<(Item, usize)>,
    /// The reader's progress after the chunk.
    progress: (u64, u64),
}

/// Hands the decoded parts of all chunks with `wanted` content on, until `hand_on` wants no more.
fn decode<R: Read + Seek>(
    reader: &mut Reader<R>,
    wanted: Content,
    mut hand_on: impl FnMut(Decoded) -> bool,
) -> Result<(), ReadError> {
    while let Some(chunk) = reader.next_chunk(wanted)? {
        let mut all = chunk.measured_items().peekable();
        while all.peek().is_some() {
            let (mut items, mut sum) = (Vec::new(), 0);
            while sum < PART_MEMORY
                && let Some((item, memory)) = all.next()
            {
                items.push((item, memory));
                sum += memory;
            }
            let decoded = Decoded {
                content: chunk.content(),
                offset: chunk.offset(),
                items,
                progress: reader.progress(),
            };
            if !hand_on(decoded) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Hands the items of all chunks with `wanted` content to `take`, in order, each with its chunk's
/// content and its memory in bytes. `pass` numbers the passes over the file. Where `take` breaks,
/// the pass ends: returns the offset of that chunk, and the file's length.
pub(super) fn each_item<R: Read + Seek + Send>(
    reader: &mut Reader<R>,
    wanted: Content,
    (pass, watch): (u64, Watch),
    mut take: impl FnMut(Content, Item, usize) -> ControlFlow<()>,
) -> Result<Option<(u64, u64)>, TraceError> {
    reader.rewind();
    let mut take_all = |decoded: Decoded| {
        tell(watch, pass, decoded.progress)?;
        for (item, memory) in decoded.items {
            if take(decoded.content, item, memory).is_break() {
                return Ok(Some((decoded.offset, decoded.progress.1)));
            }
        }
        Ok(None)
    };
    if reader.progress().1 <= SMALL_BYTES {
        let mut end = Ok(None);
        decode(reader, wanted, |decoded| {
            end = take_all(decoded);
            matches!(end, Ok(None))
        })?;
        return end;
    }
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(PARTS);
        let decode = move || decode(reader, wanted, |decoded| sender.send(decoded).is_ok());
        let thread = thread::Builder::new().name("decode".into());
        let thread = thread
            .spawn_scoped(scope, decode)
            .map_err(|source| ReadError::Io { offset: 0, source })?;
        // An early return drops the receiver, which ends the other thread.
        for decoded in receiver {
            let end = take_all(decoded)?;
            if end.is_some() {
                return Ok(end);
            }
        }
        match thread.join() {
            Ok(read) => Ok(read.map(|()| None)?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
