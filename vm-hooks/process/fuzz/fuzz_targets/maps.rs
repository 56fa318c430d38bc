//! Any bytes as `/proc/PID/maps`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_process::{parse_line, parse_maps};

fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(entry) = parse_line(line) {
            let _ = (entry.path(), entry.is_marked_deleted(), entry.is_vdso());
            let _ = entry.display_name();
        }
    }
    let _ = parse_maps(bytes);
});
