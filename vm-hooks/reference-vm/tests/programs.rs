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
    ("dataframe", &["500"], DATAFRAME),
    ("json", &["400"], JSON),
    ("collections", &["1"], COLLECTIONS),
    ("strings", &["2"], STRINGS),
    ("polymorphic", &["3"], "one 1500, four 5250, nine 10900\n"),
    ("garbage", &["6"], "garbage 81871760\n"),
    ("particles", &["8", "80"], PARTICLES),
    ("predatorprey", &["30", "12"], PREDATORPREY),
];

const CSV: &str = "id: 720600\nname: 100 different\nprice: (60458793/100)\nshare: (590757/308)\nbalance: 6396375\n";
const JSON: &str = "43800 1532115538 19780005\n";
const COLLECTIONS: &str = "collections 737084050\n";
const STRINGS: &str = "strings 314328638\n";
const DATAFRAME: &str = "\
    498 rows, 2 rejected\n\
    carrier: 94 missing\n\
    quantity: 38 missing\n\
    discount: 44 missing\n\
    389 addresses\n\
    East: mean price 500.3192\n\
    North: mean price 532.9877\n\
    South: mean price 545.6525\n\
    West: mean price 486.1862\n\
    2016: mean quantity 5.8974\n\
    2017: mean quantity 6.8364\n\
    2018: mean quantity 6.0161\n\
    2019: mean quantity 6.5763\n\
    2020: mean quantity 7.2708\n\
    2021: mean quantity 6.3830\n\
    2022: mean quantity 6.2955\n\
    2023: mean quantity 6.2727\n\
    2024: mean quantity 6.9839\n\
    12 bargains from 2017-08-21 to 2024-10-01\n\
    dearest bargains: 336 332 443\n\
";
const PARTICLES: &str = "\
    alignment 0.020512\n\
    centre 3.646190\n\
    flown 0.755659\n\
    pairs 297\n\
";
const PREDATORPREY: &str = "\
    goats 7, least 4, mean 30, most 56\n\
    wolves 9, least 3, mean 5, most 9\n\
    78 born, 62 died, mean age 13\n\
    generations 3, ancestors 9\n\
";

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
            let (output, errors) = (running.output.get(), running.errors.get());
            assert!(
                matches!(outcome, Outcome::Value(_)),
                "{file}, {mode}: {outcome:?}\n{output}\n{errors}"
            );
            assert!(
                output.contains(" run, 0 failed"),
                "{file}, {mode}: {output}"
            );
        }
    }
}
