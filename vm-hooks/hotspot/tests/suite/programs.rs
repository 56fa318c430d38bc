//! The test programs themselves: they compile, run on every release, and keep what they promise.
//! And the agent: what it tells hangs together. Whether a reader agrees is another test's
//! business.

use crate::common::java::{classes, expanded, line_of_range};
use crate::common::jdks::jdks;
use crate::common::jvm::{Jvm, WAITS_FOR_COMPILERS, java};
use crate::common::oracle::Oracle;
use crate::common::say;

#[test]
fn statements_are_repeated_on_their_line() {
    let text = "a /* b */ c;\n{ /* 3 times: */ x = 1; } // range: d\n";
    let wanted = "a /* b */ c;\n{  x = 1; x = 1; x = 1; } // range: d\n";
    assert_eq!(expanded(text), wanted);
}

/// Each program with little to do: (class, arguments, what it says).
const SHORT: [(&str, &[&str], &str); 8] = [
    ("Tiny", &["--rounds", "2"], "\"primes\":"),
    ("Inlining", &["--rounds", "2"], "\"failures\":"),
    ("Osr", &["--rounds", "5000000"], "\"sum\":"),
    ("Allocation", &["--megabytes", "50"], "\"bytes\":"),
    ("Threads", &["--waves", "1"], "\"sum\":"),
    ("Strings", &["--rounds", "5"], "\"sum\":"),
    ("Churn", &["--lives", "24"], "\"lives\":24"),
    ("Shares", &["--cycles", "5", "--warm", "10"], "\"cycles\":5"),
];

#[test]
fn every_program_runs_on_every_release() {
    for jdk in jdks() {
        for (class, arguments, says) in SHORT {
            let Some(mut command) = java(&jdk, &[], class, arguments) else {
                return;
            };
            let output = command.output().expect("java starts");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && text.contains(says),
                "{command:?}: {} {text} {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

/// Compilers skip methods above 8000 bytes, and inline none above 35: the measured programs stay
/// below.
#[test]
fn methods_of_known_shares_can_be_compiled() {
    let (Some(classes), Some(jdk)) = (classes(), crate::common::jdks::compiler()) else {
        return;
    };
    let mut javap = std::process::Command::new(jdk.home.join("bin/javap"));
    javap
        .args(["-c", "-p", "-cp"])
        .arg(classes)
        .arg("programs.Shares");
    let output = javap.output().expect("javap starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut method, mut methods) = ("", 0);
    for line in text.lines() {
        if line.ends_with(");") {
            method = line;
            methods += 1;
        }
        let Some((bci, opcode)) = line.trim().split_once(": ") else {
            continue;
        };
        // A switch lists its cases alike: "1: 20".
        if !opcode.starts_with(|char: char| char.is_ascii_lowercase()) {
            continue;
        }
        let Ok(bci) = bci.parse::<u32>() else {
            continue;
        };
        let most = if ["InA(", "InB(", "InC("]
            .iter()
            .any(|name| method.contains(name))
        {
            35
        } else {
            8000
        };
        assert!(bci < most, "{method} has a bytecode {bci}");
    }
    assert!(methods > 20, "{text}");
    for range in ["divideA", "field2", "arrayInC"] {
        assert!(line_of_range("Shares", range) > 40);
    }
}

/// In each release: nmethods do not overlap, records lie in their code, methods have names, and
/// an agent loaded late changes nothing of what a later one says.
#[test]
fn what_the_agent_tells_hangs_together() {
    for jdk in jdks() {
        let arguments = ["--rounds", "20", "--wait"];
        let Some(jvm) = Jvm::ready(&jdk, &[WAITS_FOR_COMPILERS], "Inlining", &arguments) else {
            return;
        };
        let Some(oracle) = Oracle::of(&jvm) else {
            return;
        };
        let Some(again) = Oracle::of(&jvm) else {
            return;
        };
        let mut inlined = 0;
        for pair in oracle.nmethods.windows(2) {
            assert!(
                pair[0].address + pair[0].size <= pair[1].address,
                "{pair:?}"
            );
        }
        for nmethod in &oracle.nmethods {
            assert!(oracle.methods.contains_key(&nmethod.method));
            for record in &nmethod.records {
                assert!(!record.frames.is_empty());
                inlined += usize::from(record.frames.len() > 1);
                for (method, bci) in &record.frames {
                    assert!(oracle.methods.contains_key(method) && *bci >= -1);
                }
            }
        }
        let hot = oracle.methods.values();
        let hot = hot.filter(|method| method.binary_class() == "programs.Inlining");
        let with_lines = hot.filter(|method| !method.lines.is_empty()).count();
        let records: usize = oracle.nmethods.iter().map(|one| one.records.len()).sum();
        say(&format!(
            "{}: {} nmethods, {records} records, {inlined} with inlined frames, {} stubs; a \
             second time {} nmethods",
            jdk.release,
            oracle.nmethods.len(),
            oracle.stubs.len(),
            again.nmethods.len(),
        ));
        assert!(with_lines >= 5 && inlined > 100 && oracle.stubs.len() > 100);
        jvm.end();
    }
}
