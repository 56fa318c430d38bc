//! A piece of the code cache: a compiled method, or code that the VM made for itself.

use vmscope_records::Avma;

use super::layout::{BlobLayout, CodeBounds};

/// What a blob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlobKind {
    /// A compiled method, or the wrapper of a native one.
    Nmethod,
    /// The template interpreter.
    Interpreter,
    /// A stub, adapter or other routine of the run time.
    Other,
}

/// A blob's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Where it begins.
    pub at: Avma,
    /// Its bytes, from header to end.
    pub size: u32,
    /// First address of its code.
    pub code_begin: Avma,
    /// First address after its code.
    pub code_end: Avma,
    /// Where what is in front of the code begins (constants), from the blob.
    pub content: u32,
    /// Where its header ends; 0 where that is not told.
    pub header_size: u32,
    /// Where its data begins.
    pub data: u32,
    /// Words of its frame; 0 or less where it has none.
    pub frame_size: i32,
    /// From the code's begin, where its frame is complete; negative for never.
    pub frame_complete: i32,
    /// Where its name is.
    pub name_at: Avma,
}

impl Blob {
    /// Reads the header of the blob at `at`; `None` where it can't be one: its parts
    /// do not lie in its block.
    pub(super) fn parse(layout: &BlobLayout, at: Avma, bytes: &[u8]) -> Option<Self> {
        let small = |value: i64| u32::try_from(value).ok();
        let size = small(layout.size.of(bytes)?)?;
        let data = small(layout.data_offset.of(bytes)?)?;
        let header_size = if layout.header_size.is_absent() {
            0
        } else {
            small(layout.header_size.of(bytes)?)?
        };
        let (begin, end) = match layout.code {
            CodeBounds::Addresses { begin, end } => {
                let offset = |address: u64| u32::try_from(address.checked_sub(at.0)?).ok();
                (
                    offset(begin.unsigned_of(bytes)?)?,
                    offset(end.unsigned_of(bytes)?)?,
                )
            }
            CodeBounds::Offset(begin) => (small(begin.of(bytes)?)?, data),
        };
        let content = match layout.content {
            // An address up to JDK 22.
            Some(field) if field.width == 8 => {
                u32::try_from(field.unsigned_of(bytes)?.checked_sub(at.0)?).ok()?
            }
            Some(field) => small(field.of(bytes)?)?,
            None => begin,
        };
        let is_sound = header_size <= size
            && content <= begin
            && begin <= end
            && end <= size
            && data <= size
            && size as usize <= bytes.len();
        let name_at = Avma(layout.name.unsigned_of(bytes)?);
        is_sound.then(|| Blob {
            at,
            size,
            code_begin: Avma(at.0.wrapping_add(u64::from(begin))),
            code_end: Avma(at.0.wrapping_add(u64::from(end))),
            content,
            header_size,
            data,
            frame_size: i32::try_from(layout.frame_size.of(bytes).unwrap_or(0)).unwrap_or(0),
            frame_complete: i32::try_from(layout.frame_complete.of(bytes).unwrap_or(-1))
                .unwrap_or(-1),
            name_at,
        })
    }

    /// What a blob of that name is (`CodeBlob::_name`): there is no other mark before
    /// JDK 23, and names have stayed.
    #[must_use]
    pub fn kind_of(name: &str) -> BlobKind {
        match name {
            "nmethod" | "native nmethod" => BlobKind::Nmethod,
            "Interpreter" => BlobKind::Interpreter,
            _ => BlobKind::Other,
        }
    }
}
