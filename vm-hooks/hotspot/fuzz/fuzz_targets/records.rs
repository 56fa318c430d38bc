//! Arbitrary bytes as a compressed line table: entries ascend and are bounded, in both encodings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_hotspot::layout::encodings::{signed5, unsigned5};
use vmscope_hotspot::method::{class_name, line_table, readable_signature};

fuzz_target!(|bytes: &[u8]| {
    for excess in [0, 1] {
        let lines = line_table(bytes, excess);
        assert!(lines.len() <= bytes.len());
        assert!(lines.is_sorted_by(|one, next| one.from < next.from));
        let (mut at, mut numbers) = (0, 0);
        while unsigned5(bytes, &mut at, excess).is_some() {
            numbers += 1;
        }
        assert!(numbers <= bytes.len() && at == bytes.len());
        let mut at = 0;
        while signed5(bytes, &mut at, excess).is_some() {}
        assert_eq!(at, bytes.len());
    }
    let text = String::from_utf8_lossy(bytes);
    assert!(readable_signature(&text).len() <= 9 * text.len() + 2);
    assert!(class_name(&text).len() <= text.len());
});
