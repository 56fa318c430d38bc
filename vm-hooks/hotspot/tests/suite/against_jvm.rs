//! The code cache as it is read from outside, against what the JVM itself tells an agent in the
//! same process, while nothing happens in it: every compiled method, its range, every debug
//! record with all inlined methods, names, signatures, lines; and every stub.
//!
//! Where JVMTI is the side that is wrong it is said below, and counted:
//!
//! - `MethodHandle` intrinsics (`linkToStatic` …) share a method id, so that JVMTI gives all of
//!   them one name;
//! - hidden classes are `A.0x…` there and `A+0x…` in the VM; the VM-anonymous classes that JDK 11
//!   has instead are `A/HASH` there (the hash code of their mirror) and `A` in the VM;
//! - what is dead but not gone (unloaded, zombie) is not reported.

use std::collections::{BTreeMap, HashSet};

use crate::common::java::agent;
use crate::common::jdks::{Jdk, compiler, jdks};
use crate::common::jvm::Jvm;
use crate::common::oracle::{Oracle, OracleMethod, OracleNmethod};
use crate::common::say;
use crate::outside::{Outside, Zone, read};
use vmscope_hotspot::code::Frame;
use vmscope_hotspot::method::MethodInfo;

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    nmethods: usize,
    osr: usize,
    records: usize,
    frames: usize,
    inlined: usize,
    /// Of methods, each counts once.
    methods: HashSet<String>,
    with_lines: usize,
    lines: usize,
    hidden: usize,
    intrinsics: usize,
    /// Only outside, as they are dead.
    dead: usize,
    /// Made or gone while the two were read.
    passing: usize,
    stubs: usize,
    stubs_named: usize,
    blobs: usize,
}

/// JVMTI's form of a VM class name.
fn jvmti_class(class: &str) -> String {
    format!("L{};", class.replace("+0x", ".0x"))
}

/// JVMTI's name without the hash code that it puts behind anonymous classes' names: no part of
/// a package or class begins with a digit.
fn without_hash(class: &str) -> String {
    let name = class.trim_end_matches(';');
    match name.rsplit_once('/') {
        Some((name, hash)) if hash.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{name};")
        }
        _ => class.to_owned(),
    }
}

fn same_method(compared: &mut Compared, outside: &MethodInfo, oracle: &OracleMethod) {
    let told = format!("{outside:?}\n{oracle:?}");
    if oracle.is_intrinsic_handle() {
        assert_eq!(outside.class, "java/lang/invoke/MethodHandle", "{told}");
        assert!(
            outside.name.starts_with("linkTo") || outside.name.starts_with("invoke"),
            "{told}"
        );
        compared.intrinsics += 1;
        return;
    }
    let class = without_hash(&oracle.class);
    assert_eq!(jvmti_class(&outside.class), class, "{told}");
    assert_eq!(outside.name, oracle.name, "{told}");
    assert_eq!(outside.signature, oracle.signature, "{told}");
    let file = (!outside.file.is_empty()).then(|| outside.file.clone());
    assert_eq!(file, oracle.source, "{told}");
    // The first of two lines counts, as in the VM's lookup.
    let mut lines: BTreeMap<u32, u32> = BTreeMap::new();
    for &(bci, line) in &oracle.lines {
        lines.entry(bci).or_insert(line);
    }
    let ours = outside.lines.iter();
    let ours: Vec<(u32, u32)> = ours.map(|entry| (entry.from.0, entry.line)).collect();
    assert_eq!(ours, lines.into_iter().collect::<Vec<_>>(), "{told}");
    let name = format!("{class} {} {}", oracle.name, oracle.signature);
    if !compared.methods.insert(name) {
        return;
    }
    compared.hidden += usize::from(outside.class.contains("+0x") || class != oracle.class);
    compared.with_lines += usize::from(!ours.is_empty());
    compared.lines += ours.len();
}

/// All of one compiled method.
fn same_nmethod(
    compared: &mut Compared,
    zone: &Zone,
    outside: &Outside,
    oracle: &Oracle,
    nmethod: &OracleNmethod,
    release: u32,
) {
    let told = format!("{:?} {nmethod:?}", outside.nmethod.id);
    // JDK 11 leaves out the out-of-line stubs.
    let instructions = u64::from(outside.nmethod.stubs);
    let code = outside.nmethod.code.len() as u64;
    let size = if release < 12 { instructions } else { code };
    assert_eq!(size, nmethod.size, "{told}");
    assert!(instructions <= code, "{told}");
    let method = &zone.methods[&outside.nmethod.method];
    same_method(compared, method, &oracle.methods[&nmethod.method]);
    assert_eq!(outside.records.len(), nmethod.records.len(), "{told}");
    for ((pc, chain), record) in outside.records.iter().zip(&nmethod.records) {
        assert_eq!(
            (*pc, chain.len()),
            (record.pc, record.frames.len()),
            "{told}"
        );
        for (Frame { method, bci }, (id, oracle_bci)) in chain.iter().zip(&record.frames) {
            assert_eq!(bci, oracle_bci, "{told}");
            same_method(compared, &zone.methods[method], &oracle.methods[id]);
        }
        compared.records += 1;
        compared.frames += chain.len();
        compared.inlined += usize::from(chain.len() > 1);
    }
    compared.nmethods += 1;
    compared.osr += usize::from(outside.nmethod.is_osr());
}

/// Each stub lies in a blob; a stub that fills its blob has the blob's name.
fn same_stubs(compared: &mut Compared, zone: &Zone, oracle: &Oracle) {
    for stub in &oracle.stubs {
        let end = stub.address + stub.size;
        let around = zone.others.iter().find(|(blob, _)| {
            let bytes = blob.at.0..blob.at.0 + u64::from(blob.size);
            bytes.contains(&stub.address) && end <= bytes.end
        });
        let Some((blob, name)) = around else {
            panic!("{stub:?} lies in no blob");
        };
        compared.stubs += 1;
        if stub.address == blob.code_begin.0 && end == blob.code_end.0 {
            assert_eq!(*name, stub.name, "{stub:?} {blob:?}");
            compared.stubs_named += 1;
        }
    }
    compared.blobs += zone.others.len();
}

/// Compares a JVM in which nothing happens.
fn compare(jvm: &Jvm, release: u32) -> Option<Compared> {
    let mut compared = Compared::default();
    let before = read(jvm.pid());
    let oracle = Oracle::of(jvm)?;
    let after = read(jvm.pid());
    let mut told = HashSet::new();
    for nmethod in &oracle.nmethods {
        let in_both = [&before, &after].into_iter().find_map(|zone| {
            let outside = zone.nmethods.get(&nmethod.address)?;
            Some((zone, outside))
        });
        let Some((zone, outside)) = in_both else {
            panic!("not seen from outside: {nmethod:?}");
        };
        same_nmethod(&mut compared, zone, outside, &oracle, nmethod, release);
        told.insert(nmethod.address);
    }
    for (address, outside) in &before.nmethods {
        if told.contains(address) {
            continue;
        }
        let later = after.nmethods.get(address);
        if later.is_none_or(|later| later.nmethod.id != outside.nmethod.id) {
            compared.passing += 1;
            continue;
        }
        // States 3 and 4: zombie, unloaded. JDK 17 reports no not-entrant code (2).
        let state = outside.nmethod.state;
        let dead = outside.nmethod.method.0 == 0 || state >= 3 || (release == 17 && state == 2);
        assert!(dead, "the JVM does not tell of {outside:?}");
        compared.dead += 1;
    }
    same_stubs(&mut compared, &after, &oracle);
    Some(compared)
}

/// Maximum repetitions of a program's work; one mostly suffices.
const TURNS: usize = 20;

/// Repeats the work until at least `least` nmethods and records exist.
///
/// Compilers drop tasks of programs that stopped. Each repetition adds compiled code, so the limit
/// counts repetitions, not time; `least` is at most half of the code after one repetition on an
/// idle machine.
fn until_compiled(jvm: &mut Jvm, least: (usize, usize)) {
    for _ in 0..TURNS {
        jvm.rests();
        let zone = read(jvm.pid());
        // Only code in use stays until the comparison.
        let live = zone.nmethods.values().filter(|one| one.nmethod.state == 0);
        let records = live.clone().map(|one| one.records.len()).sum::<usize>();
        let compiled = (live.count(), records);
        if compiled.0 >= least.0 && compiled.1 >= least.1 {
            return;
        }
        jvm.works_again();
    }
    panic!("after {TURNS} turns less than {least:?} nmethods and records");
}

/// One JVM, from start to comparison.
fn of(
    jdk: &Jdk,
    flags: &[&str],
    class: &str,
    arguments: &[&str],
    least: (usize, usize),
) -> Option<Compared> {
    let arguments = [arguments, &["--wait"]].concat();
    let mut jvm = Jvm::ready(jdk, flags, class, &arguments)?;
    until_compiled(&mut jvm, least);
    let compared = compare(&jvm, jdk.release)?;
    say(&format!(
        "{} {flags:?} {class}: {} nmethods ({} OSR), {} records ({} inlined), {} frames; {} \
         methods, {} lines of {} of them, {} of hidden classes; {} times an intrinsic that JVMTI can't \
         tell apart; only outside: {} dead, {} passing; {} stubs in {} blobs, {} whole ones named alike",
        jdk.release,
        compared.nmethods,
        compared.osr,
        compared.records,
        compared.inlined,
        compared.frames,
        compared.methods.len(),
        compared.lines,
        compared.with_lines,
        compared.hidden,
        compared.intrinsics,
        compared.dead,
        compared.passing,
        compared.stubs,
        compared.blobs,
        compared.stubs_named,
    ));
    jvm.end();
    Some(compared)
}

/// Likewise on all releases.
fn on_all(flags: &[&str], class: &str, arguments: &[&str], least: (usize, usize)) {
    for jdk in jdks() {
        let Some(compared) = of(&jdk, flags, class, arguments, least) else {
            return;
        };
        let (nmethods, records) = least;
        assert!(
            compared.nmethods >= nmethods && compared.records >= records,
            "too little to prove anything: {compared:?}"
        );
    }
}

/// As nearly every JVM runs: no flag.
#[test]
fn without_any_flag() {
    on_all(&[], "Inlining", &["--rounds", "50"], (80, 350));
    on_all(&[], "Strings", &["--rounds", "100"], (110, 700));
}

#[test]
fn with_records_between_safepoints() {
    let flags = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"];
    on_all(&flags, "Inlining", &["--rounds", "50"], (80, 1200));
}

/// An agent that wants to know of compiled code makes the JVM record more.
#[test]
fn with_an_agent_from_the_start() {
    let Some(agent) = agent() else {
        return;
    };
    let flag = format!("-agentpath:{}", agent.display());
    on_all(&[&flag], "Strings", &["--rounds", "50"], (100, 2500));
}

#[test]
fn each_compiler_by_itself() {
    on_all(
        &["-XX:TieredStopAtLevel=1"],
        "Inlining",
        &["--rounds", "10"],
        (80, 250),
    );
    on_all(
        &["-XX:-TieredCompilation"],
        "Osr",
        &["--rounds", "50000000"],
        (2, 5),
    );
    on_all(
        &["-Xint"],
        "Tiny",
        &["--rounds", "1", "--fib", "15"],
        (0, 0),
    );
}

/// Classes come and go, code is thrown away: what is dead is told apart from what lives.
#[test]
fn after_code_has_come_and_gone() {
    on_all(&[], "Churn", &["--lives", "80"], (50, 100));
    on_all(
        &["-XX:-SegmentedCodeCache"],
        "Churn",
        &["--lives", "40"],
        (50, 100),
    );
}

/// javac, over and over: thousands of methods.
#[test]
fn a_large_program() {
    let Some(jdk) = compiler() else {
        return;
    };
    if let Some(compared) = of(&jdk, &[], "Compiler", &["--rounds", "20"], (1500, 0)) {
        assert!(compared.nmethods >= 1500, "{compared:?}");
    }
}
