//! References to objects, and the values that a reference holds itself.

use std::fmt;

/// An object reference or immediate value: SmallInteger, Character, SmallFloat64.
///
/// The low three bits form the tag: 0 for addresses; 1, 2 and 4 for immediate values, as in Spur.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Oop(pub u64);

const TAG_MASK: u64 = 7;
const TAG_BITS: u32 = 3;
const SMALL_INTEGER: u64 = 1;
const CHARACTER: u64 = 2;
const SMALL_FLOAT: u64 = 4;
/// Smallest SmallFloat64 exponent minus one, at its position in the rotated value.
const FLOAT_OFFSET: u64 = 896 << 53;

impl Oop {
    /// No object. Never visible to a program.
    pub const NONE: Self = Self(0);
    /// The largest SmallInteger.
    pub const MAX_SMALL_INTEGER: i64 = i64::MAX >> TAG_BITS;
    /// The smallest SmallInteger.
    pub const MIN_SMALL_INTEGER: i64 = i64::MIN >> TAG_BITS;

    /// The SmallInteger `value`; `None` beyond 61 bits.
    #[must_use]
    #[inline]
    pub const fn from_integer(value: i64) -> Option<Self> {
        if value >= Self::MIN_SMALL_INTEGER && value <= Self::MAX_SMALL_INTEGER {
            Some(Self::small(value))
        } else {
            None
        }
    }

    /// The SmallInteger `value`; at most 61 bits.
    #[must_use]
    #[inline]
    pub const fn small(value: i64) -> Self {
        debug_assert!(value >= Self::MIN_SMALL_INTEGER && value <= Self::MAX_SMALL_INTEGER);
        Self(value.cast_unsigned() << TAG_BITS | SMALL_INTEGER)
    }

    /// The value of a SmallInteger.
    #[must_use]
    #[inline]
    pub const fn as_integer(self) -> Option<i64> {
        if self.is_integer() {
            Some(self.0.cast_signed() >> TAG_BITS)
        } else {
            None
        }
    }

    /// Whether this is a SmallInteger.
    #[must_use]
    #[inline]
    pub const fn is_integer(self) -> bool {
        self.0 & TAG_MASK == SMALL_INTEGER
    }

    /// The Character with this code point.
    #[must_use]
    #[inline]
    pub const fn character(code_point: u32) -> Self {
        Self((code_point as u64) << TAG_BITS | CHARACTER)
    }

    /// The code point of a Character.
    #[must_use]
    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "`character` puts 32 bits in"
    )]
    pub const fn as_character(self) -> Option<u32> {
        if self.0 & TAG_MASK == CHARACTER {
            Some((self.0 >> TAG_BITS) as u32)
        } else {
            None
        }
    }

    /// The SmallFloat64 `value`; `None` if the exponent needs more than 8 bits.
    #[must_use]
    #[inline]
    pub const fn from_float(value: f64) -> Option<Self> {
        let mut bits = value.to_bits().rotate_left(1);
        if bits > 1 {
            bits = bits.wrapping_sub(FLOAT_OFFSET);
            // 0 and 1 are the two zeros.
            if bits <= 1 || bits >> 61 != 0 {
                return None;
            }
        }
        Some(Self(bits << TAG_BITS | SMALL_FLOAT))
    }

    /// The value of a SmallFloat64.
    #[must_use]
    #[inline]
    pub const fn as_float(self) -> Option<f64> {
        if self.0 & TAG_MASK != SMALL_FLOAT {
            return None;
        }
        let mut bits = self.0 >> TAG_BITS;
        if bits > 1 {
            bits = bits.wrapping_add(FLOAT_OFFSET);
        }
        Some(f64::from_bits(bits.rotate_right(1)))
    }

    /// Whether the oop is an object address.
    #[must_use]
    #[inline]
    pub const fn is_pointer(self) -> bool {
        self.0 & TAG_MASK == 0
    }

    /// The object at `address` (a multiple of eight).
    #[must_use]
    #[inline]
    pub const fn from_address(address: usize) -> Self {
        debug_assert!(address.trailing_zeros() >= TAG_BITS);
        Self(address as u64)
    }

    /// The address of an object.
    #[must_use]
    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "addresses have 64 bits where this VM runs"
    )]
    pub const fn address(self) -> usize {
        self.0 as usize
    }

    /// Class index of an immediate value: its tag.
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "three bits")]
    pub const fn tag(self) -> u32 {
        (self.0 & TAG_MASK) as u32
    }
}

impl fmt::Debug for Oop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.as_integer() {
            write!(f, "{value}")
        } else if let Some(code_point) = self.as_character() {
            write!(f, "${:?}", char::from_u32(code_point))
        } else if let Some(value) = self.as_float() {
            write!(f, "{value:?}")
        } else {
            write!(f, "{:#x}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_range_of_small_integers_is_61_bits() {
        assert_eq!(Oop::MAX_SMALL_INTEGER, (1 << 60) - 1);
        assert_eq!(Oop::from_integer(1 << 60), None);
        assert_eq!(Oop::from_integer(-(1 << 60) - 1), None);
        assert!(Oop::from_integer(-(1 << 60)).is_some());
    }

    #[test]
    fn zeros_and_extremes_of_floats() {
        for value in [0.0, -0.0, 1.0, -1.5, 1e-38, 3.0e38] {
            let oop = Oop::from_float(value).expect("a small float");
            assert_eq!(oop.as_float().map(f64::to_bits), Some(value.to_bits()));
        }
        for value in [f64::INFINITY, f64::NAN, 1e300, 1e-300, 5e-324] {
            assert_eq!(Oop::from_float(value), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn integers_come_back(value in Oop::MIN_SMALL_INTEGER..=Oop::MAX_SMALL_INTEGER) {
            prop_assert_eq!(Oop::small(value).as_integer(), Some(value));
        }

        #[test]
        fn floats_come_back_or_are_refused(bits: u64) {
            let value = f64::from_bits(bits);
            if let Some(oop) = Oop::from_float(value) {
                prop_assert_eq!(oop.as_float().map(f64::to_bits), Some(bits));
                prop_assert_eq!(oop.tag(), 4);
            }
        }
    }
}
