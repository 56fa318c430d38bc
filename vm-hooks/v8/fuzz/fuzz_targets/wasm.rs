//! WebAssembly modules: any bytes have names of bounded length, or none; listings lie in their functions' bodies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_v8::wasm::listing::listing;
use vmscope_v8::wasm::module::Module;

fuzz_target!(|bytes: &[u8]| {
    let module = Module::of(bytes);
    assert!(module.url.len() <= 1100);
    for number in 0..8 {
        assert!(module.function(number).len() <= 1024);
        let Some(body) = module.body(number) else {
            continue;
        };
        let place = body.start as usize..body.end as usize;
        let lines = listing(bytes.get(place).unwrap_or_default(), body.start, &module);
        assert!(lines.iter().all(|(pc, _)| body.contains(&pc.0)));
    }
});
