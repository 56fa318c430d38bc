//! Regions of all functions of all tested `libjvm.so`. A class normally belongs to one region;
//! `regions.txt` lists the classes that do not, to be read by a person. `VMSCOPE_BLESS=1` rewrites
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::common::jdks::{RELEASES, jdks};
use vmscope_hotspot::regions::{MODULE, rules};
use vmscope_process::{ElfFile, ModuleFile};
use vmscope_records::{FunctionName, ThreadRole};

/// Demangled names of all functions of a library.
fn functions(library: &Path) -> Vec<String> {
    let file = std::fs::File::open(library).expect("exists");
    let file = ModuleFile::from_file(file).expect("is a file");
    let elf = ElfFile::open(Arc::new(file)).expect("is an ELF file");
    let mut names = Vec::new();
    let note = &mut |name: &[u8], _: &_| {
        let symbol = cpp_demangle::Symbol::new(name).ok();
        names.extend(symbol.and_then(|symbol| symbol.demangle().ok()));
        ControlFlow::Continue(())
    };
    elf.for_each_symbol(note).expect("has symbols");
    // No code: tables, type descriptions, guards.
    let is_code = |name: &String| name.contains('(') && !name.starts_with("guard variable");
    names.into_iter().filter(is_code).collect()
}

#[test]
fn classes_in_several_regions_are_known() {
    let jdks = jdks();
    if jdks.len() < RELEASES.len() {
        return;
    }
    let libraries = jdks
        .iter()
        .map(|jdk| jdk.home.join("lib/server").join(MODULE));
    let names: BTreeSet<String> = libraries.flat_map(|path| functions(&path)).collect();
    assert!(names.len() > 60_000, "{}", names.len());
    let rules = rules();
    let mut classes: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    let functions = names.iter().map(|name| FunctionName::new(name));
    // Overloads belong together.
    let functions: BTreeMap<&str, FunctionName> = functions
        .map(|function| (function.qualified(), function))
        .collect();
    for (qualified, function) in functions {
        let mut rules = rules.iter();
        let rule = rules.find(|rule| rule.apply(function, ThreadRole::Other).is_some());
        let region = rule.expect("the last rule matches all").region;
        let mut parts = qualified.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let class = parts.next().unwrap_or_default();
        let counts = classes.entry(class).or_default();
        *counts.entry(region.name()).or_default() += 1;
    }
    let several = classes.iter().filter(|(_, counts)| counts.len() > 1);
    let lines = several.map(|(class, counts)| {
        let counts = counts
            .iter()
            .map(|(region, count)| format!(" {region} {count}"));
        format!("{class}:{}\n", counts.collect::<String>())
    });
    let found: String = lines.collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regions.txt");
    if std::env::var_os("VMSCOPE_BLESS").is_some() {
        std::fs::write(&golden, &found).expect("is written");
    }
    let known = std::fs::read_to_string(&golden).expect("is there");
    assert_eq!(found, known, "regions.txt differs");
}
