//! Properties of bytecodes: the VM's own table `generatorTable`, else the table of known VMs.
//!
//! An entry of the VM has pointers to its code generator, its span function and its frame test, then one
//! byte each for stack delta and opcode, the number of bytes, and flags.

use vmscope_process::{AdapterError, Memory};

use crate::Variables;
use crate::bytecode_table::row;

/// Number of bytecodes in a set.
pub const SET: usize = 256;

/// The bytecode sets of known VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Squeak V3 with closures: blocks are inside their method.
    V3,
    /// Sista V1: full blocks are separate objects.
    Sista,
}

/// Properties of a bytecode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytecode {
    /// Bytes with operands.
    pub bytes: u8,
    /// Leaves the method or block.
    pub is_return: bool,
    /// Makes a block whose bytecodes follow.
    pub creates_block: bool,
    /// The code behind it has an entry in the method's map.
    pub is_mapped: bool,
    /// Likewise, in blocks only.
    pub is_mapped_in_block: bool,
    /// Jumps, or skips a block.
    pub has_span: bool,
}

/// The bytecodes of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytecodes {
    /// The set.
    pub encoding: Encoding,
    all: Vec<Bytecode>,
}

/// The bytecode sets of a VM. The sign of a method's header selects one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sets {
    sets: [Option<Bytecodes>; 2],
    /// Number of sets in the VM's table; `None` if vmscope uses the sets of known VMs.
    pub told: Option<usize>,
}

/// Flags of an entry, from bit 24 of the word with the number of bytes on.
mod flag {
    pub const IS_RETURN: u32 = 1 << 2;
    pub const CREATES_BLOCK: u32 = 1 << 3;
    pub const IS_MAPPED: u32 = 1 << 4;
    pub const IS_MAPPED_IN_BLOCK: u32 = 1 << 5;
}

impl Sets {
    /// The sets of a VM.
    ///
    /// # Errors
    /// Failed reads.
    pub fn of(variables: &Variables, memory: &dyn Memory) -> Result<Self, AdapterError> {
        let word = memory.pointer_bytes();
        // Three pointers and 8 bytes.
        let entry = 3 * word + 8;
        let count = variables.size("generatorTable") / entry as u64;
        let count = usize::try_from(count).unwrap_or(0).min(2 * SET);
        let at = variables.at("generatorTable");
        let Some(at) = at.filter(|_| count == SET || count == 2 * SET) else {
            return Ok(Self::known());
        };
        let length = count * entry;
        let bytes = memory.read_vec(at, length as u64, length);
        let bytes = bytes.map_err(AdapterError::reading("table of bytecodes"))?;
        let all: Vec<_> = bytes
            .chunks_exact(entry)
            .map(|entry| Bytecode::of(entry, word))
            .collect();
        let set = |all: &[Bytecode], encoding| {
            let all = all.to_vec();
            Some(Bytecodes { encoding, all }).filter(Bytecodes::is_known)
        };
        let sets = match all.split_at_checked(SET) {
            Some((v3, sista)) if !sista.is_empty() => {
                [set(v3, Encoding::V3), set(sista, Encoding::Sista)]
            }
            // Whichever bit its methods have, this VM has one set only.
            _ => {
                let only = set(&all, Encoding::Sista).or_else(|| set(&all, Encoding::V3));
                [only.clone(), only]
            }
        };
        Ok(Sets {
            sets,
            told: Some(count / SET),
        })
    }

    /// The sets of known VMs, in a build with immutable objects.
    #[must_use]
    pub fn known() -> Self {
        Sets {
            sets: [Encoding::V3, Encoding::Sista].map(|encoding| Some(Bytecodes::known(encoding))),
            told: None,
        }
    }

    /// Bytecodes of a method with this header; `None` for an unknown set.
    #[must_use]
    pub fn of_method(&self, header: i64) -> Option<&Bytecodes> {
        let [positive, negative] = &self.sets;
        if header < 0 {
            negative.as_ref()
        } else {
            positive.as_ref()
        }
    }
}

impl Bytecode {
    fn of(entry: &[u8], word: usize) -> Self {
        let byte = |at: usize| entry.get(at).copied().unwrap_or(0);
        let after = 3 * word;
        let flags = u32::from(byte(after + 3)) | u32::from(byte(after + 4)) << 8;
        Bytecode {
            bytes: byte(after + 2),
            is_return: flags & flag::IS_RETURN != 0,
            creates_block: flags & flag::CREATES_BLOCK != 0,
            is_mapped: flags & flag::IS_MAPPED != 0,
            is_mapped_in_block: flags & flag::IS_MAPPED_IN_BLOCK != 0,
            has_span: (word..2 * word).any(|at| byte(at) != 0),
        }
    }

    /// Bytecode `code` of a set that is known by documents.
    fn known(encoding: Encoding, code: u8) -> Self {
        let (_, bytes, _) = row(encoding, code);
        let (is_return, creates_block) = match encoding {
            Encoding::V3 => (matches!(code, 120..=125), code == 143),
            Encoding::Sista => (matches!(code, 88..=94), code == 250),
        };
        let (is_mapped, is_mapped_in_block) = match encoding {
            Encoding::V3 => (
                matches!(code, 96..=103 | 129..=134 | 152..=163 | 168..=197 | 201..=255),
                matches!(code, 120..=124),
            ),
            Encoding::Sista => (
                matches!(code, 96..=117 | 121..=175 | 184..=207 | 217 | 234..=241 | 243 | 244),
                matches!(code, 88..=92),
            ),
        };
        Bytecode {
            bytes,
            is_return,
            creates_block,
            is_mapped,
            is_mapped_in_block,
            has_span: has_span(encoding, code),
        }
    }
}

/// Whether a bytecode jumps, or skips a block.
fn has_span(encoding: Encoding, code: u8) -> bool {
    match encoding {
        Encoding::V3 => matches!(code, 143..=175),
        Encoding::Sista => matches!(code, 176..=199 | 237..=239 | 250),
    }
}

impl Bytecodes {
    /// A set as documents tell it.
    #[must_use]
    pub fn known(encoding: Encoding) -> Self {
        let all = (0..=u8::MAX).map(|code| Bytecode::known(encoding, code));
        Bytecodes {
            encoding,
            all: all.collect(),
        }
    }

    /// Bytecode `code`.
    #[must_use]
    pub fn get(&self, code: u8) -> Bytecode {
        let found = self.all.get(usize::from(code)).copied();
        found.unwrap_or_default()
    }

    /// Whether the VM's table describes this encoding: the same bytecodes jump, with plausible sizes.
    fn is_known(&self) -> bool {
        (0..=u8::MAX).all(|code| {
            let own = self.get(code);
            // A table for blocks as objects need not skip blocks.
            let skips = own.has_span || (self.encoding == Encoding::Sista && code == 250);
            (1..=4).contains(&own.bytes) && skips == has_span(self.encoding, code)
        })
    }

    /// Bytes that the jump or block creation at `at` skips, negative for a jump back; 0 for other
    /// bytecodes. `extension` is the value of the extensions B in front.
    #[must_use]
    pub fn span(&self, code: &[u8], at: usize, extension: i64) -> i64 {
        let byte = |index: usize| {
            let byte = at.checked_add(index).and_then(|at| code.get(at));
            i64::from(byte.copied().unwrap_or(0))
        };
        let low = byte(0) & 7;
        let far = extension.saturating_mul(256);
        match (self.encoding, byte(0)) {
            (Encoding::V3, 144..=159) | (Encoding::Sista, 176..=199) => low + 1,
            (Encoding::V3, 160..=167) => (low - 4) * 256 + byte(1),
            (Encoding::V3, 168..=175) => (low & 3) * 256 + byte(1),
            (Encoding::V3, 143) => byte(2) * 256 + byte(3),
            (Encoding::Sista, 237..=239) => far.saturating_add(byte(1)),
            (Encoding::Sista, 250) => far.saturating_add(byte(2)),
            _ => 0,
        }
    }
}
