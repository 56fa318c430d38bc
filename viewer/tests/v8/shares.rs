//! JavaScript with known shares (docs/truth.md §3, §4, §6): functions of all tiers, and lines.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::agreement::{Detail, agrees, grows_by_that};
use crate::common::in_turn;
use crate::common::programs::script;
use crate::common::vmscope::{Folder, attached, can_sample};
use crate::measured::JITTER;
use crate::node::Recorded;
use crate::running::ready;
use crate::v8::nodes::{Node, node, nodes};

const BOTH: [Detail; 2] = [Detail::Functions, Detail::Lines];
const LOOPS: &str = "2000,4000,6000,8000,3000,5000";

/// `vmscope record -- node FLAGS PROGRAM ARGUMENTS`, with cycles of varying length.
pub fn recorded(node: &Node, flags: &[&str], program: &str, arguments: &[&str]) -> Recorded {
    let program = script(program);
    let program = program.to_str().expect("UTF-8");
    let words = [flags, &[program, "--jitter", JITTER], arguments].concat();
    Recorded::of(&[], &node.program, words)
}

fn of_nodes(turn: usize, check: impl Fn(&Node)) {
    if can_sample() {
        in_turn(&nodes(), turn).for_each(check);
    }
}

#[test]
fn optimised_functions_and_lines() {
    of_nodes(0, |node| {
        let recorded = recorded(node, &[], "known_shares.js", &["--cycles", "700"]);
        let what = format!("Node {}, optimised", node.release);
        agrees(&what, &recorded, &recorded.said[0], &BOTH);
    });
}

/// Without an optimising compiler, Sparkplug makes the code.
#[test]
fn functions_and_lines_of_sparkplug() {
    of_nodes(1, |node| {
        let mut flags = vec!["--sparkplug", "--always-sparkplug", "--no-opt"];
        flags.extend((node.release >= 22).then_some("--no-maglev"));
        // A comparison is faster than a multiplication: these ranges are long enough for the program's clock.
        let loops = "8000,16000,24000,32000,12000,20000";
        // They take as long as 700 cycles of the optimised ones.
        let arguments = ["--cycles", "400", "--baseline", "--loops", loops];
        let recorded = recorded(node, &flags, "known_shares.js", &arguments);
        let what = format!("Node {}, Sparkplug", node.release);
        agrees(&what, &recorded, &recorded.said[0], &BOTH);
        let of_tier = |is_ours: fn(&str) -> bool| {
            recorded.samples(|entry| {
                let [name, tier] = ["name", "tier"].map(|of| entry[of].as_str().unwrap_or(""));
                name.starts_with("share_") && is_ours(tier)
            })
        };
        let sparkplug = of_tier(|tier| tier == "Sparkplug");
        let others = of_tier(|tier| tier != "Sparkplug");
        recorded.check(
            sparkplug > 1500 && others * 100 < sparkplug,
            &format!("{sparkplug} samples in Sparkplug's code, {others} in other code"),
        );
    });
}

/// Inlined functions, methods of several classes, recursion, and a function that only Sparkplug compiles.
#[test]
fn functions_of_each_kind() {
    of_nodes(1, |node| {
        let recorded = recorded(node, &[], "tiers.js", &["--cycles", "500"]);
        let what = format!("Node {}, tiers", node.release);
        agrees(&what, &recorded, &recorded.said[0], &[Detail::Functions]);
        let tier_is = |name: &'static str, tier: &'static str| {
            recorded.samples(move |entry| entry["name"] == name && entry["tier"] == tier)
        };
        for (name, tier) in [
            ("numeric", "TurboFan"),
            ("fib", "TurboFan"),
            ("too_big", "Sparkplug"),
        ] {
            let samples = tier_is(name, tier);
            recorded.check(
                samples > 100,
                &format!("{name} [{tier}] has {samples} samples"),
            );
        }
        // `too_big` is compiled lazily: its script was read before.
        let unnamed = recorded.samples(|entry| entry["kind"] == "unnamed");
        let samples = recorded.profile.trace.samples.times.len() as u64;
        recorded.check(unnamed * 50 < samples, &format!("{unnamed} without a name"));
        // V8's own rules find callers, although a V8 that is in a library is recognised after its dump.
        let guessed = recorded.profile.trace.samples.chain_ends.guessed;
        recorded.check(guessed * 5 < samples, &format!("{guessed} guessed callers"));
    });
}

/// A process that nobody prepared.
fn attach_agrees(node: &Node, what: &str) {
    let (folder, place) = (Folder::new(), Folder::new());
    let words = ["known_shares.js", "--forever", "--jitter", JITTER];
    let mut target = ready(node, &[], &words, &place);
    let working = attached(target.pid(), &folder.file("out.vmscope"), 6000);
    target.signal(Signal::SIGTERM);
    let program: Value = serde_json::from_str(&target.wait()).expect("its report");
    let run = working.end().code(0);
    let recorded = Recorded::read(&folder, place, run);
    agrees(what, &recorded, &program, &BOTH);
}

#[test]
fn a_running_process() {
    of_nodes(0, |node| {
        attach_agrees(node, &format!("Node {}, attach", node.release));
    });
}

/// Checks of V8's own objects find its layout.
#[test]
fn a_running_process_of_an_unknown_version() {
    let Some(node) = node(26).filter(|_| can_sample()) else {
        return;
    };
    let folder = Folder::new();
    let program = folder.file("node");
    node.as_unknown_version(&program);
    attach_agrees(&Node { program, ..node }, "V8 99, attach");
}

/// docs/truth.md §6, as in the suite `truth`: `share_b` is made to take twice as long by its loop
/// count alone.
#[test]
fn a_function_slowed_down_grows_by_that_and_no_other_does() {
    let Some(node) = nodes().pop().filter(|_| can_sample()) else {
        return;
    };
    let slower = LOOPS.replacen("4000", "8000", 1);
    let [before, after] = [LOOPS, &slower].map(|loops| {
        let arguments = ["--cycles", "800", "--loops", loops];
        recorded(&node, &[], "known_shares.js", &arguments)
    });
    grows_by_that(&before, &after, Detail::Functions);
}
