//! Parts of large code: the surroundings of sampled pcs. Large code has most of its samples at few
//! places, and the search takes most of a map's time.

use std::ops::Range;

use super::machine::Machine;

/// Instructions on each side of a sampled one that decide on its position …
const CONTEXT: usize = 160;

/// … and those with a result.
const CORE: usize = 64;

/// Ranges of instructions, ascending.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    /// Instructions to search.
    pub context: Vec<Range<usize>>,
    /// Instructions with a result.
    pub core: Vec<Range<usize>>,
}

impl Parts {
    /// Surroundings of sampled pcs (offsets in the code, ascending). Without pcs, or if the
    /// surroundings make up half of the code, the parts cover the whole code.
    pub fn of(machine: &Machine, hits: &[u32]) -> Self {
        let count = machine.insns.len();
        let context = around(machine, hits, CONTEXT);
        let length: usize = context.iter().map(Range::len).sum();
        if hits.is_empty() || 2 * length >= count {
            let whole: Vec<Range<usize>> = std::iter::once(0..count).collect();
            return Parts {
                context: whole.clone(),
                core: whole,
            };
        }
        Parts {
            context,
            core: around(machine, hits, CORE),
        }
    }
}

/// Ranges that reach `by` instructions to each side of the sampled ones.
fn around(machine: &Machine, hits: &[u32], by: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for hit in hits {
        let at = machine.before(*hit);
        let part = at.saturating_sub(by)..(at + by).min(machine.insns.len());
        match parts.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => parts.push(part),
        }
    }
    parts
}
