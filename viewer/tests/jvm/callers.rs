//! Callers of Java code (docs/truth.md §9) beside the chains that the JVM itself tells: native, compiled,
//! inlined and interpreted frames, without flags and agents.

use crate::common::chains::{Counts, chains_of};
use crate::common::vmscope::{Folder, can_sample, command, run};
use crate::common::whole::said;
use crate::hotspot::jdks::{RELEASES, jdk};
use crate::hotspot::jvm::java;
use crate::known::Tier;

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
            let chains = chains_of(&said(&recorded.stdout)[0]["chains"], java_method);
            // Chains are cut off before the first reading of the JVM, and in code that is first
            // met after its end.
            let mut export = command(["export", "--to", "collapsed", "--output", "-"]);
            export.args(["--from=2", "--until=4.8"]);
            export.arg(&file);
            let exported = run(export).code(0);
            assert_eq!(chains.len(), 13, "{chains:?}");
            let counts = Counts::of(&exported.stdout, &chains, java_method, &["clone"]);
            counts.are_true(&format!("{release} {tier:?}"));
        }
    }
}
