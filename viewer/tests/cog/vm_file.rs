//! The executable file of a VM, made from the VM's memory and symbols.

use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Sym, Writer};
use object::{Endianness, elf};
use vmscope_process::MapEntry;

/// A symbol as `nm` prints it.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Run-time address.
    pub address: u64,
    pub size: u64,
    /// Letter of binding and kind: `T`, `t`, `b` …
    pub letter: char,
    pub name: String,
}

/// Symbols from lines of address, size, letter and name between tabs.
pub fn symbols(lines: &str) -> Vec<Symbol> {
    let symbol = |line: &str| {
        let mut fields = line.split('\t');
        let address = fields.next()?.strip_prefix("0x")?;
        Some(Symbol {
            address: u64::from_str_radix(address, 16).ok()?,
            size: fields.next()?.parse().ok()?,
            letter: fields.next()?.parse().ok()?,
            name: fields.next()?.to_owned(),
        })
    };
    lines.lines().filter_map(symbol).collect()
}

/// A file that a loader maps as `segments`, the last of which has no contents (`.bss`). `contents` are the
/// file's bytes up to the end of the contents; the headers overwrite its start.
pub fn vm_file(segments: &[MapEntry], contents: &[u8], symbols: &[Symbol]) -> Vec<u8> {
    let base = segments[0].start.0;
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    let mut symbols: Vec<(&Symbol, u32)> = symbols
        .iter()
        .filter_map(|symbol| Some((symbol, section_of(symbol.address, segments)?)))
        .collect();
    // Local symbols come first.
    symbols.sort_by_key(|(symbol, _)| !symbol.letter.is_lowercase());
    let note = build_id();

    let note_name = writer.add_section_name(b".note.gnu.build-id");
    let names: Vec<_> = segments
        .iter()
        .map(|segment| writer.add_section_name(section_name(segment)))
        .collect();
    for _ in 0..=segments.len() {
        writer.reserve_section_index();
    }
    writer.reserve_symtab_section_index();
    writer.reserve_strtab_section_index();
    writer.reserve_shstrtab_section_index();
    let strings: Vec<_> = symbols
        .iter()
        .map(|(symbol, _)| writer.add_string(symbol.name.as_bytes()))
        .collect();
    for _ in &symbols {
        writer.reserve_symbol_index(None);
    }
    writer.reserve_file_header();
    writer.reserve_program_headers(u32::try_from(segments.len() + 1).expect("few"));
    let note_at = writer.reserve(note.len() as u64, 4);
    writer.reserve_until(contents.len() as u64);
    writer.reserve_symtab();
    writer.reserve_strtab().expect("short strings");
    writer.reserve_shstrtab().expect("short strings");
    writer.reserve_section_headers();

    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: elf::EM_X86_64,
        e_entry: 0,
        e_flags: elf::FileFlags(0),
    };
    writer.write_file_header(&header).expect("a small file");
    writer.write_align_program_headers();
    for segment in segments {
        let length = segment.end.0 - segment.start.0;
        writer.write_program_header(&ProgramHeader {
            p_type: elf::PT_LOAD,
            p_flags: segment_flags(segment),
            p_offset: segment.offset.0,
            p_vaddr: segment.start.0 - base,
            p_paddr: segment.start.0 - base,
            p_filesz: if is_bss(segment) { 0 } else { length },
            p_memsz: length,
            p_align: 4096,
        });
    }
    writer.write_program_header(&ProgramHeader {
        p_type: elf::PT_NOTE,
        p_flags: elf::PF_R,
        p_offset: note_at,
        p_vaddr: note_at,
        p_paddr: note_at,
        p_filesz: note.len() as u64,
        p_memsz: note.len() as u64,
        p_align: 4,
    });
    writer.write_align(4);
    writer.write(&note);
    let written = usize::try_from(writer.offset()).expect("a small file");
    writer.write(&contents[written..]);
    writer.write_null_symbol();
    for ((symbol, section), string) in symbols.iter().zip(&strings) {
        writer.write_symbol(&Sym {
            section: Some(*section),
            st_name: writer.string_offset(Some(*string)),
            st_info: elf::SymbolInfo::new(binding(symbol), kind(symbol)),
            st_other: elf::SymbolOther(0),
            st_shndx: elf::SymbolSection(0),
            st_value: symbol.address - base,
            st_size: symbol.size,
        });
    }
    writer.write_strtab();
    writer.write_shstrtab();
    writer.write_null_section_header();
    let section = |sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size| SectionHeader {
        sh_name,
        sh_type,
        sh_flags,
        sh_addr,
        sh_offset,
        sh_size,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: 4,
        sh_entsize: 0,
    };
    for (segment, name) in segments.iter().zip(&names) {
        writer.write_section_header(&section(
            writer.section_name_offset(Some(*name)),
            if is_bss(segment) {
                elf::SHT_NOBITS
            } else {
                elf::SHT_PROGBITS
            },
            section_flags(segment),
            segment.start.0 - base,
            segment.offset.0,
            segment.end.0 - segment.start.0,
        ));
    }
    writer.write_section_header(&section(
        writer.section_name_offset(Some(note_name)),
        elf::SHT_NOTE,
        elf::SHF_ALLOC,
        note_at,
        note_at,
        note.len() as u64,
    ));
    let locals = symbols
        .iter()
        .filter(|(symbol, _)| symbol.letter.is_lowercase());
    writer.write_symtab_section_header(u32::try_from(locals.count() + 1).expect("few"));
    writer.write_strtab_section_header();
    writer.write_shstrtab_section_header();
    bytes
}

/// A note with a build id of 20 bytes.
fn build_id() -> Vec<u8> {
    let words = [4_u32, 20, 3].map(u32::to_le_bytes);
    [words.as_flattened(), b"GNU\0", b"vmscope, Cog replica"].concat()
}

/// Number of the section with this address; sections begin at 1.
fn section_of(address: u64, segments: &[MapEntry]) -> Option<u32> {
    let holds = |segment: &MapEntry| (segment.start.0..segment.end.0).contains(&address);
    u32::try_from(segments.iter().position(holds)? + 1).ok()
}

fn is_bss(segment: &MapEntry) -> bool {
    segment.path().is_none()
}

fn section_name(segment: &MapEntry) -> &'static [u8] {
    match segment {
        _ if is_bss(segment) => b".bss",
        MapEntry {
            executable: true, ..
        } => b".text",
        MapEntry { writable: true, .. } => b".data",
        _ => b".rodata",
    }
}

fn segment_flags(segment: &MapEntry) -> elf::ProgramFlags {
    let flag = |is_set, flag| if is_set { flag } else { elf::ProgramFlags(0) };
    elf::PF_R | flag(segment.writable, elf::PF_W) | flag(segment.executable, elf::PF_X)
}

fn section_flags(segment: &MapEntry) -> elf::SectionFlags {
    let flag = |is_set, flag| if is_set { flag } else { elf::SectionFlags(0) };
    elf::SHF_ALLOC
        | flag(segment.writable, elf::SHF_WRITE)
        | flag(segment.executable, elf::SHF_EXECINSTR)
}

fn binding(symbol: &Symbol) -> elf::SymbolBind {
    match symbol.letter {
        'W' => elf::STB_WEAK,
        letter if letter.is_lowercase() => elf::STB_LOCAL,
        _ => elf::STB_GLOBAL,
    }
}

fn kind(symbol: &Symbol) -> elf::SymbolType {
    match symbol.letter {
        't' | 'T' | 'W' => elf::STT_FUNC,
        _ => elf::STT_OBJECT,
    }
}
