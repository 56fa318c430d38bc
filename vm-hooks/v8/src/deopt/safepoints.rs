//! Tables of safepoints of Maglev's code, behind its instructions: the return addresses of its calls. (V8's
//! `codegen/maglev-safepoint-table.h`, 13.6.)

use rustc_hash::FxHashMap;
use vmscope_process::AdapterError;

use super::{DeoptError, MAX_TABLE, WHAT};
use crate::code::Code;
use crate::object::Heap;

/// Offset of the number of entries in a table of safepoints. Their form follows.
const SAFEPOINTS: usize = 4;

/// Form of the entries in a table of safepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Safepoints {
    count: usize,
    /// Bytes of a pc, of an entry's number (none if the code has no calls with entries), of an entry.
    pc: usize,
    number: usize,
    entry: usize,
}

impl Safepoints {
    /// Bytes of a table's begin for [`Safepoints::of`].
    pub const HEADER: usize = 16;

    /// Reads a table's header.
    ///
    /// # Errors
    /// [`DeoptError::Safepoints`].
    pub fn of(table: &[u8]) -> Result<Self, DeoptError> {
        let word = |at: usize| {
            let bytes = table.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map(|bytes| u32::from_le_bytes(*bytes))
        };
        let words = word(SAFEPOINTS).zip(word(SAFEPOINTS + 4));
        let (count, bits) = words.ok_or(DeoptError::Safepoints)?;
        let bytes = |shift: u32| (bits >> shift & 7) as usize;
        let (registers, pc, number) = (bytes(1), bytes(4), bytes(7));
        if pc == 0 || [registers, pc, number].iter().any(|bytes| *bytes > 4) {
            return Err(DeoptError::Safepoints);
        }
        let has_numbers = bits & 1 != 0;
        let for_exit = if has_numbers { number + pc } else { 0 };
        Ok(Safepoints {
            count: count as usize,
            pc,
            number: if has_numbers { number } else { 0 },
            entry: pc + for_exit + 1 + registers,
        })
    }

    /// Reads the table of a piece of code: numbers of entries by the offset of the call's return address.
    ///
    /// # Errors
    /// Failed reads; inside, [`DeoptError::Safepoints`].
    pub fn read(
        heap: &Heap<'_>,
        code: &Code,
    ) -> Result<Result<FxHashMap<u32, usize>, DeoptError>, AdapterError> {
        let bytes = |length| {
            let read = heap.memory.read_vec(code.end, length, MAX_TABLE);
            read.map_err(AdapterError::reading(WHAT))
        };
        let form = match Safepoints::of(&bytes(Self::HEADER as u64)?) {
            Ok(form) => form,
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(form.calls(&bytes(form.bytes())?)))
    }

    /// Bytes of the whole table.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.count as u64)
            .saturating_mul(self.entry as u64)
            .saturating_add(Self::HEADER as u64)
    }

    /// Numbers of entries by the offset of the call's return address.
    #[must_use]
    pub fn calls(&self, table: &[u8]) -> FxHashMap<u32, usize> {
        let entries = table.get(Self::HEADER..).unwrap_or_default();
        let number = |bytes: &[u8]| {
            let shifted = bytes.iter().enumerate();
            shifted.fold(0, |sum, (index, byte)| {
                sum | u32::from(*byte) << (8 * index)
            })
        };
        let pair = |entry: &[u8]| {
            let (pc, rest) = entry.split_at_checked(self.pc)?;
            let index = number(rest.get(..self.number)?).checked_sub(1)?;
            Some((number(pc), index as usize))
        };
        let entries = entries.chunks_exact(self.entry).take(self.count);
        entries.filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn safepoints_name_the_entries_of_calls() {
        // Two entries of 1 + 1 + 1 + 1 + 0 bytes: pc, entry plus one, exit plus one, slots.
        let mut table = vec![0; 16];
        table[4] = 2;
        table[8..10].copy_from_slice(&(1_u16 | 1 << 4 | 1 << 7).to_le_bytes());
        table.extend([0x20, 3, 0x50, 0, 0x30, 0, 0, 0]);
        let safepoints = Safepoints::of(&table).unwrap();
        assert_eq!(safepoints.bytes(), table.len() as u64);
        assert_eq!(safepoints.calls(&table), FxHashMap::from_iter([(0x20, 2)]));
        assert!(Safepoints::of(&table[..10]).is_err() && Safepoints::of(&[0; 16]).is_err());
    }

    proptest! {
        #[test]
        fn no_table_has_more_calls_than_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(safepoints) = Safepoints::of(&bytes) {
                prop_assert!(safepoints.calls(&bytes).len() <= bytes.len());
            }
        }
    }
}
