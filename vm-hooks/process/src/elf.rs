//! What adapters need of ELF (gABI chapters 4 and 5), bytes in and values out: no
//! function here does I/O, so that all of them can be fuzzed.
//!
//! goblin decodes the single structures. It is never given a whole untrusted file:
//! the caller reads a bounded range, checks the count, and hands over just that.

use goblin::container::Ctx;
use goblin::elf::{Elf, dynamic, note, program_header, section_header, sym};
use vmscope_records::{Arch, BuildId};

use crate::MemoryError;

/// The first bytes of an ELF file that [`parse_header`] needs (`Elf64_Ehdr`).
pub const HEADER_BYTES: usize = 64;
/// More program headers than this are not believed. A core file has one for each
/// mapping, which `vm.max_map_count` bounds (65,530 by default, more on servers).
pub const MAX_SEGMENTS: u64 = 1 << 18;
/// More section headers than this are not believed. Only object files with a section
/// for each function have more than a hundred or so.
pub const MAX_SECTIONS: u64 = 1 << 17;
/// Notes are looked through up to this size: a build-id's is 36 bytes.
pub const MAX_NOTE_BYTES: u64 = 1 << 16;

/// Where an ELF file's tables are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElfHeader {
    ctx: Ctx,
    /// `e_type`: `ET_EXEC`, `ET_DYN`, `ET_CORE`, …
    pub kind: u16,
    /// Which processor it is for.
    pub arch: Arch,
    /// Offset of the program headers, 0 for none.
    pub segments_at: u64,
    /// How many there are, as the header says: 0xffff (`PN_XNUM`) when
    /// [`Section::info`] of the first section holds the number.
    pub segments: u16,
    /// Offset of the section headers, 0 for none.
    pub sections_at: u64,
    /// How many there are, as the header says: 0 when [`Section::size`] of the first
    /// holds the number.
    pub sections: u16,
    /// The section that holds the names of sections; 0 for none.
    pub section_names: u16,
}

/// A program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `p_type`: `PT_LOAD`, `PT_NOTE`, …
    pub kind: u32,
    /// Whether it is mapped executable.
    pub executable: bool,
    /// Where in the file it is.
    pub offset: u64,
    /// How many bytes in the file.
    pub file_bytes: u64,
    /// Its address before relocation by the load bias.
    pub address: u64,
    /// How many bytes in memory.
    pub memory_bytes: u64,
    /// Its alignment, in memory and (for notes) of what is in it.
    pub align: u64,
}

/// A section header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where its name is in the section of names.
    pub name_at: u64,
    /// `sh_type`: `SHT_SYMTAB`, `SHT_DYNSYM`, `SHT_NOTE`, …
    pub kind: u32,
    /// Where in the file it is.
    pub offset: u64,
    /// How many bytes.
    pub size: u64,
    /// Another section: a symbol table's strings.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// Its alignment.
    pub align: u64,
}

/// A symbol, by the offset of its name in the string table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSymbol {
    /// Where in the string table its name begins.
    pub name_at: u64,
    /// Its value: an address before relocation by the load bias, unless
    /// `absolute`.
    pub value: u64,
    /// Its size in bytes, 0 where it is not known.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// Whether its value is not relocated (`SHN_ABS`).
    pub absolute: bool,
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// Code.
    Function,
    /// A variable.
    Object,
    /// Not said.
    Other,
}

impl ElfHeader {
    /// The size of a pointer in bytes.
    #[must_use]
    pub fn pointer_bytes(&self) -> usize {
        if self.ctx.is_big() { 8 } else { 4 }
    }

    /// Whether numbers are little-endian.
    #[must_use]
    pub fn is_little_endian(&self) -> bool {
        self.ctx.is_little_endian()
    }

    /// The size of one program header in bytes.
    #[must_use]
    pub fn segment_bytes(&self) -> usize {
        program_header::ProgramHeader::size(self.ctx)
    }

    /// The size of one section header in bytes.
    #[must_use]
    pub fn section_bytes(&self) -> usize {
        section_header::SectionHeader::size(self.ctx)
    }

    /// The size of one symbol in bytes.
    #[must_use]
    pub fn symbol_bytes(&self) -> usize {
        sym::Sym::size(self.ctx.container)
    }
}

/// Reads the header from a file's first [`HEADER_BYTES`] bytes.
///
/// # Errors
///
/// [`ElfError::Malformed`] when they are not an ELF header, or its tables have
/// entries of another size than this ELF class has.
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

/// Reads program headers; what is left at the end of `bytes` is ignored.
///
/// # Errors
///
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
        offset: segment.p_offset,
        file_bytes: segment.p_filesz,
        address: segment.p_vaddr,
        memory_bytes: segment.p_memsz,
        align: segment.p_align,
    });
    Ok(segments.collect())
}

/// Reads section headers; what is left at the end of `bytes` is ignored.
///
/// # Errors
///
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
        offset: section.sh_offset,
        size: section.sh_size,
        link: section.sh_link,
        info: section.sh_info,
        align: section.sh_addralign,
    });
    Ok(sections.collect())
}

/// Reads those symbols of a piece of a symbol table that name an address: neither
/// undefined ones, nor sections, files and thread-local variables. What is left at
/// the end of `bytes` is ignored.
///
/// # Errors
///
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

/// A note: its type, its owner and its content.
pub(crate) struct Note<'a> {
    pub kind: u32,
    pub owner: &'a str,
    pub content: &'a [u8],
}

/// The notes in `bytes` up to the first that is none.
pub(crate) fn notes<'a>(
    bytes: &'a [u8],
    align: u64,
    header: &ElfHeader,
) -> impl Iterator<Item = Note<'a>> + use<'a> {
    // Notes are aligned to 4 bytes whatever the segment says, unless that is 8
    // (gABI "Note Section", and binutils since 2.30).
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

/// The entries of a dynamic section: tag and value, up to the one that ends it.
///
/// # Errors
///
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

/// The build-id among the notes in `bytes`, which are aligned to `align`.
#[must_use]
pub fn parse_build_id(bytes: &[u8], align: u64, header: &ElfHeader) -> Option<BuildId> {
    notes(bytes, align, header)
        .find(|note| note.kind == note::NT_GNU_BUILD_ID && note.owner == "GNU")
        .and_then(|note| BuildId::new(note.content))
}

/// Why an ELF file or image could not be made sense of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// A structure is not what it should be.
    #[error("the ELF {what} can't be read")]
    Malformed {
        /// Which part.
        what: &'static str,
        /// What goblin says.
        #[source]
        source: goblin::error::Error,
    },
    /// A table's entries have an impossible size.
    #[error("ELF {what} of {size} bytes each, where there are only ones of {expected}")]
    EntrySize {
        /// Which table.
        what: &'static str,
        /// What the header says.
        size: u16,
        /// What it must be.
        expected: usize,
    },
    /// More than is believed.
    #[error("{count} (bytes of) ELF {what}, where at most {cap} are believed")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// What the file says.
        count: u64,
        /// The limit.
        cap: u64,
    },
    /// A table is said to lie outside of its file.
    #[error("the ELF {what} ({length} bytes at {offset:#x}) can't be read from the file")]
    Io {
        /// Which table.
        what: &'static str,
        /// Where it should be.
        offset: u64,
        /// How long it should be.
        length: u64,
        /// What the system says; `UnexpectedEof` when the file ends before.
        #[source]
        source: std::io::Error,
    },
    /// The image in the target's memory can't be read.
    #[error("the ELF image can't be read from memory")]
    Memory(#[from] MemoryError),
    /// It is ELF, but not a core file.
    #[error("this ELF file is not a core file (e_type is {kind})")]
    NotACore {
        /// Its type.
        kind: u16,
    },
}
