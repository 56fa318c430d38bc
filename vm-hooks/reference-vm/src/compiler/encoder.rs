//! Encodes instructions, always in the shortest form.

use super::bytecodes::{EXTEND_A, EXTEND_B, InVector, Instruction};

/// Appends the bytes of `instruction`. `None`: an operand exceeds SistaV1's range.
pub fn encode(instruction: Instruction, out: &mut Vec<u8>) -> Option<()> {
    use Instruction as I;
    match instruction {
        I::PushReceiverVariable(index) => indexed(out, index, Some((0, 16)), 226),
        I::PushLiteralVariable(index) => indexed(out, index, Some((16, 16)), 227),
        I::PushLiteral(index) => indexed(out, index, Some((32, 32)), 228),
        I::PushTemp(index) => temp(out, index, Some((64, 12)), 229),
        I::PushReceiver => single(out, 76),
        I::PushTrue => single(out, 77),
        I::PushFalse => single(out, 78),
        I::PushNil => single(out, 79),
        I::PushInteger(0) => single(out, 80),
        I::PushInteger(1) => single(out, 81),
        I::PushInteger(value) => signed(out, 232, value),
        I::PushCharacter(code_point) => signed(out, 233, i32::try_from(code_point).ok()?),
        I::Dup => single(out, 83),
        I::Pop => single(out, 216),
        I::Nop => single(out, 95),
        I::ReturnReceiver => single(out, 88),
        I::ReturnTrue => single(out, 89),
        I::ReturnFalse => single(out, 90),
        I::ReturnNil => single(out, 91),
        I::ReturnTop => single(out, 92),
        I::BlockReturnNil => single(out, 93),
        I::BlockReturnTop => single(out, 94),
        I::SendSpecial(index) => {
            let index = u8::try_from(index).ok().filter(|index| *index < 32)?;
            single(out, 96 + index)
        }
        I::Send { literal, num_args } if literal < 16 && num_args < 3 => {
            single(out, u8::try_from(128 + num_args * 16 + literal).ok()?)
        }
        I::Send { literal, num_args } => send(out, 234, literal, num_args),
        I::SendSuper { literal, num_args } => send(out, 235, literal, num_args),
        I::Jump(distance) => jump(out, 176, 237, distance),
        I::JumpTrue(distance) => jump(out, 184, 238, forward(distance)?),
        I::JumpFalse(distance) => jump(out, 192, 239, forward(distance)?),
        I::PopIntoReceiverVariable(index) => indexed(out, index, Some((200, 8)), 240),
        I::PopIntoLiteralVariable(index) => indexed(out, index, None, 241),
        I::PopIntoTemp(index) => temp(out, index, Some((208, 8)), 242),
        I::StoreIntoReceiverVariable(index) => indexed(out, index, None, 243),
        I::StoreIntoLiteralVariable(index) => indexed(out, index, None, 244),
        I::StoreIntoTemp(index) => temp(out, index, None, 245),
        I::PushNewArray(size) => bytes(out, &[231, below(size, 0x80)?]),
        I::PushArrayOf(size) => bytes(out, &[231, 0x80 | below(size, 0x80)?]),
        I::CallPrimitive(number) => {
            let high = below(number >> 8, 0x20)?;
            bytes(out, &[248, below(number & 0xFF, 0x100)?, high])
        }
        I::PushClosure {
            literal,
            num_copied,
            ignores_outer,
        } => {
            let flags = below(num_copied, 0x40)? | u8::from(ignores_outer) << 6;
            indexed(out, literal, None, 249)?;
            single(out, flags)
        }
        I::PushInVector(place) => in_vector(out, 251, place),
        I::StoreInVector(place) => in_vector(out, 252, place),
        I::PopInVector(place) => in_vector(out, 253, place),
    }
}

fn single(out: &mut Vec<u8>, opcode: u8) -> Option<()> {
    out.push(opcode);
    Some(())
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    out.extend_from_slice(bytes);
    Some(())
}

fn below(value: usize, limit: usize) -> Option<u8> {
    u8::try_from(value).ok().filter(|_| value < limit)
}

/// Encodes an operand. Short form: first opcode and opcode count. Long form: extension A.
fn indexed(out: &mut Vec<u8>, index: usize, short: Option<(u8, usize)>, long: u8) -> Option<()> {
    if let Some((first, count)) = short
        && index < count
    {
        return single(out, first + below(index, count)?);
    }
    extend_a(out, index >> 8)?;
    bytes(out, &[long, below(index & 0xFF, 0x100)?])
}

/// A temp: there is no extension.
fn temp(out: &mut Vec<u8>, index: usize, short: Option<(u8, usize)>, long: u8) -> Option<()> {
    below(index, 0x100)?;
    indexed(out, index, short, long)
}

fn extend_a(out: &mut Vec<u8>, high: usize) -> Option<()> {
    if high != 0 {
        bytes(out, &[EXTEND_A, below(high, 0x100)?])?;
    }
    Some(())
}

fn signed(out: &mut Vec<u8>, opcode: u8, value: i32) -> Option<()> {
    let [low, high, ..] = value.to_le_bytes();
    i16::try_from(value).ok()?;
    if high != 0 {
        bytes(out, &[EXTEND_B, high])?;
    }
    bytes(out, &[opcode, low])
}

fn send(out: &mut Vec<u8>, opcode: u8, literal: usize, num_args: usize) -> Option<()> {
    extend_a(out, literal >> 5)?;
    if num_args > 7 {
        bytes(out, &[EXTEND_B, below(num_args >> 3, 0x80)?])?;
    }
    let operand = below(literal & 0x1F, 0x20)? << 3 | below(num_args & 7, 8)?;
    bytes(out, &[opcode, operand])
}

fn forward(distance: i32) -> Option<i32> {
    Some(distance).filter(|distance| *distance >= 0)
}

fn jump(out: &mut Vec<u8>, short: u8, long: u8, distance: i32) -> Option<()> {
    match u8::try_from(distance) {
        Ok(distance @ 1..=8) => single(out, short + distance - 1),
        _ => signed(out, long, distance),
    }
}

fn in_vector(out: &mut Vec<u8>, opcode: u8, place: InVector) -> Option<()> {
    bytes(
        out,
        &[
            opcode,
            below(place.index, 0x100)?,
            below(place.vector, 0x80)?,
        ],
    )
}
