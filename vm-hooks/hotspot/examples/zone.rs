//! Prints what is in the code cache of a JVM, running or in a core file:
//! `zone PID|CORE [--names]`.
#![allow(clippy::print_stdout, reason = "it is what it is for")]
use std::time::Instant;
use vmscope_hotspot::code::{CodeCache, Found};
use vmscope_hotspot::jvm::Jvm;
use vmscope_hotspot::pages::Pages;
use vmscope_process::{CoreFile, ProcessView, own_root};
use vmscope_records::Pid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let which = std::env::args().nth(1).ok_or("usage: zone PID|CORE")?;
    let with_chains = std::env::args().nth(2).is_some();
    let began = Instant::now();
    let process = match which.parse() {
        Ok(pid) => ProcessView::open(Pid(pid))?,
        Err(_) => ProcessView::from_core(CoreFile::open(which.as_ref())?, own_root().ok()),
    };
    let pages = Pages::new(process.memory());
    let jvm = Jvm::open(&process, &pages)?;
    let (layout, methods) = (&jvm.code, &jvm.methods);
    let mut cache = CodeCache::new(layout.clone());
    println!("tables {:?}", began.elapsed());
    let began = Instant::now();
    let mut nmethods = Vec::new();
    let (mut others, mut failed) = (0, 0);
    let heaps = cache.read(&pages, |found| match found {
        Found::Nmethod { blob, bytes, .. } => match layout.read_nmethod(blob, bytes, &pages) {
            Ok(nmethod) => nmethods.push(nmethod),
            Err(_) => failed += 1,
        },
        Found::Other { .. } => others += 1,
    })?;
    println!(
        "{} heaps, {} nmethods, {others} others, {failed} failed, {} malformed: {:?}",
        heaps.len(),
        nmethods.len(),
        cache.malformed(),
        began.elapsed()
    );
    let began = Instant::now();
    let (mut good, mut bad, mut records) = (0, 0, 0);
    for nmethod in &nmethods {
        let whole = nmethod.pcs.iter().all(|pc| nmethod.chain(pc.scope).is_ok());
        records += nmethod.pcs.len();
        if whole { good += 1 } else { bad += 1 }
    }
    println!(
        "scopes: {good} good, {bad} bad, {records} records: {:?}",
        began.elapsed()
    );
    let began = Instant::now();
    let mut named = 0;
    for nmethod in &nmethods {
        let info = methods.read(&pages, nmethod.method);
        named += u32::from(info.is_ok());
        if with_chains && let Ok(info) = info {
            println!(
                "{:x} id {} level {} osr {} state {} pcs {} implicit {} {}.{}{} {}",
                nmethod.blob.code_begin.0,
                nmethod.id.compile_id,
                nmethod.level,
                nmethod.entry_bci,
                nmethod.state,
                nmethod.pcs.len(),
                nmethod.implicit.len(),
                info.class,
                info.name,
                info.signature,
                info.file
            );
        }
    }
    println!("{named} names: {:?}", began.elapsed());
    Ok(())
}
