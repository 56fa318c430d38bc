//! Tables of source positions: which place in the script code comes from.
//!
//! An entry has two numbers: the distance of its code offset from the previous entry's with flags
//! ([`EntryForm`]), and the signed distance of its position. The table begins at code offset -1 and
//! position 0. Bits of a position: bit 0 marks places outside JavaScript; bits 1 to 30 are the script's
//! offset plus one; bits 31 to 46 are the inlined call's number. (V8's
//! `codegen/source-position-table.cc` and `source-position.h`, 10.2 to 13.6; 14.6 by its machine code.)

use crate::vlq;

/// Maximum bytes of code that an entry describes. Code beyond has no line (docs/truth.md §5).
const MAX_DISTANCE: u32 = 4096;

/// Maximum number of entries; the largest functions have some 100,000.
const MAX_ENTRIES: usize = 1 << 22;

/// Form of an entry's first number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryForm {
    /// The distance; of an entry inside a statement, `!distance`.
    Signed,
    /// Four times the distance; bit 0 marks a statement's begin, bit 1 a place for breakpoints. V8 shows a
    /// statement without such a place as an entry inside a statement.
    Flags,
}

/// A script offset with its inlined call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptPosition {
    /// Offset in the script's source, in characters; `None` for code without a place.
    pub offset: Option<u32>,
    /// Number of the inlined call ([`crate::inlining`]), from 1; 0 for the code's own function.
    pub inlining: u16,
}

impl ScriptPosition {
    /// Position of V8's number for it.
    #[must_use]
    pub fn of(bits: u64) -> Self {
        let offset = u32::try_from(bits >> 1 & 0x3fff_ffff).unwrap_or_default();
        ScriptPosition {
            offset: offset.checked_sub(1).filter(|_| bits & 1 == 0),
            inlining: (bits >> 31) as u16,
        }
    }
}

/// An entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionEntry {
    /// First offset of the code, in bytes; -1 before the first bytecode.
    pub code: i64,
    /// Where it comes from.
    pub position: ScriptPosition,
    /// Whether a statement begins here.
    pub is_statement: bool,
}

/// A damaged table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// A number without an end.
    #[error("entry {0} of the source positions is cut off")]
    Short(usize),
    /// The numbers exceed 64 bits.
    #[error("entry {0} of the source positions is out of range")]
    Range(usize),
    /// More than 4,194,304 entries.
    #[error("more than {MAX_ENTRIES} source positions")]
    TooMany,
}

/// Entries of a table, by ascending code offset. An error is the last item.
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    rest: &'a [u8],
    form: EntryForm,
    code: i64,
    bits: i64,
    count: usize,
}

/// Entries of `table`.
#[must_use]
pub fn positions(table: &[u8], form: EntryForm) -> Positions<'_> {
    Positions {
        rest: table,
        form,
        code: -1,
        bits: 0,
        count: 0,
    }
}

impl Positions<'_> {
    fn entry(&mut self) -> Result<PositionEntry, PositionError> {
        if self.count >= MAX_ENTRIES {
            return Err(PositionError::TooMany);
        }
        let short = PositionError::Short(self.count);
        let (distance, is_statement) = match self.form {
            EntryForm::Signed => {
                let number = vlq::signed(&mut self.rest).ok_or(short)?;
                (if number < 0 { !number } else { number }, number >= 0)
            }
            EntryForm::Flags => {
                let number = vlq::unsigned(&mut self.rest).ok_or(short)?;
                ((number >> 2).cast_signed(), number & 3 == 3)
            }
        };
        let position = vlq::signed(&mut self.rest).ok_or(short)?;
        let code = self.code.checked_add(distance);
        let bits = self.bits.checked_add(position);
        let (code, bits) = code.zip(bits).ok_or(PositionError::Range(self.count))?;
        (self.code, self.bits) = (code, bits);
        self.count += 1;
        Ok(PositionEntry {
            code,
            position: ScriptPosition::of(bits.cast_unsigned()),
            is_statement,
        })
    }
}

impl Iterator for Positions<'_> {
    type Item = Result<PositionEntry, PositionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

/// Code between two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionPiece {
    /// First offset, in bytes.
    pub start: u32,
    /// First offset after the piece.
    pub end: u32,
    /// Where its code comes from.
    pub position: ScriptPosition,
}

/// Pieces of `size` bytes of code, ascending. An entry holds up to the next entry or the code's end, and
/// for 4,096 bytes at most. Neighbours differ. Code before the first entry has no piece. Code
/// without script offset has no piece.
///
/// # Errors
/// [`PositionError`].
pub fn pieces(
    table: &[u8],
    size: u32,
    form: EntryForm,
) -> Result<Vec<PositionPiece>, PositionError> {
    let mut pieces: Vec<PositionPiece> = Vec::new();
    let mut entries = positions(table, form).peekable();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let next = entries.peek().and_then(|next| next.as_ref().ok());
        let inside = |code: i64| u32::try_from(code.max(0)).unwrap_or(u32::MAX).min(size);
        let (start, end) = (
            inside(entry.code),
            next.map_or(size, |next| inside(next.code)),
        );
        let end = end.min(start.saturating_add(MAX_DISTANCE));
        if start >= end || entry.position.offset.is_none() {
            continue;
        }
        match pieces.last_mut() {
            Some(last) if last.end == start && last.position == entry.position => last.end = end,
            _ => pieces.push(PositionPiece {
                start,
                end,
                position: entry.position,
            }),
        }
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vlq::{put_signed, put_unsigned};
    use proptest::prelude::*;

    fn at(offset: u32, inlining: u16) -> ScriptPosition {
        ScriptPosition {
            offset: Some(offset),
            inlining,
        }
    }

    fn table(entries: &[(i64, ScriptPosition, bool)], form: EntryForm) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (mut code, mut bits) = (-1, 0);
        for &(to, position, is_statement) in entries {
            let offset = position.offset.map_or(0, |offset| i64::from(offset) + 1);
            let next = offset << 1 | i64::from(position.inlining) << 31;
            let distance = to - code;
            match form {
                EntryForm::Signed if is_statement => put_signed(distance, &mut bytes),
                EntryForm::Signed => put_signed(!distance, &mut bytes),
                EntryForm::Flags => {
                    let flags = 2 | u64::from(is_statement);
                    put_unsigned(distance.cast_unsigned() << 2 | flags, &mut bytes);
                }
            }
            put_signed(next - bits, &mut bytes);
            (code, bits) = (to, next);
        }
        bytes
    }

    /// The first 12 bytes of the table of bytecodes of a function, and the positions that
    /// `node --print-bytecode` shows, on Node.js 18 to 24.
    #[test]
    fn a_table_of_v8() {
        let table = [1, 0xa4, 1, 2, 0x38, 4, 0x38, 4, 0x0c, 5, 0, 0x10, 0x3c];
        let entries = positions(&table, EntryForm::Signed).map(Result::unwrap);
        let entries: Vec<_> = entries.collect();
        let entries = entries.iter().map(|e| (e.code, e.position, e.is_statement));
        let expected = [
            (-1, at(40, 0), false),
            (0, at(54, 0), true),
            (2, at(68, 0), true),
            (4, at(71, 0), true),
            (6, at(71, 0), false),
            (14, at(86, 0), true),
        ];
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }

    /// Likewise of Node.js 26.
    #[test]
    fn a_table_of_v8_14() {
        let table = [2, 4, 7, 0x64, 0x17, 0xa8, 3, 0x0e, 0, 0x16, 0xe3, 1];
        let entries = positions(&table, EntryForm::Flags).map(Result::unwrap);
        let entries: Vec<_> = entries.collect();
        let entries = entries.iter().map(|e| (e.code, e.position, e.is_statement));
        let expected = [
            (-1, at(0, 0), false),
            (0, at(25, 0), true),
            (5, at(131, 0), true),
            (8, at(131, 0), false),
            (13, at(74, 0), false),
        ];
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_entry_holds_up_to_the_next() {
        let none = ScriptPosition::default();
        let entries = [
            (4, at(7, 0), false),
            (9, at(7, 0), true),
            (12, at(3, 2), false),
            (12, at(5, 0), false),
            (20, none, false),
            (24, at(9, 0), false),
            (99, at(1, 0), false),
        ];
        let table = table(&entries, EntryForm::Signed);
        let pieces = |table: &[u8], size| pieces(table, size, EntryForm::Signed);
        let piece = |start, end, position| PositionPiece {
            start,
            end,
            position,
        };
        let expected = [
            piece(4, 12, at(7, 0)),
            piece(12, 20, at(5, 0)),
            piece(24, 50, at(9, 0)),
        ];
        assert_eq!(pieces(&table, 50).unwrap(), expected);
        assert_eq!(pieces(&[], 50).unwrap(), []);
        let far = pieces(&table, 9000).unwrap();
        assert_eq!(far.last(), Some(&piece(99, 99 + 4096, at(1, 0))));
    }

    #[test]
    fn damage_is_an_error() {
        let pieces = |table: &[u8], size| pieces(table, size, EntryForm::Signed);
        assert_eq!(pieces(&[2, 0x80], 9), Err(PositionError::Short(0)));
        assert_eq!(pieces(&[2, 2, 4], 9), Err(PositionError::Short(1)));
        let mut far = Vec::new();
        (0..8).for_each(|_| put_signed(i64::MAX >> 1, &mut far));
        assert_eq!(pieces(&far, 9), Err(PositionError::Range(2)));
        // Negative distances are statements' marks: code offsets never descend.
        assert_eq!(ScriptPosition::of(5).offset, None, "outside JavaScript");
    }

    proptest! {
        #[test]
        fn entries_are_read_as_written(
            steps in prop::collection::vec(
                (0..3000_i64, prop::option::of(0..0x3fff_fffe_u32), any::<u16>(), any::<bool>()), 0..60),
        ) {
            let mut code = -1;
            let written: Vec<_> = steps.into_iter().map(|(step, offset, inlining, is_statement)| {
                code += step;
                (code, ScriptPosition { offset, inlining }, is_statement)
            }).collect();
            for form in [EntryForm::Signed, EntryForm::Flags] {
                let table = table(&written, form);
                let read = positions(&table, form).map(Result::unwrap);
                let read: Vec<_> = read.map(|e| (e.code, e.position, e.is_statement)).collect();
                prop_assert_eq!(&read, &written);
            }
        }

        #[test]
        fn pieces_are_in_order_inside_the_code(
            table in prop::collection::vec(any::<u8>(), 0..200), size in 0..400_u32,
        ) {
            for form in [EntryForm::Signed, EntryForm::Flags] {
                let mut last = 0;
                for piece in pieces(&table, size, form).unwrap_or_default() {
                    prop_assert!(last <= piece.start && piece.start < piece.end && piece.end <= size);
                    last = piece.end;
                }
            }
        }
    }
}
