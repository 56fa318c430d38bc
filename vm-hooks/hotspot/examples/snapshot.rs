//! Writes what the reader reads of a JVM into a file: `snapshot PID OUT`. It is not
//! compressed: `zstd -19` makes some 400 KB of it.
#![allow(clippy::print_stdout, reason = "it is what it is for")]
use std::sync::Arc;

use vmscope_hotspot::testing::walk;
use vmscope_process::testing::{KeepingMemory, Snapshot};
use vmscope_process::{LiveMemory, ProcessView};
use vmscope_records::Pid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: snapshot PID OUT";
    let pid = Pid(arguments.next().ok_or(usage)?.parse()?);
    let out = arguments.next().ok_or(usage)?;
    let process = ProcessView::open(pid)?;
    let memory = KeepingMemory::new(Arc::new(LiveMemory::new(pid)));
    let walk = walk(&process, &memory)?;
    let libjvm = process
        .module(|name| name == "libjvm.so")
        .ok_or("no libjvm.so")?;
    let symbols = process.symbols_beginning(&libjvm, &["gHotSpotVM"], 256)?;
    let mappings = process.mappings();
    let kept = mappings
        .iter()
        .filter(|entry| entry.name.is_empty() || entry.name == libjvm.path);
    let snapshot = Snapshot {
        module: String::from_utf8(libjvm.path.clone())?,
        mappings: kept.cloned().collect(),
        symbols,
        pages: memory.pages(),
    };
    std::fs::write(&out, snapshot.to_bytes())?;
    println!(
        "JDK {}: {} nmethods, {} methods, {} pages, {} symbols",
        walk.major,
        walk.nmethods.len(),
        walk.methods.len(),
        snapshot.pages.len(),
        snapshot.symbols.len()
    );
    Ok(())
}
