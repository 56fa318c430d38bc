//! Any bytes as unwind tables and stack: every walk ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_sampler::session::fuzz_tables;

fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_tables(bytes);
});
