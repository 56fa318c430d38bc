//! Bytecodes of Sparkplug's machine code.
//!
//! Sparkplug compiles bytecodes in order. Its table has sizes of machine code in bytes: the prologue's,
//! then each bytecode's. (V8's `baseline/bytecode-offset-iterator.h`.)

use vmscope_records::{BoundaryRule, BytecodePc, Exactness, PcMap};

use crate::vlq;

/// A contradiction between table, bytecodes and machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SparkplugError {
    /// The table ends first.
    #[error("the table of bytecodes ends at bytecode {0}")]
    Short(u32),
    /// The table has entries behind the last bytecode.
    #[error("{0} more bytes in the table than bytecodes")]
    Long(usize),
    /// The code ends first.
    #[error("bytecode {bytecode} is at {start:#x}, behind {size:#x} bytes of code")]
    Outside {
        /// The bytecode.
        bytecode: u32,
        /// Its offset in the machine code.
        start: u64,
        /// Size of the machine code.
        size: u32,
    },
}

/// Map of `size` bytes of machine code. `bytecodes`: the function's bytecodes in order, a prefix with
/// its bytecode. The prologue has no bytecode. Bytecodes without code have no entry.
///
/// # Errors
/// [`SparkplugError`].
pub fn map(
    table: &[u8],
    bytecodes: impl Iterator<Item = BytecodePc>,
    size: u32,
) -> Result<PcMap, SparkplugError> {
    let mut rest = table;
    let mut entries: Vec<(u32, BytecodePc)> = Vec::new();
    let mut start = vlq::unsigned(&mut rest).ok_or(SparkplugError::Short(0))?;
    for bytecode in bytecodes {
        let length = vlq::unsigned(&mut rest).ok_or(SparkplugError::Short(bytecode.0))?;
        let at = u32::try_from(start).ok().filter(|at| *at <= size);
        let at = at.ok_or(SparkplugError::Outside {
            bytecode: bytecode.0,
            start,
            size,
        })?;
        if length > 0 {
            entries.push((at, bytecode));
        }
        start = start.saturating_add(length);
    }
    if !rest.is_empty() {
        return Err(SparkplugError::Long(rest.len()));
    }
    Ok(PcMap::Boundary {
        rule: BoundaryRule::AtStart,
        exactness: Exactness::Exact,
        entries,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vlq::put_unsigned;
    use proptest::prelude::*;

    fn of(lengths: &[u64], bytecodes: &[u32], size: u32) -> Result<PcMap, SparkplugError> {
        let mut table = Vec::new();
        lengths.iter().for_each(|it| put_unsigned(*it, &mut table));
        map(&table, bytecodes.iter().copied().map(BytecodePc), size)
    }

    #[test]
    fn code_belongs_to_the_bytecode_that_made_it() {
        let map = of(&[300, 4, 0, 200, 7], &[0, 1, 3, 6], 511).unwrap();
        let range = |at| map.boundary_range(at).unwrap().from.map(|pc| pc.0);
        let places = [0, 299, 300, 303, 304, 503, 504, 510];
        let expected = [
            None,
            None,
            Some(0),
            Some(0),
            Some(3),
            Some(3),
            Some(6),
            Some(6),
        ];
        assert_eq!(places.map(range), expected);
    }

    #[test]
    fn contradictions() {
        assert_eq!(of(&[], &[], 9), Err(SparkplugError::Short(0)));
        assert_eq!(of(&[1, 1], &[0, 2], 9), Err(SparkplugError::Short(2)));
        assert_eq!(of(&[1, 1, 1], &[0], 9), Err(SparkplugError::Long(1)));
        let outside = SparkplugError::Outside {
            bytecode: 3,
            start: 11,
            size: 9,
        };
        assert_eq!(of(&[1, 10, 1], &[0, 3], 9), Err(outside));
    }

    proptest! {
        #[test]
        fn entries_ascend_inside_the_code(
            table in prop::collection::vec(any::<u8>(), 0..100), count in 0..60_u32, size in 0..2000_u32,
        ) {
            if let Ok(PcMap::Boundary { entries, .. }) = map(&table, (0..count).map(BytecodePc), size) {
                prop_assert!(entries.windows(2).all(|two| two[0] < two[1] && two[0].0 < two[1].0));
                prop_assert!(entries.iter().all(|(at, _)| *at <= size));
            }
        }
    }
}
