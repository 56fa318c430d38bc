//! Truth in time (docs/truth.md §7): functions that are made, compiled and dropped all the time.

use std::ffi::OsStr;
use std::fmt;

use vmscope_records::{ConstituentKind, Stream};
use vmscope_symbolizer::profile::{Entry, EntryKind};
use vmscope_symbolizer::{Profile, Region};

use crate::common::programs::script;
use crate::common::ran::{KINDS, Ran, last_begun, log_of};
use crate::common::vmscope::{Folder, can_sample};
use crate::common::{in_turn, say};
use crate::node::Recorded;
use crate::v8::nodes::{Node, node, nodes};

/// Outcome of every single sample.
#[derive(Debug, Default)]
struct Asked {
    /// Named for the function that ran then.
    right: u64,
    /// Named for another function of the program.
    wrong: u64,
    doubtful: u64,
    /// Generated code without a name, during logged runs.
    unnamed: u64,
    /// Some of the wrong ones.
    examples: Vec<String>,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked {
            right,
            wrong,
            doubtful,
            unnamed,
            ..
        } = self;
        write!(
            f,
            "right {right}, wrong {wrong}, doubtful {doubtful}, unnamed {unnamed}"
        )
    }
}

/// Name of the program's code in an entry: a kind and a number. A regular expression has the name in its pattern.
fn code_of(entry: &Entry) -> Option<&str> {
    let name = match entry.kind {
        EntryKind::Code(ConstituentKind::Method) => &*entry.name,
        EntryKind::Code(ConstituentKind::RegExp) => {
            entry.name.strip_prefix("/^(?:x+x+)+")?.strip_suffix("$/")?
        }
        _ => return None,
    };
    let (kind, _) = name.split_once('_')?;
    KINDS.contains(&kind).then_some(name)
}

/// Whether a sample's code has no name.
fn is_unnamed(entry: &Entry) -> bool {
    let is_regular_expression = entry.kind == EntryKind::Code(ConstituentKind::RegExp);
    let is_unnamed = entry.kind == EntryKind::Unnamed && entry.region == Region::Generated;
    is_unnamed || is_regular_expression && entry.name == "(regular expression)"
}

fn ask(profile: &Profile, log: &[Ran]) -> Asked {
    let mut asked = Asked::default();
    let samples = &profile.trace.samples;
    for (time, &place) in samples.times.iter().zip(&samples.places) {
        let last = last_begun(log, time.0);
        let ran = last.filter(|ran| ran.is_at(time.0));
        let site = profile.site_at(place);
        let entry = &profile.entries[site.entry];
        if let Some(code) = code_of(entry) {
            // A function also runs for some microseconds before and after its logged run.
            if last.is_some_and(|last| last.code == code) {
                asked.right += 1;
            } else {
                asked.wrong += 1;
                let code = last.map(|ran| (&*ran.code, time.0 - ran.begin));
                let example = format!("{} [{}], while {code:?} ran", entry.name, entry.tier);
                asked.examples.push(example);
            }
        } else if ran.is_some() {
            asked.unnamed += u64::from(is_unnamed(entry));
            asked.doubtful += u64::from(entry.kind == EntryKind::Doubtful);
        }
    }
    asked
}

/// Records the program, checks what each sample must have, and returns the outcome.
fn churned(node: &Node, options: &[&str], flags: &[&str]) -> Asked {
    let log = Folder::new();
    let file = log.file("log");
    let script = script("churn.js");
    let mut arguments = vec![script.as_os_str(), "--log".as_ref(), file.as_os_str()];
    arguments.extend(flags.iter().map(OsStr::new));
    let recorded = Recorded::of(options, &node.program, arguments);
    let asked = ask(&recorded.profile, &log_of(&file));
    let collections = &recorded.said[0]["collections"];
    let told = format!(
        "churn {flags:?} on Node {}: {asked}; {collections} full collections",
        node.release
    );
    say(&told);
    let shown = format!("{told}: {:#?}", asked.examples);
    recorded.check(collections.as_u64() > Some(5), &shown);
    recorded.check(asked.right > 500, &shown);
    // Nobody sees a collection between the last look and the program's end.
    recorded.check(asked.wrong * 200 <= asked.right, &shown);
    // What V8 freed is no loss.
    let lost = recorded.profile.trace.lost.iter();
    let lost = lost.filter(|lost| lost.stream == Stream::Adapter).count();
    recorded.check(lost == 0, &format!("{lost} losses of code; {shown}"));
    // New code has no name until the next poll. Samples before a collection are not given to code that
    // was found after it.
    recorded.check(asked.doubtful + asked.unnamed < asked.right, &shown);
    asked
}

#[test]
fn each_sample_is_of_the_function_that_ran_then() {
    if can_sample() {
        for node in nodes() {
            churned(&node, &[], &[]);
        }
    }
}

/// Workers live for a fifth of a second: their code is read in time, and their addresses are used again.
#[test]
fn each_sample_is_of_the_worker_that_ran_then() {
    if !can_sample() {
        return;
    }
    for node in in_turn(nodes(), 2) {
        let log = Folder::new();
        let file = log.file("log");
        let script = script("short_workers.js");
        let arguments = [script.as_os_str(), "--log".as_ref(), file.as_os_str()];
        let recorded = Recorded::of(&[], &node.program, arguments);
        let asked = ask(&recorded.profile, &log_of(&file));
        let told = format!("workers of Node {}: {asked}", node.release);
        say(&told);
        let shown = format!("{told}: {:#?}", asked.examples);
        recorded.check(asked.right > 1000, &shown);
        recorded.check(asked.wrong * 1000 <= asked.right, &shown);
        recorded.check(4 * (asked.doubtful + asked.unnamed) < asked.right, &shown);
    }
}

/// Checks of V8's own objects find its layout, and the changes of its counters their place.
#[test]
fn each_sample_is_of_the_function_that_ran_then_in_an_unknown_version() {
    if can_sample() {
        let folder = Folder::new();
        for release in [22, 24, 26] {
            let Some(known) = node(release) else { continue };
            let program = folder.file("node");
            known.as_unknown_version(&program);
            churned(&Node { program, release }, &["--adapter", "v8"], &[]);
        }
    }
}

#[test]
fn each_sample_is_of_the_regular_expression_that_ran_then() {
    if can_sample() {
        for node in in_turn(nodes(), 0) {
            churned(
                &node,
                &[],
                &["--regexp", "1", "--lives", "300", "--ms", "7"],
            );
        }
    }
}

#[test]
fn each_sample_is_of_the_webassembly_function_that_ran_then() {
    if can_sample() {
        for node in in_turn(nodes(), 1) {
            churned(&node, &[], &["--wasm", "1"]);
        }
    }
}

/// Collections free the code that another compiler's code has replaced. V8 uses no address of a module twice.
#[test]
fn code_of_webassembly_has_names_before_and_after_collections() {
    if can_sample() {
        for node in in_turn(nodes(), 0) {
            let asked = churned(&node, &[], &["--wasm", "400"]);
            let nameless = asked.doubtful + asked.unnamed;
            assert!(
                nameless * 10 < asked.right,
                "Node {}: {asked}",
                node.release
            );
        }
    }
}
