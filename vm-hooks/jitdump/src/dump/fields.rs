//! Reads consecutive numbers of either byte order from a slice.

/// Unread rest of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    big_endian: bool,
}

impl<'a> Fields<'a> {
    pub const fn new(bytes: &'a [u8], big_endian: bool) -> Self {
        Self {
            rest: bytes,
            big_endian,
        }
    }

    pub fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        Some(if self.big_endian {
            u32::from_be_bytes(*number)
        } else {
            u32::from_le_bytes(*number)
        })
    }

    pub fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(if self.big_endian {
            u64::from_be_bytes(*number)
        } else {
            u64::from_le_bytes(*number)
        })
    }

    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
