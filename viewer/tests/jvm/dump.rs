//! `vmscope dump` (docs/truth.md §9) beside the stacks that the JVM itself tells: of a busy thread
//! the chains of its program, of waiting threads the JVM's own thread dump.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::callers::java_method;
use crate::common::chains::{Chains, chains_of};
use crate::common::core_files::CoreFolder;
use crate::common::vmscope::{command, run};
use crate::common::whole::said;
use crate::common::{await_that, say};
use crate::hotspot::jdks::{Jdk, RELEASES, jdk};
use crate::hotspot::jvm::java;

/// Stacks of the busy thread that are compared.
const WANTED: usize = 25;

/// Maximum number of killed JVMs until the busy thread was in a leaf.
const MAX_KILLS: usize = 3;

const APART: [&str; 2] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=dontinline,programs.Callers::leaf*",
];

fn dump(pid: u32) -> Value {
    run(command(["dump", "--json", &pid.to_string()]))
        .code(0)
        .json()
}

/// Index of the program's leaf in a stack of its busy thread.
fn leaf_in(methods: &[String]) -> Option<usize> {
    let is_leaf = |method: &String| method.starts_with("programs.Callers.leaf");
    methods.iter().position(is_leaf)
}

/// Java methods of each thread, innermost first, up to code that was too new to have a name, and whether the
/// stack is whole.
fn java_stacks(dump: &Value) -> BTreeMap<String, (Vec<String>, bool)> {
    let threads = dump["threads"].as_array().expect("threads").iter();
    let stack = |thread: &Value| {
        let frames = thread["frames"].as_array().expect("frames").iter();
        let names = frames.map(|frame| frame["name"].as_str().expect("a name"));
        let is_named = |name: &&str| *name != "(generated code, unnamed)";
        let methods = names.clone().take_while(is_named).filter_map(java_method);
        let is_whole = thread["cut_off"].is_null() && names.clone().all(|name| is_named(&name));
        let name = thread["name"].as_str().expect("a name").to_owned();
        (name, (methods.collect(), is_whole))
    };
    threads.map(stack).collect()
}

/// Java methods of each thread in the JVM's own thread dump.
fn told_by_the_jvm(output: &str) -> BTreeMap<String, Vec<String>> {
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = None;
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix('"') {
            name = rest.split_once('"').map(|(name, _)| name.to_owned());
        } else if let (Some(name), Some(frame)) = (&name, line.trim().strip_prefix("at ")) {
            let frame = frame.rsplit_once("//").map_or(frame, |(_, frame)| frame);
            let stack = threads.entry(name.clone()).or_default();
            stack.extend(java_method(frame));
        }
    }
    threads
}

#[test]
fn stacks_are_those_that_the_jvm_tells() {
    let mut in_core_files = InCoreFiles::default();
    for release in RELEASES {
        let Some(jdk) = jdk(release) else {
            return;
        };
        let Some(mut program) = java(&jdk, &APART, "Callers", &["--forever"]) else {
            return;
        };
        program.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = program.spawn().expect("a JVM");
        let pid = child.id();
        let mut busy = Vec::new();
        let mut last = Value::Null;
        while busy.len() < WANTED {
            assert_eq!(child.try_wait().expect("our child"), None, "{release}");
            last = dump(pid);
            // The program's thread exists some tenths of a second after the start.
            let stack = java_stacks(&last).remove("main");
            busy.extend(stack.filter(|(methods, _)| leaf_in(methods).is_some()));
        }
        let raw = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("a pid"));
        let mut output = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        kill(raw, Signal::SIGQUIT).expect("it runs");
        // After the threads of the JVM's dump.
        while !output.contains("\nJNI global") {
            let got = stdout.read_line(&mut output).expect("UTF-8");
            assert_ne!(got, 0, "{release}: {output}");
        }
        kill(raw, Signal::SIGTERM).expect("it runs");
        stdout.read_to_string(&mut output).expect("UTF-8");
        child.wait().expect("our child");

        let chains = chains_of(&said(&output)[0]["chains"], java_method);
        let (mut equal, mut cut) = (0, 0);
        for (methods, is_whole) in &busy {
            let leaf = methods
                .iter()
                .position(|method| chains.contains_key(method));
            let shown = &methods[leaf.expect("a leaf")..];
            let told = &chains[&shown[0]];
            match is_whole {
                true => assert!(told.contains(shown), "{release}: {shown:?}"),
                false => assert!(
                    told.iter().any(|all| all.starts_with(shown)),
                    "{release}: {shown:?}"
                ),
            }
            equal += usize::from(*is_whole);
            cut += usize::from(!is_whole);
        }
        let mut waiting = 0;
        let shown = java_stacks(&last);
        for (name, told) in told_by_the_jvm(&output) {
            if name == "main" || told.is_empty() {
                continue;
            }
            let Some((methods, is_whole)) = shown.get(&name) else {
                panic!("{release}: {name} is not among {:?}", shown.keys());
            };
            assert!(
                *is_whole && *methods == told,
                "{release} {name}: {methods:?}, not {told:?}"
            );
            waiting += 1;
        }
        say(&format!(
            "dump, {release}: {equal} whole stacks of the busy thread, {cut} cut off; \
             {waiting} waiting threads"
        ));
        assert!(equal + cut >= 10 && cut <= 1, "{release}: {equal} {cut}");
        assert!(waiting >= 2, "{release}: {waiting}\n{output}");
        check_core_files(release, &jdk, (&chains, &shown), &mut in_core_files);
    }
    let InCoreFiles { leaves, cut } = in_core_files;
    assert!(leaves > 0 || CoreFolder::new().is_none());
    // As among the stacks of live JVMs.
    assert!(cut.len() <= 1, "{cut:#?}");
}

/// The busy threads' stacks in core files.
#[derive(Default)]
struct InCoreFiles {
    /// Number of whole stacks in a leaf, whose chains the program tells.
    leaves: usize,
    /// Stacks that are cut off.
    cut: Vec<Value>,
}

/// Kills JVMs: the waiting threads have the stacks of the live JVM before, the busy threads those that the program
/// tells.
fn check_core_files(
    release: u32,
    jdk: &Jdk,
    (chains, live): (&Chains, &BTreeMap<String, (Vec<String>, bool)>),
    found: &mut InCoreFiles,
) {
    for _ in 0..MAX_KILLS {
        let (Some(folder), Some(program)) = (
            CoreFolder::new(),
            java(jdk, &APART, "Callers", &["--forever"]),
        ) else {
            break;
        };
        let mut child = folder.spawn(&program);
        let pid = child.id();
        await_that("the program is busy", || {
            assert_eq!(child.try_wait().expect("our child"), None, "{release}");
            let main = java_stacks(&dump(pid)).remove("main")?;
            leaf_in(&main.0)
        });
        let raw = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("a pid"));
        kill(raw, Signal::SIGABRT).expect("it runs");
        child.wait().expect("our child");
        let file = folder.file();
        let file = file.to_str().expect("UTF-8");
        let dump = run(command(["dump", "--json", "--core", file]))
            .code(0)
            .json();
        assert_eq!(dump["core"]["signal"], "SIGABRT", "{release}");
        let mut shown = java_stacks(&dump);
        let (methods, is_whole) = shown.remove("main").expect("the main thread");
        let mut waiting = 0;
        for (name, stack) in shown.iter().filter(|(_, (methods, _))| !methods.is_empty()) {
            assert_eq!(Some(stack), live.get(name), "{release} {name}");
            waiting += 1;
        }
        assert!(waiting >= 2, "{release}: {shown:?}");
        if !is_whole {
            let mut threads = dump["threads"].as_array().expect("threads").iter();
            let main = threads.find(|thread| thread["name"] == "main");
            say(&format!("core file, {release}: cut off, {main:#?}"));
            found.cut.extend(main.cloned());
            continue;
        }
        let outermost = methods.last().map_or("", |method| method);
        assert_eq!(outermost, "programs.Callers.main", "{release}");
        if let Some(leaf) = leaf_in(&methods) {
            let stack = &methods[leaf..];
            let told = &chains[&stack[0]];
            assert!(told.contains(stack), "{release}: {stack:?}");
            found.leaves += 1;
            break;
        }
    }
    say(&format!(
        "core files up to {release}: {} stacks of the busy thread",
        found.leaves
    ));
}
