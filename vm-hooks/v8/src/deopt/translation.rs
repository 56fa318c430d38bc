//! Translations of an exit into the interpreter's frames, outermost first, each with its values.
//!
//! A translation is a list of operations with numbers of variable length. It may repeat operations of an
//! earlier translation, its *basis*. (V8's `deoptimizer/translation-opcode.h` and
//! `deoptimizer/frame-translation-builder.cc`, 13.6.)

use super::DeoptError;
use crate::inlining::MAX_DEPTH;
use crate::vlq;

/// Maximum number of operations in all translations of one piece of code. Each register of a frame takes one
/// operation.
pub(super) const MAX_OPERATIONS: usize = 1 << 22;

/// Operations that begin a frame: those below this number.
const FRAMES: u8 = 11;

/// Frames of bytecodes, with and without a place for a call's result: those below this number.
const FRAMES_OF_BYTECODES: u8 = 2;

/// Operations that begin a translation.
const BEGINS: [u8; 2] = [14, 15];

/// What differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeoptForm {
    /// Number of operands of each operation. The last operation repeats the basis.
    pub operands: &'static [u8],
}

/// A place at which V8 can leave the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeoptEntry {
    /// Offset of its translation.
    pub translation: u32,
    /// Bytecode of the innermost frame; a builtin's number if a builtin continues.
    pub bytecode: i32,
    /// Offset of its exit in the code. In TurboFan's code: a call's return address; [`u32::MAX`] for a check.
    pub exit: u32,
}

/// A frame that the interpreter continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeoptFrame {
    /// Number of the function in the code's literals.
    pub function: u32,
    /// Offset of the bytecode, in bytes; `None` before the first bytecode.
    pub bytecode: Option<u32>,
}

/// An operation with its operands.
struct Operation {
    number: u8,
    operands: Vec<u64>,
}

impl Operation {
    fn signed(&self, index: usize) -> Option<i64> {
        self.operands.get(index).map(|it| vlq::sign(*it))
    }
}

/// Operations of a translation behind its begin.
struct Operations<'a> {
    form: DeoptForm,
    rest: &'a [u8],
    /// The basis behind the operations that were repeated or replaced.
    basis: &'a [u8],
    repeats: u64,
}

impl Operations<'_> {
    fn take(form: DeoptForm, bytes: &mut &[u8]) -> Option<Operation> {
        let (number, rest) = bytes.split_first()?;
        *bytes = rest;
        let count = *form.operands.get(usize::from(*number))?;
        let operands = (0..count).map(|_| vlq::unsigned(bytes));
        Some(Operation {
            number: *number,
            operands: operands.collect::<Option<_>>()?,
        })
    }
}

impl Iterator for Operations<'_> {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.repeats == 0 {
            let count = u8::try_from(self.form.operands.len()).ok()?;
            let first = *self.rest.first()?;
            self.repeats = if let Some(short) = first.checked_sub(count) {
                self.rest = self.rest.get(1..)?;
                short.into()
            } else {
                let operation = Self::take(self.form, &mut self.rest)?;
                if operation.number + 1 < count {
                    // It replaces an operation of the basis.
                    Self::take(self.form, &mut self.basis);
                    return Some(operation);
                }
                *operation.operands.first()?
            };
        }
        self.repeats = self.repeats.checked_sub(1)?;
        Self::take(self.form, &mut self.basis)
    }
}

/// Frames of an entry, innermost first. Frames of builtins are left out. Takes its operations from `left`.
///
/// # Errors
/// [`DeoptError`].
pub(super) fn frames(
    translations: &[u8],
    form: DeoptForm,
    entry: DeoptEntry,
    left: &mut usize,
) -> Result<Vec<DeoptFrame>, DeoptError> {
    let at = entry.translation;
    let damaged = DeoptError::Translation(at);
    let begin = |at: u32| {
        let mut bytes = translations.get(at as usize..)?;
        let begin = Operations::take(form, &mut bytes)?;
        BEGINS.contains(&begin.number).then_some((begin, bytes))
    };
    let (first, rest) = begin(at).ok_or(damaged)?;
    let basis = match first.operands.first().ok_or(damaged)? {
        0 => &[][..],
        distance => {
            let distance = u32::try_from(*distance).ok();
            let before = distance.and_then(|distance| at.checked_sub(distance));
            before.and_then(begin).ok_or(damaged)?.1
        }
    };
    let count = first
        .signed(1)
        .and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count <= MAX_DEPTH).ok_or(damaged)?;
    let operations = Operations {
        form,
        rest,
        basis,
        repeats: 0,
    };
    let (mut frames, mut begun) = (Vec::new(), 0);
    for operation in operations {
        *left = left.checked_sub(1).ok_or(damaged)?;
        if operation.number >= FRAMES {
            continue;
        }
        begun += 1;
        let bytecode = operation.signed(0).ok_or(damaged)?;
        let is_of_bytecodes = operation.number < FRAMES_OF_BYTECODES;
        if is_of_bytecodes {
            let function = operation.signed(1).and_then(|it| u32::try_from(it).ok());
            frames.push(DeoptFrame {
                function: function.ok_or(damaged)?,
                bytecode: u32::try_from(bytecode).ok(),
            });
        }
        if begun == count {
            // Numbers below 0 are a function's entry.
            if is_of_bytecodes && bytecode.max(-1) != i64::from(entry.bytecode.max(-1)) {
                return Err(DeoptError::OtherBytecode(at));
            }
            frames.reverse();
            return Ok(frames);
        }
    }
    Err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::Debug;
    use crate::versions::Layout;
    use crate::vlq::{put_signed, put_unsigned};
    use proptest::prelude::*;

    fn form() -> DeoptForm {
        let layout = Layout::new((13, 6), &Debug::default());
        layout.and_then(|layout| layout.deopt).unwrap()
    }

    const fn frame(function: u32, bytecode: u32) -> DeoptFrame {
        DeoptFrame {
            function,
            bytecode: Some(bytecode),
        }
    }

    /// A frame without a place for a result: bytecode, function, bytecodes, height.
    fn put_frame(bytecode: i64, function: i64, bytes: &mut Vec<u8>) {
        bytes.push(1);
        for number in [bytecode, function, 7, 1] {
            put_signed(number, bytes);
        }
    }

    fn put_begin(distance: u64, frames: i64, bytes: &mut Vec<u8>) {
        bytes.push(14);
        put_unsigned(distance, bytes);
        put_signed(frames, bytes);
        put_signed(frames, bytes);
    }

    fn entry(translation: usize, bytecode: i32) -> DeoptEntry {
        DeoptEntry {
            translation: translation.try_into().unwrap(),
            bytecode,
            exit: 0,
        }
    }

    #[test]
    fn a_translation_repeats_its_basis() {
        let mut bytes = Vec::new();
        put_begin(0, 2, &mut bytes);
        put_frame(200, 3, &mut bytes);
        // A literal, a value that is left out.
        bytes.extend([38, 12, 37]);
        put_frame(5, 4, &mut bytes);
        let second = bytes.len();
        put_begin(second as u64, 3, &mut bytes);
        // Three operations of the basis, in short and in long form.
        bytes.push(45 + 2);
        bytes.extend([44, 1]);
        put_frame(9, 4, &mut bytes);
        bytes.extend([6, 0, 0, 0]);
        let frames = |entry| frames(&bytes, form(), entry, &mut 100);
        assert_eq!(frames(entry(0, 5)), Ok(vec![frame(4, 5), frame(3, 200)]));
        assert_eq!(frames(entry(0, 6)), Err(DeoptError::OtherBytecode(0)));
        // A builtin continues: its frame is left out.
        let with_builtin = Ok(vec![frame(4, 9), frame(3, 200)]);
        assert_eq!(frames(entry(second, 77)), with_builtin);
        assert_eq!(frames(entry(1, 5)), Err(DeoptError::Translation(1)));
        assert_eq!(frames(entry(999, 5)), Err(DeoptError::Translation(999)));
    }

    proptest! {
        #[test]
        fn damage_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..300_usize) {
            let mut left = 1000;
            let _ = frames(&bytes, form(), entry(at, 0), &mut left);
        }
    }
}
