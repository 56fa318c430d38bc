//! Callers of Java code (docs/truth.md §9) beside the chains that the JVM itself tells: native, compiled,
//! inlined and interpreted frames, without flags and agents.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::say;
use crate::common::vmscope::{Folder, can_sample, command, run};
use crate::common::whole::said;
use crate::hotspot::jdks::{RELEASES, jdk};
use crate::hotspot::jvm::java;
use crate::known::Tier;

/// Samples in methods whose callers are known, by what the chain shows.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// All of the chain.
    whole: u64,
    /// Its inner part: the chain is cut off.
    cut: u64,
    /// All of the chain, with interpreted methods without names.
    unnamed: u64,
    /// Anything else.
    wrong: u64,
}

/// A Java method without parameters, tier, and the number in the name of a hidden class; `None` for other frames.
pub fn java_method(frame: &str) -> Option<String> {
    let name = frame.split_once('(').map_or(frame, |(name, _)| name);
    let is_java = ["programs.", "java.", "jdk.", "sun."];
    if !is_java.iter().any(|start| name.starts_with(start)) {
        return None;
    }
    let (class, method) = name.rsplit_once('.')?;
    let end = class.find(['/', '+']).unwrap_or(class.len());
    let end = class.find("$$Lambda").unwrap_or(end);
    Some(format!("{}.{method}", &class[..end]))
}

/// Chains that the JVM told of each leaf, innermost first.
pub type Chains = BTreeMap<String, BTreeSet<Vec<String>>>;

/// The chains that the program printed.
pub fn chains_of(told: &serde_json::Value) -> Chains {
    let chain = |chain: &serde_json::Value| {
        let frames = chain.as_str().expect("a chain").split(';');
        frames.filter_map(java_method).collect()
    };
    let of_leaf = |(leaf, told): (&String, &serde_json::Value)| {
        let told = told.as_array().expect("chains").iter();
        (leaf.clone(), told.map(chain).collect())
    };
    let told = told.as_object().expect("chains").iter();
    told.map(of_leaf).collect()
}

fn count(collapsed: &str, chains: &Chains, wrong: &mut BTreeMap<String, u64>) -> Counts {
    let mut counts = Counts::default();
    for line in collapsed.lines() {
        let (stack, samples) = line.rsplit_once(' ').expect("a count");
        let samples: u64 = samples.parse().expect("a count");
        let frames: Vec<&str> = stack.split(';').skip(1).collect();
        let methods = frames.iter().rev().filter_map(|frame| java_method(frame));
        let methods: Vec<String> = methods.collect();
        let leaf = methods
            .iter()
            .position(|method| chains.contains_key(method));
        let Some(leaf) = leaf else {
            continue;
        };
        let shown = &methods[leaf..];
        let told = &chains[&methods[leaf]];
        let first = frames.first().copied().unwrap_or_default();
        let is_unnamed = frames
            .iter()
            .any(|frame| frame.starts_with("interpreted method ("));
        let place = if is_unnamed {
            &mut counts.unnamed
        } else if first.starts_with("clone") && told.contains(shown) {
            &mut counts.whole
        } else if !first.starts_with("clone") && told.iter().any(|all| all.starts_with(shown)) {
            &mut counts.cut
        } else {
            *wrong.entry(stack.to_owned()).or_default() += samples;
            &mut counts.wrong
        };
        *place += samples;
    }
    counts
}

#[test]
fn chains_are_those_that_the_jvm_tells() {
    if !can_sample() {
        return;
    }
    for release in RELEASES {
        for tier in [Tier::Tiered, Tier::C1, Tier::Interpreter] {
            let Some(jdk) = jdk(release) else {
                return;
            };
            let quiet = ["-XX:CompileCommand=quiet"];
            let apart = ["-XX:CompileCommand=dontinline,programs.Callers::leaf*"];
            let flags = [tier.flags(), &quiet, &apart].concat();
            let Some(program) = java(&jdk, &flags, "Callers", &["--seconds", "5"]) else {
                return;
            };
            let folder = Folder::new();
            let file = folder.file("out.vmscope");
            let mut recording = command(["record", "--quiet", "--call-graph=auto", "--output"]);
            recording.arg(&file).arg("--").arg(program.get_program());
            recording.args(program.get_args());
            recording.env_remove("JAVA_TOOL_OPTIONS");
            let recorded = run(recording).code(0);
            let chains = chains_of(&said(&recorded.stdout)[0]["chains"]);
            // Chains are cut off before the first reading of the JVM, and in code that is first
            // met after its end.
            let mut export = command(["export", "--to", "collapsed", "--output", "-"]);
            export.args(["--from=2", "--until=4.8"]);
            export.arg(&file);
            let exported = run(export).code(0);
            let mut wrong = BTreeMap::new();
            let counts = count(&exported.stdout, &chains, &mut wrong);
            let all = counts.whole + counts.cut + counts.wrong;
            let what = format!("{release} {tier:?}: {counts:?}");
            say(&what);
            let shown: Vec<String> = wrong
                .iter()
                .map(|(stack, n)| format!("{n} {stack}"))
                .collect();
            let shown = format!("{what}\n{}", shown.join("\n"));
            assert!(chains.len() == 13 && all > 300, "{shown}");
            assert!(counts.unnamed * 100 < all, "{shown}");
            assert!(counts.whole * 100 >= all * 99, "{shown}");
            assert!(counts.wrong * 1000 <= all, "{shown}");
        }
    }
}
