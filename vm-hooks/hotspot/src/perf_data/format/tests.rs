use proptest::prelude::*;

use super::*;

/// Perf data in a JVM's layout.
fn made(entries: &[(&str, Value, u8)]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 2, 0, 1]);
    bytes.extend([0; 24]);
    for (name, value, unit) in entries {
        let (data, text_length, kind) = match value {
            Value::Long(value) => (value.to_le_bytes().to_vec(), 0, b'J'),
            Value::Text(text) => {
                let data = [text.as_bytes(), &[0]].concat();
                let length = u32::try_from(data.len()).unwrap();
                (data, length, b'B')
            }
        };
        // Texts have no alignment.
        let data_at = 20 + name.len() + 1;
        let data_at = data_at.next_multiple_of(if kind == b'B' { 1 } else { 8 });
        let length = (data_at + data.len()).next_multiple_of(4);
        let mut entry = vec![0; length];
        for (at, word) in [
            (0, u32::try_from(length).unwrap()),
            (4, 20),
            (8, text_length),
            (16, u32::try_from(data_at).unwrap()),
        ] {
            entry[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        entry[12] = kind;
        entry[14] = *unit;
        entry[20..20 + name.len()].copy_from_slice(name.as_bytes());
        entry[data_at..data_at + data.len()].copy_from_slice(&data);
        bytes.extend(entry);
    }
    let used = u32::try_from(bytes.len()).unwrap();
    bytes[8..12].copy_from_slice(&used.to_le_bytes());
    bytes[24..28].copy_from_slice(&32_u32.to_le_bytes());
    let count = u32::try_from(entries.len()).unwrap();
    bytes[28..32].copy_from_slice(&count.to_le_bytes());
    bytes
}

fn some() -> Vec<u8> {
    made(&[
        ("sun.gc.cause", Value::Text("No GC".to_owned()), 5),
        ("sun.gc.collector.0.time", Value::Long(-7), 3),
        ("x", Value::Long(1 << 40), 2),
        ("ab", Value::Text(String::new()), 5),
    ])
}

#[test]
fn numbers_and_texts_are_found_by_name() {
    let bytes = some();
    let layout = Layout::parse(&bytes).unwrap();
    let value = |name: &str| layout.slot(name).and_then(|slot| slot.value(&bytes));
    assert_eq!(value("sun.gc.cause"), Some(Value::Text("No GC".to_owned())));
    assert_eq!(value("sun.gc.collector.0.time"), Some(Value::Long(-7)));
    assert_eq!(value("x"), Some(Value::Long(1 << 40)));
    assert_eq!(value("ab"), Some(Value::Text(String::new())));
    assert_eq!(value("y"), None);
    assert_eq!(layout.slot("x").unwrap().unit, Unit::Bytes);
    assert_eq!(layout.slots().count(), 4);
    assert!(!layout.is_outdated(&bytes));
    let more = made(&[("x", Value::Long(1), 1)]);
    assert!(layout.is_outdated(&more));
}

#[test]
fn what_is_wrong_is_said() {
    let bytes = some();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Layout::parse(&bytes).err()
    };
    assert_eq!(with(7, 0), Some(FormatError::NotReady));
    assert_eq!(
        Layout::parse(&[0; 64]).err(),
        Some(FormatError::NotReady),
        "not written yet"
    );
    let big = FormatError::Version { major: 2, order: 0 };
    assert_eq!(with(4, 0), Some(big));
    assert!(matches!(with(0, 1), Some(FormatError::Magic { .. })));
    // Too high an entry count; an entry of length zero.
    assert!(matches!(
        with(28, 9),
        Some(FormatError::Entry { number: 4, .. })
    ));
    assert!(matches!(
        with(32, 0),
        Some(FormatError::Entry { number: 0, .. })
    ));
    assert_eq!(
        Layout::parse(&bytes[..31]).err(),
        Some(FormatError::Short { length: 31 })
    );
}

proptest! {
    #[test]
    fn mutated_bytes_never_harm(
        edits in proptest::collection::vec((0_usize..200, any::<u8>()), 0..12),
        length in 0_usize..220,
    ) {
        let mut bytes = some();
        for (at, byte) in edits {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(length);
        if let Ok(layout) = Layout::parse(&bytes) {
            prop_assert!(layout.used() <= bytes.len());
            for (_, slot) in layout.slots() {
                let _ = slot.value(&bytes);
                let _ = slot.value(&bytes[..bytes.len() / 2]);
            }
        }
    }
}
