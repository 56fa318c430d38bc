//! V8's instructions: lengths, operands and names, by opcode.
//!
//! V8's class `interpreter::Bytecodes` has them as tables. A prefix widens operands to 2 or 4 bytes,
//! which makes three scales. (V8's `interpreter/bytecodes.h` and `bytecode-operands.h`.)

use super::read::OPCODES;

/// Number of scales.
pub(crate) const SCALES: usize = 3;

/// Name of the handler that sixteen instructions share: `Star15` to `Star0`.
const SHORT_STAR: &str = "ShortStar";
const SHORT_STARS: usize = 16;

/// Meaning of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// Flags.
    Flags,
    /// Number of an intrinsic function.
    Intrinsic,
    /// Number of a runtime function.
    Runtime,
    /// Slot of the native context.
    NativeContext,
    /// Types seen by the instruction, as flags: V8 writes them into the bytecodes.
    Feedback,
    /// Index: of a constant or a context slot; up to V8 13 also of a feedback slot.
    Index,
    /// Index of a feedback slot.
    FeedbackSlot,
    /// Number without sign.
    Unsigned,
    /// Number of registers in the list before.
    Count,
    /// Number with sign.
    Signed,
    /// Register.
    Register,
    /// First of [`OperandKind::Count`] registers.
    RegisterList,
    /// First of two registers.
    RegisterPair,
    /// First of three registers.
    RegisterTriple,
}

impl OperandKind {
    /// Whether its values have a sign: numbers and registers.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, OperandKind::Signed) || self.is_register()
    }

    /// Whether it names registers.
    #[must_use]
    pub fn is_register(self) -> bool {
        use OperandKind::{Register, RegisterList, RegisterPair, RegisterTriple};
        matches!(
            self,
            Register | RegisterList | RegisterPair | RegisterTriple
        )
    }
}

/// V8's tables, as in its memory.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// `kBytecodeSizes`: bytes of each instruction without prefix, three scales after each other.
    pub sizes: Vec<u8>,
    /// `kOperandKindSizes`: bytes of each operand type, three scales after each other; may be empty.
    pub operand_sizes: Vec<u8>,
    /// `kOperandTypes`: types of each instruction's operands; may be empty.
    pub operands: Vec<Vec<u8>>,
    /// Names by opcode; may be short or have empty names.
    pub names: Vec<String>,
    /// `kIntrinsicFunctions`: names of runtime functions, by number; may be empty.
    pub runtime: Vec<String>,
}

/// A contradiction in V8's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The table of sizes has another form.
    #[error("a table of {0} sizes of bytecodes has another form")]
    Sizes(usize),
    /// An instruction without bytes.
    #[error("bytecode {0} has no bytes")]
    Empty(usize),
}

/// The instructions of one V8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstructionSet {
    /// Without prefix, by scale and opcode.
    sizes: [Vec<u8>; SCALES],
    /// By opcode; empty if unknown.
    operands: Vec<Vec<(OperandKind, [u8; SCALES])>>,
    names: Vec<String>,
    runtime: Vec<String>,
}

impl InstructionSet {
    /// The instructions of V8's tables. Operands are unknown if their tables are of an unknown form
    /// or contradict the sizes.
    ///
    /// # Errors
    /// [`TableError`]: the lengths of instructions are unknown, so nothing can be decoded.
    pub fn new(tables: Tables) -> Result<Self, TableError> {
        let count = tables.sizes.len() / SCALES;
        if count == 0 || count > OPCODES || !tables.sizes.len().is_multiple_of(SCALES) {
            return Err(TableError::Sizes(tables.sizes.len()));
        }
        if let Some(empty) = tables.sizes.iter().position(|size| *size == 0) {
            return Err(TableError::Empty(empty % count));
        }
        let mut scales = tables.sizes.chunks_exact(count).map(<[u8]>::to_vec);
        let sizes = [(); SCALES].map(|()| scales.next().unwrap_or_default());
        let operands = operands_of(&tables, &sizes).unwrap_or_default();
        let mut names = tables.names;
        names.truncate(count);
        name_short_stars(&mut names);
        Ok(InstructionSet {
            sizes,
            operands,
            names,
            runtime: tables.runtime,
        })
    }

    /// Size of an instruction without prefix, in bytes. `scale`: 0 to 2.
    pub(crate) fn size(&self, scale: usize, opcode: u8) -> Option<usize> {
        let size = self.sizes.get(scale)?.get(usize::from(opcode));
        size.copied().map(usize::from)
    }

    /// An instruction's operands with sizes by scale; empty if unknown.
    pub(crate) fn operands(&self, opcode: u8) -> &[(OperandKind, [u8; SCALES])] {
        let operands = self.operands.get(usize::from(opcode));
        operands.map_or(&[], Vec::as_slice)
    }

    /// Whether operands are known.
    #[must_use]
    pub fn has_operands(&self) -> bool {
        !self.operands.is_empty()
    }

    /// An instruction's name, without suffix; empty if unknown.
    #[must_use]
    pub fn name(&self, opcode: u8) -> &str {
        let name = self.names.get(usize::from(opcode));
        name.map_or("", String::as_str)
    }

    /// Name of a runtime function.
    #[must_use]
    pub fn runtime_name(&self, number: i64) -> Option<&str> {
        let name = self.runtime.get(usize::try_from(number).ok()?)?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }
}

/// Kinds of the operand types, with their sizes if these are equal at all scales.
type Kinds = Vec<(OperandKind, Option<u8>)>;

/// Numbers of operand types, with type 0: none.
const TYPES: [usize; 4] = [16, 17, 18, 23];

/// `kOperandKindSizes` of all known versions.
pub(super) fn sizes_of_operands() -> impl Iterator<Item = Vec<u8>> {
    TYPES
        .into_iter()
        .filter_map(kinds)
        .map(|all| sizes_of(&all))
}

/// Bytes of operands of these kinds, three scales after each other.
fn sizes_of(kinds: &Kinds) -> Vec<u8> {
    let scales = (0..SCALES).flat_map(|scale| {
        let each = kinds
            .iter()
            .map(move |(_, fixed)| fixed.unwrap_or(1 << scale));
        [0].into_iter().chain(each)
    });
    scales.collect()
}

/// The `count` operand types in V8's order, from number 1. V8 10 lacks flags of two bytes; V8 13 has another kind of
/// register; V8 14 has a type for each use of an index.
fn kinds(count: usize) -> Option<Kinds> {
    use OperandKind::{
        Count, Feedback, FeedbackSlot, Flags, Index, Intrinsic, NativeContext, Register,
        RegisterList, RegisterPair, RegisterTriple, Runtime, Signed, Unsigned,
    };
    let two_flags = &[(Flags, Some(1)), (Flags, Some(2))];
    let (flags, new, indices): (&[_], &[_], &[_]) = match count {
        16 => (&[(Flags, Some(1))], &[], &[Index]),
        17 | 18 => (two_flags, &[], &[Index]),
        23 => (
            two_flags,
            // The first is the reason of an abort.
            &[(Unsigned, Some(1)), (Feedback, Some(2))],
            // Of a constant, a feedback slot, a context slot, a coverage slot.
            &[Index, FeedbackSlot, Index, Index],
        ),
        _ => return None,
    };
    let others = [
        (Intrinsic, Some(1)),
        (Runtime, Some(2)),
        (NativeContext, Some(1)),
    ];
    let scalable = [
        Unsigned,
        Count,
        Signed,
        // Read.
        Register,
        RegisterList,
        RegisterPair,
        // Written.
        Register,
        RegisterList,
        RegisterPair,
        RegisterTriple,
        // Both.
        Register,
    ];
    let all = flags.iter().chain(&others).chain(new).copied();
    let scalable = indices.iter().copied().chain(scalable);
    let all = all.chain(scalable.map(|kind| (kind, None)));
    Some(all.take(count - 1).collect())
}

type Operands = Vec<Vec<(OperandKind, [u8; SCALES])>>;

/// Operands by opcode; `None` for contradictory tables.
fn operands_of(tables: &Tables, sizes: &[Vec<u8>; SCALES]) -> Option<Operands> {
    let kinds = kinds(tables.operand_sizes.len() / SCALES)?;
    // Fixed sizes stand out, so they confirm the order.
    if tables.operand_sizes != sizes_of(&kinds) {
        return None;
    }
    // Type 0 is none.
    let operand = |number: &u8| {
        let number = usize::from(*number);
        let (kind, _) = *kinds.get(number.checked_sub(1)?)?;
        let mut widths = tables.operand_sizes.chunks_exact(kinds.len() + 1);
        let widths = [(); SCALES].map(|()| widths.next().and_then(|sizes| sizes.get(number)));
        let [Some(&one), Some(&two), Some(&four)] = widths else {
            return None;
        };
        Some((kind, [one, two, four]))
    };
    let all = tables.operands.iter();
    let all = all.map(|types| types.iter().map(operand).collect());
    let all: Operands = all.collect::<Option<_>>()?;
    let fits = sizes.iter().enumerate().all(|(scale, sizes)| {
        let bytes = |operands: &Vec<(OperandKind, [u8; SCALES])>| {
            let widths = operands.iter().filter_map(|(_, widths)| widths.get(scale));
            1 + widths.map(|width| usize::from(*width)).sum::<usize>()
        };
        let own = all.iter().map(bytes);
        sizes.iter().map(|size| usize::from(*size)).eq(own)
    });
    fits.then_some(all)
}

fn name_short_stars(names: &mut [String]) {
    let is_short = |name: &String| name == SHORT_STAR;
    let Some(first) = names.iter().position(is_short) else {
        return;
    };
    let run = names.iter_mut().skip(first).take(SHORT_STARS);
    for (name, register) in run.zip((0..SHORT_STARS).rev()) {
        if name == SHORT_STAR {
            *name = format!("Star{register}");
        }
    }
}
