//! Control flow of a method's bytecodes.

use super::decode::{Instruction, Operands};
use super::opcode::op;

/// For each of a method's instructions, whether code that begins at bytecode `entry` may execute it. Exception
/// handlers count as reached: they are what no flow from the method's begin reaches. So does all code of methods
/// with subroutines (`jsr`).
#[must_use]
pub fn reached(instructions: &[Instruction], entry: u32) -> Vec<bool> {
    let mut from_begin = vec![false; instructions.len()];
    if instructions.iter().any(|it| is_subroutine(it.opcode)) {
        return vec![true; instructions.len()];
    }
    follow(instructions, vec![0], &mut from_begin);
    let handlers = from_begin.iter().enumerate();
    let handlers = handlers.filter_map(|(index, is_reached)| (!is_reached).then_some(index));
    let entry = instructions.partition_point(|it| it.bci.0 < entry);
    let mut is_reached = vec![false; instructions.len()];
    follow(
        instructions,
        handlers.chain([entry]).collect(),
        &mut is_reached,
    );
    is_reached
}

/// Whether an instruction ends a basic block.
#[must_use]
pub fn is_jump(opcode: u8) -> bool {
    matches!(opcode, op::IFEQ..=op::RETURN | op::ATHROW | op::IFNULL..=op::JSR_W)
}

fn is_subroutine(opcode: u8) -> bool {
    matches!(opcode, op::JSR | op::JSR_W | op::RET)
}

/// Marks all that flow from the instructions `next` reaches.
fn follow(instructions: &[Instruction], mut next: Vec<usize>, is_reached: &mut [bool]) {
    while let Some(index) = next.pop() {
        let (Some(mark), Some(instruction)) = (is_reached.get_mut(index), instructions.get(index))
        else {
            continue;
        };
        if std::mem::replace(mark, true) {
            continue;
        }
        if falls_through(instruction.opcode) {
            next.push(index + 1);
        }
        let targets = targets(&instruction.operands).filter_map(|target| {
            let target = u32::try_from(target).ok()?;
            instructions
                .binary_search_by_key(&target, |it| it.bci.0)
                .ok()
        });
        next.extend(targets);
    }
}

fn falls_through(opcode: u8) -> bool {
    !matches!(
        opcode,
        op::GOTO | op::GOTO_W | op::TABLESWITCH | op::LOOKUPSWITCH | op::IRETURN
            ..=op::RETURN | op::ATHROW
    )
}

/// Bytecode indexes of an instruction's targets.
fn targets(operands: &Operands) -> impl Iterator<Item = i32> {
    let (one, table, pairs): (_, &[i32], &[(i32, i32)]) = match operands {
        Operands::Jump(target) => (Some(*target), &[], &[]),
        Operands::Table {
            default, targets, ..
        } => (Some(*default), targets, &[]),
        Operands::Lookup { default, pairs } => (Some(*default), &[], pairs),
        _ => (None, &[], &[]),
    };
    let pairs = pairs.iter().map(|(_, target)| *target);
    one.into_iter().chain(table.iter().copied()).chain(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecode::instructions;

    fn reached_at(code: &[u8], entry: u32) -> Vec<u32> {
        let all: Vec<Instruction> = instructions(code).map(Result::unwrap).collect();
        let reached = reached(&all, entry);
        let reached = all.iter().zip(reached).filter(|(_, reached)| *reached);
        reached.map(|(it, _)| it.bci.0).collect()
    }

    #[test]
    fn code_before_a_loop_is_not_reached_from_the_loop() {
        // nop; iconst_0; ifeq 5 (back to itself: the loop); return
        let code = [0x00, 0x03, 0x99, 0x00, 0x00, 0xb1];
        assert_eq!(reached_at(&code, 2), [2, 5]);
        assert_eq!(reached_at(&code, 0), [0, 1, 2, 5]);
    }

    #[test]
    fn a_handler_is_reached_from_everywhere() {
        // nop; goto 6; nop; pop (the handler); return
        let code = [0x00, 0xa7, 0x00, 0x05, 0x00, 0x57, 0xb1];
        assert_eq!(reached_at(&code, 1), [1, 4, 5, 6]);
    }

    #[test]
    fn switches_reach_their_targets_and_nothing_behind_them() {
        // iconst_0; lookupswitch at 1: default 21, 7 -> 20; nop; return; return
        let code = [
            0x03, 0xab, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 19, 0xb1, 0xb1,
        ];
        assert_eq!(reached_at(&code, 0), [0, 1, 20, 21]);
        // tableswitch at 1: default 20, one target 21.
        let code = [
            0x03, 0xaa, 0, 0, 0, 0, 0, 19, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 20, 0xb1, 0xb1,
        ];
        assert_eq!(reached_at(&code, 1), [1, 20, 21]);
    }

    #[test]
    fn with_subroutines_all_is_reached() {
        // nop; jsr 5; return; astore_1; ret 1
        let code = [0x00, 0xa8, 0x00, 0x04, 0xb1, 0x4c, 0xa9, 0x01];
        assert_eq!(reached_at(&code, 4), [0, 1, 4, 5, 6]);
    }
}
