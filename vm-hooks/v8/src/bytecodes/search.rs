//! Places of V8's tables of instructions in a program without their symbols, by what they hold.
//!
//! An instruction's size is 1, its operands' fixed bytes, and its scalable bytes times 1, 2 or 4. So the sizes of three
//! scales confirm each other. The tables of operands must have these sizes as sums.

use std::ops::Range;

use memchr::memmem;
use vmscope_process::{Symbol, SymbolKind};
use vmscope_records::Avma;

use super::instruction_set::{SCALES, sizes_of_operands};
use super::read::{
    COUNTS, FUNCTION, FUNCTION_NAME, OPCODES, OPERAND_SIZES, OPERANDS, RUNTIME, SIZES,
};
use crate::contents::{Contents, Piece};

/// Sizes of the first instructions: four prefixes, and `DebugBreak0` to `DebugBreak2`.
const FIRST_SIZES: [u8; 7] = [1, 1, 1, 1, 1, 2, 3];

/// Possible numbers of opcodes (V8 10: 198).
const POSSIBLE_OPCODES: Range<usize> = 128..OPCODES + 1;

/// Maximum bytes of an instruction: six operands of four bytes.
const MAX_SIZE: i32 = 32;

/// Minimum number of runtime functions (V8 10: 568), and their maximum number.
const MIN_FUNCTIONS: usize = 256;
const MAX_FUNCTIONS: usize = 1 << 12;

/// Symbols of the tables that `contents` hold.
pub(crate) fn symbols(contents: &Contents) -> Vec<Symbol> {
    let constants = &contents.constants;
    let mut found = Vec::new();
    let mut add = |name: &str, range: Option<Range<Avma>>| {
        found.extend(range.map(|range| Symbol {
            name: name.to_owned(),
            address: range.start,
            size: range.end.0.wrapping_sub(range.start.0),
            kind: SymbolKind::Object,
        }));
    };
    let operand_sizes = sizes_of_operands().find_map(|sizes| {
        let place = memmem::find(&constants.bytes, &sizes)?;
        constants.bytes.get(place..place + sizes.len())
    });
    add(
        OPERAND_SIZES,
        operand_sizes.map(|table| constants.range_of(table)),
    );
    let sizes = sizes(&constants.bytes);
    add(SIZES, sizes.map(|sizes| constants.range_of(sizes)));
    let counts = sizes.and_then(|sizes| counts(constants, sizes));
    add(
        COUNTS,
        counts.map(|table| constants.range_of(table.as_flattened())),
    );
    if let (Some(sizes), Some(counts), Some(operand_sizes)) = (sizes, counts, operand_sizes) {
        let fits = |address, index| {
            let count = u32::from_le_bytes(*counts.get(index)?) as usize;
            let types = contents.constant(address)?.get(..count)?;
            Some(have_sizes(types, operand_sizes, (sizes, index)))
        };
        let mut pieces = contents.pieces();
        add(OPERANDS, pieces.find_map(|piece| types(piece, sizes, fits)));
    }
    let is_name = |word| contents.text(word).is_some_and(|name| !name.is_empty());
    let functions = contents
        .pieces()
        .find_map(|piece| functions(piece, is_name));
    add(RUNTIME, functions);
    found
}

/// The table of sizes in constant data.
fn sizes(constants: &[u8]) -> Option<&[u8]> {
    memmem::find_iter(constants, &FIRST_SIZES).find_map(|place| {
        let table = constants.get(place..)?;
        let tables = POSSIBLE_OPCODES
            .rev()
            .filter_map(|count| table.get(..SCALES * count));
        tables.into_iter().find(|table| {
            let count = table.len() / SCALES;
            (0..count).all(|opcode| {
                let sizes = [0, 1, 2].map(|scale| table.get(scale * count + opcode));
                let [one, two, four] = sizes.map(|size| size.map_or(0, |size| i32::from(*size)));
                let (scalable, fixed) = (two - one, 2 * one - two - 1);
                (1..=MAX_SIZE).contains(&four)
                    && four - two == 2 * scalable
                    && scalable >= 0
                    && fixed >= 0
            })
        })
    })
}

/// The table of counts of operands, 4 bytes each.
fn counts<'c>(constants: &'c Piece, sizes: &[u8]) -> Option<&'c [[u8; 4]]> {
    let sizes = sizes.get(..sizes.len() / SCALES)?;
    let (all, _) = constants.bytes.as_chunks::<4>();
    all.windows(sizes.len()).find(|counts| {
        let mut each = counts.iter().zip(sizes);
        each.all(|(count, size)| {
            let count = u32::from_le_bytes(*count);
            count < u32::from(*size) && (count > 0) == (*size > 1)
        })
    })
}

/// Whether operands of these types add up to an instruction's sizes at all scales.
fn have_sizes(types: &[u8], operand_sizes: &[u8], (sizes, opcode): (&[u8], usize)) -> bool {
    let sizes = sizes.chunks_exact(sizes.len() / SCALES);
    let mut scales = sizes.zip(operand_sizes.chunks_exact(operand_sizes.len() / SCALES));
    scales.all(|(sizes, widths)| {
        let widths = types.iter().map(|kind| widths.get(usize::from(*kind)));
        let bytes: Option<u8> = widths.sum();
        bytes.map(|bytes| 1 + bytes) == sizes.get(opcode).copied()
    })
}

/// The table of addresses of operand types. `fits`: whether the types at an address fit an instruction. Tables of
/// operands' offsets and sizes have the same form.
fn types(
    piece: &Piece,
    sizes: &[u8],
    fits: impl Fn(u64, usize) -> Option<bool>,
) -> Option<Range<Avma>> {
    let sizes = sizes.get(..sizes.len() / SCALES)?;
    let (all, _) = piece.bytes.as_chunks::<8>();
    let table = all.windows(sizes.len()).find(|addresses| {
        let mut each = addresses.iter().zip(sizes).enumerate();
        each.all(
            |(index, (address, size))| match u64::from_le_bytes(*address) {
                0 => *size == 1,
                address => fits(address, index) == Some(true),
            },
        )
    })?;
    Some(piece.range_of(table.as_flattened()))
}

/// The table of runtime functions, whose numbers count from 0.
fn functions(piece: &Piece, is_name: impl Fn(u64) -> bool) -> Option<Range<Avma>> {
    let is_function = |first: usize, number: usize| {
        let bytes = [0, FUNCTION_NAME, FUNCTION - 8];
        let words = bytes.map(|at| piece.word(first + (number * FUNCTION + at) / 8));
        let [own, name, last] = words;
        let own = own.map(|word| word as u32);
        own == u32::try_from(number).ok() && name.is_some_and(&is_name) && last.is_some()
    };
    (0..piece.words().len()).find_map(|first| {
        let count = (0..MAX_FUNCTIONS)
            .take_while(|number| is_function(first, *number))
            .count();
        let bytes = first * 8..first * 8 + count * FUNCTION;
        (count >= MIN_FUNCTIONS).then(|| piece.range(bytes))
    })
}

#[cfg(test)]
mod tests;
