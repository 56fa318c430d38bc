//! Stamps distinguish methods with equal addresses.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::FxHasher;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use super::{MethodLayout, WHAT};
use crate::bytecode::{Operands, instructions};
use crate::layout::Scalar;

/// See [`MethodLayout::stamp`]. The stamp covers addresses, names and code: classes reuse the
/// addresses of unloaded ones, and reloaded classes their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    places: [Avma; 6],
    names: u64,
    code_size: u64,
    code: u64,
}

impl MethodLayout {
    /// Stamp of the method at `method`. After the unloading of its class, another method may
    /// have its address; the stamp then differs.
    ///
    /// # Errors
    /// As [`MethodLayout::read`].
    pub fn stamp(&self, memory: &dyn Memory, method: Avma) -> Result<Stamp, AdapterError> {
        let const_method = self.const_method(memory, method)?;
        let constants = self.constants.read_address(memory, const_method, WHAT)?;
        let holder = self.pool_holder.read_address(memory, constants, WHAT)?;
        let class = self.klass_name.read_address(memory, holder, WHAT)?;
        let symbol = |index: Scalar| -> Result<Avma, AdapterError> {
            let index = index.read(memory, const_method, WHAT)?.cast_unsigned();
            Ok(Avma(self.pool_slot(memory, constants, index)? & !1))
        };
        let name = symbol(self.name_index)?;
        let signature = match self.tells_signatures() {
            true => Some(symbol(self.signature_index)?),
            false => None,
        };
        let mut names = FxHasher::default();
        for symbol in [Some(class), Some(name), signature].into_iter().flatten() {
            let (bytes, _) = self.symbol_bytes(memory, symbol, usize::from(u16::MAX))?;
            names.write_usize(bytes.len());
            names.write(&bytes);
        }
        let code_size = if self.code_size.is_absent() {
            0
        } else {
            let size = self.code_size.read(memory, const_method, WHAT)?;
            size.cast_unsigned()
        };
        let at = Avma(const_method.0.wrapping_add(self.const_method_bytes));
        let code = memory
            .read_vec(at, code_size, usize::from(u16::MAX))
            .map_err(AdapterError::reading(WHAT))?;
        let signature = signature.unwrap_or(Avma(0));
        Ok(Stamp {
            places: [const_method, constants, holder, class, name, signature],
            names: names.finish(),
            code_size,
            code: hash_of_code(&code),
        })
    }
}

/// Covers only parts of the code that survive the VM's rewriting, which changes opcodes, and
/// operands with constant pool numbers.
fn hash_of_code(code: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    for instruction in instructions(code).map_while(Result::ok) {
        hasher.write_u8(instruction.opcode);
        hasher.write_u32(instruction.length);
        match instruction.operands {
            Operands::Local(local) => hasher.write_u16(local),
            Operands::Increment(local, by) => {
                hasher.write_u16(local);
                hasher.write_i16(by);
            }
            Operands::Value(value) | Operands::Jump(value) => hasher.write_i32(value),
            Operands::Primitive(kind) => hasher.write_u8(kind),
            Operands::Table {
                low,
                default,
                targets,
            } => (low, default, targets).hash(&mut hasher),
            Operands::Lookup { default, pairs } => (default, pairs).hash(&mut hasher),
            Operands::None
            | Operands::Constant(_)
            | Operands::Resolved(_)
            | Operands::Member(_)
            | Operands::CallSite(_)
            | Operands::Dimensions(..) => {}
        }
    }
    hasher.finish()
}
