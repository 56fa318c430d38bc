//! Callers of Java code (docs/truth.md §9) beside the chains that the JVM itself tells: native, compiled,
//! inlined and interpreted frames, without flags and agents.

use std::process::Stdio;
use std::time::Duration;

use crate::common::chains::{Chains, Counts, chains_of};
use crate::common::in_turn;
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

/// A recording of a program that prints its chains (`programs.Chains`).
pub struct Recording<'a> {
    pub release: u32,
    pub tier: Tier,
    pub flags: &'a [&'a str],
    /// Class and arguments.
    pub program: &'a [&'a str],
    /// Options of `export` for the time in which all chains are known.
    pub window: [&'a str; 2],
}

impl Recording<'_> {
    /// The program's chains, and the recorded stacks, collapsed.
    pub fn chains_and_stacks(&self) -> Option<(Chains, String)> {
        let jdk = jdk(self.release)?;
        let flags = [self.tier.flags(), &["-XX:CompileCommand=quiet"], self.flags].concat();
        let (class, arguments) = self.program.split_first()?;
        let program = java(&jdk, &flags, class, arguments)?;
        let folder = Folder::new();
        let file = folder.file("out.vmscope");
        let mut recording = command(["record", "--quiet", "--call-graph=auto", "--output"]);
        recording.arg(&file).arg("--").arg(program.get_program());
        recording.args(program.get_args());
        recording.env_remove("JAVA_TOOL_OPTIONS");
        let recorded = run(recording).code(0);
        let mut export = command(["export", "--to", "collapsed", "--output", "-"]);
        export.args(self.window).arg(&file);
        let exported = run(export).code(0);
        let chains = chains_of(&said(&recorded.stdout)[0]["chains"], java_method);
        Some((chains, exported.stdout))
    }
}

#[test]
fn chains_are_those_that_the_jvm_tells() {
    if !can_sample() {
        return;
    }
    for (turn, release) in RELEASES.into_iter().enumerate() {
        for &tier in in_turn(Tier::of_callers(release), turn + 1) {
            // Chains are cut off before the first reading of the JVM, and in code that is first
            // met after its end.
            let Some((chains, stacks)) = Recording {
                release,
                tier,
                flags: &["-XX:CompileCommand=dontinline,programs.Callers::leaf*"],
                program: &["Callers", "--seconds", "5"],
                window: ["--from=3", "--until=4.8"],
            }
            .chains_and_stacks() else {
                return;
            };
            assert_eq!(chains.len(), 13, "{chains:?}");
            let counts = Counts::of(&stacks, &chains, java_method, &["clone"]);
            counts.are_true(&format!("{release} {tier:?}"));
        }
    }
}

/// The frame of a deoptimised method returns to its stubs, which know no inlined callers.
#[test]
fn chains_through_deoptimised_methods_are_those_that_the_jvm_tells() {
    if !can_sample() {
        return;
    }
    for release in RELEASES {
        let not_inlined = ["leaf*", "outer"].map(|method| {
            let command = "-XX:CompileCommand=dontinline,programs.Deoptimised";
            format!("{command}::{method}")
        });
        let Some((chains, stacks)) = Recording {
            release,
            tier: Tier::Tiered,
            flags: &not_inlined.each_ref().map(String::as_str),
            program: &["Deoptimised", "--seconds", "2"],
            window: ["--from=2", "--until=2.8"],
        }
        .chains_and_stacks() else {
            return;
        };
        let counts = Counts::of(&stacks, &chains, java_method, &["clone"]);
        counts.are_true(&format!("{release}, deoptimised"));
        let is_inlined = "Deoptimised.inlined(Deoptimised$Step, int, int) (C2)_[i]";
        assert!(stacks.contains(is_inlined), "{release}");
    }
}

/// vmscope opens the JVM before sampling begins.
#[test]
fn the_first_samples_have_callers() {
    let Some(jdk) = can_sample().then(|| jdk(17)).flatten() else {
        return;
    };
    let flags = [
        "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=dontinline,programs.Callers::leaf*",
    ];
    let Some(mut program) = java(&jdk, &flags, "Callers", &["--seconds", "5"]) else {
        return;
    };
    let program = program.stdout(Stdio::piped()).spawn().expect("starts");
    std::thread::sleep(Duration::from_secs(2));
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let pid = program.id().to_string();
    let mut attach = command(["attach", "--quiet", &pid, "--duration=1", "--rate=5000"]);
    attach.arg("--output").arg(&file);
    run(attach).code(0);
    let mut export = command(["export", "--to", "collapsed", "--output", "-"]);
    export.arg("--until=0.3").arg(&file);
    let stacks = run(export).code(0).stdout;
    let printed = program.wait_with_output().expect("ends").stdout;
    let printed = String::from_utf8(printed).expect("text");
    let chains = chains_of(&said(&printed)[0]["chains"], java_method);
    let counts = Counts::of(&stacks, &chains, java_method, &["clone"]);
    let (whole, cut) = (counts.whole, counts.cut + counts.unnamed);
    assert!(whole > 100, "{whole} whole, {cut} cut off");
    assert!(cut * 100 <= whole, "{whole} whole, {cut} cut off");
}
