//! Text forms of a class's names and strings.

use crate::method::{primitive, push_class_name};

/// Decodes the class file's UTF-8: a zero has two bytes, and characters beyond 16 bits are two
/// surrogates of three bytes each. Invalid bytes become U+FFFD.
#[must_use]
pub(crate) fn decode_utf8(bytes: Vec<u8>) -> String {
    let bytes = match String::from_utf8(bytes) {
        Ok(plain) => return plain,
        Err(error) => error.into_bytes(),
    };
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    while let Some((&first, after)) = rest.split_first() {
        let low = |byte: &u8| u16::from(byte & 0x3f);
        let high = u16::from(first);
        let is_more = |bytes: &[u8]| bytes.iter().all(|byte| byte & 0xc0 == 0x80);
        (rest, _) = match (first, after) {
            (0..=0x7f, _) => (after, units.push(high)),
            (0xc0..=0xdf, [b, tail @ ..]) if is_more(&[*b]) => {
                (tail, units.push((high & 0x1f) << 6 | low(b)))
            }
            (0xe0..=0xef, [b, c, tail @ ..]) if is_more(&[*b, *c]) => {
                (tail, units.push((high & 0xf) << 12 | low(b) << 6 | low(c)))
            }
            _ => (after, units.push(0xfffd)),
        };
    }
    String::from_utf16_lossy(&units)
}

/// Java form of a class name from a constant pool, where arrays have descriptors as names:
/// `[[J` is `long[][]`.
pub(super) fn array_or_class(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    push_array_or_class(&mut text, name);
    text
}

/// Appends [`array_or_class`].
pub(super) fn push_array_or_class(text: &mut String, name: &str) {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    if dimensions == 0 {
        return push_class_name(text, name);
    }
    let class = element.strip_prefix('L').and_then(|e| e.strip_suffix(';'));
    match (class, primitive(element)) {
        (Some(class), _) => push_class_name(text, class),
        (None, Some(primitive)) => text.push_str(primitive),
        (None, None) => return text.push_str(name),
    }
    text.extend(std::iter::repeat_n("[]", dimensions.min(255)));
}

/// Element type of `newarray`.
pub(super) fn newarray_type(number: u8) -> Option<&'static str> {
    let types = [
        "boolean", "char", "float", "double", "byte", "short", "int", "long",
    ];
    types.get(usize::from(number).checked_sub(4)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_file_strings() {
        assert_eq!(decode_utf8(b"plain".to_vec()), "plain");
        assert_eq!(decode_utf8(b"a\xc0\x80b".to_vec()), "a\0b");
        assert_eq!(
            decode_utf8(b"\xed\xa0\xbd\xed\xb8\x80\xc3\xa9".to_vec()),
            "😀é"
        );
        assert_eq!(decode_utf8(b"\xed\xa0\xbd!".to_vec()), "\u{fffd}!");
        assert_eq!(
            decode_utf8(b"\xff\xe2\x82".to_vec()),
            "\u{fffd}\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn arrays() {
        assert_eq!(array_or_class("[[J"), "long[][]");
        assert_eq!(array_or_class("[Ljava/lang/String;"), "java.lang.String[]");
        assert_eq!(array_or_class("java/lang/String"), "java.lang.String");
        assert_eq!(array_or_class("[["), "[[");
        assert_eq!(newarray_type(10), Some("int"));
        assert_eq!(newarray_type(3), None);
    }
}
