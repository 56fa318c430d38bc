//! Inlined calls of optimised code.
//!
//! An entry of 16 bytes is a call: its position (64 bits, as in [`crate::positions`]), then the number
//! of the called function in the code's literals (32 bits, -1 for the code's own function). Position
//! and number of the outer call lead outwards. (V8's `InliningPosition`, `codegen/source-position.h`.)

use crate::positions::ScriptPosition;

const ENTRY_BYTES: usize = 16;

/// Maximum depth of inlined calls; V8's own budgets allow some 20.
pub(crate) const MAX_DEPTH: usize = 128;

/// A function in a chain of inlined calls, with a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InlinedFrame {
    /// Number of the function in the code's literals; `None` for the code's own function.
    pub function: Option<u32>,
    /// Offset in the script of that function, in characters; `None` if V8 has no place.
    pub offset: Option<u32>,
}

/// A damaged table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InliningError {
    /// A call outside the table.
    #[error("inlined call {number} is not among {count} calls")]
    Missing {
        /// Its number, from 1.
        number: u16,
        /// Calls in the table.
        count: usize,
    },
    /// A circle, or more calls than V8 inlines.
    #[error("more than {MAX_DEPTH} nested inlined calls")]
    TooDeep,
}

/// Inlined calls of one piece of code.
#[derive(Clone, Copy, Debug)]
pub struct Inlining<'a>(&'a [[u8; ENTRY_BYTES]]);

impl<'a> Inlining<'a> {
    /// Calls of a table.
    #[must_use]
    pub fn of(table: &'a [u8]) -> Self {
        Inlining(table.as_chunks().0)
    }

    /// Functions at a position, innermost first. The last function is the code's own.
    ///
    /// # Errors
    /// [`InliningError`].
    pub fn chain(&self, position: ScriptPosition) -> Result<Vec<InlinedFrame>, InliningError> {
        let mut frames = Vec::new();
        let ScriptPosition {
            mut offset,
            inlining: mut number,
        } = position;
        while number != 0 {
            if frames.len() >= MAX_DEPTH {
                return Err(InliningError::TooDeep);
            }
            let (caller, function) = self.call(number)?;
            frames.push(InlinedFrame { function, offset });
            (offset, number) = (caller.offset, caller.inlining);
        }
        frames.push(InlinedFrame {
            function: None,
            offset,
        });
        Ok(frames)
    }

    /// Numbers of all called functions in the code's literals, in the order of the calls.
    pub fn functions(&self) -> impl Iterator<Item = u32> + 'a {
        let number = |[.., f0, f1, f2, f3, _, _, _, _]: &[u8; ENTRY_BYTES]| {
            u32::try_from(i32::from_le_bytes([*f0, *f1, *f2, *f3])).ok()
        };
        self.0.iter().filter_map(number)
    }

    fn call(&self, number: u16) -> Result<(ScriptPosition, Option<u32>), InliningError> {
        let entry = self.0.get(usize::from(number).wrapping_sub(1));
        let [p0, p1, p2, p3, p4, p5, p6, p7, f0, f1, f2, f3, ..] =
            *entry.ok_or(InliningError::Missing {
                number,
                count: self.0.len(),
            })?;
        let position = u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]);
        let function = i32::from_le_bytes([f0, f1, f2, f3]);
        Ok((ScriptPosition::of(position), u32::try_from(function).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(calls: &[(u32, u16, i32)]) -> Vec<u8> {
        let entry = |&(offset, outer, function): &(u32, u16, i32)| {
            let position = u64::from(offset + 1) << 1 | u64::from(outer) << 31;
            let mut entry = position.to_le_bytes().to_vec();
            entry.extend(function.to_le_bytes());
            entry.extend([0xaa; 4]);
            entry
        };
        calls.iter().flat_map(entry).collect()
    }

    fn position(offset: u32, inlining: u16) -> ScriptPosition {
        ScriptPosition {
            offset: Some(offset),
            inlining,
        }
    }

    #[test]
    fn a_chain_leads_outwards() {
        let table = table(&[(30, 0, 4), (20, 1, -1), (25, 2, 1)]);
        let frame = |function, offset| InlinedFrame {
            function,
            offset: Some(offset),
        };
        let calls = Inlining::of(&table);
        let chain = calls.chain(position(7, 3)).unwrap();
        let expected = [
            frame(Some(1), 7),
            frame(None, 25),
            frame(Some(4), 20),
            frame(None, 30),
        ];
        assert_eq!(chain, expected);
        assert_eq!(calls.chain(position(9, 0)).unwrap(), [frame(None, 9)]);
        assert_eq!(calls.functions().collect::<Vec<_>>(), [4, 1]);
        let missing = InliningError::Missing {
            number: 4,
            count: 3,
        };
        assert_eq!(calls.chain(position(7, 4)), Err(missing));
    }

    #[test]
    fn a_circle_ends() {
        let table = table(&[(1, 2, 0), (1, 1, 0)]);
        let chain = Inlining::of(&table).chain(position(7, 1));
        assert_eq!(chain, Err(InliningError::TooDeep));
    }

    proptest! {
        #[test]
        fn no_table_makes_a_long_chain(
            table in prop::collection::vec(any::<u8>(), 0..600), number in any::<u16>(),
        ) {
            let chain = Inlining::of(&table).chain(position(1, number));
            prop_assert!(chain.is_err() || chain.is_ok_and(|chain| chain.len() <= MAX_DEPTH + 1));
        }
    }
}
