//! `vmscope constituents` of a JVM, whose own list of compiled methods has the same addresses.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::vmscope::{command, run};
use crate::common::whole::list;
use crate::common::{await_that, say};
use crate::hotspot::jdks::jdk;
use crate::hotspot::jvm::java;

const RELEASE: u32 = 17;

/// A method that the program spends its time in.
const HOT: &str = "programs.Callers.spin(int)";

fn constituents(pid: u32, options: &[&str]) -> Value {
    let mut command = command(["constituents", "--json", &pid.to_string()]);
    command.args(options);
    run(command).code(0).json()
}

fn hot(zone: &Value) -> Option<&Value> {
    let mut all = list(&zone["constituents"]).iter();
    all.find(|one| one["name"] == HOT && one["tier"] == "C2")
}

/// Start and end of each compiled method by the JVM's `Compiler.codelist`; `None` without jcmd.
fn told_by_the_jvm(java: &std::path::Path, pid: u32) -> Option<Vec<(String, String)>> {
    let jcmd = java.with_file_name("jcmd");
    let told = Command::new(jcmd)
        .args([&pid.to_string(), "Compiler.codelist"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let range = |line: &str| {
        let (_, range) = line.rsplit_once(", ")?;
        let (start, end) = range.split_once(" - ")?;
        let plain = |address: &str| {
            let digits = address.trim_end_matches(']').trim_start_matches("0x");
            format!("0x{}", digits.trim_start_matches('0'))
        };
        Some((plain(start), plain(end)))
    };
    Some(text.lines().filter_map(range).collect())
}

#[test]
fn compiled_methods_are_those_of_the_jvm_with_their_bytecodes() {
    let Some(jdk) = jdk(RELEASE) else {
        return;
    };
    let flags = [
        "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=dontinline,programs.Callers::spin",
    ];
    let Some(mut program) = java(&jdk, &flags, "Callers", &["--forever"]) else {
        return;
    };
    program.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = program.spawn().expect("a JVM");
    let pid = child.id();
    await_that("the hot method is compiled", || {
        assert_eq!(child.try_wait().expect("our child"), None);
        // The JVM may still be starting.
        let ran = run(command(["constituents", "--json", &pid.to_string()]));
        let zone: Value = serde_json::from_str(&ran.stdout).ok()?;
        hot(&zone).map(|_| ())
    });
    let zone = constituents(pid, &["--detailed"]);
    assert_eq!(zone["schema"], "vmscope-constituents/1.0");
    assert_eq!(zone["vm"]["kind"], "HotSpot");
    let one = hot(&zone).expect("it is still there");
    assert_eq!(one["kind"], "method");
    assert_eq!(one["map"]["kind"], "covers", "{one}");
    let chains = list(&one["map"]["chains"]).iter();
    let has_bytecodes = |chain: &Value| chain[0]["method"] == HOT && chain[0]["bytecode"].is_u64();
    assert!(chains.clone().any(has_bytecodes), "{one}");
    let methods = list(&zone["constituents"]).iter();
    let methods: Vec<&Value> = methods.filter(|one| one["kind"] == "method").collect();
    let with_map = methods.iter().filter(|one| one["map"].is_object()).count();
    assert!(
        with_map * 100 >= methods.len() * 95,
        "{with_map} of {}",
        methods.len()
    );

    // The JVM compiles and frees methods between the two lists.
    let before = told_by_the_jvm(&jdk.java(), pid).unwrap_or_default();
    let zone = constituents(pid, &[]);
    let after = told_by_the_jvm(&jdk.java(), pid).unwrap_or_default();
    let range = |one: &Value| Some((one["start"].as_str()?.into(), one["end"].as_str()?.into()));
    let shown: Vec<(String, String)> = list(&zone["constituents"])
        .iter()
        .filter(|one| one["kind"] == "method")
        .filter_map(range)
        .collect();
    let lasting: Vec<_> = before.iter().filter(|one| after.contains(one)).collect();
    let found = lasting.iter().filter(|one| shown.contains(one)).count();
    say(&format!(
        "constituents: {} compiled methods, the JVM tells {} before and {} after; {found} of {} that \
         it tells twice are shown; {with_map} of {} have pc maps",
        shown.len(),
        before.len(),
        after.len(),
        lasting.len(),
        methods.len(),
    ));
    assert_eq!(found, lasting.len());
    let text = run(command(["constituents", &pid.to_string()])).code(0);
    text.prints(&format!("method C2 {HOT}"));
    child.kill().expect("our child");
    child.wait().expect("our child");
}
