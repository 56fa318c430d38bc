//! The programs print their known results, in every stress mode.

mod common;

use vmscope_reference_vm::Outcome;

/// Program, arguments, expected lines. A line ending with … gives only the line's beginning.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("tinyBenchmarks", &["2"], "sieve 1899, fibonacci 392835\n…"),
    ("richards", &["1"], "queued 23246, held 9297\n"),
    ("deltablue", &["1"], "chain 99, projection 1621280\n"),
    ("nbody", &["1000"], "-0.169075164\n-0.169087605\n"),
    (
        "binarytrees",
        &["10"],
        "stretch tree of depth 11\t check: 4095\n1024\t trees of depth 4\t check: 31744\n\
         256\t trees of depth 6\t check: 32512\n64\t trees of depth 8\t check: 32704\n\
         16\t trees of depth 10\t check: 32752\nlong lived tree of depth 10\t check: 2047\n",
    ),
    ("csv", &["1200"], CSV),
    ("json", &["400"], JSON),
    ("collections", &["1"], COLLECTIONS),
    ("strings", &["2"], STRINGS),
    ("polymorphic", &["3"], "one 1500, four 5250, nine 10900\n"),
    ("garbage", &["6"], "garbage 81871760\n"),
];

const CSV: &str = "id: 720600\nname: 100 different\nprice: (60458793/100)\nshare: (590757/308)\nbalance: 6396375\n";
const JSON: &str = "43800 1532115538 19780005\n";
const COLLECTIONS: &str = "collections 737084050\n";
const STRINGS: &str = "strings 314328638\n";

#[test]
fn programs_print_their_known_results_in_every_mode() {
    for (mode, memory, jit) in common::all_modes() {
        for (name, arguments, expected) in PROGRAMS {
            let mut running = common::vm_with(memory.clone(), jit, arguments);
            let (_, text) = common::source(&format!("programs/{name}.st"));
            let outcome = running.vm.load(name, &text).expect("the program is right");
            let (output, errors) = (running.output.get(), running.errors.get());
            assert!(
                matches!(outcome, Outcome::Value(_)),
                "{name}, {mode}: {errors}"
            );
            match expected.strip_suffix('…') {
                Some(start) => assert!(output.starts_with(start), "{name}, {mode}: {output}"),
                None => assert_eq!(output, *expected, "{name}, {mode}"),
            }
        }
    }
}

#[test]
fn the_language_tests_pass_in_every_mode() {
    for (mode, memory, jit) in common::all_modes() {
        for file in common::files("tests") {
            let mut running = common::vm_with(memory.clone(), jit, &[]);
            let (_, text) = common::source(&file);
            let outcome = running.vm.load(&file, &text).expect("the tests are right");
            let output = running.output.get();
            assert!(
                matches!(outcome, Outcome::Value(_)),
                "{file}, {mode}: {output}"
            );
            assert!(
                output.contains(" run, 0 failed"),
                "{file}, {mode}: {output}"
            );
        }
    }
}
