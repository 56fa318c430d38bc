//! Instructions of WebAssembly functions in the notation of its text format.

use vmscope_records::BytecodePc;
use wasmparser::{BinaryReader, BlockType, FunctionBody, MemArg, Operator};

use super::module::Module;

/// Maximum number of instructions in a listing, and of characters.
const MAX_LINES: usize = 1 << 17;
const MAX_TEXT: usize = 4 << 20;

/// Deepest indentation.
const MAX_DEPTH: usize = 16;

/// Maximum number of targets of a jump table in its text.
const MAX_TARGETS: u32 = 64;

/// Begins of names with a dot in the text format.
const DOTTED: [&str; 24] = [
    "any", "array", "data", "elem", "extern", "f32", "f32x4", "f64", "f64x2", "global", "i16x8",
    "i31", "i32", "i32x4", "i64", "i64x2", "i8x16", "local", "memory", "ref", "struct", "table",
    "v128", "atomic",
];

/// Instructions in the `body` of a function, which begins at an offset in its module. Damage ends the listing, and so do
/// too many instructions.
#[must_use]
pub fn listing(body: &[u8], offset: u32, module: &Module) -> Vec<(BytecodePc, String)> {
    let body = FunctionBody::new(BinaryReader::new(body, offset.into()));
    let Ok(instructions) = body.get_operators_reader() else {
        return Vec::new();
    };
    let mut depth = 0_usize;
    let instructions = instructions.into_iter_with_offsets().map_while(Result::ok);
    let lines = instructions.take(MAX_LINES).map(|(instruction, at)| {
        let pc = BytecodePc(u32::try_from(at).unwrap_or(u32::MAX));
        let (before, after) = match instruction {
            Operator::End => (1, 0),
            Operator::Else | Operator::Catch { .. } | Operator::CatchAll => (1, 1),
            Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::Try { .. }
            | Operator::TryTable { .. } => (0, 1),
            _ => (0, 0),
        };
        depth = depth.saturating_sub(before);
        let indent = 2 * depth.min(MAX_DEPTH);
        depth += after;
        (pc, format!("{:indent$}{}", "", text(&instruction, module)))
    });
    let mut left = MAX_TEXT;
    let fits = |(_, line): &(BytecodePc, String)| {
        let rest = left.checked_sub(line.len());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    lines.take_while(fits).collect()
}

fn text(instruction: &Operator<'_>, module: &Module) -> String {
    match instruction {
        Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
            let name = module.function(*function_index);
            format!("{} <{name}>", plain(instruction))
        }
        Operator::F32Const { value } => format!("f32.const {}", f32::from_bits(value.bits())),
        Operator::F64Const { value } => format!("f64.const {}", f64::from_bits(value.bits())),
        Operator::BrTable { targets } => {
            let mut text = "br_table".to_owned();
            let each = targets.targets().map_while(Result::ok);
            for target in each.take(MAX_TARGETS as usize) {
                text += &format!(" {target}");
            }
            let more = if targets.len() > MAX_TARGETS {
                " …"
            } else {
                ""
            };
            format!("{text}{more} {}", targets.default())
        }
        other => plain(other),
    }
}

fn block_type(ty: BlockType) -> String {
    match ty {
        BlockType::Empty => String::new(),
        BlockType::Type(result) => format!(" (result {result})"),
        BlockType::FuncType(number) => format!(" (type {number})"),
    }
}

fn memory(place: &MemArg) -> String {
    match place.offset {
        0 => String::new(),
        offset => format!(" offset={offset}"),
    }
}

/// Text of an operand, by its name in [`Operator`].
macro_rules! operand {
    (blockty $value:ident) => {
        block_type(*$value)
    };
    (memarg $value:ident) => {
        memory($value)
    };
    ($other:ident $value:ident) => {
        format!(" {:?}", $value)
    };
}

macro_rules! texts {
    ($(@$proposal:ident $op:ident $({ $($arg:ident: $type:ty),* })? => $visit:ident ($($ann:tt)*))*) => {
        /// Name and operands of an instruction.
        fn plain(instruction: &Operator<'_>) -> String {
            match instruction {
                $(Operator::$op $({ $($arg),* })? => {
                    [name(stringify!($visit)), $($(operand!($arg $arg)),*)?].concat()
                })*
                _ => "(unknown)".to_owned(),
            }
        }
    };
}

wasmparser::for_each_operator!(texts);

/// Name in the text format, from the name of its function in `VisitOperator`: `visit_i32_add`.
fn name(visit: &str) -> String {
    let name = visit.strip_prefix("visit_").unwrap_or(visit);
    let Some((first, rest)) = name.split_once('_').filter(|(it, _)| DOTTED.contains(it)) else {
        return name.strip_prefix("typed_").unwrap_or(name).to_owned();
    };
    match rest.strip_prefix("atomic_") {
        None => format!("{first}.{rest}"),
        Some(atomic) if atomic.starts_with("rmw") => {
            format!("{first}.atomic.{}", atomic.replacen('_', ".", 1))
        }
        Some(atomic) => format!("{first}.atomic.{atomic}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_text_format() {
        let body = [
            0, // no local variables
            0x02, 0x40, // block
            0x41, 0x7f, // i32.const -1
            0x28, 0x02, 0x10, // i32.load offset=16
            0x0e, 1, 0, 0,    // br_table 0 0
            0x0b, // end
            0x43, 0, 0, 0xc0, 0x3f, // f32.const 1.5
            0x10, 0x03, // call 3
            0xfe, 0x1e, 0x02, 0x00, // i32.atomic.rmw.add
            0x0b, // end
        ];
        let lines = listing(&body, 100, &Module::default());
        let expected = [
            (101, "block"),
            (103, "  i32.const -1"),
            (105, "  i32.load offset=16"),
            (108, "  br_table 0 0"),
            (112, "end"),
            (113, "f32.const 1.5"),
            (118, "call 3 <wasm-function[3]>"),
            (120, "i32.atomic.rmw.add"),
            (124, "end"),
        ];
        let expected = expected.map(|(pc, text)| (BytecodePc(pc), text.to_owned()));
        assert_eq!(lines, expected);
        // Damage ends the listing.
        for length in 0..body.len() {
            let cut = listing(&body[..length], 100, &Module::default());
            assert!(expected.starts_with(&cut), "{cut:?}");
        }
    }

    #[test]
    fn names_are_those_of_the_text_format() {
        for (visit, expected) in [
            ("visit_br_if", "br_if"),
            ("visit_typed_select", "select"),
            ("visit_i32_trunc_sat_f32_s", "i32.trunc_sat_f32_s"),
            ("visit_memory_atomic_wait32", "memory.atomic.wait32"),
            ("visit_i64_atomic_rmw8_add_u", "i64.atomic.rmw8.add_u"),
            ("visit_i8x16_shuffle", "i8x16.shuffle"),
            ("visit_local_tee", "local.tee"),
        ] {
            assert_eq!(name(visit), expected);
        }
    }
}
