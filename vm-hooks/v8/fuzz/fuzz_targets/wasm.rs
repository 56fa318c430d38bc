//! Names of WebAssembly modules: any bytes have names of bounded length, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_v8::wasm::names::Names;

fuzz_target!(|module: &[u8]| {
    let names = Names::of(module);
    assert!(names.url.len() <= 1100);
    for number in 0..8 {
        assert!(names.function(number).len() <= 1024);
    }
});
