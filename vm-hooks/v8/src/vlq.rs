//! Numbers of variable length: seven bits in a byte, the lowest first; bit 7 announces more bytes.

/// More bytes would exceed 64 bits.
const MAX_BYTES: usize = 9;

/// Takes an unsigned number from the front of `bytes`. `None`: a number without end, or of more than
/// [`MAX_BYTES`] bytes.
pub(crate) fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *bytes = bytes.get(index + 1..)?;
            return Some(value);
        }
    }
    None
}

/// Takes a signed number, whose sign is in bit 0: 0, -1, 1, -2, …
pub(crate) fn signed(bytes: &mut &[u8]) -> Option<i64> {
    unsigned(bytes).map(sign)
}

/// The signed number that an unsigned one stands for.
pub(crate) fn sign(value: u64) -> i64 {
    let half = (value >> 1).cast_signed();
    if value & 1 == 0 { half } else { !half }
}

/// Appends `value` as [`unsigned`] reads it.
#[cfg(test)]
pub(crate) fn put_unsigned(mut value: u64, bytes: &mut Vec<u8>) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends `value` as [`signed`] reads it.
#[cfg(test)]
pub(crate) fn put_signed(value: i64, bytes: &mut Vec<u8>) {
    put_unsigned(((value << 1) ^ (value >> 63)).cast_unsigned(), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_an_end() {
        assert_eq!(unsigned(&mut &[0xa4, 0x01][..]), Some(164));
        assert_eq!(signed(&mut &[1][..]), Some(-1));
        assert_eq!(unsigned(&mut &[0x80][..]), None);
        assert_eq!(unsigned(&mut &[0xff; 40][..]), None);
        assert_eq!(unsigned(&mut &[][..]), None);
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_written(values in prop::collection::vec(-(1_i64 << 61)..1 << 61, 0..9)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| put_signed(*value, &mut bytes));
            let mut rest = bytes.as_slice();
            for value in values {
                prop_assert_eq!(signed(&mut rest), Some(value));
            }
            prop_assert!(rest.is_empty());
        }
    }
}
