//! A list of symbols with any bytes: functions that do not overlap, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_symbolizer::native::functions_in_listing;

fuzz_target!(|input: &[u8]| {
    for bias in [0, 1 << 40, u64::MAX] {
        let functions = functions_in_listing(input, bias).unwrap_or_default();
        for two in functions.windows(2) {
            let end = two[0].start.0.checked_add(two[0].size);
            assert!(end.is_some_and(|end| end <= two[1].start.0));
        }
    }
});
