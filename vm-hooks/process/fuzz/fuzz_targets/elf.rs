//! Any bytes as an ELF file and as a core file: headers, tables, notes, symbols.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use vmscope_process::{
    CoreFile, ElfFile, LoadBias, ModuleFile, parse_build_id, parse_dynamic, parse_header, parse_sections,
    parse_segments, parse_symbols,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = parse_header(bytes) {
        let rest = bytes.get(64..).unwrap_or_default();
        let _ = parse_segments(rest, &header);
        let _ = parse_sections(rest, &header);
        let _ = parse_symbols(rest, &header);
        let _ = parse_dynamic(rest, &header);
        for align in [0, 1, 4, 8, u64::MAX] {
            let _ = parse_build_id(rest, align, &header);
        }
    }
    let file = Arc::new(ModuleFile::from_image(bytes.into()));
    if let Ok(elf) = ElfFile::open(file.clone()) {
        let _ = elf.sections().map(<[_]>::len);
        let _ = elf.build_id();
        let _ = elf.find(&["main", "_init"], LoadBias(0));
        let _ = elf.find_prefixes(&["_Z", "m"], LoadBias(u64::MAX), 100);
    }
    if let Ok(core) = CoreFile::from_file(file) {
        let _ = core.info();
    }
});
