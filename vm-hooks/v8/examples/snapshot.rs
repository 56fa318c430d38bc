//! Writes what the reader reads of a Node.js into a file: `snapshot PID OUT`. Zeros replace the
//! instructions, and all bytes that change no record. The file is not compressed:
//! `tests/snapshots/make` does that.
#![allow(clippy::print_stdout, reason = "it is what it is for")]

use std::sync::Arc;

use vmscope_process::testing::{KeepingMemory, PAGE_BYTES, Snapshot};
use vmscope_process::{AdapterError, ProcessView};
use vmscope_records::{Avma, Pid};
use vmscope_v8::testing::{SYMBOLS, all_code, constituents};

/// Maximum number of symbols with one begin.
const MAX_SYMBOLS: usize = 1 << 14;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: snapshot PID OUT";
    let pid = Pid(arguments.next().ok_or(usage)?.parse()?);
    let out = arguments.next().ok_or(usage)?;
    let live = ProcessView::open(pid)?;
    let module = live.modules().into_iter();
    let module = { module }.find(|module| module.path == live.program().as_bytes());
    let module = module.ok_or("the program is not mapped")?;
    let symbols = live.symbols_beginning(&module, &SYMBOLS, MAX_SYMBOLS)?;
    let mappings = live.mappings();
    let kept = mappings
        .iter()
        .filter(|entry| entry.path().is_none() || entry.name == module.path);
    let mut snapshot = Snapshot {
        module: live.program().to_owned(),
        mappings: kept.cloned().collect(),
        symbols,
        pages: Vec::new(),
    };
    let memory = Arc::new(KeepingMemory::new(live.shared_memory()));
    let records = all_code(&snapshot.process_with(memory.clone()))?;
    snapshot.pages = memory.pages();
    for code in constituents(&records) {
        for (at, page) in &mut snapshot.pages {
            let bytes = (at.0..).zip(page.iter_mut());
            let inside = |at: u64| (code.start..code.end).contains(&Avma(at));
            if at.0 < code.end.0 && code.start.0 < at.0 + PAGE_BYTES as u64 {
                bytes
                    .filter(|(at, _)| inside(*at))
                    .for_each(|(_, byte)| *byte = 0);
            }
        }
    }
    shrink(&mut snapshot)?;
    std::fs::write(&out, snapshot.to_bytes())?;
    println!(
        "{} pieces of code, {} pages, {} symbols",
        constituents(&records).count(),
        snapshot.pages.len(),
        snapshot.symbols.len()
    );
    Ok(())
}

/// Bytes that become zeros together.
const PIECE: usize = 256;

/// Replaces bytes by zeros, where no record changes.
fn shrink(snapshot: &mut Snapshot) -> Result<(), AdapterError> {
    let records = all_code(&snapshot.process())?;
    for page in 0..snapshot.pages.len() {
        for piece in (0..PAGE_BYTES).step_by(PIECE) {
            let mut other = snapshot.clone();
            let bytes = other.pages.get_mut(page).map(|(_, bytes)| bytes);
            let bytes = bytes.and_then(|bytes| bytes.get_mut(piece..piece + PIECE));
            bytes.into_iter().for_each(|bytes| bytes.fill(0));
            if all_code(&other.process()).is_ok_and(|others| others == records) {
                *snapshot = other;
            }
        }
    }
    Ok(())
}
