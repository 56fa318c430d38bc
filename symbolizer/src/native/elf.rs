//! Headers and sections of an ELF file, each read as a bounded piece.
//!
//! goblin decodes single pieces, never the whole file: its `Elf::parse` reads all tables at once
//! and trusts their sizes. Source: System V gABI, "Object Files".

use std::borrow::Cow;

use goblin::container::{Container, Ctx};
use goblin::elf::program_header::{PF_X, PT_LOAD, ProgramHeader};
use goblin::elf::section_header::{
    SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, SHT_NOBITS, SectionHeader,
};
use goblin::elf::{Elf as Goblin, header};

use super::bytes::{FileBytes, ReadError};
use super::decompress::{self, Compression, DecompressError};
use super::limits;

/// `ELFCOMPRESS_ZLIB` and `ELFCOMPRESS_ZSTD` (gABI, "Compressed Sections").
const ELFCOMPRESS_ZLIB: u32 = 1;
const ELFCOMPRESS_ZSTD: u32 = 2;
/// `e_phnum`, if the first section header's `sh_info` has the count.
const PN_XNUM: u16 = 0xffff;
/// `e_shstrndx`, if the first section header's `sh_link` has the index.
const SHN_XINDEX: u16 = 0xffff;

/// An unreadable ELF file, or an unreadable part of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// Wrong magic number, or too short.
    #[error("not an ELF file")]
    NotElf,
    /// goblin rejects a header.
    #[error("cannot decode the {what}")]
    Malformed {
        /// The header.
        what: &'static str,
        /// goblin's error.
        #[source]
        source: goblin::error::Error,
    },
    /// A table with a wrong entry size.
    #[error("the {what} have entries of {actual} bytes instead of {expected}")]
    EntrySize {
        /// The table.
        what: &'static str,
        /// Entry size in the file.
        actual: u64,
        /// Entry size in the specification.
        expected: u64,
    },
    /// An implausible count or size.
    #[error("too many {what}: {actual} (at most {limit} are read)")]
    TooMany {
        /// The counted items.
        what: &'static str,
        /// The file's number.
        actual: u64,
        /// The maximum.
        limit: u64,
    },
    /// A section without bytes in this file (`SHT_NOBITS`).
    #[error("the section has no contents in this file")]
    NoContents,
    /// A damaged compressed section.
    #[error("cannot read a compressed section")]
    Decompress(#[from] DecompressError),
    /// Unreadable bytes.
    #[error("cannot read the {what}")]
    Read {
        /// The unreadable part.
        what: &'static str,
        /// The reason.
        #[source]
        source: ReadError,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) executable: bool,
    pub(crate) offset: u64,
    /// Stated virtual memory address (svma).
    pub(crate) address: u64,
    pub(crate) file_size: u64,
    pub(crate) align: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Empty if the name table is damaged.
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    /// Stated virtual memory address (svma).
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: usize,
    pub(crate) entry_size: u64,
}

impl Section {
    pub(crate) fn is_code(&self) -> bool {
        let wanted = u64::from(SHF_ALLOC | SHF_EXECINSTR);
        self.flags & wanted == wanted
    }

    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

pub(crate) struct Elf<'f> {
    file: &'f dyn FileBytes,
    pub(crate) context: Ctx,
    pub(crate) machine: u16,
    pub(crate) segments: Vec<Segment>,
    /// Empty if the table is missing or damaged.
    pub(crate) sections: Vec<Section>,
    /// Addresses of loaded code, ascending, without overlap.
    code: Vec<(u64, u64)>,
    /// Reason of missing sections, if the header lists some.
    pub(crate) damage: Option<ElfError>,
}

impl<'f> Elf<'f> {
    pub(crate) fn open(file: &'f dyn FileBytes) -> Result<Self, ElfError> {
        // The smallest header, of ELF32, has 52 bytes.
        let head_len = usize::try_from(file.len()).unwrap_or(64).min(64);
        let head = read(file, 0, head_len, "header")?;
        if head_len < 52 || head.get(..4) != Some(&header::ELFMAG[..]) {
            return Err(ElfError::NotElf);
        }
        let parsed = Goblin::parse_header(&head).map_err(|source| ElfError::Malformed {
            what: "header",
            source,
        })?;
        let malformed = |source| ElfError::Malformed {
            what: "header",
            source,
        };
        let container = parsed.container().map_err(malformed)?;
        let context = Ctx::new(container, parsed.endianness().map_err(malformed)?);
        let mut elf = Elf {
            file,
            context,
            machine: parsed.e_machine,
            segments: Vec::new(),
            sections: Vec::new(),
            code: Vec::new(),
            damage: None,
        };
        let first = match elf.read_sections(&parsed) {
            Ok(first) => first,
            Err(error) => {
                elf.damage = Some(error);
                None
            }
        };
        let count = match (parsed.e_phnum, first) {
            (PN_XNUM, Some(first)) => first as usize,
            (count, _) => usize::from(count),
        };
        elf.read_segments(&parsed, count)?;
        Ok(elf)
    }

    /// Reads the section headers. Returns the first header's `sh_info`.
    fn read_sections(&mut self, head: &header::Header) -> Result<Option<u32>, ElfError> {
        const WHAT: &str = "section headers";
        if head.e_shoff == 0 {
            return Ok(None);
        }
        let size = SectionHeader::size(self.context);
        check_entry_size(WHAT, u64::from(head.e_shentsize), size)?;
        let malformed = |source| ElfError::Malformed { what: WHAT, source };
        let bytes = read(self.file, head.e_shoff, size, WHAT)?;
        let first = SectionHeader::parse_from(&bytes, 0, 1, self.context).map_err(malformed)?;
        let Some(first) = first.first() else {
            return Ok(None);
        };
        let count = match head.e_shnum {
            0 => first.sh_size,
            count => u64::from(count),
        };
        let count = at_most(WHAT, count, limits::SECTION_HEADERS)?;
        if count == 0 {
            return Ok(Some(first.sh_info));
        }
        let bytes = read(self.file, head.e_shoff, count * size, WHAT)?;
        let headers =
            SectionHeader::parse_from(&bytes, 0, count, self.context).map_err(malformed)?;
        let names = match head.e_shstrndx {
            SHN_XINDEX => first.sh_link as usize,
            index => usize::from(index),
        };
        self.sections = headers.iter().map(without_name).collect();
        // Sections without names still have types and ranges.
        if let Ok(names) = self.section_bytes(names, limits::SECTION_NAMES_BYTES as u64) {
            let names: Vec<String> = headers
                .iter()
                .map(|header| string_at(&names, header.sh_name, 256))
                .collect();
            for (section, name) in self.sections.iter_mut().zip(names) {
                section.name = name;
            }
        }
        Ok(Some(first.sh_info))
    }

    fn read_segments(&mut self, head: &header::Header, count: usize) -> Result<(), ElfError> {
        const WHAT: &str = "program headers";
        if head.e_phoff == 0 || count == 0 {
            return Ok(());
        }
        let size = ProgramHeader::size(self.context);
        check_entry_size(WHAT, u64::from(head.e_phentsize), size)?;
        let count = at_most(WHAT, count as u64, limits::PROGRAM_HEADERS)?;
        let bytes = read(self.file, head.e_phoff, count * size, WHAT)?;
        let headers = ProgramHeader::parse(&bytes, 0, count, self.context)
            .map_err(|source| ElfError::Malformed { what: WHAT, source })?;
        self.segments = headers
            .iter()
            .map(|header| Segment {
                kind: header.p_type,
                executable: header.p_flags & PF_X != 0,
                offset: header.p_offset,
                address: header.p_vaddr,
                file_size: header.p_filesz,
                align: header.p_align,
            })
            .collect();
        let mut code: Vec<(u64, u64)> = self
            .segments
            .iter()
            .filter(|segment| segment.kind == PT_LOAD && segment.executable)
            .map(|s| (s.address, s.address.saturating_add(s.file_size)))
            .collect();
        code.sort_unstable();
        for range in code {
            match self.code.last_mut() {
                Some(last) if range.0 <= last.1 => last.1 = last.1.max(range.1),
                _ => self.code.push(range),
            }
        }
        Ok(())
    }

    pub(crate) fn section(&self, name: &str) -> Option<usize> {
        self.sections
            .iter()
            .position(|section| section.name == name)
    }

    /// The segment that loads code at a file offset, and the code's address.
    pub(crate) fn address_of(&self, offset: u64) -> Option<(Segment, u64)> {
        if offset >= self.file.len() {
            return None;
        }
        self.segments
            .iter()
            .filter(|segment| segment.kind == PT_LOAD && segment.executable)
            .find_map(|segment| {
                let into = offset.checked_sub(segment.offset)?;
                let address = segment.address.checked_add(into)?;
                (into < segment.file_size).then_some((*segment, address))
            })
    }

    pub(crate) fn is_code_address(&self, address: u64) -> bool {
        let next = self.code.partition_point(|range| range.0 <= address);
        next.checked_sub(1)
            .is_some_and(|index| address < self.code[index].1)
    }

    /// The decompressed bytes of a section, at most `limit`.
    pub(crate) fn section_bytes(
        &self,
        index: usize,
        limit: u64,
    ) -> Result<Cow<'f, [u8]>, ElfError> {
        let section = self.sections.get(index).ok_or(ElfError::NoContents)?;
        if section.kind == SHT_NOBITS {
            return Err(ElfError::NoContents);
        }
        if section.size > limit {
            return Err(ElfError::TooMany {
                what: "bytes of a section",
                actual: section.size,
                limit,
            });
        }
        let raw = self.piece(section.offset, section.size, "section")?;
        if section.flags & u64::from(SHF_COMPRESSED) != 0 {
            return self.decompress(&raw, limit).map(Cow::Owned);
        }
        // The older form, marked by name: "ZLIB", size (8 bytes, big-endian), stream.
        if section.name.starts_with(".zdebug_")
            && let Some((b"ZLIB", rest)) = raw.split_at_checked(4)
            && let Some((size, stream)) = rest.split_first_chunk::<8>()
        {
            let size = u64::from_be_bytes(*size);
            let bytes = decompress::section(Compression::Zlib, stream, size, limit)?;
            return Ok(Cow::Owned(bytes));
        }
        Ok(raw)
    }

    /// `len` bytes of the file.
    pub(crate) fn piece(
        &self,
        offset: u64,
        len: u64,
        what: &'static str,
    ) -> Result<Cow<'f, [u8]>, ElfError> {
        let limit = limits::DEBUG_SECTION_BYTES;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len as u64 <= limit)
            .ok_or(ElfError::TooMany {
                what,
                actual: len,
                limit,
            })?;
        read(self.file, offset, len, what)
    }

    /// Decompresses a section that begins with an `Elf32_Chdr` or `Elf64_Chdr`.
    fn decompress(&self, raw: &[u8], limit: u64) -> Result<Vec<u8>, ElfError> {
        let (size_at, data_at) = match self.context.container {
            Container::Big => (8, 24),
            Container::Little => (4, 12),
        };
        let (kind, size) = match (self.word(raw, 0, 4), self.word(raw, size_at, size_at)) {
            (Some(kind), Some(size)) if raw.len() >= data_at => (kind, size),
            _ => return Err(ElfError::NoContents),
        };
        let kind = match u32::try_from(kind) {
            Ok(ELFCOMPRESS_ZLIB) => Compression::Zlib,
            Ok(ELFCOMPRESS_ZSTD) => Compression::Zstd,
            kind => {
                let kind = kind.unwrap_or(u32::MAX);
                return Err(DecompressError::UnknownKind(kind).into());
            }
        };
        Ok(decompress::section(kind, &raw[data_at..], size, limit)?)
    }

    /// The unsigned number of `len` (at most 8) bytes at `at`, in the file's byte order.
    pub(crate) fn word(&self, bytes: &[u8], at: usize, len: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(len)?)?;
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.context.is_little_endian() {
            bytes.iter().rev().fold(0, fold)
        } else {
            bytes.iter().fold(0, fold)
        })
    }
}

/// The zero-terminated string at `at`, at most `limit` bytes of it.
pub(crate) fn string_at(table: &[u8], at: usize, limit: usize) -> String {
    let rest = table.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(limit)];
    let len = rest.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&rest[..len.unwrap_or(rest.len())]).into_owned()
}

fn read<'f>(
    file: &'f dyn FileBytes,
    offset: u64,
    len: usize,
    what: &'static str,
) -> Result<Cow<'f, [u8]>, ElfError> {
    // Check before the driver allocates memory.
    let file_len = file.len();
    if offset
        .checked_add(len as u64)
        .is_none_or(|end| end > file_len)
    {
        let source = ReadError::OutOfBounds {
            offset,
            len,
            file_len,
        };
        return Err(ElfError::Read { what, source });
    }
    let bytes = file
        .read_at(offset, len)
        .map_err(|source| ElfError::Read { what, source })?;
    Ok(bytes)
}

fn check_entry_size(what: &'static str, actual: u64, expected: usize) -> Result<(), ElfError> {
    let expected = expected as u64;
    if actual == expected {
        return Ok(());
    }
    Err(ElfError::EntrySize {
        what,
        actual,
        expected,
    })
}

fn at_most(what: &'static str, actual: u64, limit: usize) -> Result<usize, ElfError> {
    usize::try_from(actual)
        .ok()
        .filter(|count| *count <= limit)
        .ok_or(ElfError::TooMany {
            what,
            actual,
            limit: limit as u64,
        })
}

fn without_name(header: &SectionHeader) -> Section {
    Section {
        name: String::new(),
        kind: header.sh_type,
        flags: header.sh_flags,
        address: header.sh_addr,
        offset: header.sh_offset,
        size: header.sh_size,
        link: header.sh_link as usize,
        entry_size: header.sh_entsize,
    }
}
