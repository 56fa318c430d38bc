//! Snapshots of real JVMs, read from files: what is found is what was found when they were
//! made (`tests/snapshots/make`), and damage makes no reader fail otherwise than with an error.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::snapshot_files::{folder, snapshot};
use vmscope_hotspot::bytecode::{ConstantPoolView, PoolLayout, ReferenceKind, instructions, op};
use vmscope_hotspot::layout::{Encodings, VmStructs};
use vmscope_hotspot::method::MethodLayout;
use vmscope_hotspot::pages::Pages;
use vmscope_hotspot::testing::{Walk, WalkedNmethod, walk};
use vmscope_records::Avma;

/// FNV-1a: the same for ever.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// All that was found, as text. Addresses are told from the code cache's begin.
fn told(walk: &Walk) -> String {
    let begin = walk.heaps.iter().map(|heap| heap.low.0).min().unwrap();
    let mut text = String::new();
    writeln!(
        text,
        "JDK {}: {} heaps, {} nmethods, {} failed, {} malformed, {} methods",
        walk.major,
        walk.heaps.len(),
        walk.nmethods.len(),
        walk.failed,
        walk.malformed,
        walk.methods.len()
    )
    .unwrap();
    let name = |method: Avma| match walk.methods.get(&method) {
        Some(Some((info, _))) => format!("{}.{}{}", info.class, info.name, info.signature),
        _ => "?".to_owned(),
    };
    for WalkedNmethod { nmethod, chains } in &walk.nmethods {
        let mut all = String::new();
        for (pc, chain) in nmethod.pcs.iter().zip(chains) {
            write!(all, "\n{}:", pc.pc).unwrap();
            for frame in chain.as_ref().unwrap() {
                write!(all, " {}@{}", name(frame.method), frame.bci).unwrap();
            }
        }
        writeln!(
            text,
            "{:06x}..{:06x} id {} level {} osr {} state {} {}: {} records ({} frames, {:016x}), {} implicit",
            nmethod.blob.code_begin.0 - begin,
            nmethod.blob.code_end.0 - begin,
            nmethod.id.compile_id,
            nmethod.level,
            nmethod.entry_bci,
            nmethod.state,
            name(nmethod.method),
            nmethod.pcs.len(),
            chains.iter().flatten().map(Vec::len).sum::<usize>(),
            digest(&all),
            nmethod.implicit.len(),
        )
        .unwrap();
    }
    let mut others = BTreeMap::<&str, usize>::new();
    for name in walk.others.values() {
        *others.entry(name).or_default() += 1;
    }
    for (name, count) in others {
        writeln!(text, "{count} × {name}").unwrap();
    }
    for (info, lines) in walk.methods.values().flatten() {
        let whole = lines.join("\n");
        let about = format!("{}.{}{}", info.class, info.name, info.signature);
        writeln!(
            text,
            "{about}: {} lines, listing {:016x}",
            info.lines.len(),
            digest(&whole)
        )
        .unwrap();
        if info.class.starts_with("Listed") {
            writeln!(text, "  {}", lines.join("\n  ")).unwrap();
        }
    }
    text
}

/// `VMSCOPE_BLESS=1` writes what is found as what is right.
fn is_golden(name: &str) {
    let snapshot = snapshot(name);
    let process = snapshot.process();
    let pages = Pages::new(process.memory());
    let told = told(&walk(&process, &pages).unwrap());
    let golden = folder().join(format!("{name}.txt"));
    if std::env::var_os("VMSCOPE_BLESS").is_some() {
        std::fs::write(&golden, &told).unwrap();
    }
    let golden = std::fs::read_to_string(golden).unwrap();
    for (number, (ours, theirs)) in told.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(told.lines().count(), golden.lines().count());
}

#[test]
fn jdk_17_is_read_as_it_was() {
    is_golden("jdk17");
}

#[test]
fn jdk_25_is_read_as_it_was() {
    is_golden("jdk25");
}

#[test]
fn missing_pages_cost_what_is_in_them() {
    for name in ["jdk17", "jdk25"] {
        let whole = snapshot(name);
        let process = whole.process();
        let all = walk(&process, process.memory()).unwrap();
        let (mut errors, mut fewer) = (0, 0);
        for part in 0..48 {
            let mut torn = whole.clone();
            let size = torn.pages.len();
            // Removes one page of a part; in the second half, all later pages too.
            let at = size * (part % 24) / 24;
            torn.pages.drain(at..if part < 24 { at + 1 } else { size });
            let process = torn.process();
            match walk(&process, process.memory()) {
                Ok(walk) => {
                    assert!(walk.nmethods.len() <= all.nmethods.len());
                    fewer += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    errors += 1;
                }
            }
        }
        println!("{name}: {errors} errors, {fewer} with what remained");
        assert!(errors > 0 && fewer > 0);
    }
}

/// Resolved targets have the names of their references.
#[test]
fn references_are_to_what_they_name() {
    for name in ["jdk17", "jdk25"] {
        let snapshot = snapshot(name);
        let process = snapshot.process();
        let memory = Pages::new(process.memory());
        let libjvm = process.module(|name| name == "libjvm.so").unwrap();
        let structs = VmStructs::read(&process, &libjvm, &memory).unwrap();
        let walk = walk(&process, &memory).unwrap();
        let encodings = Encodings::of(walk.major);
        let methods = MethodLayout::of(&structs, encodings).unwrap();
        let pools = PoolLayout::of(&structs, methods.clone()).unwrap();
        let mut fields = BTreeMap::new();
        let (mut calls, mut sites) = (0, 0);
        for (info, _) in walk.methods.values().flatten() {
            let pool = ConstantPoolView::read(&pools, &memory, info.constants).unwrap();
            for instruction in instructions(&info.bytecodes) {
                let instruction = instruction.unwrap();
                let Some(reference) = pool.reference(&instruction) else {
                    continue;
                };
                sites += usize::from(reference.kind == ReferenceKind::CallSite);
                if let Some(offset) = reference.field_offset {
                    let is_static = instruction.opcode < op::GETFIELD;
                    let place = (reference.class.clone(), is_static, offset);
                    let known = fields
                        .entry(place)
                        .or_insert_with(|| reference.name.clone());
                    assert_eq!(*known, reference.name, "one field at a place");
                }
                let is_bound = [op::INVOKESTATIC, op::INVOKESPECIAL].contains(&instruction.opcode);
                if let Some(method) = reference.method.filter(|_| is_bound)
                    // Snapshots lack uncompiled methods.
                    && let Some(Some((called, _))) = walk.methods.get(&method)
                {
                    let called = (&called.name, &called.signature);
                    assert_eq!(called, (&reference.name, &reference.signature));
                    calls += 1;
                }
            }
        }
        let listed = fields
            .iter()
            .filter(|((class, is_static, _), _)| class == "Listed" && !is_static)
            .map(|((.., offset), name)| (*offset, name.as_str()));
        let listed: Vec<_> = listed.collect();
        println!(
            "{name}: {} fields, {calls} calls, {sites} call sites; {listed:?}",
            fields.len()
        );
        assert!(fields.len() > 20 && calls > 20 && sites > 0);
        assert_eq!(listed.len(), 9, "all of its fields are used");
        assert!(fields.keys().all(|(_, _, offset)| *offset >= 8));
    }
}
