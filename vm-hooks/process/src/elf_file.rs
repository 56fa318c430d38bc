//! Build-id, load bias and symbols of an ELF file. Reads headers at once, tables on demand.

mod prefixes;

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

use goblin::elf::{program_header, section_header};
use vmscope_records::{Avma, BuildId};

use crate::elf::{
    HEADER_BYTES, MAX_NOTE_BYTES, MAX_SECTIONS, MAX_SEGMENTS, parse_build_id, parse_header,
    parse_sections, parse_segments, parse_symbols,
};
use crate::{ElfError, ElfHeader, MapEntry, RawSymbol, ReadAt, Section, Segment, SymbolKind};

/// A section's addresses before relocation, and its contents.
pub type SectionBytes = (Range<u64>, Vec<u8>);

/// Cap per symbol table. Browsers have about a million symbols.
const MAX_SYMBOLS: u64 = 8 << 20;
/// Cap on string tables. C++ names of a browser take about 150 MB.
const MAX_STRING_BYTES: u64 = 256 << 20;
/// Search orders of symbol tables.
const ALL_FIRST: [u32; 2] = [section_header::SHT_SYMTAB, section_header::SHT_DYNSYM];
const EXPORTED_FIRST: [u32; 2] = [section_header::SHT_DYNSYM, section_header::SHT_SYMTAB];
const MAX_SECTION_NAMES: u64 = 4 << 20;
/// Takes 48 KiB: the allocator would return larger pieces to the kernel, which clears them for the next.
const SYMBOLS_AT_ONCE: u64 = 1 << 11;
/// Symbols that some linkers make local in `.symtab` only: `_init` and `_fini`. A few more, for others.
const LOCAL_IN_SYMTAB: u64 = 8;
/// Longer names are truncated.
const MAX_NAME_BYTES: usize = 4096;

/// An open ELF file.
pub struct ElfFile {
    file: Arc<dyn ReadAt>,
    header: ElfHeader,
    segments: Vec<Segment>,
    sections: OnceLock<Vec<Section>>,
}

/// Difference between run-time addresses and addresses in an ELF file. Wraps: a link address may
/// exceed the load address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadBias(pub u64);

impl LoadBias {
    /// Run-time address of `address` in the file's tables.
    #[must_use]
    pub const fn apply(self, address: u64) -> Avma {
        Avma(address.wrapping_add(self.0))
    }
}

/// A symbol at its run-time address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name in the file (mangled); invalid UTF-8 is replaced.
    pub name: String,
    /// Run-time address.
    pub address: Avma,
    /// Size in bytes, 0 if unknown.
    pub size: u64,
    /// Code or data.
    pub kind: SymbolKind,
}

impl std::fmt::Debug for ElfFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ElfFile")
            .field("header", &self.header)
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}

impl ElfFile {
    /// Reads the header and the program headers of `file`.
    ///
    /// # Errors
    /// [`ElfError`] if `file` is no ELF file or its header has invalid table locations.
    pub fn open(file: Arc<dyn ReadAt>) -> Result<Self, ElfError> {
        let header = parse_header(&read(&*file, "header", 0, HEADER_BYTES as u64)?)?;
        let mut elf = Self {
            file,
            header,
            segments: Vec::new(),
            sections: OnceLock::new(),
        };
        let mut count = u64::from(header.segments);
        if header.segments == PN_XNUM {
            // gABI: a larger number is in the first section header.
            count = elf
                .first_section()?
                .map_or(0, |section| section.info)
                .into();
        }
        if header.segments_at != 0 {
            let each = header.segment_bytes();
            let what = "program headers";
            let bytes = elf.table(what, header.segments_at, count, each, MAX_SEGMENTS)?;
            elf.segments = parse_segments(&bytes, &header)?;
        }
        Ok(elf)
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &ElfHeader {
        &self.header
    }

    /// The program headers.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Section headers, read on first use.
    ///
    /// # Errors
    /// [`ElfError`] if their location is invalid.
    pub fn sections(&self) -> Result<&[Section], ElfError> {
        if let Some(sections) = self.sections.get() {
            return Ok(sections);
        }
        let mut sections = Vec::new();
        if let Some(first) = self.first_section()? {
            let count = match self.header.sections {
                0 => first.size,
                count => u64::from(count),
            };
            let (what, at) = ("section headers", self.header.sections_at);
            let each = self.header.section_bytes();
            let bytes = self.table(what, at, count, each, MAX_SECTIONS)?;
            sections = parse_sections(&bytes, &self.header)?;
        }
        Ok(self.sections.get_or_init(|| sections))
    }

    /// Whether a section named `name` exists. Files stripped of section headers have none.
    ///
    /// # Errors
    /// [`ElfError`] if the location of section headers is invalid.
    pub fn has_section(&self, name: &str) -> Result<bool, ElfError> {
        Ok(self.section_named(name)?.is_some())
    }

    /// Addresses before relocation and contents of the section named `name`; `None` without it, or
    /// if the file lacks its contents.
    ///
    /// # Errors
    /// [`ElfError`] if it exceeds `cap` bytes, or lies outside the file.
    pub fn section(&self, name: &str, cap: u64) -> Result<Option<SectionBytes>, ElfError> {
        let Some(section) = self.section_named(name)? else {
            return Ok(None);
        };
        if section.kind == section_header::SHT_NOBITS {
            return Ok(None);
        }
        let bytes = self.table("section", section.offset, section.size, 1, cap)?;
        let end = section.address.saturating_add(section.size);
        Ok(Some((section.address..end, bytes)))
    }

    fn section_named(&self, name: &str) -> Result<Option<&Section>, ElfError> {
        let sections = self.sections()?;
        let names = sections.get(usize::from(self.header.section_names));
        let Some(names) = names.filter(|_| self.header.section_names != 0) else {
            return Ok(None);
        };
        let what = "section names";
        let bytes = self.table(what, names.offset, names.size, 1, MAX_SECTION_NAMES)?;
        Ok(sections.iter().find(|section| {
            let at = usize::try_from(section.name_at).unwrap_or(usize::MAX);
            let rest = bytes
                .get(at..)
                .and_then(|rest| rest.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        }))
    }

    /// Build-id from mapped notes, else from sections.
    ///
    /// # Errors
    /// [`ElfError`] if the location of notes is invalid.
    pub fn build_id(&self) -> Result<Option<BuildId>, ElfError> {
        let segments = self.segments.iter();
        let mapped = segments.filter(|segment| segment.kind == program_header::PT_NOTE);
        for note in mapped {
            let found = self.build_id_in(note.offset, note.file_bytes, note.align)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let sections = self.sections()?.iter();
        for note in sections.filter(|section| section.kind == section_header::SHT_NOTE) {
            let found = self.build_id_in(note.offset, note.size, note.align)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Load bias, from one mapping of the file; `None` if no segment fits the mapping.
    #[must_use]
    pub fn bias(&self, mapping: &MapEntry) -> Option<LoadBias> {
        self.bias_of(mapping.start, mapping.offset.get(), mapping.executable)
    }

    /// Likewise for a mapping that begins at `start` with the file's byte at `offset`.
    #[must_use]
    pub fn bias_of(&self, start: Avma, offset: u64, executable: bool) -> Option<LoadBias> {
        let loads = || {
            let loads = self.segments.iter();
            // Segments that share a page map it twice; permissions distinguish them.
            loads.filter(|segment| {
                segment.is_loaded() && segment.file_bytes > 0 && segment.executable == executable
            })
        };
        // A mapping begins at the page of its segment, unless a split (mprotect) cut it. `p_align`
        // is useless here: it may exceed the page size.
        let begins =
            |page: u64| loads().find(|segment| segment.offset - segment.offset % page == offset);
        let segment = PAGE_BYTES.into_iter().find_map(begins).or_else(|| {
            let end = |segment: &Segment| segment.offset.saturating_add(segment.file_bytes);
            loads().find(|segment| segment.offset <= offset && offset < end(segment))
        })?;
        let mapped_as = segment
            .address
            .wrapping_add(offset.wrapping_sub(segment.offset));
        Some(LoadBias(start.get().wrapping_sub(mapped_as)))
    }

    /// Offset in the file of an address before relocation; `None` for addresses without bytes in the file.
    #[must_use]
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        segments.find_map(|segment| {
            let into = address.checked_sub(segment.address)?;
            let is_there = segment.is_loaded() && into < segment.file_bytes;
            is_there.then(|| segment.offset.checked_add(into))?
        })
    }

    /// Symbols at run-time addresses, in the order of `names`. Searches `.dynsym` (small) first,
    /// then `.symtab` for missing names, one pass each. The first of several symbols with one name
    /// counts.
    ///
    /// # Errors
    /// [`ElfError`] if the location of a symbol table is invalid.
    pub fn find(&self, names: &[&str], bias: LoadBias) -> Result<Vec<Option<Symbol>>, ElfError> {
        let mut found: Vec<Option<Symbol>> = vec![None; names.len()];
        let mut missing = names.len();
        if missing == 0 {
            return Ok(found);
        }
        self.visit(EXPORTED_FIRST, &mut |strings, raw| {
            for (name, slot) in names.iter().zip(&mut found) {
                if slot.is_none() && strings.is(raw.name_at, name.as_bytes()) {
                    *slot = Some(symbol((*name).to_owned(), raw, bias));
                    missing -= 1;
                }
            }
            if missing == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(found)
    }

    /// Passes every symbol with an address to `visitor` until it breaks, `.symtab` first: the name
    /// (its first 4,096 bytes) and the symbol.
    ///
    /// # Errors
    /// [`ElfError`] if the location of a symbol table is invalid.
    pub fn for_each_symbol(
        &self,
        visitor: &mut dyn FnMut(&[u8], &RawSymbol) -> ControlFlow<()>,
    ) -> Result<(), ElfError> {
        self.visit(ALL_FIRST, &mut |strings, raw| {
            visitor(strings.name(raw.name_at), raw)
        })
    }

    /// Names in the dynamic symbols' string table, without order: imported and exported symbols,
    /// needed libraries, versions. `None` for a program that is not dynamically linked, or without
    /// section headers.
    ///
    /// # Errors
    /// [`ElfError`] if the location of the table is invalid.
    pub fn dynamic_names(&self) -> Result<Option<Vec<Vec<u8>>>, ElfError> {
        let sections = self.sections()?;
        let table = sections
            .iter()
            .find(|section| section.kind == section_header::SHT_DYNSYM);
        let strings = table.map(|table| self.strings_of(table)).transpose()?;
        Ok(strings.flatten().map(|strings| {
            let names = strings.0.split(|byte| *byte == 0);
            let names = names.filter(|name| !name.is_empty());
            names.map(<[u8]>::to_vec).collect()
        }))
    }

    fn visit(
        &self,
        tables: [u32; 2],
        visitor: &mut dyn FnMut(&Strings, &RawSymbol) -> ControlFlow<()>,
    ) -> Result<(), ElfError> {
        for kind in tables {
            let Some(table) = self.table_of(kind)? else {
                continue;
            };
            let Some(strings) = self.strings_of(table)? else {
                continue;
            };
            let all = 0..self.symbols_in(table)?;
            let end = self.visit_range(table, all, &mut |symbol| visitor(&strings, symbol))?;
            if end.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Passes the symbols of a table with these numbers to `visitor` until it breaks.
    fn visit_range(
        &self,
        table: &Section,
        range: Range<u64>,
        visitor: &mut dyn FnMut(&RawSymbol) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ElfError> {
        self.pieces(table, range, |piece| {
            let mut symbols = parse_symbols(piece, &self.header)?.into_iter();
            Ok(symbols.try_for_each(|symbol| visitor(&symbol)))
        })
    }

    /// Passes the bytes of symbols with these numbers to `visitor`, in pieces, until it breaks.
    fn pieces(
        &self,
        table: &Section,
        range: Range<u64>,
        mut visitor: impl FnMut(&[u8]) -> Result<ControlFlow<()>, ElfError>,
    ) -> Result<ControlFlow<()>, ElfError> {
        let each = self.header.symbol_bytes();
        let mut done = range.start;
        while done < range.end {
            let step = (range.end - done).min(SYMBOLS_AT_ONCE);
            let at = table
                .offset
                .saturating_add(done.saturating_mul(each as u64));
            let piece = self.table("symbols", at, step, each, MAX_SYMBOLS)?;
            if visitor(&piece)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            done += step;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The symbol table of this kind.
    fn table_of(&self, kind: u32) -> Result<Option<&Section>, ElfError> {
        let mut sections = self.sections()?.iter();
        Ok(sections.find(|section| section.kind == kind))
    }

    /// Number of symbols in a table.
    fn symbols_in(&self, table: &Section) -> Result<u64, ElfError> {
        let count = table.size / self.header.symbol_bytes() as u64;
        check("symbols", count, MAX_SYMBOLS)?;
        Ok(count)
    }

    /// Tables that hold all symbols together. `.symtab` holds those of `.dynsym`, too, unless a program
    /// has removed many global symbols from it.
    fn tables_of_all(&self) -> Result<Vec<&Section>, ElfError> {
        let [all, exported] = ALL_FIRST;
        let (all, exported) = (self.table_of(all)?, self.table_of(exported)?);
        // `sh_info` of a symbol table: number of its local symbols (gABI).
        let globals = |table: &Section| -> Result<u64, ElfError> {
            Ok(self.symbols_in(table)?.saturating_sub(table.info.into()))
        };
        let is_whole = match (all, exported) {
            (Some(all), Some(exported)) => globals(all)? + LOCAL_IN_SYMTAB >= globals(exported)?,
            _ => false,
        };
        let exported = exported.filter(|_| !is_whole);
        Ok(all.into_iter().chain(exported).collect())
    }

    /// The section with a symbol table's strings.
    fn section_of_strings(&self, table: &Section) -> Result<Option<&Section>, ElfError> {
        let link = usize::try_from(table.link).unwrap_or(usize::MAX);
        Ok(self.sections()?.get(link))
    }

    /// The string table of a symbol table.
    fn strings_of(&self, table: &Section) -> Result<Option<Strings>, ElfError> {
        let Some(section) = self.section_of_strings(table)? else {
            return Ok(None);
        };
        let (at, size) = (section.offset, section.size);
        self.table("symbol names", at, size, 1, MAX_STRING_BYTES)
            .map(|bytes| Some(Strings(bytes)))
    }

    fn build_id_in(&self, at: u64, size: u64, align: u64) -> Result<Option<BuildId>, ElfError> {
        let bytes = read(&*self.file, "notes", at, size.min(MAX_NOTE_BYTES))?;
        Ok(parse_build_id(&bytes, align, &self.header))
    }

    fn first_section(&self) -> Result<Option<Section>, ElfError> {
        if self.header.sections_at == 0 {
            return Ok(None);
        }
        let length = self.header.section_bytes() as u64;
        let bytes = read(
            &*self.file,
            "section headers",
            self.header.sections_at,
            length,
        )?;
        Ok(parse_sections(&bytes, &self.header)?.first().copied())
    }

    fn table(
        &self,
        what: &'static str,
        at: u64,
        count: u64,
        each: usize,
        cap: u64,
    ) -> Result<Vec<u8>, ElfError> {
        check(what, count, cap)?;
        read(&*self.file, what, at, count.saturating_mul(each as u64))
    }
}

/// `e_phnum` of files with more program headers (gABI).
const PN_XNUM: u16 = 0xffff;
/// Linux page sizes on supported architectures; core files may come from other machines.
const PAGE_BYTES: [u64; 3] = [4096, 16384, 65536];

pub(crate) fn symbol(name: String, raw: &RawSymbol, bias: LoadBias) -> Symbol {
    let address = if raw.absolute {
        Avma(raw.value)
    } else {
        bias.apply(raw.value)
    };
    Symbol {
        name,
        address,
        size: raw.size,
        kind: raw.kind,
    }
}

pub(crate) fn check(what: &'static str, count: u64, cap: u64) -> Result<(), ElfError> {
    if count > cap {
        return Err(ElfError::TooMany { what, count, cap });
    }
    Ok(())
}

fn read(
    file: &dyn ReadAt,
    what: &'static str,
    offset: u64,
    length: u64,
) -> Result<Vec<u8>, ElfError> {
    let bytes = usize::try_from(length).unwrap_or(usize::MAX);
    file.read_at(offset, bytes).map_err(|source| ElfError::Io {
        what,
        offset,
        length,
        source,
    })
}

/// A string table. Comparisons never search for a string's end: a hostile file may place it far
/// away.
pub(crate) struct Strings(pub Vec<u8>);

impl Strings {
    fn from(&self, at: u64) -> &[u8] {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.0.get(at..).unwrap_or_default()
    }

    pub fn is(&self, at: u64, name: &[u8]) -> bool {
        self.from(at)
            .strip_prefix(name)
            .is_some_and(|rest| rest.first() == Some(&0))
    }

    pub fn name(&self, at: u64) -> &[u8] {
        let bytes = self.from(at);
        let bytes = bytes.get(..MAX_NAME_BYTES).unwrap_or(bytes);
        bytes.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
