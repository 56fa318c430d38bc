//! Generated methods and blocks by the address in a frame.

use std::ops::Range;

use rustc_hash::FxHashMap;
use vmscope_process::{Memory, monotonic_time};
use vmscope_records::{Avma, TimeNs};

use crate::cog_method::{CogMethod, EntryKind, Fields, Layout, RawEntry};

/// Bits of a frame's method address that are flags.
const FLAGS: u64 = 7;

/// Maximum number of methods in memory.
const MAX_METHODS: usize = 1 << 14;

/// Code of a method or block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    /// Its code, with header.
    code: Range<u64>,
    /// First address with a whole frame; `None` without a frame.
    framed: Option<u64>,
}

impl Body {
    /// Whether the code at `pc` has a whole frame.
    pub fn has_frame_at(&self, pc: u64) -> bool {
        self.code.contains(&pc) && self.framed.is_some_and(|framed| pc >= framed)
    }

    /// Whether a call before `pc` is in code with a whole frame.
    pub fn has_call_before(&self, pc: u64) -> bool {
        self.may_call_before(pc) && self.framed.is_some_and(|framed| pc >= framed)
    }

    /// Whether the code contains a call before `pc`. Calls of failed stack checks come before the code
    /// that makes the frame, although the frame is whole.
    pub fn may_call_before(&self, pc: u64) -> bool {
        self.code.contains(&pc.wrapping_sub(1))
    }

    /// Whether `pc` is in the code.
    pub fn contains(&self, pc: u64) -> bool {
        self.code.contains(&pc)
    }

    /// An address that stands for the code if its position is unknown.
    pub fn any(&self) -> u64 {
        self.framed.unwrap_or(self.code.start).wrapping_add(1)
    }
}

/// Methods of frames that were met.
#[derive(Debug)]
pub(super) struct Owners {
    layout: Layout,
    bodies: FxHashMap<u64, Option<Body>>,
    /// Address of the number of code compactions, which move methods.
    compactions_at: Option<Avma>,
    compactions: u64,
    /// Time of the last look.
    looked: TimeNs,
}

impl Owners {
    pub fn new(layout: Layout, compactions_at: Option<Avma>) -> Self {
        Owners {
            layout,
            bodies: FxHashMap::default(),
            compactions_at,
            compactions: 0,
            looked: TimeNs(0),
        }
    }

    /// Forgets all methods if the VM has moved them before `sample`. A look serves all samples before it:
    /// vmscope unwinds many at a time.
    pub fn look(&mut self, sample: TimeNs, memory: &dyn Memory) {
        if sample <= self.looked {
            return;
        }
        self.looked = monotonic_time().unwrap_or(sample);
        let count = self.compactions_at.map(|at| memory.read_u64(at));
        let Some(Ok(count)) = count else {
            self.bodies.clear();
            return;
        };
        if self.compactions != count || self.bodies.len() >= MAX_METHODS {
            self.bodies.clear();
        }
        self.compactions = count;
    }

    /// The code of the method address in a frame.
    pub fn body(&mut self, method: u64, memory: &dyn Memory) -> Option<Body> {
        if let Some(known) = self.bodies.get(&method) {
            return known.clone();
        }
        let body = read_body(method, self.layout, memory);
        // A method that is unreadable now may be whole soon.
        if body.is_some() {
            self.bodies.insert(method, body.clone());
        }
        body
    }
}

fn read_body(method: u64, layout: Layout, memory: &dyn Memory) -> Option<Body> {
    let at = method & !FLAGS;
    if let Some(body) = read_method(at, layout, memory).and_then(|entry| body_of(&entry)) {
        return Some(body);
    }
    // A block inside a method begins with its offset from the method.
    let offset = u64::from(memory.read_u16(Avma(at)).ok()?);
    let home = at.checked_sub(offset).filter(|home| *home != at)?;
    let home = read_method(home, layout, memory)?;
    let number = home
        .blocks
        .iter()
        .position(|one| u64::from(one.offset) == offset)?;
    let block = home.blocks.get(number)?;
    let next = home.blocks.get(number + 1);
    let end = next.map_or(home.block_entry, |next| next.offset);
    Some(body(at, home.at.0 + u64::from(end), block.stack_check))
}

fn read_method(at: u64, layout: Layout, memory: &dyn Memory) -> Option<CogMethod> {
    const MAX: usize = u16::MAX as usize;
    if !at.is_multiple_of(8) {
        return None;
    }
    let fields = Fields::of(8);
    let header = memory.read_vec(Avma(at), fields.bytes as u64, MAX).ok()?;
    let size = fields.size_in(&header);
    let bytes = memory.read_vec(Avma(at), u64::from(size), MAX).ok()?;
    let entry = RawEntry::of(&bytes, Avma(at), &fields).ok()?;
    entry.interpret(Avma(at), layout, &fields).ok()
}

/// The code of a method without its blocks. A freed method may still be active.
fn body_of(entry: &CogMethod) -> Option<Body> {
    let is_code = matches!(entry.kind, EntryKind::Method | EntryKind::Free);
    let first = entry.blocks.first();
    let end = first.map_or(entry.end().0, |block| entry.at.0 + u64::from(block.offset));
    is_code.then(|| body(entry.at.0, end, entry.stack_check))
}

fn body(start: u64, end: u64, stack_check: u16) -> Body {
    let framed = (stack_check > 0).then(|| start + u64::from(stack_check));
    Body {
        code: start..end.max(start),
        framed,
    }
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;

    use super::*;
    use crate::CountedMemory;

    #[test]
    fn one_look_serves_all_samples_before_it() {
        let at = Avma(0x1000);
        let mut memory = FakeMemory::new();
        memory.write(at, &[0; 8]);
        let memory = CountedMemory::new(&memory);
        let mut owners = Owners::new(Layout::Classic, Some(at));
        let now = monotonic_time().unwrap();
        for before in (0..100).rev() {
            owners.look(TimeNs(now.0 - before), &memory);
        }
        assert_eq!(memory.cost().reads, 1);
        owners.look(TimeNs(u64::MAX), &memory);
        assert_eq!(memory.cost().reads, 2);
    }
}
