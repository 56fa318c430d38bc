//! Truth in time (docs/truth.md §7): classes that are loaded, compiled and unloaded all the time.

use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::{IndexVec, Profile, SiteId};

use crate::common::ran::{KINDS, Ran, last_begun, log_of};
use crate::common::say;
use crate::common::vmscope::{Folder, can_sample};
use crate::hotspot::jdks::jdk;
use crate::hotspot::jvm::java;
use crate::known::recorded;
use crate::measured::{Worst, batch_means, list, number};

/// Outcome of the program thread's samples.
#[derive(Debug, Default)]
struct Asked {
    right: [usize; 4],
    wrong: usize,
    /// Some wrong samples, for a failed check: running code, reported name, reported kind.
    examples: Vec<String>,
    doubtful: usize,
    unnamed: usize,
    /// The kinds of the samples so named, in order of time.
    named: Vec<usize>,
}

/// Class name without its package and without a hidden class's suffix.
fn class_of(name: &str) -> &str {
    let name = name.split(['+', '/']).next().unwrap_or(name);
    name.rsplit('.').next().unwrap_or(name)
}

fn ask(profile: &Profile, log: &[Ran]) -> Asked {
    let mut asked = Asked::default();
    let kinds: IndexVec<SiteId, Option<(usize, &str)>> = profile
        .sites
        .iter()
        .map(|site| {
            let mut chain = std::iter::once(&site.frame).chain(&site.via);
            chain.find_map(|frame| {
                let of = |kind: &&str| frame.name.split_once(&format!(".{kind}("));
                let kind = KINDS.iter().position(|kind| of(kind).is_some())?;
                let (class, _) = of(&KINDS[kind])?;
                Some((kind, class_of(class)))
            })
        })
        .collect();
    let samples = &profile.trace.samples;
    for (time, &place) in samples.times.iter().zip(&samples.places) {
        // The log excludes the warm-up.
        let Some(last) = last_begun(log, time.0) else {
            continue;
        };
        let ran = Some(last).filter(|ran| ran.is_at(time.0));
        let ran = ran.map(|ran| (ran.kind, ran.code.as_str()));
        let site = profile.site_of_place[place];
        if let Some((kind, class)) = kinds[site] {
            asked.named.push(kind);
            if ran == Some((kind, class)) {
                asked.right[kind] += 1;
            } else {
                asked.wrong += 1;
                if asked.wrong % 16 == 1 {
                    let site = &profile.sites[site];
                    let entry = &profile.entries[site.entry];
                    asked.examples.push(format!(
                        "{:?}: {} [{}] {} us into {}",
                        ran.map(|(_, class)| class),
                        entry.name,
                        entry.tier,
                        (time.0 - last.begin) / 1000,
                        (last.end - last.begin) / 1000,
                    ));
                }
            }
        } else if ran.is_some() {
            let entry = &profile.entries[profile.sites[site].entry];
            asked.doubtful += usize::from(entry.kind == EntryKind::Doubtful);
            asked.unnamed += usize::from(entry.kind == EntryKind::Unnamed);
        }
    }
    asked
}

/// No sample counts for code outside its logged runs; what can't be known is said; the shares of
/// the rest are true; and vmscope takes little.
fn churned(release: u32) {
    let log = Folder::new();
    let file = log.file("log");
    let file = file.to_str().expect("UTF-8");
    let arguments = ["--lives", "600", "--log", file];
    let Some(jdk) = jdk(release) else {
        return;
    };
    let Some(command) = java(&jdk, &[], "Churn", &arguments) else {
        return;
    };
    if !can_sample() {
        return;
    }
    let recorded = recorded(&command);
    let asked = ask(&recorded.profile, &log_of(&log.file("log")));
    let right: usize = asked.right.iter().sum();
    let told = format!(
        "churn on {release}: right {:?}, wrong {}, doubtful {}, unnamed {}",
        asked.right, asked.wrong, asked.doubtful, asked.unnamed
    );
    say(&told);
    // None in 38 runs at a load of 5 to 8 on two processors, and none in 31 runs of a debug build with
    // late polls (docs/truth.md).
    let few = 1000 * asked.wrong <= right;
    recorded.check(few, &format!("{told}: {:#?}", asked.examples));
    recorded.check(right > 3000, &told);
    let unknown = asked.doubtful + asked.unnamed;
    // Code created and unloaded between two polls may remain unnamed: 3 % of the samples on a quiet
    // machine, 5 to 12 % on two busy processors, where looks come late. Reports count such samples
    // and never misname them.
    recorded.check(2 * unknown < right, &told);
    let kinds = list(&recorded.said[0]["kinds"]);
    let all: f64 = kinds.iter().map(|kind| number(&kind["seconds"])).sum();
    let mut worst = Worst::default();
    // Unknown samples may belong to any kind.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let unknown = unknown as f64 / (right + unknown) as f64;
    let samples = &recorded.document["samples"];
    let (delivered, promised) = (number(&samples["total"]), number(&samples["promised"]));
    let missing = ((promised - delivered) / promised).max(0.0) + unknown;
    for (index, kind) in kinds.iter().enumerate() {
        let share = batch_means(&asked.named, |hit| hit == index);
        worst.compare(KINDS[index], share, number(&kind["seconds"]) / all, missing);
    }
    say(&format!(
        "churn on {release}: greatest error of a share {:.2} points, {:.1} standard errors",
        100.0 * worst.difference,
        worst.in_errors
    ));
}

/// With a sweeper: code dies and its address is used again within seconds.
#[test]
fn each_sample_is_of_the_code_that_ran_then() {
    churned(17);
}

/// Code dies in collections.
#[test]
fn each_sample_is_of_the_code_that_ran_then_without_a_sweeper() {
    churned(25);
}
