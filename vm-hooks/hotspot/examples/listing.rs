//! Prints bytecodes of a JVM's methods: `listing PID [CLASS[.METHOD]]`, of the methods
//! that the code cache has and all others of their classes.
#![allow(clippy::print_stdout, reason = "it is what it is for")]
use std::collections::BTreeSet;

use vmscope_hotspot::bytecode::{ConstantPoolView, PoolLayout, listing};
use vmscope_hotspot::code::{CodeCache, CodeLayout, Found};
use vmscope_hotspot::layout::{Encodings, VmStructs};
use vmscope_hotspot::{method::MethodLayout, pages::Pages};
use vmscope_records::{Avma, Pid};
use vmscope_target::{Memory, ProcessView};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: listing PID")?;
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let process = ProcessView::open(Pid(pid.parse()?))?;
    let libjvm = process
        .module(|name| name == "libjvm.so")
        .ok_or("no libjvm.so")?;
    let pages = Pages::new(process.memory());
    let structs = VmStructs::read(&process, &libjvm, &pages)?;
    let major = structs
        .optional_static("Abstract_VM_Version", "_vm_major_version")
        .and_then(|at| pages.read_u32(at).ok())
        .unwrap_or(11);
    let encodings = Encodings::of(&structs, major);
    let methods = MethodLayout::of(&structs, encodings)?;
    let pools = PoolLayout::of(&structs, methods.clone())?;
    let mut cache = CodeCache::new(CodeLayout::of(&structs, encodings)?);
    let layout = cache.layout().clone();
    let mut found = BTreeSet::new();
    cache.read(process.memory(), &pages, |blob| {
        if let Found::Nmethod { blob, bytes, .. } = blob {
            if let Ok(nmethod) = layout.read_nmethod(blob, bytes, &pages) {
                found.insert(nmethod.method.0);
                for pc in &nmethod.pcs {
                    let chain = nmethod.chain(pc.scope).unwrap_or_default();
                    found.extend(chain.iter().map(|frame| frame.method.0));
                }
            }
        }
    })?;
    let mut holders = BTreeSet::new();
    for method in found {
        if let Ok(info) = methods.read(&pages, Avma(method)) {
            holders.insert(info.holder.0);
        }
    }
    for holder in holders {
        for method in methods.methods_of(&pages, Avma(holder))? {
            let info = methods.read(&pages, method)?;
            let name = format!("{}.{}", info.class, info.name);
            if !name.starts_with(&wanted) {
                continue;
            }
            let pool = ConstantPoolView::read(&pools, &pages, info.constants)?;
            println!("{name}{}", info.signature);
            for (bci, text) in listing(&info, &pool) {
                println!("{:6}: {text}", bci.0);
            }
            for line in &info.lines {
                println!("  line {}: {}", line.line, line.from.0);
            }
        }
    }
    Ok(())
}
