//! Numbers of either byte order, taken one after the other off a slice.

/// What is left of a slice, and how its numbers are written.
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

    /// What was not taken yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
