//! Regions of a VM's native code by its adapter's rules.

use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, function};
use vmscope_records::{
    Exactness, FileOffset, ModuleKey, NativeFrame, NativeLines, ProcessKey, Record, Region,
    RegionRule, RegionRules, SymbolOwner, Symbols, ThreadKey, ThreadRole, TimeNs,
};
use vmscope_symbolizer::{Entry, Filter, Profile, Summary};

const LIBRARY: ModuleKey = ModuleKey(9);
const LIBRARY_AT: u64 = 0x7000_0000;

fn rule(module: &str, affixes: [&str; 3], region: Region, part: &str) -> RegionRule {
    let [prefix, contains, suffix] = affixes.map(str::to_owned);
    RegionRule {
        module: module.into(),
        strip: !prefix.is_empty(),
        prefix,
        contains,
        suffix,
        region,
        part: part.into(),
        ..RegionRule::default()
    }
}

fn rules(process: ProcessKey, time: u64, rules: Vec<RegionRule>) -> Record {
    Record::RegionRules(RegionRules {
        process,
        time: TimeNs(time),
        vm: "test".into(),
        rules,
    })
}

fn library(recording: &mut Recording) -> &mut Recording {
    recording.module(LIBRARY, "/opt/vm/libvm.so", false).map(
        PROCESS,
        0,
        LIBRARY_AT,
        LIBRARY_AT + 0x1000,
        0,
        Some(LIBRARY),
    )
}

fn entry(profile: &Profile, sample: usize) -> &Entry {
    let place = profile.trace.samples.places[sample];
    profile.entry_at(place)
}

fn shown(profile: &Profile, sample: usize) -> (&str, Region, &str) {
    let entry = entry(profile, sample);
    (&entry.name, entry.region, &entry.tier)
}

#[test]
fn the_first_rule_that_fits_tells_where_a_function_belongs() {
    let mut recording = Recording::of("V8");
    library(&mut recording)
        .symbols(
            PROGRAM,
            &[
                (0x000, 0x100, "Builtins_LdaZeroHandler"),
                (0x100, 0x100, "Builtins_Call"),
                (0x200, 0x100, "v8::Scavenger::Process()"),
                (0x300, 0x100, "node::Start()"),
                (0x400, 0x100, "v8::Scavenger::Untold()"),
            ],
        )
        .symbols(LIBRARY, &[(0, 0x100, "Builtins_Call"), (0x100, 0x100, "g")])
        .put(rules(
            PROCESS,
            0,
            vec![
                rule(
                    "vm",
                    ["Builtins_", "", "Handler"],
                    Region::Interpreter,
                    "handler",
                ),
                rule("vm", ["Builtins_", "", ""], Region::Generated, "builtin"),
                rule("vm", ["", "Untold", ""], Region::Unknown, "nothing"),
                rule("vm", ["", "::Scavenger::", ""], Region::Gc, "scavenger"),
            ],
        ));
    for at in [0, 0x100, 0x200, 0x300, 0x400] {
        recording.sample(1, THREAD, PROGRAM_AT + at);
    }
    recording.sample(2, THREAD, LIBRARY_AT);
    let profile = recording.profile();
    for (sample, wanted) in [
        ("LdaZero", Region::Interpreter, "handler"),
        ("Call", Region::Generated, "builtin"),
        ("v8::Scavenger::Process()", Region::Gc, "scavenger"),
        ("node::Start()", Region::Vm, ""),
        ("v8::Scavenger::Untold()", Region::Vm, ""),
        ("Builtins_Call", Region::Library, ""),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(shown(&profile, sample), wanted);
    }
}

#[test]
fn a_helper_function_belongs_to_what_its_thread_does() {
    let roles = [
        ThreadRole::Other,
        ThreadRole::Compiler,
        ThreadRole::Collector,
    ];
    let threads = roles.map(|role| ThreadKey(10 + role as u32));
    let mut recording = Recording::of("HotSpot");
    library(&mut recording)
        .symbols(
            LIBRARY,
            &[
                (0, 0x100, "OopMap::copy()"),
                (0x100, 0x100, "Arena::grow()"),
            ],
        )
        .put(rules(
            PROCESS,
            0,
            vec![
                RegionRule {
                    role: Some(ThreadRole::Compiler),
                    ..rule("libvm.so", ["", "", ""], Region::Compiler, "helpers")
                },
                rule("libvm.so", ["", "OopMap", ""], Region::Gc, "roots"),
                rule("libvm.so", ["", "", ""], Region::Vm, ""),
            ],
        ));
    for (role, thread) in roles.into_iter().zip(threads) {
        recording.thread(thread, PROCESS, 0, "thread", role);
    }
    for thread in threads {
        for at in [0, 0x10, 0x110] {
            recording.sample(1, thread, LIBRARY_AT + at);
        }
    }
    let profile = recording.profile();
    let (roots, other) = (
        ("OopMap::copy()", Region::Gc, "roots"),
        ("Arena::grow()", Region::Vm, ""),
    );
    let helpers = (Region::Compiler, "helpers");
    let compiling = [roots, roots, other].map(|(name, ..)| (name, helpers.0, helpers.1));
    let wanted = [[roots, roots, other], compiling, [roots, roots, other]];
    for (sample, wanted) in wanted.into_iter().flatten().enumerate() {
        assert_eq!(shown(&profile, sample), wanted, "{sample}");
    }
    // One entry for each function and region, whatever the number of roles.
    assert_eq!(entry(&profile, 0), entry(&profile, 6));
    let sampled: std::collections::BTreeSet<_> = (0..9)
        .map(|sample| profile.site_of_place[profile.trace.samples.places[sample]])
        .collect();
    assert_eq!(sampled.len(), 4);
}

#[test]
fn a_rule_for_everything_makes_a_library_the_vms_even_without_symbols() {
    let mut recording = Recording::of("HotSpot");
    library(&mut recording)
        .symbols(
            LIBRARY,
            &[(0, 0x100, "G1::collect()"), (0x100, 0x100, "os::write()")],
        )
        .put(rules(
            PROCESS,
            0,
            vec![
                rule("libvm.so", ["", "G1", ""], Region::Gc, "G1"),
                rule("libvm.so", ["", "", ""], Region::Vm, ""),
            ],
        ));
    for at in [0, 0x100, 0x800] {
        recording.sample(1, THREAD, LIBRARY_AT + at);
    }
    let profile = recording.profile();
    assert_eq!(shown(&profile, 0), ("G1::collect()", Region::Gc, "G1"));
    assert_eq!(shown(&profile, 1), ("os::write()", Region::Vm, ""));
    let unnamed = "(no symbol) libvm.so 0x0-0xfff";
    assert_eq!(shown(&profile, 2), (unnamed, Region::Vm, ""));
    assert_eq!(Summary::with_errors(&profile, &Filter::default()).vm, 3);
}

#[test]
fn the_newest_rules_of_a_vm_count_and_equal_ones_of_its_children_once() {
    let gc = || vec![rule("vm", ["", "", ""], Region::Gc, "new")];
    let mut recording = Recording::of("V8");
    recording
        .symbols(PROGRAM, &[(0, 0x100, "f")])
        .put(rules(PROCESS, 5, gc()))
        .put(rules(
            PROCESS,
            3,
            vec![rule("vm", ["", "", ""], Region::Vm, "old")],
        ))
        .put(rules(ProcessKey(7), 6, gc()))
        .sample(1, THREAD, PROGRAM_AT);
    assert_eq!(shown(&recording.profile(), 0), ("f", Region::Gc, "new"));
}

#[test]
fn what_was_inlined_belongs_where_the_function_around_it_does() {
    let frame = |function: &str, line| NativeFrame {
        function: function.into(),
        file: "a.cc".into(),
        line,
    };
    let mut outer = function(0, 0x100, "X_outer");
    outer.lines = vec![NativeLines {
        start: FileOffset(0),
        end: FileOffset(0x80),
        frames: vec![frame("X_inner", 3), frame("outer", 9)],
        exactness: Exactness::Exact,
    }];
    let mut recording = Recording::of("V8");
    recording
        .put(Record::Symbols(Symbols {
            owner: SymbolOwner::Module(PROGRAM),
            functions: vec![outer],
            note: String::new(),
        }))
        .put(rules(
            PROCESS,
            0,
            vec![rule("vm", ["X_outer", "", ""], Region::Gc, "part")],
        ))
        .sample(1, THREAD, PROGRAM_AT)
        .sample(1, THREAD, PROGRAM_AT + 0x90);
    let profile = recording.profile();
    assert_eq!(shown(&profile, 0), ("X_inner", Region::Gc, "part"));
    assert_eq!(shown(&profile, 1), ("X_outer", Region::Gc, "part"));
    let whole = vmscope_symbolizer::profile_of(recording.read().unwrap(), Vec::new(), false);
    assert_eq!(shown(&whole, 0), ("X_outer", Region::Gc, "part"));
}

#[test]
fn more_rules_than_any_vm_has_are_not_taken() {
    let many = vec![rule("vm", ["", "x", ""], Region::Gc, ""); 5000];
    let mut recording = Recording::of("V8");
    recording
        .symbols(PROGRAM, &[(0, 0x100, "x")])
        .put(rules(PROCESS, 0, many))
        .sample(1, THREAD, PROGRAM_AT);
    let profile = recording.profile();
    assert_eq!(shown(&profile, 0), ("x", Region::Vm, ""));
    assert_eq!(profile.trace.malformed_records, 1);
}
