//! Anchors: instructions with a known or nearly known bytecode, from a debug record, from the
//! implicit-exception table, or from a branch to out-of-line code with a record.

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Sign;
use super::machine::{Flow, Machine};
use super::tree::Tree;
use crate::code::{Nmethod, PcDesc};

/// Maximum number of out-of-line instructions searched for a record.
const MAX_GLUE: usize = 40;

/// Source of an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnchorKind {
    /// Debug record of a call, poll or trap.
    Record,
    /// Entry of the implicit-exception table.
    Implicit,
    /// Implicit-exception entry for the receiver of an inlined call: check and first access in one
    /// instruction.
    Receiver,
    /// Branch to an uncommon trap.
    Trap,
    /// Branch to other out-of-line code.
    OutOfLine,
}

/// An instruction and its bytecode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    pub insn: usize,
    pub node: u32,
    pub bci: i32,
    pub kind: AnchorKind,
    /// Certainty: 1 for the instruction itself, below 1 for a comparison before its branch.
    pub share: f32,
}

/// Finds all anchors.
#[must_use]
pub fn anchors(nmethod: &Nmethod, machine: &Machine, tree: &Tree) -> Vec<Anchor> {
    let mut found = Vec::new();
    let mut by_insn: FxHashMap<usize, (u32, i32)> = FxHashMap::default();
    let add = |found: &mut Vec<Anchor>, insn, place: (u32, i32), kind, share| {
        found.push(Anchor {
            insn,
            node: place.0,
            bci: place.1,
            kind,
            share,
        });
    };
    for pc in &nmethod.pcs {
        let Some(place) = tree.place_of(pc.scope) else {
            continue;
        };
        let at = u32::try_from(pc.pc).unwrap_or(u32::MAX);
        let index = machine.index_at(at);
        let before = index
            .checked_sub(1)
            .and_then(|before| machine.insns.get(before));
        let insn = match before {
            Some(call) if call.end == at && call.flow == Flow::Call => index - 1,
            _ => index,
        };
        if insn < machine.insns.len() {
            add(&mut found, insn, place, AnchorKind::Record, 1.0);
            by_insn.insert(insn, place);
        }
    }
    for &(at, goes_on) in &nmethod.implicit {
        let place = record_after(&nmethod.pcs, goes_on).and_then(|pc| tree.place_of(pc.scope));
        let insn = machine.index_at(at);
        let starts = machine.insns.get(insn).is_some_and(|insn| insn.start == at);
        if let (Some(place), true) = (place, starts) {
            // The call itself reads the class for its dispatch.
            let reads_class = machine.insns.get(insn).is_some_and(|insn| {
                let mut signs = machine.signs_of(insn).iter();
                signs.any(|(sign, _)| *sign == Sign::ClassOf)
            });
            let kind = if tree.is_call(place) && !reads_class {
                AnchorKind::Receiver
            } else {
                AnchorKind::Implicit
            };
            add(&mut found, insn, place, kind, 1.0);
        }
    }
    for (index, insn) in machine.insns.iter().enumerate() {
        let Flow::Branch(target) = insn.flow else {
            continue;
        };
        let to = machine.index_at(target);
        if to <= index {
            continue;
        }
        let Some((place, is_trap)) = out_of_line(machine, &by_insn, to) else {
            continue;
        };
        let kind = if is_trap {
            AnchorKind::Trap
        } else {
            AnchorKind::OutOfLine
        };
        add(&mut found, index, place, kind, 1.0);
        let before = index.checked_sub(1);
        let compares = |at: usize| machine.insns.get(at).is_some_and(|insn| insn.compares);
        if let Some(before) = before.filter(|&before| compares(before)) {
            add(&mut found, before, place, kind, 0.8);
        }
    }
    found.sort_by_key(|anchor| anchor.insn);
    found
}

/// Nodes and bytecodes with a record of a call that the code executes: no method is inlined there. Records of
/// traps and of faults at null receivers are no such proof: a check before an inlined method has them, too.
#[must_use]
pub fn real_calls(
    nmethod: &Nmethod,
    machine: &Machine,
    anchors: &[Anchor],
) -> FxHashSet<(u32, i32)> {
    let faults = nmethod.implicit.iter();
    let faults: FxHashSet<usize> = faults
        .map(|(_, goes_on)| machine.index_at(*goes_on))
        .collect();
    let is_call = |anchor: &&Anchor| {
        let insn = machine.insns.get(anchor.insn);
        let returns = insn.is_some_and(|insn| insn.flow == Flow::Call && insn.falls);
        anchor.kind == AnchorKind::Record && returns && !faults.contains(&anchor.insn)
    };
    let calls = anchors.iter().filter(is_call);
    calls.map(|anchor| (anchor.node, anchor.bci)).collect()
}

/// Record at the continuation of a fault: the first record behind it.
fn record_after(pcs: &[PcDesc], at: u32) -> Option<&PcDesc> {
    let at = i32::try_from(at).ok()?;
    pcs.get(pcs.partition_point(|pc| pc.pc <= at))
}

/// Follows straight code from instruction `to` to a call with a record. Returns the record's
/// position, and whether the call is an uncommon trap.
fn out_of_line(
    machine: &Machine,
    by_insn: &FxHashMap<usize, (u32, i32)>,
    to: usize,
) -> Option<((u32, i32), bool)> {
    // Code reached from the previous instruction is not out of line.
    let before = machine.insns.get(to.checked_sub(1)?)?;
    if before.falls && before.flow != Flow::Call {
        return None;
    }
    let mut at = to;
    let mut is_trap = false;
    for _ in 0..MAX_GLUE {
        let insn = machine.insns.get(at)?;
        is_trap |= insn.asks_trap;
        if let Some(place) = by_insn.get(&at) {
            return Some((*place, is_trap));
        }
        at = match insn.flow {
            Flow::Next | Flow::Call => at + 1,
            Flow::Jump(target) => {
                let target = machine.index_at(target);
                // Return to inline code.
                if target < to {
                    return None;
                }
                target
            }
            Flow::Branch(_) | Flow::Away => return None,
        };
    }
    None
}
