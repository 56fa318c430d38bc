//! Intrinsic code of string and array methods: it belongs to one call, regardless of its
//! instructions.

use std::ops::Range;

use super::machine::{Flow, Machine};

/// Maximum number of instructions between two intrinsic instructions.
const MAX_APART: usize = 14;

/// Maximum distance of branch targets outside the range found so far.
const MAX_LOCAL: usize = 32;

/// Minimum sum of the instructions' shares in such a range.
const MIN_TELLING: u8 = 3;

/// Ranges of instructions with intrinsic code, ascending.
#[must_use]
pub fn regions(machine: &Machine) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    let mut telling = 0;
    let mut current: Option<Range<usize>> = None;
    let mut close = |current: Option<Range<usize>>, telling: u8| {
        let Some(found) = current.filter(|_| telling >= MIN_TELLING) else {
            return;
        };
        let grown = grow(machine, found);
        match regions.last_mut() {
            Some(last) if last.end >= grown.start => last.end = last.end.max(grown.end),
            _ => regions.push(grown),
        }
    };
    for (index, insn) in machine.insns.iter().enumerate() {
        let is_far = current
            .as_ref()
            .is_some_and(|range| index > range.end + MAX_APART);
        // Intrinsic code has no calls.
        if is_far || insn.flow == Flow::Call {
            close(current.take(), telling);
            telling = 0;
        }
        if insn.intrinsic_share > 0 {
            telling = telling.saturating_add(insn.intrinsic_share);
            let start = current.as_ref().map_or(index, |range| range.start);
            current = Some(start..index + 1);
        }
    }
    close(current, telling);
    regions
}

/// Extends the range to targets of its branches.
fn grow(machine: &Machine, mut range: Range<usize>) -> Range<usize> {
    for _ in 0..4 {
        let mut grown = range.clone();
        let from = range.start.saturating_sub(MAX_LOCAL);
        let near = machine.insns.get(from..).unwrap_or_default();
        let length = range.len() + 2 * MAX_LOCAL;
        for (index, insn) in (from..).zip(near).take(length) {
            let (Flow::Branch(target) | Flow::Jump(target)) = insn.flow else {
                continue;
            };
            let target = machine.index_at(target);
            let is_inside = range.contains(&index);
            // A loop of the range reaches back before its begin, or over its end.
            if is_inside && target >= from && target < range.start {
                grown.start = grown.start.min(target);
            }
            if is_inside && target > range.end && target <= range.end + MAX_LOCAL {
                grown.end = grown.end.max(target);
            }
            if index >= range.end && range.contains(&target) {
                grown.end = grown.end.max(index + 1);
            }
            if index < range.start && target > range.start && target <= range.end {
                grown.start = grown.start.min(index);
            }
        }
        if grown == range {
            break;
        }
        range = grown;
    }
    range.end = range.end.min(machine.insns.len());
    range
}
