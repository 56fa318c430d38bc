//! Build-id, `.gnu_debuglink` and `.gnu_debugaltlink` of an ELF file.
//!
//! Source: gABI "Note Section"; GDB manual, "Debugging Information in Separate Files".

use goblin::elf::program_header::PT_NOTE;
use vmscope_records::BuildId;

use super::elf::{Elf, string_at};
use super::limits;

const NT_GNU_BUILD_ID: u64 = 3;

/// `.gnu_debuglink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DebugLink {
    /// File name without any `/`.
    pub(crate) name: String,
    /// CRC32 of the whole debug file.
    pub(crate) crc: u32,
}

/// `.gnu_debugaltlink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AltLink {
    /// Absolute, or relative to the file with the link.
    pub(crate) path: String,
    pub(crate) build_id: Option<BuildId>,
}

/// The build-id. Sections come first: program headers of a debug file describe the original file.
pub(crate) fn build_id(elf: &Elf<'_>) -> Option<BuildId> {
    let in_section = elf
        .section(".note.gnu.build-id")
        .and_then(|index| elf.section_bytes(index, limits::NOTE_BYTES as u64).ok())
        .and_then(|bytes| find_build_id(elf, &bytes, 4));
    in_section.or_else(|| {
        elf.segments
            .iter()
            .filter(|s| s.kind == PT_NOTE && s.file_size <= limits::NOTE_BYTES as u64)
            .find_map(|s| {
                let bytes = elf.piece(s.offset, s.file_size, "notes").ok()?;
                find_build_id(elf, &bytes, if s.align == 8 { 8 } else { 4 })
            })
    })
}

/// Searches notes with parts padded to `align` bytes.
fn find_build_id(elf: &Elf<'_>, notes: &[u8], align: usize) -> Option<BuildId> {
    let mut at = 0_usize;
    // Each iteration advances by at least 12 bytes, a note header.
    loop {
        let name_len = usize::try_from(elf.word(notes, at, 4)?).ok()?;
        let data_len = usize::try_from(elf.word(notes, at.checked_add(4)?, 4)?).ok()?;
        let kind = elf.word(notes, at.checked_add(8)?, 4)?;
        let name_at = at.checked_add(12)?;
        let data_at = name_at
            .checked_add(name_len)?
            .checked_next_multiple_of(align)?;
        let data_end = data_at.checked_add(data_len)?;
        let name = notes.get(name_at..name_at.checked_add(name_len)?)?;
        let data = notes.get(data_at..data_end)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return BuildId::new(data);
        }
        at = data_end.checked_next_multiple_of(align)?;
    }
}

/// The debug link, if it is a plain file name.
pub(crate) fn debug_link(elf: &Elf<'_>) -> Option<DebugLink> {
    let index = elf.section(".gnu_debuglink")?;
    let bytes = elf.section_bytes(index, limits::LINK_BYTES as u64).ok()?;
    let name_len = bytes.iter().position(|byte| *byte == 0)?;
    let name = string_at(&bytes, 0, limits::LINK_BYTES);
    let crc = elf.word(&bytes, (name_len + 1).next_multiple_of(4), 4)?;
    let plain = !name.is_empty() && !name.contains('/') && name != ".." && name != ".";
    plain.then_some(DebugLink {
        name,
        crc: u32::try_from(crc).ok()?,
    })
}

pub(crate) fn alt_link(elf: &Elf<'_>) -> Option<AltLink> {
    let index = elf.section(".gnu_debugaltlink")?;
    let bytes = elf.section_bytes(index, limits::LINK_BYTES as u64).ok()?;
    let name_len = bytes.iter().position(|byte| *byte == 0)?;
    let path = string_at(&bytes, 0, limits::LINK_BYTES);
    Some(AltLink {
        path,
        build_id: BuildId::new(bytes.get(name_len + 1..)?),
    })
}
