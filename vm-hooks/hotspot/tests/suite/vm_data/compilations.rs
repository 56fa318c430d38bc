//! Compilations as they are seen from outside, while the JVM starts, against its own log.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vmscope_hotspot::layout::{Encodings, VmStructs};
use vmscope_hotspot::method::MethodLayout;
use vmscope_hotspot::pages::Pages;
use vmscope_hotspot::vm_data::{Known, VmData};
use vmscope_process::{KeySource, Poll, ProcessView};
use vmscope_records::{Compilation, Pid, ProcessKey, Record, TimeNs};

use crate::common::jdks::jdks;
use crate::common::jvm::java;

const ENOUGH: usize = 30;

/// A process, killed on drop.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn since(began: Instant) -> TimeNs {
    TimeNs(u64::try_from(began.elapsed().as_nanos()).unwrap())
}

#[test]
fn what_is_compiled_is_what_the_log_says() {
    for jdk in jdks() {
        let version = jdk.release;
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("jit.log");
        let logs = format!("-Xlog:jit+compilation=debug:file={}", log.display());
        // Churn loads classes forever and compiles their methods.
        let flags = ["-Xcomp", "-XX:+UseSerialGC", &logs];
        let arguments = ["--forever", "--rounds", "1000"];
        let Some(mut java) = java(&jdk, &flags, "Churn", &arguments) else {
            return;
        };
        let child = java
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let child = Ends(child);
        let deadline = Instant::now() + Duration::from_secs(120);
        let all_in_time = || assert!(Instant::now() < deadline, "JDK {version}: not in time");
        // Waits for libjvm and its tables.
        let (process, structs) = loop {
            all_in_time();
            let process = ProcessView::open(Pid(child.0.id())).unwrap();
            let libjvm = process.module(|name| name == "libjvm.so");
            let read = libjvm.map(|libjvm| {
                let structs = VmStructs::read(&process, &libjvm, &Pages::new(process.memory()));
                // Flags are readable after argument parsing.
                structs.ok().filter(|structs| {
                    let known = Known {
                        structs: Some(structs),
                        ..Known::default()
                    };
                    VmData::new(&process, known).flags().is_some()
                })
            });
            match read.flatten() {
                Some(structs) => break (process, structs),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let methods = MethodLayout::of(&structs, Encodings::of(version)).unwrap();
        let known = Known {
            structs: Some(&structs),
            libjvm: None,
            methods: Some(&methods),
        };
        let mut vm = VmData::new(&process, known);
        let keys = KeySource::new();
        let mut told: HashMap<(u64, bool), Compilation> = HashMap::new();
        let began = Instant::now();
        while told.len() < ENOUGH {
            all_in_time();
            let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(move || since(began)));
            vm.poll(&process, &mut poll).unwrap();
            for record in poll.finish() {
                if let Record::Compilation(one) = record {
                    told.insert((one.id, one.osr_bci.is_some()), *one);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(child);
        let log = std::fs::read_to_string(&log).unwrap();
        let logged = logged(&log);
        for ((id, is_osr), news) in &told {
            let Some((level, name)) = logged.get(&(*id, *is_osr)) else {
                panic!("JDK {version}: {news:?} is not in the log");
            };
            let tier = match level {
                1 => "C1",
                2 => "C1 counting",
                3 => "C1 profiling",
                _ => "C2",
            };
            // Behind a hidden class's name is a number, which the log writes otherwise.
            let name = name.replace("::", ".");
            let name = name.split("/0x").next().unwrap();
            assert!(
                news.name.starts_with(name),
                "JDK {version}: {news:?}, {name}"
            );
            assert_eq!(news.tier, tier, "JDK {version}: {news:?}");
        }
        println!("JDK {version}: {} compilations as in the log", told.len());
    }
}

/// Level and name by (compile id, OSR), from lines such as `[0.1s][debug][jit,compilation]  12 % !
/// 3  a.B::c @ 7 (49 bytes)`.
fn logged(log: &str) -> HashMap<(u64, bool), (u32, String)> {
    let mut all = HashMap::new();
    for line in log.lines() {
        let line = line.rsplit(']').next().unwrap();
        let mut words = line.split_whitespace();
        let Some(id) = words.next().and_then(|word| word.parse().ok()) else {
            continue;
        };
        let rest: Vec<&str> = words.collect();
        let Some(at) = rest.iter().position(|word| word.contains("::")) else {
            continue;
        };
        let is_osr = rest[..at].iter().any(|word| word.contains('%'));
        let level = rest[..at].iter().find_map(|word| word.parse().ok());
        all.entry((id, is_osr))
            .or_insert((level.unwrap_or(4), rest[at].to_owned()));
    }
    all
}
