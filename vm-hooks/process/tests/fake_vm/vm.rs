//! The fake VM: a code zone in made-up memory, which a test moves, frees and
//! recompiles as it likes.
//!
//! ```text
//! HEADER   magic, version (odd: changing), first entry, number of entries
//! entry    next, method, compile id, start, size | map length, map, name
//! map      (machine code offset u32, bytecode u32) …
//! ```

use std::sync::Mutex;

use vmscope_process::testing::FakeMemory;
use vmscope_process::{MapEntry, Memory, MemoryError, ProcessView, Symbol, SymbolKind, parse_line};
use vmscope_records::{Avma, Pid};

pub const HEADER: u64 = 0x1_0000;
pub const MAGIC: u64 = 0x4d56_454b_4146;
pub const ENTRY_BYTES: u64 = 56;
const ENTRIES: u64 = 0x2_0000;
const MAPS: u64 = 0x4_0000;
const NAMES: u64 = 0x8_0000;

/// A compiled method of the fake VM.
#[derive(Clone, Debug)]
pub struct Code {
    pub method: u64,
    pub compile_id: u64,
    pub start: u64,
    pub size: u32,
    pub name: &'static str,
    pub map: Vec<(u32, u32)>,
}

type Change = Box<dyn FnOnce(&mut FakeMemory) + Send>;

/// Its memory, in which something may happen between two reads.
#[derive(Default)]
pub struct VmMemory {
    memory: Mutex<FakeMemory>,
    /// Changes, each after a number of further reads.
    plan: Mutex<Vec<(u64, Change)>>,
}

impl VmMemory {
    pub fn change(&self, change: impl FnOnce(&mut FakeMemory)) {
        change(&mut self.memory.lock().unwrap());
    }

    pub fn after_reads(&self, reads: u64, change: impl FnOnce(&mut FakeMemory) + Send + 'static) {
        self.plan.lock().unwrap().push((reads, Box::new(change)));
    }
}

impl Memory for VmMemory {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let got = self.memory.lock().unwrap().read_partial(at, buffer);
        let mut plan = self.plan.lock().unwrap();
        for (left, _) in plan.iter_mut() {
            *left = left.saturating_sub(1);
        }
        let due = plan.iter().position(|(left, _)| *left == 0);
        let due = due.map(|at| plan.remove(at).1);
        drop(plan);
        if let Some(change) = due {
            self.change(change);
        }
        got
    }
}

pub fn put_u64(memory: &mut FakeMemory, at: u64, value: u64) {
    memory.write(Avma(at), &value.to_le_bytes());
}

/// Writes the whole zone anew, with `version` as its counter.
pub fn lay_out(memory: &mut FakeMemory, version: u64, zone: &[Code]) {
    *memory = FakeMemory::new();
    let mut header = Vec::new();
    let first = if zone.is_empty() { 0 } else { ENTRIES };
    for word in [MAGIC, version, first, zone.len() as u64] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    memory.put(Avma(HEADER), header);
    let (mut maps, mut names, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for (index, code) in zone.iter().enumerate() {
        let index = index as u64;
        let last = index + 1 == zone.len() as u64;
        let next = if last {
            0
        } else {
            ENTRIES + (index + 1) * ENTRY_BYTES
        };
        let sizes = u64::from(code.size) | (code.map.len() as u64) << 32;
        let (map, name) = (MAPS + maps.len() as u64, NAMES + names.len() as u64);
        for word in [
            next,
            code.method,
            code.compile_id,
            code.start,
            sizes,
            map,
            name,
        ] {
            entries.extend_from_slice(&u64::to_le_bytes(word));
        }
        for (mc, bc) in &code.map {
            maps.extend_from_slice(&mc.to_le_bytes());
            maps.extend_from_slice(&bc.to_le_bytes());
        }
        names.extend_from_slice(code.name.as_bytes());
        names.push(0);
    }
    memory.put(Avma(ENTRIES), entries);
    memory.put(Avma(MAPS), maps);
    memory.put(Avma(NAMES), names);
}

pub fn mapping() -> MapEntry {
    parse_line(b"400000-500000 r-xp 00000000 00:2a 7 /opt/fakevm").unwrap()
}

/// The VM's process, with the only symbol that the adapter needs.
pub fn process(memory: std::sync::Arc<VmMemory>) -> ProcessView {
    let header = Symbol {
        name: "fake_vm_header".to_owned(),
        address: Avma(HEADER),
        size: 32,
        kind: SymbolKind::Object,
    };
    ProcessView::fake(Pid(7), memory, vec![mapping()])
        .with_key(vmscope_records::ProcessKey(3))
        .with_symbols("/opt/fakevm", vec![header])
}
