//! Java with known shares (docs/truth.md §3, §4, §5): methods, inlined methods, ranges of bytecodes;
//! each compiler by itself, both, the interpreter; with and without more debug records.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::ALL;
use crate::common::say;
use crate::common::vmscope::{Folder, attached, can_sample};
use crate::hotspot::jdks::{RELEASES, jdks};
use crate::hotspot::jvm::java;
use crate::known::{Known, Layout, Tier, Way, recorded, steady};
use crate::measured::{list, number};
use crate::node::Recorded;

/// Compilers, and additional debug records or not.
const MODES: [(Tier, bool); 7] = [
    (Tier::Tiered, false),
    (Tier::C1, false),
    (Tier::C2, false),
    (Tier::Interpreter, false),
    (Tier::Tiered, true),
    (Tier::C1, true),
    (Tier::C2, true),
];

/// A layout in all modes, with the first operation (with [`ALL`]: all operations). The releases take
/// turns, so that each proves a part. Additional debug records do not change which code a method has: without
/// [`ALL`], methods do without.
fn in_all_modes(layout: Layout, operations: &[&'static str], least: impl Fn(&Way) -> f64) {
    let mut fell_short = Vec::new();
    let all = std::env::var_os(ALL).is_some();
    let tried = if all { operations.len() } else { 1 };
    for (turn, &operation) in operations.iter().enumerate().take(tried) {
        for (mode, (tier, precise)) in MODES.into_iter().enumerate() {
            if precise && layout == Layout::Methods && !all {
                continue;
            }
            let way = Way {
                release: RELEASES[(turn + mode) % RELEASES.len()],
                tier,
                precise,
                operation,
                layout,
            };
            let Some(known) = way.recorded(way.loops()) else {
                return;
            };
            let what = format!("{} {tier:?} precise={precise} {operation}", way.release);
            let (worst, wrong) = known.honesty(&what);
            fell_short.extend(wrong);
            let said = 1.0 - known.unknown().share;
            let line = format!(
                "{layout:?} {what}: {} samples, range said of {:.1} %, greatest error of these \
                 {worst:.2} points",
                known.samples(),
                100.0 * said
            );
            if said < least(&way) {
                fell_short.push(format!("{line} (least {})", least(&way)));
            }
            say(&line);
        }
    }
    assert!(fell_short.is_empty(), "{fell_short:#?}");
}

#[test]
fn methods() {
    in_all_modes(Layout::Methods, &["divide"], |_| 1.0);
}

/// Minimum share of samples with a range.
#[test]
fn ranges_of_bytecodes() {
    in_all_modes(
        Layout::Ranges,
        &["array", "divide", "field"],
        |way| match way.tier {
            Tier::Interpreter => 0.99,
            _ => 0.95,
        },
    );
}

#[test]
fn inlined_methods() {
    in_all_modes(Layout::Inlined, &["field", "array"], |way| {
        match way.tier {
            // The calls take time too, and nothing is inlined.
            Tier::Interpreter => 0.5,
            _ => 0.95,
        }
    });
}

/// Without a flag, C2's inlined methods are inferred: reports mark them, and their intervals contain
/// the truth (docs/truth.md §5).
#[test]
fn inferred_methods() {
    let way = Way {
        release: 17,
        tier: Tier::C2,
        precise: false,
        operation: "field",
        layout: Layout::Inlined,
    };
    let Some(known) = way.recorded(way.loops()) else {
        return;
    };
    let entries = list(&known.recorded.document["entries"]);
    let of_range = known.ranges.iter().map(|range| {
        let is_of = |entry: &&Value| {
            let name = entry["name"].as_str().unwrap_or_default();
            entry["tier"] == "C2" && name.contains(&format!("{}(", range.method))
        };
        // Entries are sorted by samples.
        entries.iter().find(is_of).expect("an entry for each range")
    });
    let found: Vec<&Value> = of_range.collect();
    let total = number(&known.recorded.document["samples"]["total"]);
    let in_ranges: f64 = found.iter().map(|entry| number(&entry["samples"])).sum();
    for (range, entry) in known.ranges.iter().zip(found) {
        let share = number(&entry["samples"]) / in_ranges;
        let error = number(&entry["share_error"]) * total / in_ranges;
        let told = format!(
            "{}: reported {share:.4} ± {error:.4}, true {:.4}: {entry}",
            range.method, range.truth
        );
        known.check(entry["inferred"] == true, &told);
        known.check(
            number(&entry["share_error"]) > number(&entry["sampling_error"]),
            &told,
        );
        known.check((share - range.truth).abs() <= error, &told);
        say(&format!(
            "inferred: {} reported {share:.4} ± {error:.4}, true {:.4}",
            range.method, range.truth
        ));
    }
}

/// The JVM that most people have: running, and no flag.
#[test]
fn a_running_process() {
    let Some(mut target) = steady() else {
        return;
    };
    let (folder, place) = (Folder::new(), Folder::new());
    let working = attached(target.pid(), &folder.file("out.vmscope"), 4000);
    target.signal(Signal::SIGTERM);
    let said = target.wait();
    let program: Value = serde_json::from_str(&said).expect("its report");
    let run = working.end().code(0);
    let recorded = Recorded::read(&folder, place, run);
    let known = Known::of(Layout::Methods, recorded, program);
    known.enough();
    let (worst, wrong) = known.honesty("attach");
    known.check(wrong.is_empty(), &format!("{wrong:#?}"));
    known.check(known.unknown().share == 0.0, "methods are always known");
    say(&format!(
        "attach: {} samples, greatest error {worst:.2} points",
        known.samples()
    ));
}

/// Loops of C2's code without debug records: calls that nothing executed, or that stand before the loop, inline
/// nothing there.
#[test]
fn loops_without_calls_are_certain() {
    for jdk in jdks() {
        let Some(command) = java(&jdk, &[], "Unreached", &[]).filter(|_| can_sample()) else {
            return;
        };
        let recorded = recorded(&command);
        let profile = &recorded.profile;
        let samples_of = |methods: &[&str]| {
            let sites = (profile.trace.samples.places.iter())
                .map(|&place| profile.site_at(place))
                .filter(|site| {
                    let entry = &profile.entries[site.entry];
                    let is_named = |method: &&str| entry.name.contains(*method);
                    entry.tier.contains("C2") && methods.iter().any(is_named)
                });
            let (certain, inferred): (Vec<_>, Vec<_>) =
                sites.partition(|site| site.method_error == 0);
            (certain.len(), inferred.len())
        };
        let never = samples_of(&["Unreached.never"]);
        let before = samples_of(&["Unreached.before"]);
        let often = samples_of(&["Unreached.often", "Unreached.step"]);
        let what = format!(
            "JDK {}: certain and inferred samples: {never:?}, {before:?}; of a loop with calls: {often:?}",
            jdk.release
        );
        say(&what);
        let are_certain = |(certain, inferred): (usize, usize)| certain > 300 && inferred == 0;
        recorded.check(are_certain(never) && are_certain(before), &what);
        recorded.check(often.1 > 100, &what);
    }
}
