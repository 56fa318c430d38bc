//! Loading of debug sections.

use std::borrow::Cow;

use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};

use super::super::elf::{Elf, ElfError};
use super::super::limits;
use super::Dwarf;

/// Debug sections of a file and its supplementary file.
pub(crate) struct Sections<'f> {
    main: DwarfSections<Cow<'f, [u8]>>,
    sup: Option<DwarfSections<Cow<'f, [u8]>>>,
    endian: RunTimeEndian,
}

impl<'f> Sections<'f> {
    /// Whether the file itself has debug information.
    pub(crate) fn are_in(elf: &Elf<'_>) -> bool {
        index(elf, SectionId::DebugInfo).is_some_and(|index| {
            elf.sections[index].kind != goblin::elf::section_header::SHT_NOBITS
        })
    }

    /// Loads at most `limit` bytes in all.
    pub(crate) fn load(elf: &Elf<'f>, sup: Option<&Elf<'f>>, limit: u64) -> Result<Self, ElfError> {
        let mut left = limit;
        let main = load(elf, &mut left)?;
        let sup = sup.map(|sup| load(sup, &mut left)).transpose()?;
        let endian = if elf.context.is_little_endian() {
            RunTimeEndian::Little
        } else {
            RunTimeEndian::Big
        };
        Ok(Sections { main, sup, endian })
    }

    pub(crate) fn dwarf(&self) -> Dwarf<'_> {
        self.main.borrow_with_sup(self.sup.as_ref(), |bytes| {
            EndianSlice::new(bytes, self.endian)
        })
    }
}

fn load<'f>(elf: &Elf<'f>, left: &mut u64) -> Result<DwarfSections<Cow<'f, [u8]>>, ElfError> {
    DwarfSections::load(|id| {
        let wanted = matches!(
            id,
            SectionId::DebugAbbrev
                | SectionId::DebugAddr
                | SectionId::DebugAranges
                | SectionId::DebugInfo
                | SectionId::DebugLine
                | SectionId::DebugLineStr
                | SectionId::DebugRanges
                | SectionId::DebugRngLists
                | SectionId::DebugStr
                | SectionId::DebugStrOffsets
        );
        let Some(index) = index(elf, id).filter(|_| wanted) else {
            return Ok(Cow::Borrowed(&[][..]));
        };
        let bytes = match elf.section_bytes(index, limits::DEBUG_SECTION_BYTES.min(*left)) {
            Err(ElfError::NoContents) => Cow::Borrowed(&[][..]),
            bytes => bytes?,
        };
        *left = left.saturating_sub(bytes.len() as u64);
        Ok(bytes)
    })
}

/// Finds a section by its name, or by the older name of compressed sections.
fn index(elf: &Elf<'_>, id: SectionId) -> Option<usize> {
    elf.section(id.name()).or_else(|| {
        let name = id.name().strip_prefix(".debug_")?;
        elf.section(&format!(".zdebug_{name}"))
    })
}
