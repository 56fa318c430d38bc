//! Names, tiers and start lines of samples beside what V8 tells of the same process.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use vmscope_jitdump::vm::CodeName;
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{ConstituentKind, Content, CpuMode};
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::{Profile, SiteId};

use crate::common::vmscope::{Folder, can_sample, profile};
use crate::common::{in_turn, say};
use crate::running::{ready, recorded};
use crate::told::Telling;
use crate::v8::nodes::{Node, nodes};

/// Samples of one tier.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Function, tier and start line as V8 tells them.
    equal: u64,
    unequal: u64,
    /// Of the equal ones: the report has no start line.
    without_line: u64,
    /// Without a name in the report.
    unnamed: u64,
    doubtful: u64,
    /// Of several pieces of code, one after another.
    reused: u64,
}

impl Tally {
    fn all(self) -> u64 {
        self.equal + self.unequal + self.unnamed + self.doubtful
    }
}

/// A sample's function in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reported {
    name: String,
    tier: String,
    line: u32,
}

/// The function whose machine code a place is in: the outermost one.
fn reported(profile: &Profile, site: SiteId) -> Reported {
    let site = &profile.sites[site];
    let entry = &profile.entries[site.entry];
    let own = site.via.last().unwrap_or(&site.frame);
    let method = own.method.and_then(|key| profile.trace.methods.get(&key));
    let name = match site.via.is_empty() {
        true => &*entry.name,
        false => &*own.name,
    };
    Reported {
        name: name.to_owned(),
        tier: entry.tier.clone(),
        line: method.map_or(entry.line.unwrap_or(0), |method| method.line),
    }
}

/// Builtins as V8's symbols name them, or without their beginning and end.
fn plain(name: &str) -> &str {
    let name = name.strip_prefix("Builtins_").unwrap_or(name);
    name.strip_suffix("Handler").unwrap_or(name)
}

fn is_equal(told: &CodeName, reported: &Reported) -> bool {
    match &told.kind {
        // V8 tells the flags since version 13.
        ConstituentKind::RegExp => reported.name.starts_with(&*told.name),
        ConstituentKind::Method => {
            let is_line = reported.line == 0 || reported.line == told.line;
            is_line && (&*told.name, &*told.tier) == (&*reported.name, &*reported.tier)
        }
        // The report has the interpreted function instead.
        ConstituentKind::Interpreter if reported.tier == "interpreter" => true,
        // A handler's name in the report: `Star.Wide`.
        _ => plain(&told.name) == first_word(plain(&reported.name)).replace('.', ""),
    }
}

/// A handler of several bytecodes lists them: `ShortStar (Star0, Star1)`.
fn first_word(name: &str) -> &str {
    name.split(' ').next().unwrap_or_default()
}

/// Addresses of user samples by time; none for times of several samples.
fn addresses(recording: &Path) -> HashMap<u64, Option<u64>> {
    let file = BufReader::new(File::open(recording).expect("a recording"));
    let mut reader = Reader::open(file).expect("a recording");
    let mut all = HashMap::new();
    while let Some(chunk) = reader.next_chunk(Content::SAMPLES).expect("a chunk") {
        let samples = chunk.items().filter_map(|item| match item {
            Item::Samples(samples) => Some(samples),
            _ => None,
        });
        for sample in samples.flatten() {
            if sample.mode == CpuMode::User {
                let pc = all.entry(sample.time.0).or_insert(Some(sample.pc.0));
                *pc = pc.filter(|pc| *pc == sample.pc.0);
            }
        }
    }
    all
}

/// Samples by tier, and examples of unequal ones.
fn compare(recording: &Path, telling: &Telling) -> (BTreeMap<String, Tally>, Vec<String>) {
    let (profile, _) = profile(recording);
    let addresses = addresses(recording);
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut examples = Vec::new();
    let samples = &profile.trace.samples;
    for (time, &place) in samples.times.iter().zip(&samples.places) {
        let Some(Some(pc)) = addresses.get(&time.0) else {
            continue;
        };
        let told = telling.at(*pc, time.0);
        let Some(first) = told.first() else {
            continue;
        };
        let tier = match first.kind {
            ConstituentKind::RegExp => "RegExp",
            _ => &*first.tier,
        };
        let tally = tallies.entry(tier.to_owned()).or_default();
        let site = profile.site_of_place[place];
        match &profile.entries[profile.sites[site].entry].kind {
            _ if told.len() > 1 => tally.reused += 1,
            EntryKind::Unnamed => tally.unnamed += 1,
            EntryKind::Doubtful => tally.doubtful += 1,
            _ => {
                let reported = reported(&profile, site);
                if reported.name == "(regular expression)" {
                    tally.unnamed += 1;
                } else if is_equal(first, &reported) {
                    tally.equal += 1;
                    let has_line = reported.line != 0 || first.line == 0;
                    tally.without_line += u64::from(!has_line);
                } else {
                    tally.unequal += 1;
                    examples.push(format!("{pc:#x} at {}: {first:?} is {reported:?}", time.0));
                }
            }
        }
    }
    (tallies, examples)
}

/// Compares samples of a program, whose code is in `tiers`. Returns what is wrong.
fn compared(node: &Node, flags: &[&str], words: &[&str], tiers: &[&str]) -> Vec<String> {
    let (folder, place) = (Folder::new(), Folder::new());
    let file = folder.file("out.vmscope");
    let pid = recorded(ready(node, flags, words, &place), &file, 3000);
    let telling = match flags.contains(&"--perf-prof") {
        true => Telling::of_dump(pid, place.path()),
        false => Telling::of_map(pid),
    };
    let (tallies, examples) = compare(&file, &telling);
    let what = format!("Node {} {} {}", node.release, flags.join(" "), words[0]);
    let mut wrong = Vec::new();
    for tier in tiers {
        if tallies.get(*tier).is_none_or(|tally| tally.all() == 0) {
            wrong.push(format!("{what}: few samples of {tier}"));
        }
    }
    for (tier, tally) in tallies {
        let shown = format!("{what}: {tier}: {tally:?}");
        say(&shown);
        // A function's first instructions run before its frame is there.
        let is_new = words.contains(&"churn.js");
        let allowed = match (is_new, tier.as_str()) {
            (true, _) => tally.all() / 200,
            (false, "Sparkplug") => tally.all() / 100,
            (false, _) => 0,
        };
        // New code has no name until the next poll, and no line until its map is read. Samples before a
        // collection are not given to code that was found after it.
        let unknown = tally.unnamed + tally.doubtful;
        let (most_unknown, most_without_line) = match is_new {
            // All samples of a rare tier may lack names.
            true => (tally.all().max(40) * 3 / 4, tally.all() / 20),
            false => {
                // TurboFan replaces a tier's code at once, after few samples.
                let all = tally.all().max(200);
                (all / 10, all / 100)
            }
        };
        let is_known = unknown <= most_unknown && tally.without_line <= most_without_line;
        if tally.unequal > allowed || !is_known {
            wrong.push(shown);
        }
    }
    if !wrong.is_empty() {
        wrong.extend(examples.into_iter().take(20));
    }
    wrong
}

/// Likewise with each release that has these tiers.
fn are_equal(
    nodes: impl IntoIterator<Item = Node>,
    flags: &[&str],
    words: &[&str],
    tiers: impl Fn(&Node) -> Vec<&'static str>,
) {
    if !can_sample() {
        return;
    }
    let each = nodes.into_iter().map(|node| (tiers(&node), node));
    let each = each.filter(|(tiers, _)| !tiers.is_empty());
    let wrong = each.flat_map(|(tiers, node)| compared(&node, flags, words, &tiers));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const STEADY: [&str; 3] = ["tiers.js", "--forever", "--text"];

#[test]
fn names_are_those_of_the_perf_map() {
    are_equal(nodes(), &["--perf-basic-prof"], &STEADY, |node| {
        let mut tiers = vec!["TurboFan", "Sparkplug", "RegExp"];
        // Node 20 tells its builtins' addresses in the file alone.
        tiers.extend((node.release != 20).then_some("builtin"));
        tiers
    });
}

/// TurboFan would replace Maglev's code at once.
#[test]
fn names_of_maglev_are_those_of_the_perf_map() {
    let flags = ["--perf-basic-prof", "--maglev", "--no-turbofan"];
    let words = ["tiers.js", "--forever", "--text", "--unoptimised"];
    are_equal(nodes(), &flags, &words, |node| match node.release {
        24.. => vec!["Maglev", "Sparkplug", "RegExp"],
        _ => Vec::new(),
    });
}

#[test]
fn names_are_those_of_the_jitdump() {
    are_equal(in_turn(nodes(), 0), &["--perf-prof"], &STEADY, |_| {
        vec!["TurboFan", "Sparkplug", "RegExp"]
    });
}

/// Maglev's code runs until TurboFan replaces it: a program whose functions are new all the time.
#[test]
fn names_of_new_functions_are_those_of_the_jitdump() {
    let nodes = in_turn(nodes(), 1);
    are_equal(
        nodes,
        &["--perf-prof"],
        &["churn.js", "--forever"],
        |node| {
            let mut tiers = vec!["TurboFan"];
            tiers.extend((node.release >= 24).then_some("Maglev"));
            tiers
        },
    );
}
