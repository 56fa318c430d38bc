//! A real JVM's memory with some of it overwritten: whatever is read of it, reading comes
//! to an end in bounded time and memory, and fails with an error if at all.
#![no_main]

mod patched;

use libfuzzer_sys::fuzz_target;
use vmscope_hotspot::pages::Pages;
use vmscope_hotspot::testing::walk;

fuzz_target!(|input: &[u8]| {
    let Some(process) = patched::process(input) else {
        return;
    };
    let pages = Pages::new(process.memory());
    match walk(&process, &pages) {
        Ok(walk) => assert!(walk.nmethods.len() < 100_000),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
