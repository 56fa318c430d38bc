//! Cases of closed PICs, decoded from their machine code (x86).
//!
//! The first case is a move of a method and a jump, without a comparison: the entry of the PIC has
//! compared. Each other case is a chunk of equal size: a comparison of the receiver's class with a
//! constant, a move of a method, a conditional jump. Chunks are in reverse order of the cases, and a PIC
//! fills them from the end on. The jump goes to the method's code behind its class check, or back into
//! the PIC: to its start if the class does not understand the selector, behind that if the method
//! is interpreted.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use rustc_hash::FxHashMap;
use vmscope_records::{Arch, Avma};

use crate::cog_method::{CogMethod, EntryKind, Fields};
use crate::map::{Origin, places};
use crate::zone::Methods;

/// Maximum number of cases.
pub const MAX_CASES: u16 = 6;

/// Bytes of a call. The move of a class or selector before the call is equally long.
const CALL: usize = 5;

/// A case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Index of the receiver's class in the class table; `None` for a first case without a linked send.
    pub class_index: Option<u32>,
    /// Its target.
    pub target: Target,
}

/// Target of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The method with this address in the code zone.
    Method(Avma),
    /// An interpreted method (an object pointer).
    Interpreted(Avma),
    /// The class does not understand the selector.
    NotUnderstood,
}

/// A jump, and constants of the instructions before the jump.
struct Jump {
    is_conditional: bool,
    class: Option<u32>,
    method: Option<u64>,
    to: u64,
}

/// Cases of a closed PIC in the order of the VM; empty if its code has another form.
/// `linked` has the class that a send linked to the PIC expects, by the PIC's address.
#[must_use]
pub fn cases(
    pic: &CogMethod,
    code: &[u8],
    word: usize,
    unchecked_entry: u32,
    linked: &FxHashMap<Avma, u32>,
) -> Vec<Case> {
    let count = usize::from(pic.stack_check);
    if !(1..=MAX_CASES).contains(&pic.stack_check) || Arch::of_this_machine() != Arch::X86_64 {
        return Vec::new();
    }
    let header = Fields::of(word).bytes;
    let jumps = jumps(code, pic.at, header, word);
    let Some(first) = jumps
        .iter()
        .position(|jump| !jump.is_conditional && jump.method.is_some())
    else {
        return Vec::new();
    };
    let (before, others) = jumps.split_at(first + 1);
    let others = others
        .iter()
        .filter(|jump| jump.is_conditional && jump.class.is_some());
    let others: Vec<&Jump> = others.collect();
    if others.len() + 1 < count {
        return Vec::new();
    }
    let others = others.into_iter().rev().take(count - 1);
    let jumps = before.last().into_iter().chain(others);
    let case = |(number, jump): (usize, &Jump)| Case {
        class_index: match number {
            0 => linked.get(&pic.at).copied(),
            _ => jump.class,
        },
        target: target(pic, jump, header, unchecked_entry),
    };
    jumps.enumerate().map(case).collect()
}

fn target(pic: &CogMethod, jump: &Jump, header: usize, unchecked_entry: u32) -> Target {
    let inside = jump.to.checked_sub(pic.at.0);
    match inside.filter(|offset| *offset < u64::from(pic.size)) {
        None => Target::Method(Avma(jump.to.wrapping_sub(u64::from(unchecked_entry)))),
        Some(offset) if offset == header as u64 => Target::NotUnderstood,
        Some(_) => match jump.method {
            Some(method) if method != 0 => Target::Interpreted(Avma(method)),
            _ => Target::NotUnderstood,
        },
    }
}

fn jumps(code: &[u8], at: Avma, header: usize, word: usize) -> Vec<Jump> {
    let begin = at.0.wrapping_add(header as u64);
    let code = code.get(header..).unwrap_or_default();
    let bits = if word == 4 { 32 } else { 64 };
    let mut decoder = Decoder::with_ip(bits, code, begin, DecoderOptions::NONE);
    let mut insn = Instruction::default();
    let mut jumps = Vec::new();
    let (mut class, mut method) = (None, None);
    while decoder.can_decode() {
        decoder.decode_out(&mut insn);
        let flow = insn.flow_control();
        match insn.mnemonic() {
            Mnemonic::Cmp => class = compared(&insn).or(class),
            Mnemonic::Mov => method = moved(&insn).or(method),
            _ if matches!(
                flow,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
            ) =>
            {
                let is_conditional = flow == FlowControl::ConditionalBranch;
                if !is_conditional || insn.mnemonic() == Mnemonic::Je {
                    jumps.push(Jump {
                        is_conditional,
                        class: class.take(),
                        method: method.take(),
                        to: insn.near_branch_target(),
                    });
                }
            }
            _ => {}
        }
    }
    jumps
}

/// The constant that an instruction compares a register with.
fn compared(insn: &Instruction) -> Option<u32> {
    let is_register = insn.op0_kind() == OpKind::Register;
    let is_constant = matches!(
        insn.op1_kind(),
        OpKind::Immediate32 | OpKind::Immediate32to64
    );
    (is_register && is_constant).then(|| insn.immediate32())
}

/// The constant that an instruction moves into a register as a whole word.
fn moved(insn: &Instruction) -> Option<u64> {
    match insn.code() {
        Code::Mov_r64_imm64 => Some(insn.immediate64()),
        Code::Mov_r32_imm32 => Some(u64::from(insn.immediate32())),
        _ => None,
    }
}

/// Classes that linked sends expect, by the address of the PIC that they call. A send is a move of the
/// class index into a register, then a call.
#[must_use]
pub fn linked_classes(
    methods: &Methods,
    entry: u32,
    origin: &dyn Fn(&CogMethod) -> Origin,
) -> FxHashMap<Avma, u32> {
    let mut classes = FxHashMap::default();
    if Arch::of_this_machine() != Arch::X86_64 {
        return classes;
    }
    let compiled = methods
        .entries
        .iter()
        .filter(|method| method.kind == EntryKind::Method);
    for method in compiled {
        let code = methods.code(method);
        for place in places(code, origin(method)).unwrap_or_default() {
            if place.is_send()
                && let Some((callee, class)) = send(code, method.at, place.at)
            {
                let pic = Avma(callee.wrapping_sub(u64::from(entry)));
                classes.entry(pic).or_insert(class);
            }
        }
    }
    classes
}

/// Address that the send in front of offset `end` calls, and its class index.
fn send(code: &[u8], at: Avma, end: u32) -> Option<(u64, u32)> {
    let behind = usize::try_from(end).ok()?;
    let begin = behind.checked_sub(2 * CALL)?;
    let (load, call) = code.get(begin..behind)?.split_at_checked(CALL)?;
    let [0xb8..=0xbf, class @ ..] = load else {
        return None;
    };
    let [0xe8, distance @ ..] = call else {
        return None;
    };
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    let after = at.0.checked_add(u64::from(end))?;
    let class = u32::from_le_bytes(class.try_into().ok()?);
    Some((after.wrapping_add_signed(i64::from(distance)), class))
}
