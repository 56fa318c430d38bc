//! V8's tagged values and heap objects.

use vmscope_process::{AdapterError, Memory, read_words};
use vmscope_records::Avma;

use crate::versions::Layout;

/// A field of the heap: a small integer (its upper half) or a pointer to an object, which bit 0 shows.
/// Bit 1 marks weak pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tagged(pub u64);

/// Bits of a tag.
const TAG: u64 = 3;

impl Tagged {
    /// Pointer to the object at `at`.
    #[must_use]
    pub fn of(at: Avma) -> Self {
        Tagged(at.0 | 1)
    }

    /// Address of the object; `None` for a small integer.
    #[must_use]
    pub fn address(self) -> Option<Avma> {
        (self.0 & 1 == 1).then_some(Avma(self.0 & !TAG))
    }

    /// The small integer; `None` for an object.
    #[must_use]
    pub fn small_integer(self) -> Option<i32> {
        let is_integer = self.0 & u64::from(u32::MAX) == 0;
        is_integer.then_some((self.0 >> 32) as i32)
    }
}

/// Reads objects of one V8 from its memory, in most cases through a cache of pages.
#[derive(Clone, Copy)]
pub struct Heap<'m> {
    /// The memory.
    pub memory: &'m dyn Memory,
    /// Its layout.
    pub layout: &'m Layout,
}

impl std::fmt::Debug for Heap<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heap").finish_non_exhaustive()
    }
}

impl Heap<'_> {
    /// Address of field `offset` of `object`.
    ///
    /// # Errors
    /// A small integer instead of the object `what`.
    pub fn at(
        &self,
        object: Tagged,
        offset: u64,
        what: &'static str,
    ) -> Result<Avma, AdapterError> {
        let at = object.address().and_then(|at| at.0.checked_add(offset));
        at.map(Avma).ok_or(AdapterError::Implausible {
            what,
            value: object.0,
            at: Avma(0),
        })
    }

    /// A field of `object`, 64 bits.
    ///
    /// # Errors
    /// As [`Heap::at`]; failed reads.
    pub fn field(
        &self,
        object: Tagged,
        offset: u64,
        what: &'static str,
    ) -> Result<Tagged, AdapterError> {
        let at = self.at(object, offset, what)?;
        let word = self.memory.read_u64(at);
        word.map(Tagged).map_err(AdapterError::reading(what))
    }

    /// A field of each of `objects`; `None` for unreadable ones.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn fields(
        &self,
        objects: &[Tagged],
        offset: u64,
    ) -> Result<Vec<Option<Tagged>>, AdapterError> {
        self.each_field(objects.iter().map(|object| (*object, offset)))
    }

    /// The fields at these objects' offsets; `None` for unreadable ones.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn fields_at<const N: usize>(
        &self,
        places: [(Tagged, u64); N],
    ) -> Result<[Option<Tagged>; N], AdapterError> {
        let mut words = self.each_field(places.into_iter())?.into_iter();
        Ok([(); N].map(|()| words.next().flatten()))
    }

    /// Likewise for any number of them.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn each_field(
        &self,
        places: impl Iterator<Item = (Tagged, u64)>,
    ) -> Result<Vec<Option<Tagged>>, AdapterError> {
        let place = |(object, offset): (Tagged, u64)| {
            // A live process costs a system call for each unreadable address.
            let at = object.address().filter(|at| at.0 != 0)?;
            Some(Avma(at.0.wrapping_add(offset)))
        };
        let places: Vec<Option<Avma>> = places.map(place).collect();
        let addresses: Vec<Avma> = places.iter().copied().flatten().collect();
        let words = read_words(self.memory, &addresses);
        let mut words = words.map_err(AdapterError::reading("objects"))?.into_iter();
        let found = places.into_iter().map(|place| {
            let [word] = place.and_then(|_| words.next().flatten())?;
            Some(Tagged(word))
        });
        Ok(found.collect())
    }

    /// A small integer of `object`.
    ///
    /// # Errors
    /// As [`Heap::at`]; an object instead of the integer; failed reads.
    pub fn integer(
        &self,
        object: Tagged,
        offset: u64,
        what: &'static str,
    ) -> Result<i32, AdapterError> {
        let value = self.field(object, offset, what)?;
        value.small_integer().ok_or(AdapterError::Implausible {
            what,
            value: value.0,
            at: object.address().unwrap_or_default(),
        })
    }

    /// Number of the object's type, from its map.
    ///
    /// # Errors
    /// As [`Heap::at`]; failed reads.
    pub fn instance_type(&self, object: Tagged) -> Result<u16, AdapterError> {
        let map = self.field(object, 0, "map")?;
        let at = self.at(map, self.layout.string.instance_type, "map")?;
        let number = self.memory.read_u16(at);
        number.map_err(AdapterError::reading("map"))
    }

    /// Item of a `FixedArray`. Checks the array's length first.
    ///
    /// # Errors
    /// An index beyond the array; as [`Heap::integer`].
    pub fn item(
        &self,
        array: Tagged,
        index: u64,
        what: &'static str,
    ) -> Result<Tagged, AdapterError> {
        let length = self.integer(array, 8, what)?;
        if u64::try_from(length).is_ok_and(|length| index < length) {
            let offset = index.checked_mul(8).and_then(|at| at.checked_add(16));
            return self.field(array, offset.unwrap_or(u64::MAX), what);
        }
        Err(AdapterError::Implausible {
            what,
            value: index,
            at: array.address().unwrap_or_default(),
        })
    }

    /// Contents of a byte array, whose length stands before them, at most `cap` bytes.
    ///
    /// # Errors
    /// A negative or larger length; failed reads.
    pub fn bytes(
        &self,
        array: Tagged,
        cap: usize,
        what: &'static str,
    ) -> Result<Vec<u8>, AdapterError> {
        let length = self.integer(array, 8, what)?;
        let at = self.at(array, 16, what)?;
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let read = self.memory.read_vec(at, length, cap);
        read.map_err(AdapterError::reading(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_tell_integers_from_objects() {
        assert_eq!(Tagged(7 << 32).small_integer(), Some(7));
        assert_eq!(Tagged((-3_i64 << 32) as u64).small_integer(), Some(-3));
        assert_eq!(Tagged(0x1001).address(), Some(Avma(0x1000)));
        assert_eq!(Tagged(0x1003).address(), Some(Avma(0x1000)), "weak");
        assert_eq!(Tagged(0x1000).address(), None);
        assert_eq!(Tagged(0x1001).small_integer(), None);
    }
}
