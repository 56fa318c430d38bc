//! What maps are measured against, and the simple rules they are compared with.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use vmscope_hotspot::code::{Frame, Nmethod, PcDesc};
use vmscope_hotspot::evidence;

/// Whether a default table has the record: it describes locals, expressions or monitors.
fn is_default(nmethod: &Nmethod, pc: &PcDesc) -> bool {
    let scope = nmethod.scope(pc.scope);
    scope.is_ok_and(|scope| scope.values != [0; 3])
}

fn with(nmethod: &Nmethod, keep: impl Fn(&PcDesc) -> bool) -> Nmethod {
    let mut copy = nmethod.clone();
    copy.pcs = nmethod.pcs.iter().filter(|pc| keep(pc)).copied().collect();
    copy
}

/// The nmethod with the default table.
pub fn reduced(nmethod: &Nmethod) -> Nmethod {
    with(nmethod, |pc| is_default(nmethod, pc))
}

/// The full table without the records that have the stale scope.
pub fn cleaned(nmethod: &Nmethod) -> Nmethod {
    let stale = evidence::stale_scope(nmethod);
    with(nmethod, |pc| {
        is_default(nmethod, pc) || stale.is_none() || nmethod.chain(pc.scope).ok() != stale
    })
}

/// Rule 1: the first record at the pc or behind it.
pub fn next(nmethod: &Nmethod, pc: u32) -> Vec<Frame> {
    let at = nmethod
        .pcs
        .partition_point(|record| i64::from(record.pc) < i64::from(pc));
    chain(nmethod, nmethod.pcs.get(at))
}

/// The last record in front of the pc.
pub fn previous(nmethod: &Nmethod, pc: u32) -> Vec<Frame> {
    let at = nmethod
        .pcs
        .partition_point(|record| i64::from(record.pc) < i64::from(pc));
    chain(
        nmethod,
        at.checked_sub(1).and_then(|at| nmethod.pcs.get(at)),
    )
}

/// Rule 3: with anchors from the implicit-exception table.
pub fn with_implicit(nmethod: &Nmethod, pc: u32) -> Vec<Frame> {
    let at = nmethod
        .pcs
        .partition_point(|record| i64::from(record.pc) < i64::from(pc));
    let low = at.checked_sub(1).and_then(|at| nmethod.pcs.get(at));
    let low = low.map_or(-1, |record| i64::from(record.pc));
    let high = nmethod
        .pcs
        .get(at)
        .map_or(i64::MAX, |record| i64::from(record.pc));
    let in_gap = |at: u32| i64::from(at) > low && i64::from(at) <= high;
    let anchors = nmethod.implicit.iter().filter(|(at, _)| in_gap(*at));
    let before = anchors.clone().filter(|(at, _)| *at <= pc).max();
    let after = anchors.filter(|(at, _)| *at > pc).min();
    match before.or(after) {
        Some((_, goes_on)) => thrown(nmethod, *goes_on),
        None => next(nmethod, pc),
    }
}

/// Chain of the implicit exception with continuation `goes_on`.
fn thrown(nmethod: &Nmethod, goes_on: u32) -> Vec<Frame> {
    let at = nmethod
        .pcs
        .partition_point(|record| i64::from(record.pc) <= i64::from(goes_on));
    chain(nmethod, nmethod.pcs.get(at))
}

fn chain(nmethod: &Nmethod, record: Option<&PcDesc>) -> Vec<Frame> {
    record
        .and_then(|record| nmethod.chain(record.scope).ok())
        .unwrap_or_default()
}

/// Methods of a chain with their call bytecodes; the innermost bytecode is left out.
pub fn path(chain: &[Frame]) -> Vec<(u64, i32)> {
    let frames = chain.iter().enumerate();
    frames
        .map(|(depth, frame)| (frame.method.0, if depth == 0 { 0 } else { frame.bci }))
        .collect()
}

/// Instructions by end offset.
pub fn ending(nmethod: &Nmethod) -> HashMap<u32, Instruction> {
    let mut decoder = Decoder::with_ip(64, &nmethod.code, 0, DecoderOptions::NONE);
    let mut all = HashMap::new();
    while decoder.can_decode() {
        let insn = decoder.decode();
        all.insert(u32::try_from(decoder.position()).unwrap_or(u32::MAX), insn);
    }
    all
}

/// Whether the instruction disproves the reference: it accesses an object, but the bytecode
/// accesses no memory. Contradictions by the implicit-exception table do not count: the table is
/// measured evidence.
pub fn is_disproved(insn: Option<&Instruction>, bytecode: Option<u8>) -> bool {
    use Mnemonic as M;
    let Some(insn) = insn else {
        return false;
    };
    let moves = matches!(
        insn.mnemonic(),
        M::Mov | M::Movzx | M::Movsx | M::Movsxd | M::Movsd | M::Movss | M::Vmovsd | M::Vmovss
    );
    let no_object = [Register::RSP, Register::RIP, Register::R15, Register::None];
    let reaches = (0..2).any(|operand| insn.op_kind(operand) == OpKind::Memory)
        && !no_object.contains(&insn.memory_base())
        // The mark of a card.
        && insn.op1_register() != Register::R12L;
    // Constants, locals, the stack, arithmetic, branches, returns.
    let is_silent = bytecode.is_some_and(|code| {
        matches!(code, 0..=0x11 | 0x15..=0x2d | 0x36..=0x4e | 0x57..=0xa9 | 0xac..=0xb1
            | 0xc6..=0xc8 | 220 | 224 | 225)
    });
    moves && reaches && is_silent
}
