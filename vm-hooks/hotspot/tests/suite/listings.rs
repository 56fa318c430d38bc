//! Listings and lines of methods in a running JVM, against `javap` of the same classes.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use crate::common::java::listed;
use crate::common::jdks::{self, Jdk};
use crate::common::jvm::Jvm;
use vmscope_hotspot::bytecode::{ConstantPoolView, PoolLayout, listing, vm_name};
use vmscope_hotspot::layout::VmStructs;
use vmscope_hotspot::method::{ClassesLayout, MethodInfo};
use vmscope_hotspot::pages::Pages;
use vmscope_process::{Memory, ProcessView};
use vmscope_records::{Avma, Pid};

/// Classes of the JDK that every program loads.
const JDK_CLASSES: [&str; 12] = [
    "java.lang.Object",
    "java.lang.String",
    "java.lang.StringBuilder",
    "java.lang.AbstractStringBuilder",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Character",
    "java.lang.Math",
    "java.lang.Thread",
    "java.lang.invoke.MethodHandleNatives",
    "java.util.HashMap",
    "java.util.concurrent.ConcurrentHashMap",
];

fn javap(program: &Path, jdk: &Jdk, path: &Path, classes: &[String]) -> crate::javap::Methods {
    let mut all = crate::javap::Methods::new();
    for some in classes.chunks(200) {
        let mut command = Command::new(program);
        command.args(["-J-Dfile.encoding=UTF-8", "-J-Dstdout.encoding=UTF-8"]);
        command
            .arg("--system")
            .arg(&jdk.home)
            .args(["-c", "-p", "-v", "-l", "-cp"])
            .arg(path)
            .args(some);
        let output = command.output().unwrap();
        all.extend(crate::javap::parse(&String::from_utf8_lossy(
            &output.stdout,
        )));
    }
    all
}

struct Read {
    /// Methods with bytecodes, and their listings.
    methods: Vec<(MethodInfo, Vec<(u32, String)>)>,
    /// The interpreter's codelets: number and name.
    codelets: Vec<(i64, String)>,
}

fn read(pid: u32, wanted: impl Fn(&str) -> bool) -> Read {
    let process = ProcessView::open(Pid(pid)).unwrap();
    let pages = Pages::new(process.memory());
    let jvm = vmscope_hotspot::jvm::Jvm::open(&process, &pages).unwrap();
    let (structs, layout) = (&jvm.structs, &jvm.methods);
    let pools = PoolLayout::of(structs, layout.clone()).unwrap();
    let mut methods = Vec::new();
    for class in ClassesLayout::of(structs).unwrap().read(&pages).unwrap() {
        if !layout.class(&pages, class).is_ok_and(|name| wanted(&name)) {
            continue;
        }
        for method in layout.methods_of(&pages, class).unwrap() {
            let info = layout.read(&pages, method).unwrap();
            let pool = ConstantPoolView::read(&pools, &pages, info.constants).unwrap();
            let listed = listing(&info, &pool);
            if !listed.is_empty() {
                let listed = listed.into_iter().map(|(bci, text)| (bci.0, text));
                methods.push((info, listed.collect()));
            }
        }
    }
    let codelets = codelets(structs, &pages);
    Read { methods, codelets }
}

/// Codelets of the interpreter's buffer.
fn codelets(structs: &VmStructs, memory: &dyn Memory) -> Vec<(i64, String)> {
    let field = |of: &str, name: &str| structs.scalar(of, name).unwrap();
    let at = structs.static_at("AbstractInterpreter", "_code").unwrap();
    let queue = Avma(memory.read_u64(at).unwrap());
    let of_queue = |name| field("StubQueue", name).read(memory, queue, "").unwrap();
    let mut at = of_queue("_stub_buffer").cast_unsigned();
    let mut all = Vec::new();
    for _ in 0..of_queue("_number_of_stubs") {
        let of = |name| field("InterpreterCodelet", name);
        let name = of("_description")
            .read_address(memory, Avma(at), "")
            .unwrap();
        let name = memory.read_c_string(name, 256).unwrap();
        // An enumeration, whose width no table tells.
        let number = structs.offset("InterpreterCodelet", "_bytecode").unwrap();
        let number = memory.read_u32(Avma(at + number)).unwrap().cast_signed();
        all.push((number.into(), String::from_utf8(name).unwrap()));
        at += of("_size")
            .read(memory, Avma(at), "")
            .unwrap()
            .cast_unsigned();
    }
    all
}

/// `javap` does not print the spaces that a text ends with: a text of 60 characters and a
/// space is shown whole then, not shortened.
fn without_last_spaces(text: &str) -> String {
    match text.strip_suffix('"') {
        Some(text) => text.trim_end_matches('…').trim_end().to_owned(),
        None => text.to_owned(),
    }
}

#[test]
fn listings_are_those_of_javap() {
    let (Some(folder), Some(program)) = (listed(), jdks::javap()) else {
        return;
    };
    // All loaded JDK classes, or a selection.
    let all = std::env::var_os("VMSCOPE_ALL_CLASSES").is_some();
    for jdk in jdks::every() {
        let Some(jvm) = Jvm::listed(&jdk, &["-Xmx64m"]) else {
            return;
        };
        let is_listed = |name: &str| {
            let name = name.replace('/', ".");
            let is_own =
                name.starts_with("Listed") && !name.contains("+0x") && !name.contains("Lambda");
            is_own || JDK_CLASSES.contains(&name.as_str()) || all && !name.contains("+0x")
        };
        let read = read(jvm.pid(), is_listed);
        let mut classes: Vec<_> = read
            .methods
            .iter()
            .map(|(info, _)| info.class.replace('/', "."))
            .collect();
        classes.sort();
        classes.dedup();
        let mut javap = javap(&program, &jdk, &folder, &classes);
        let known: HashSet<_> = javap.keys().map(|(class, ..)| class.clone()).collect();
        let (mut equal, mut lines, mut made) = (0, 0, 0);
        let (mut different, mut absent) = (Vec::new(), Vec::new());
        for (info, listed) in read.methods {
            let key = (info.class, info.name, info.signature);
            let Some(method) = javap.remove(&key) else {
                // The VM makes methods itself, for interface methods that a class does
                // not implement: they throw. Classes are also made at run time.
                let is_made = listed[0].1.starts_with("new java.lang.AbstractMethodError")
                    || !known.contains(&key.0);
                if !is_made {
                    absent.push(key);
                }
                made += 1;
                continue;
            };
            let is_same = |ours: &(u32, String), theirs: &(u32, String)| {
                ours.0 == theirs.0 && without_last_spaces(&ours.1) == without_last_spaces(&theirs.1)
            };
            let mut pairs = listed.iter().zip(&method.code);
            let first = pairs.find(|(ours, theirs)| !is_same(ours, theirs));
            let is_equal = listed.len() == method.code.len() && first.is_none();
            if is_equal {
                equal += 1;
            } else {
                different.push(format!(
                    "{key:?}: {} of {}: {first:?} {:?}",
                    listed.len(),
                    method.code.len(),
                    method.code.last()
                ));
            }
            let mut theirs = method.lines;
            theirs.sort_by_key(|entry| entry.0);
            theirs.dedup_by_key(|entry| entry.0);
            let ours: Vec<_> = info
                .lines
                .iter()
                .map(|entry| (entry.from.0, entry.line))
                .collect();
            if ours == theirs {
                lines += u32::from(!ours.is_empty());
            } else {
                different.push(format!("lines of {key:?}: {ours:?} {theirs:?}"));
            }
        }
        let named = read
            .codelets
            .iter()
            .filter(|(number, _)| (0..=255).contains(number));
        let mut numbers = 0;
        for (number, name) in named {
            let ours = u8::try_from(*number).ok().and_then(vm_name);
            assert_eq!(
                ours.unwrap_or("_shouldnotreachhere"),
                name.trim_start_matches("_return_").trim_start_matches('?'),
                "{number}"
            );
            numbers += 1;
        }
        println!(
            "{}: {} classes, {equal} listings and {lines} line tables equal, {} different, {made} made by the VM, {} more not in javap, {numbers} instructions called alike",
            jdk.home.display(),
            classes.len(),
            different.len(),
            absent.len()
        );
        for one in different.iter().take(20) {
            println!("  {}", one.chars().take(600).collect::<String>());
        }
        println!(
            "  not in javap: {:?}",
            absent.iter().take(20).collect::<Vec<_>>()
        );
        assert!(different.is_empty() && absent.is_empty());
        assert!(equal > 500, "only {equal}");
        assert!(numbers > 200, "only {numbers}");
    }
}
