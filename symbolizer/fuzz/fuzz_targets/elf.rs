//! Any bytes as a module, its debug file and what dwz made of that: everything that is
//! read of ELF and DWARF.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vmscope_symbolizer::native::fuzz_elf(bytes);
});
