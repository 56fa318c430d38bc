//! Code that the compiler has ready for some methods (intrinsics of strings and arrays):
//! it stands for one call, whatever its instructions look like.

use std::ops::Range;

use super::machine::{Flow, Machine};

/// Instructions between two that only such code has.
const MAX_APART: usize = 14;

/// How far branches may lead out of what was found so far and still be within.
const MAX_LOCAL: usize = 32;

/// Fewer such instructions than this do not make such code.
const MIN_TELLING: usize = 3;

/// The ranges of instructions, ascending, that are such code.
#[must_use]
pub fn regions(machine: &Machine) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    let mut telling = 0;
    let mut current: Option<Range<usize>> = None;
    let mut close = |current: Option<Range<usize>>, telling: usize| {
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
        // It has no calls.
        if is_far || insn.flow == Flow::Call {
            close(current.take(), telling);
            telling = 0;
        }
        if insn.is_template {
            telling += 1;
            let start = current.as_ref().map_or(index, |range| range.start);
            current = Some(start..index + 1);
        }
    }
    close(current, telling);
    regions
}

/// Takes in what branches around within it.
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
            // A loop of it reaches back before, or over its end.
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
