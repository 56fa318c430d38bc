//! ELF structures (gABI chapters 4 and 5). No function does I/O.
//!
//! goblin decodes single structures, never a whole untrusted file: callers read a bounded range
//! with a checked count.

use goblin::container::Ctx;
use goblin::elf::{Elf, dynamic, note, program_header, section_header, sym};
use vmscope_records::{Arch, BuildId};

use crate::MemoryError;

/// Header size for [`parse_header`] (`Elf64_Ehdr`).
pub const HEADER_BYTES: usize = 64;
/// Cap on program headers. A core file has one per mapping, and `vm.max_map_count` limits mappings
/// (65,530 by default, more on servers).
pub const MAX_SEGMENTS: u64 = 1 << 18;
/// Cap on section headers. Only object files with one section per function have more than about a
/// hundred.
pub const MAX_SECTIONS: u64 = 1 << 17;
/// Cap on notes; a build-id note has 36 bytes.
pub const MAX_NOTE_BYTES: u64 = 1 << 16;

/// Table locations of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElfHeader {
    ctx: Ctx,
    /// `e_type`: `ET_EXEC`, `ET_DYN`, `ET_CORE`, …
    pub kind: u16,
    /// Processor architecture.
    pub arch: Arch,
    /// Address of the program's first instruction (`e_entry`), 0 for none.
    pub entry: u64,
    /// Offset of the program headers, 0 for none.
    pub segments_at: u64,
    /// Number of program headers; 0xffff (`PN_XNUM`) if [`Section::info`] of the first section
    /// holds it.
    pub segments: u16,
    /// Offset of the section headers, 0 for none.
    pub sections_at: u64,
    /// Number of section headers; 0 if [`Section::size`] of the first section holds it.
    pub sections: u16,
    /// Section with the names of sections; 0 for none.
    pub section_names: u16,
}

/// A program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `p_type`: `PT_LOAD`, `PT_NOTE`, …
    pub kind: u32,
    /// Whether it is mapped executable.
    pub executable: bool,
    /// Whether it is mapped writable.
    pub writable: bool,
    /// File offset.
    pub offset: u64,
    /// Size in the file, in bytes.
    pub file_bytes: u64,
    /// Address before relocation by the load bias.
    pub address: u64,
    /// Size in memory, in bytes.
    pub memory_bytes: u64,
    /// Alignment in memory; for notes, also of their contents.
    pub align: u64,
}

impl Segment {
    /// Whether the loader maps it (`PT_LOAD`).
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.kind == program_header::PT_LOAD
    }
}

/// A section header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name offset in the section of names.
    pub name_at: u64,
    /// `sh_type`: `SHT_SYMTAB`, `SHT_DYNSYM`, `SHT_NOTE`, …
    pub kind: u32,
    /// Address before relocation by the load bias; 0 if it is not mapped.
    pub address: u64,
    /// File offset.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Linked section: a symbol table's strings.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// Its alignment.
    pub align: u64,
}

/// A symbol, with the string table offset of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSymbol {
    /// Name offset in the string table.
    pub name_at: u64,
    /// Address before relocation by the load bias, unless `absolute`.
    pub value: u64,
    /// Size in bytes, 0 if unknown.
    pub size: u64,
    /// Code or data.
    pub kind: SymbolKind,
    /// Whether the value needs no relocation (`SHN_ABS`).
    pub absolute: bool,
}

/// Symbol type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// Code.
    Function,
    /// A variable.
    Object,
    /// Unspecified.
    Other,
}

impl ElfHeader {
    /// Pointer size in bytes.
    #[must_use]
    pub fn pointer_bytes(&self) -> usize {
        if self.ctx.is_big() { 8 } else { 4 }
    }

    /// Whether numbers are little-endian.
    #[must_use]
    pub fn is_little_endian(&self) -> bool {
        self.ctx.is_little_endian()
    }

    /// Program header size in bytes.
    #[must_use]
    pub fn segment_bytes(&self) -> usize {
        program_header::ProgramHeader::size(self.ctx)
    }

    /// Section header size in bytes.
    #[must_use]
    pub fn section_bytes(&self) -> usize {
        section_header::SectionHeader::size(self.ctx)
    }

    /// Size of an address in bytes.
    #[must_use]
    pub fn address_bytes(&self) -> usize {
        if self.ctx.container.is_big() { 8 } else { 4 }
    }

    /// Symbol size in bytes.
    #[must_use]
    pub fn symbol_bytes(&self) -> usize {
        sym::Sym::size(self.ctx.container)
    }
}

/// Parses the first [`HEADER_BYTES`] bytes of a file.
///
/// # Errors
/// [`ElfError::Malformed`] if they are no ELF header; [`ElfError::EntrySize`] if table entries have
/// a wrong size for the ELF class.
pub fn parse_header(bytes: &[u8]) -> Result<ElfHeader, ElfError> {
    let malformed = |source| ElfError::Malformed {
        what: "header",
        source,
    };
    let header = Elf::parse_header(bytes).map_err(malformed)?;
    let container = header.container().map_err(malformed)?;
    let endian = header.endianness().map_err(malformed)?;
    let parsed = ElfHeader {
        ctx: Ctx::new(container, endian),
        kind: header.e_type,
        arch: Arch::from_elf_machine(header.e_machine),
        entry: header.e_entry,
        segments_at: header.e_phoff,
        segments: header.e_phnum,
        sections_at: header.e_shoff,
        sections: header.e_shnum,
        section_names: header.e_shstrndx,
    };
    let sizes = [
        (
            "program headers",
            header.e_phoff,
            header.e_phentsize,
            parsed.segment_bytes(),
        ),
        (
            "section headers",
            header.e_shoff,
            header.e_shentsize,
            parsed.section_bytes(),
        ),
    ];
    for (what, at, size, expected) in sizes {
        if at != 0 && usize::from(size) != expected {
            return Err(ElfError::EntrySize {
                what,
                size,
                expected,
            });
        }
    }
    Ok(parsed)
}

/// Parses program headers; ignores an incomplete last one.
///
/// # Errors
/// [`ElfError::Malformed`].
pub fn parse_segments(bytes: &[u8], header: &ElfHeader) -> Result<Vec<Segment>, ElfError> {
    let count = bytes.len() / header.segment_bytes();
    let parsed = program_header::ProgramHeader::parse(bytes, 0, count, header.ctx);
    let parsed = parsed.map_err(|source| ElfError::Malformed {
        what: "program headers",
        source,
    })?;
    let segments = parsed.iter().map(|segment| Segment {
        kind: segment.p_type,
        executable: segment.is_executable(),
        writable: segment.is_write(),
        offset: segment.p_offset,
        file_bytes: segment.p_filesz,
        address: segment.p_vaddr,
        memory_bytes: segment.p_memsz,
        align: segment.p_align,
    });
    Ok(segments.collect())
}

/// Parses section headers; ignores an incomplete last one.
///
/// # Errors
/// [`ElfError::Malformed`].
pub fn parse_sections(bytes: &[u8], header: &ElfHeader) -> Result<Vec<Section>, ElfError> {
    let count = bytes.len() / header.section_bytes();
    if count == 0 {
        return Ok(Vec::new());
    }
    let parsed = section_header::SectionHeader::parse_from(bytes, 0, count, header.ctx);
    let parsed = parsed.map_err(|source| ElfError::Malformed {
        what: "section headers",
        source,
    })?;
    let sections = parsed.iter().map(|section| Section {
        name_at: u64::try_from(section.sh_name).unwrap_or(u64::MAX),
        kind: section.sh_type,
        address: section.sh_addr,
        offset: section.sh_offset,
        size: section.sh_size,
        link: section.sh_link,
        info: section.sh_info,
        align: section.sh_addralign,
    });
    Ok(sections.collect())
}

/// Parses part of a symbol table; ignores an incomplete last symbol. Skips symbols without an
/// address: undefined ones, sections, files and thread-local variables.
///
/// # Errors
/// [`ElfError::Malformed`].
pub fn parse_symbols(bytes: &[u8], header: &ElfHeader) -> Result<Vec<RawSymbol>, ElfError> {
    let count = bytes.len() / header.symbol_bytes();
    let parsed = sym::Sym::parse(bytes, 0, count, header.ctx);
    let parsed = parsed.map_err(|source| ElfError::Malformed {
        what: "symbols",
        source,
    })?;
    let defined = parsed.iter().filter_map(|symbol| {
        let kind = match symbol.st_type() {
            sym::STT_FUNC | sym::STT_GNU_IFUNC => SymbolKind::Function,
            sym::STT_OBJECT | sym::STT_COMMON => SymbolKind::Object,
            sym::STT_NOTYPE => SymbolKind::Other,
            _ => return None,
        };
        let section = u32::try_from(symbol.st_shndx).ok()?;
        (section != section_header::SHN_UNDEF && symbol.st_name != 0).then_some(RawSymbol {
            name_at: u64::try_from(symbol.st_name).ok()?,
            value: symbol.st_value,
            size: symbol.st_size,
            kind,
            absolute: section == section_header::SHN_ABS,
        })
    });
    Ok(defined.collect())
}

/// Offsets of all symbols' names in the string table (`st_name`, the first field of both classes).
pub(crate) fn name_offsets(bytes: &[u8], header: &ElfHeader) -> impl Iterator<Item = usize> {
    let little = header.ctx.is_little_endian();
    bytes
        .chunks_exact(header.symbol_bytes())
        .filter_map(move |symbol| {
            let offset = *symbol.first_chunk()?;
            let offset = match little {
                true => u32::from_le_bytes(offset),
                false => u32::from_be_bytes(offset),
            };
            usize::try_from(offset).ok()
        })
}

pub(crate) struct Note<'a> {
    pub kind: u32,
    pub owner: &'a str,
    pub content: &'a [u8],
}

/// Notes up to the first malformed one.
pub(crate) fn notes<'a>(
    bytes: &'a [u8],
    align: u64,
    header: &ElfHeader,
) -> impl Iterator<Item = Note<'a>> + use<'a> {
    // Notes have 4-byte alignment unless the segment says 8 (gABI "Note Section", binutils since
    // 2.30).
    let align = if align == 8 { 8 } else { 4 };
    note::NoteDataIterator {
        data: bytes,
        size: bytes.len(),
        offset: 0,
        ctx: (align, header.ctx),
    }
    .map_while(Result::ok)
    .map(|note| Note {
        kind: note.n_type,
        owner: note.name,
        content: note.desc,
    })
}

/// Entries (tag, value) of a dynamic section, up to its end mark.
///
/// # Errors
/// [`ElfError::Malformed`].
pub fn parse_dynamic(bytes: &[u8], header: &ElfHeader) -> Result<Vec<(u64, u64)>, ElfError> {
    let whole = program_header::ProgramHeader {
        p_type: program_header::PT_DYNAMIC,
        p_filesz: bytes.len() as u64,
        ..program_header::ProgramHeader::default()
    };
    let parsed = dynamic::Dynamic::parse(bytes, &[whole], header.ctx);
    let parsed = parsed.map_err(|source| ElfError::Malformed {
        what: "dynamic section",
        source,
    })?;
    let entries = parsed.into_iter().flat_map(|dynamic| dynamic.dyns);
    Ok(entries.map(|entry| (entry.d_tag, entry.d_val)).collect())
}

/// Build-id among notes with alignment `align`.
#[must_use]
pub fn parse_build_id(bytes: &[u8], align: u64, header: &ElfHeader) -> Option<BuildId> {
    notes(bytes, align, header)
        .find(|note| note.kind == note::NT_GNU_BUILD_ID && note.owner == "GNU")
        .and_then(|note| BuildId::new(note.content))
}

/// An unreadable ELF file or image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// A malformed structure.
    #[error("cannot read the ELF {what}")]
    Malformed {
        /// The structure.
        what: &'static str,
        /// The error of goblin.
        #[source]
        source: goblin::error::Error,
    },
    /// Table entries have an impossible size.
    #[error("ELF {what} have {size} bytes each instead of {expected}")]
    EntrySize {
        /// The table.
        what: &'static str,
        /// Size in the header, in bytes.
        size: u16,
        /// Correct size, in bytes.
        expected: usize,
    },
    /// A table is too long.
    #[error("too many ELF {what}: {count} (at most {cap} are read)")]
    TooMany {
        /// The table.
        what: &'static str,
        /// Length in the file.
        count: u64,
        /// Maximum length.
        cap: u64,
    },
    /// A table lies outside its file, or reading failed.
    #[error("cannot read the ELF {what} ({length} bytes at {offset:#x}) from the file")]
    Io {
        /// The table.
        what: &'static str,
        /// File offset.
        offset: u64,
        /// Length in bytes.
        length: u64,
        /// The system's error; `UnexpectedEof` if the file is too short.
        #[source]
        source: std::io::Error,
    },
    /// The image in memory is unreadable.
    #[error("cannot read the ELF image from memory")]
    Memory(#[from] MemoryError),
    /// ELF, but no core file.
    #[error("this ELF file is not a core file (e_type is {kind})")]
    NotACore {
        /// Its `e_type`.
        kind: u16,
    },
}
