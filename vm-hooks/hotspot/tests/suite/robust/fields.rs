//! Missing table fields: a limit names the field, and other data remain.

use super::readings::{fields, read, write};
use crate::snapshot_files::snapshot;

/// The structures that code and methods are read from.
const STRUCTURES: [&str; 18] = [
    "CodeBlob",
    "CodeCache",
    "CodeHeap",
    "VirtualSpace",
    "HeapBlock",
    "HeapBlock::Header",
    "GrowableArrayBase",
    "GenericGrowableArray",
    "GrowableArray<int>",
    "nmethod",
    "CompiledMethod",
    "PcDesc",
    "Method",
    "ConstMethod",
    "ConstantPool",
    "InstanceKlass",
    "Klass",
    "Symbol",
];

/// Fields that other versions call otherwise: missing, they are told by that name.
const CALLED_OTHERWISE: [&str; 6] = [
    "GrowableArrayBase._len",
    "CodeBlob._content_offset",
    "nmethod._immutable_data",
    "CodeBlob._code_offset",
    "ConstMethod._flags._flags",
    "Symbol._body[0]",
];

/// Limits of JVMs without method names.
const NO_NAMES: [&str; 2] = ["methods have no names", "JIT code has no names"];

fn each_field(name: &str) {
    let whole = snapshot(name);
    let all = read(&whole.process());
    assert!(all.errors.is_empty(), "{:?}", all.errors);
    let compiled = all.compiled().count();
    let named = all.named().count();
    assert!(named * 10 >= compiled * 9, "{named} of {compiled}");
    let (known, known_limits) = (all.but_limits(), all.limits());
    let (mut unused, mut silent) = (0, Vec::new());
    let (mut without_code, mut with_code) = (Vec::new(), Vec::new());
    let mut without_names = Vec::new();
    for entry in fields(&whole) {
        if !STRUCTURES.contains(&entry.structure.as_str()) {
            continue;
        }
        let called = format!("{}.{}", entry.structure, entry.field);
        let mut other = whole.clone();
        // Its name without the first letter.
        write(&mut other, entry.name.0, &(entry.name.1 + 1).to_le_bytes());
        let told = read(&other.process());
        assert!(told.errors.is_empty(), "{called}: {:?}", told.errors);
        let limits = told.limits();
        let mut new = limits.iter().filter(|text| !known_limits.contains(text));
        let is_named = new.clone().any(|text| text.contains(&called));
        if told.but_limits() == known {
            unused += 1;
            continue;
        }
        let is_excused = CALLED_OTHERWISE.contains(&called.as_str()) && new.next().is_some();
        if !is_named && !is_excused {
            silent.push(called.clone());
        }
        let remains = told.compiled().count();
        if remains == 0 {
            without_code.push(called);
        } else {
            assert!(
                remains * 10 >= compiled * 4,
                "{called}: {remains} of {compiled}"
            );
            let says_so = limits
                .iter()
                .any(|text| NO_NAMES.iter().any(|no| text.contains(no)));
            let names = told.named().count();
            if says_so {
                assert_eq!(names, 0, "{called}");
                without_names.push(called.clone());
            } else {
                assert!(names * 10 >= remains * 9, "{called}: {names} of {remains}");
            }
            with_code.push(called);
        }
    }
    crate::common::say(&format!(
        "{name}: {unused} fields are not used; {} are named and done without: {with_code:?}; \
         {} are named, and no code is found without them: {without_code:?}; without names: \
         {without_names:?}",
        with_code.len(),
        without_code.len()
    ));
    assert!(
        silent.is_empty(),
        "{name}: used, and not named where they are missing: {silent:?}"
    );
    assert!(with_code.len() >= 10 && without_code.len() <= 24);
}

#[test]
fn each_field_of_17_is_named_where_it_is_missing() {
    each_field("jdk17");
}

#[test]
fn each_field_of_25_is_named_where_it_is_missing() {
    each_field("jdk25");
}
