//! The bytecodes of a function in V8's heap, with constants and positions.

use vmscope_process::{AdapterError, known};

use super::listing::Constant;
use crate::object::{Heap, Tagged};

/// Maximum bytes of a function's bytecodes and of its positions.
const MAX_BYTES: usize = 16 << 20;

/// Maximum number of characters of a constant.
const MAX_TEXT: u64 = 80;

/// Offset of a `HeapNumber`'s value.
const NUMBER: u64 = 8;

/// Maps of the kinds of constants that a listing shows.
#[derive(Clone, Copy, Debug)]
pub struct ConstantKinds {
    /// Of numbers.
    pub number: Tagged,
    /// Of functions.
    pub function: Tagged,
}

/// The constant pool of a function.
#[derive(Clone, Copy, Debug)]
pub struct Constants<'h> {
    heap: &'h Heap<'h>,
    pool: Tagged,
    kinds: ConstantKinds,
}

impl Heap<'_> {
    /// The instructions in a `BytecodeArray`.
    ///
    /// # Errors
    /// An impossible length; failed reads.
    pub fn bytecodes(&self, array: Tagged) -> Result<Vec<u8>, AdapterError> {
        let what = "bytecodes";
        let length = self.integer(array, 8, what)?;
        let at = self.at(array, self.layout.bytecodes.first, what)?;
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let read = self.memory.read_vec(at, length, MAX_BYTES);
        read.map_err(AdapterError::reading(what))
    }

    /// The source positions of a `BytecodeArray`: offsets are bytecodes. Empty if V8 has none.
    ///
    /// # Errors
    /// Failed reads.
    pub fn bytecode_positions(&self, array: Tagged) -> Result<Vec<u8>, AdapterError> {
        let what = "source positions";
        let table = self.field(array, self.layout.bytecodes.positions, what)?;
        Ok(known(self.bytes(table, MAX_BYTES, what))?.unwrap_or_default())
    }

    /// The constants of a `BytecodeArray`.
    ///
    /// # Errors
    /// Failed reads.
    pub fn constants(
        &self,
        array: Tagged,
        kinds: ConstantKinds,
    ) -> Result<Constants<'_>, AdapterError> {
        let pool = self.field(array, self.layout.bytecodes.constants, "constants")?;
        Ok(Constants {
            heap: self,
            pool,
            kinds,
        })
    }
}

impl Constants<'_> {
    /// A constant.
    #[must_use]
    pub fn get(&self, number: u32) -> Constant {
        self.read(number).unwrap_or(Constant::Unknown)
    }

    fn read(&self, number: u32) -> Result<Constant, AdapterError> {
        let what = "constants";
        let object = self.heap.item(self.pool, number.into(), what)?;
        if let Some(value) = object.small_integer() {
            return Ok(Constant::Integer(value));
        }
        let map = self.heap.field(object, 0, what)?;
        if map == self.kinds.number {
            let bits = self.heap.field(object, NUMBER, what)?.0;
            return Ok(Constant::Number(f64::from_bits(bits)));
        }
        if map == self.kinds.function {
            return Ok(Constant::Function(self.heap.function(object)?.name));
        }
        if !self.heap.is_string(object)? {
            return Ok(Constant::Unknown);
        }
        let text = self.heap.string(object, MAX_TEXT)?;
        let is_whole = (text.chars().count() as u64) < MAX_TEXT;
        Ok(Constant::Text(text, is_whole))
    }
}
