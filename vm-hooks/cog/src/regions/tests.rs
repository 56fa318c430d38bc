use std::collections::BTreeMap;

use vmscope_records::{FunctionName, ThreadRole};

use super::*;

/// Functions of the snapshot's VM, in the order of their addresses.
fn functions() -> Vec<String> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/snapshots/idle.symbols.tsv.zst"
    );
    let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut functions: Vec<(u64, &str)> = text
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [address, _, "t" | "T", name] = fields[..] else {
                return None;
            };
            let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
            Some((address, name))
        })
        .collect();
    functions.sort_by_key(|(address, _)| *address);
    functions
        .into_iter()
        .map(|(_, name)| name.to_owned())
        .collect()
}

fn places(functions: &[String]) -> Vec<(Region, String)> {
    let rules = rules("squeak", &[]);
    let place = |name: &String| {
        let name = FunctionName::new(name);
        let mut rules = rules.iter();
        let rule = rules.find(|rule| rule.apply(name, ThreadRole::Other).is_some());
        rule.map(|rule| (rule.region, rule.part.clone())).unwrap()
    };
    functions.iter().map(place).collect()
}

/// The compiler is one C file, so its functions are neighbours in the program.
#[test]
fn the_compilers_functions_are_those_of_its_file() {
    let functions = functions();
    let at = |name: &str| functions.iter().position(|one| one == name).unwrap();
    let compiler = at("compileAbort")..=at("callCogCodePopReceiverArg1Arg0Regs");
    let places = places(&functions);
    let all = functions.iter().zip(&places).enumerate();
    let mut elsewhere: BTreeMap<&str, usize> = BTreeMap::new();
    let mut surprising = Vec::new();
    for (at, (name, (region, part))) in all {
        match (compiler.contains(&at), region) {
            (false, Region::Compiler) => surprising.push(name.as_str()),
            (true, region) if *region != Region::Compiler => {
                *elsewhere.entry(part).or_default() += 1;
            }
            _ => {}
        }
    }
    let requests = [
        "commenceCogCompiledCodeCompaction",
        "updateStackZoneReferencesToCompiledCodePreCompaction",
        "callForCogCompiledCodeCompaction",
    ];
    assert_eq!(surprising, requests);
    let elsewhere: Vec<(&str, usize)> = elsewhere.into_iter().collect();
    let expected = [
        ("debugging", 9),
        ("entry of machine code", 5),
        ("machine code", 26),
        ("primitives about machine code", 5),
    ];
    assert_eq!(elsewhere, expected);
}

#[test]
fn functions_of_the_snapshot_by_part() {
    let functions = functions();
    let places = places(&functions);
    let mut parts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (region, part) in &places {
        *parts.entry((region.name(), part)).or_default() += 1;
    }
    let lines = parts
        .iter()
        .map(|((region, part), count)| format!("{region} | {part} | {count}"));
    let lines: Vec<String> = lines.collect();
    assert_eq!(lines.join("\n"), PARTS.trim());
    // Collector, interpreter and compiler hold no primitive of the image.
    let primitives = functions.iter().zip(&places);
    let primitives = primitives.filter(|(name, _)| name.starts_with("primitive"));
    assert!(
        primitives
            .into_iter()
            .all(|(_, (region, _))| *region == Region::Vm)
    );
}

const PARTS: &str = "
compiler | bytecode translation | 48
compiler | code compaction | 7
compiler | code generation | 243
compiler | inline caches | 16
compiler | maps and look-up of code | 32
gc | collector | 16
gc | compact | 10
gc | machine code | 26
gc | mark | 19
gc | old space | 15
gc | scavenge | 22
interpreter | activation | 7
interpreter | bytecodes | 4
interpreter | calls from machine code | 24
interpreter | contexts and stack pages | 41
interpreter | entry of machine code | 15
interpreter | look-up of methods | 21
interpreter | processes and events | 25
vm |  | 334
vm | allocation | 10
vm | debugging | 151
vm | heartbeat and clock | 24
vm | input and output | 78
vm | plugin: compression | 4
vm | plugin: files | 40
vm | plugin: floating-point numbers | 31
vm | plugin: graphics | 122
vm | plugin: large integers | 8
vm | plugin: regular expressions | 20
vm | plugin: security | 47
vm | plugin: sockets | 71
vm | plugins: interface | 53
vm | plugins: loading | 26
vm | primitives | 570
vm | primitives about machine code | 6
vm | the VM's own profiler | 6
";

#[test]
fn every_name_of_the_table_is_the_first_for_a_function() {
    let rules = rules("squeak", &[]);
    let functions = functions();
    let mut used = vec![false; rules.len()];
    for name in &functions {
        let name = FunctionName::new(name);
        let mut all = rules.iter();
        let first = all.position(|rule| rule.apply(name, ThreadRole::Other).is_some());
        used[first.unwrap()] = true;
    }
    let unused = rules.iter().zip(used).filter(|(_, used)| !used);
    let unused: Vec<&str> = unused.map(|(rule, _)| rule.identifiers.as_str()).collect();
    assert_eq!(unused.join(" "), OF_OTHER_VERSIONS);
}

/// Functions of other versions, and inlined functions.
const OF_OTHER_VERSIONS: &str = "processWeaklings fireEphemerons* globalGarbageCollect postGCAction mapVMRegisters \
    mapProfileState mapTraceLogs shrink* sweep* freeChunk* freeOlderMethods* cogPIC* cogExtendPIC* \
    compileCPIC* compileMNU* flushMethodCache* newStackPage* heartbeat*";

#[test]
fn plugins_are_libraries_below_the_vms_folder() {
    let rules = rules("squeak", &["SqueakSSL.so".to_owned()]);
    let last = rules.last().unwrap();
    assert_eq!((&*last.module, &*last.part), ("SqueakSSL.so", "plugins"));
    assert_eq!(file_name(b"/opt/lib/squeak"), "squeak");
    assert!(rules.len() < 2000, "{}", rules.len());
}
