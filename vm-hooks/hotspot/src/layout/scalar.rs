//! Integers in the VM's structures: offset, width, sign.

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use super::VmStructs;

/// Integer or pointer field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Offset in the structure.
    pub offset: u64,
    /// Width in bytes: 1, 2, 4 or 8; 0 for an absent field.
    pub width: u8,
    /// Whether the integer is signed.
    pub signed: bool,
}

impl Scalar {
    /// A field absent from the VM: no value in copies, and 0 in reads.
    pub const ABSENT: Scalar = Scalar {
        offset: 0,
        width: 0,
        signed: false,
    };

    /// Whether the VM lacks the field.
    #[must_use]
    pub fn is_absent(self) -> bool {
        self.width == 0
    }

    /// Value in the copy of a structure; `None` if the copy is too short or the field is
    /// absent.
    #[must_use]
    pub fn of(self, structure: &[u8]) -> Option<i64> {
        if self.is_absent() {
            return None;
        }
        let at = usize::try_from(self.offset).ok()?;
        let bytes = structure.get(at..at.checked_add(usize::from(self.width))?)?;
        let mut wide = [0; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let unused = 64 - 8 * u32::from(self.width);
        let value = u64::from_le_bytes(wide);
        Some(if self.signed {
            (value.wrapping_shl(unused)).cast_signed() >> unused
        } else {
            value.cast_signed()
        })
    }

    /// Likewise, as an unsigned number: addresses, sizes, offsets.
    #[must_use]
    pub fn unsigned_of(self, structure: &[u8]) -> Option<u64> {
        self.of(structure).map(i64::cast_unsigned)
    }

    /// Value in the structure at `at`; 0 if absent.
    ///
    /// # Errors
    /// Errors of the memory read, with `what` as the subject.
    pub fn read(
        self,
        memory: &dyn Memory,
        at: Avma,
        what: &'static str,
    ) -> Result<i64, AdapterError> {
        if self.is_absent() {
            return Ok(0);
        }
        let mut bytes = [0; 8];
        let used = bytes.get_mut(..usize::from(self.width)).unwrap_or_default();
        let from = Avma(at.0.wrapping_add(self.offset));
        memory
            .read_into(from, used)
            .map_err(AdapterError::reading(what))?;
        let here = Scalar { offset: 0, ..self };
        Ok(here.of(&bytes).unwrap_or_default())
    }

    /// Likewise, as an address.
    ///
    /// # Errors
    /// Errors of the memory read, with `what` as the subject.
    pub fn read_address(
        self,
        memory: &dyn Memory,
        at: Avma,
        what: &'static str,
    ) -> Result<Avma, AdapterError> {
        Ok(Avma(self.read(memory, at, what)?.cast_unsigned()))
    }
}

impl VmStructs {
    /// An integer or pointer field.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`], also for a field of unknown width.
    pub fn scalar(&self, structure: &str, name: &str) -> Result<Scalar, AdapterError> {
        self.optional_scalar(structure, name)
            .ok_or_else(|| AdapterError::MissingField {
                name: format!("{structure}.{name}"),
            })
    }

    /// Likewise; `None` if this version lacks the field.
    #[must_use]
    pub fn optional_scalar(&self, structure: &str, name: &str) -> Option<Scalar> {
        let field = self
            .field(structure, name)
            .filter(|field| !field.is_static)?;
        let (width, signed) = self.width_of(&field.type_name)?;
        Some(Scalar {
            offset: field.offset,
            width,
            signed,
        })
    }

    /// Width and sign of an integer type. The VM's table has sizes of declared types; in some
    /// versions no table has C++'s built-in types.
    fn width_of(&self, type_name: &str) -> Option<(u8, bool)> {
        let name = type_name.trim_start_matches("volatile ");
        let name = name.trim_start_matches("const ").trim_end_matches(" const");
        if name.ends_with('*') || name == "address" {
            return Some((8, false));
        }
        Some(match name {
            "bool" | "u1" | "uint8_t" | "unsigned char" | "CodeBlobKind" => (1, false),
            "signed char" | "jbyte" | "int8_t" => (1, true),
            "u2" | "jushort" | "uint16_t" => (2, false),
            "int16_t" | "jshort" | "short" => (2, true),
            "int" | "jint" | "int32_t" => (4, true),
            "u4" | "uint" | "juint" | "uint32_t" | "unsigned int" => (4, false),
            "size_t" | "uintx" | "uint64_t" | "julong" | "uintptr_t" => (8, false),
            "long" | "intx" | "intptr_t" | "int64_t" | "jlong" | "ssize_t" => (8, true),
            other => match self.optional_size_of(other)? {
                1 => (1, true),
                2 => (2, true),
                4 => (4, true),
                8 => (8, true),
                _ => return None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_has_its_width_and_sign() {
        let bytes = [0xff, 0xfe, 0xff, 0xff, 0xff, 1, 2, 3, 4];
        let scalar = |offset, width, signed| Scalar {
            offset,
            width,
            signed,
        };
        assert_eq!(scalar(0, 1, true).of(&bytes), Some(-1));
        assert_eq!(scalar(0, 1, false).of(&bytes), Some(255));
        assert_eq!(scalar(1, 2, true).of(&bytes), Some(-2));
        assert_eq!(scalar(1, 4, true).of(&bytes), Some(-2));
        assert_eq!(scalar(1, 8, false).of(&bytes), Some(0x0403_0201_ffff_fffe));
        assert_eq!(scalar(2, 8, false).of(&bytes), None);
        assert_eq!(scalar(u64::MAX, 1, false).of(&bytes), None);
        assert_eq!(Scalar::ABSENT.of(&bytes), None);
    }
}
