//! Encodings absent from the tables: integers and debug records, which differ between versions.
//! Features of the process determine the encoding if possible, else the version does.

/// Encodings of a JVM version that its tables do not describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encodings {
    /// Bias of each UNSIGNED5 byte: 0 up to JDK 19; 1 from 20 on, where zero bytes never occur
    /// (`unsigned5.hpp`).
    pub unsigned5_excess: u32,
}

/// `InvocationEntryBci`: no on-stack replacement.
pub const INVOCATION_ENTRY_BCI: i64 = -1;

/// Alignment of a codelet's code, which follows the codelet's structure (`CodeEntryAlignment`).
pub const CODELET_ALIGNMENT: u64 = 32;

/// `VtableStub`, in front of the code of a vtable or itable stub on x86-64 (`vtableStubs.hpp`);
/// equal on 11 to 25.
pub mod vtable_stub {
    use crate::layout::Scalar;

    /// Bytes of the structure.
    pub const HEADER: u64 = 16;
    /// Alignment of code and structure.
    pub const ALIGNMENT: u64 = 8;
    /// `_index`: in the class's vtable, or in the interface's itable.
    pub const INDEX: Scalar = short(8);
    /// `_ame_offset`: offset of the jump to the method, in the code.
    pub const JUMP: Scalar = short(10);
    /// `_is_vtable_stub`, later `_type`: 1 in vtable stubs, 0 in itable stubs.
    pub const IS_VTABLE: Scalar = Scalar {
        offset: 14,
        width: 1,
        signed: false,
    };
    /// Bytes of the jump to the exception, behind an itable stub's jump to the method.
    pub const FAILURE: u64 = 5;

    const fn short(offset: u64) -> Scalar {
        Scalar {
            offset,
            width: 2,
            signed: false,
        }
    }
}

/// Interpreted frame on x86-64: words near the frame pointer (`frame_x86.hpp`); equal on 11 to
/// 25.
pub mod interpreted_frame {
    /// Return address: offset from rbp in bytes.
    pub const RETURN: i64 = 8;
    /// The caller's stack pointer, which the callee's arguments do not move.
    pub const SENDER_SP: i64 = -8;
    /// `Method*`: offset from rbp in bytes.
    pub const METHOD: i32 = -24;
    /// Place of the first local variable, the last word of the frame: words from rbp (JDK 21 on).
    pub const LOCALS: i64 = -56;
    /// Saved bytecode pointer: offset from rbp in bytes.
    pub const BCP: i32 = -64;
}

/// `ContinuationEntry` (`continuationEntry.hpp`), at the stack pointer of
/// `Continuation.enterSpecial`; equal on 21 to 25.
pub mod continuation_entry {
    /// The `Continuation` object.
    pub const CONTINUATION: u64 = 16;
    /// Words of stack arguments of the outermost thawed frame, as a 32-bit number.
    pub const ARGUMENTS: u64 = 36;
    /// Most of these: a method has at most 255 parameter words.
    pub const MAX_ARGUMENTS: u64 = 256;
}

/// Tags of constant pool slots (`JVM_CONSTANT_*`): class-file numbers, and VM numbers from 100.
/// Equal on JDK 11 to 25.
pub mod pool_tag {
    #![allow(missing_docs, reason = "they are called as in classfile_constants.h")]
    pub const UTF8: u8 = 1;
    pub const INTEGER: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const LONG: u8 = 5;
    pub const DOUBLE: u8 = 6;
    pub const CLASS: u8 = 7;
    pub const STRING: u8 = 8;
    pub const FIELDREF: u8 = 9;
    pub const METHODREF: u8 = 10;
    pub const INTERFACE_METHODREF: u8 = 11;
    pub const NAME_AND_TYPE: u8 = 12;
    pub const METHOD_HANDLE: u8 = 15;
    pub const METHOD_TYPE: u8 = 16;
    pub const DYNAMIC: u8 = 17;
    pub const INVOKE_DYNAMIC: u8 = 18;
    pub const UNRESOLVED_CLASS: u8 = 100;
    pub const UNRESOLVED_CLASS_IN_ERROR: u8 = 103;
    pub const METHOD_HANDLE_IN_ERROR: u8 = 104;
    pub const METHOD_TYPE_IN_ERROR: u8 = 105;
    pub const DYNAMIC_IN_ERROR: u8 = 106;
}

/// Entries of resolved fields and methods (JDK 21 on). The tables give the entry's size and the
/// slot's offset, but not the other offsets.
pub mod resolved_entry {
    use crate::layout::Scalar;

    /// `Method*`, first in `ResolvedMethodEntry` and `ResolvedIndyEntry`.
    pub const METHOD: Scalar = Scalar {
        offset: 0,
        width: 8,
        signed: false,
    };

    /// In `ResolvedFieldEntry`: offsets of the field's own offset in the object, and of the
    /// class (null before resolution). `None` for layouts other than JDK 22 to 25.
    #[must_use]
    pub fn field(bytes: u64, slot: u64) -> Option<(Scalar, Scalar)> {
        let offset = Scalar {
            offset: 8,
            width: 4,
            signed: false,
        };
        (bytes == 24 && slot == 14).then_some((offset, METHOD))
    }
}

impl Encodings {
    /// Encodings of JVM version `major`.
    #[must_use]
    pub fn of(major: u32) -> Self {
        Encodings {
            unsigned5_excess: u32::from(major >= 20),
        }
    }
}

/// In all versions, a byte below this value ends a number.
const FIRST_THAT_GOES_ON: u32 = 192;

/// Reads an UNSIGNED5 number at `*at` and advances `*at`; `None` at the end of the bytes. A
/// number has at most five bytes.
#[must_use]
pub fn unsigned5(bytes: &[u8], at: &mut usize, excess: u32) -> Option<u32> {
    let mut sum = 0_u32;
    for digit in 0..5 {
        let byte = u32::from(*bytes.get(*at)?);
        *at += 1;
        let value = byte.wrapping_sub(excess);
        sum = sum.wrapping_add(value.wrapping_shl(6 * digit));
        if byte < FIRST_THAT_GOES_ON {
            break;
        }
    }
    Some(sum)
}

/// Likewise for a signed number (zigzag).
#[must_use]
pub fn signed5(bytes: &[u8], at: &mut usize, excess: u32) -> Option<i32> {
    let value = unsigned5(bytes, at, excess)?;
    Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_to_five_bytes() {
        let of = |bytes: &[u8], excess| {
            let mut at = 0;
            (unsigned5(bytes, &mut at, excess), at)
        };
        assert_eq!(of(&[191], 0), (Some(191), 1));
        assert_eq!(of(&[192, 0], 0), (Some(192), 2));
        assert_eq!(of(&[192, 1, 9], 0), (Some(192 + 64), 2));
        assert_eq!(of(&[1], 1), (Some(0), 1));
        assert_eq!(of(&[191], 1), (Some(190), 1));
        assert_eq!(of(&[192, 1], 1), (Some(191), 2));
        assert_eq!(of(&[192, 2], 1), (Some(191 + 64), 2));
        assert_eq!(of(&[255; 4], 0), (None, 4));
        assert_eq!(of(&[255; 9], 0).1, 5, "no more than five");
        let mut at = 0;
        assert_eq!(signed5(&[3], &mut at, 0), Some(-2));
    }
}
