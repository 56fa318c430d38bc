//! Truth in time (docs/truth.md §7): code whose addresses are reused all the time.

use std::process::Command;

use serde_json::Value;
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::{Profile, Region};

use crate::common::programs::{self, JIT_CHURN};
use crate::common::ran::{KINDS, Ran, last_begun, log_of};
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, Working, can_sample, command, run};
use crate::common::{say, whole};
use crate::measured::{Worst, batch_means, list, number};
use crate::node::Recorded;

const LINES: [u32; 4] = [10, 20, 30, 40];
/// The kind of code without replacements.
const STEADY: usize = 3;

/// Outcome of every single sample.
#[derive(Debug, Default)]
struct Asked {
    /// Named for the code that ran then.
    right: [usize; 4],
    /// Named for other code.
    wrong: usize,
    /// The kinds of the samples so named, in order of time.
    named: Vec<usize>,
    /// Doubtful or unnamed samples during logged runs.
    doubtful: usize,
    unnamed: usize,
    /// Doubtful or unnamed samples of the steady kind, after its first named sample.
    steady_lost: usize,
    /// Of those named right, without the right line.
    without_line: usize,
}

fn ask(profile: &Profile, log: &[Ran]) -> Asked {
    let mut asked = Asked::default();
    let samples = &profile.trace.samples;
    for (time, &place) in samples.times.iter().zip(&samples.places) {
        let time = time.0;
        let ran = last_begun(log, time).filter(|ran| ran.is_at(time));
        let ran = ran.map(|ran| ran.kind);
        let site = profile.site_at(place);
        let entry = &profile.entries[site.entry];
        if let Some(kind) = KINDS.iter().position(|kind| *kind == entry.name) {
            asked.named.push(kind);
            if ran == Some(kind) {
                asked.right[kind] += 1;
                asked.without_line += usize::from(site.frame.line != Some(LINES[kind]));
            } else {
                asked.wrong += 1;
            }
        } else if ran.is_some() {
            // Clock reads sample unnamed places of the vDSO.
            let code = matches!(entry.region, Region::Generated | Region::Unknown);
            let unnamed = code && entry.kind == EntryKind::Unnamed;
            let doubtful = entry.kind == EntryKind::Doubtful;
            asked.doubtful += usize::from(doubtful);
            asked.unnamed += usize::from(unnamed);
            let known_before = ran == Some(STEADY) && asked.right[STEADY] > 0;
            asked.steady_lost += usize::from(known_before && (doubtful || unnamed));
        }
    }
    asked
}

/// A kind's part in the sum of these seconds.
fn part(program: &Value, kind: usize, which: &str) -> f64 {
    let kinds = list(&program["kinds"]);
    let all: f64 = kinds.iter().map(|kind| number(&kind[which])).sum();
    number(&kinds[kind][which]) / all
}

/// Shares, against the program's clock; and the error of a reader of the final code.
fn shares_are_true(what: &str, program: &Value, document: &Value, asked: &Asked) {
    let samples = &document["samples"];
    let (delivered, promised) = (number(&samples["total"]), number(&samples["promised"]));
    let missing = ((promised - delivered) / promised).max(0.0);
    let (mut worst, mut at_end) = (Worst::default(), 0_f64);
    for (kind, name) in KINDS.iter().enumerate() {
        let truth = part(program, kind, "seconds");
        let share = batch_means(&asked.named, |hit| hit == kind);
        worst.compare(name, share, truth, missing);
        at_end = at_end.max((part(program, kind, "seconds_of_last") - truth).abs());
    }
    say(&format!(
        "{what}: {} samples, none named wrong; greatest error of a share {:.2} points, {:.1} \
         standard errors, bound {:.2}; of a reader that looks at the end: {:.1} points",
        asked.named.len(),
        100.0 * worst.difference,
        worst.in_errors,
        100.0 * worst.bound,
        100.0 * at_end,
    ));
    assert!(at_end > 0.2, "the program proves nothing: {program}");
}

/// A recording of jit_churn, which told the times of its code.
fn churned(arguments: &[&str]) -> Option<(Recorded, Asked)> {
    churned_at(&[], arguments)
}

/// The same, recorded with these options.
fn churned_at(options: &[&str], arguments: &[&str]) -> Option<(Recorded, Asked)> {
    let program = programs::build(JIT_CHURN)?;
    if !can_sample() {
        return None;
    }
    let log = Folder::new();
    let file = log.file("log");
    let file = file.to_str().expect("UTF-8");
    let arguments = [&["--log", file], arguments].concat();
    let recorded = Recorded::of(options, &program, arguments);
    let asked = ask(&recorded.profile, &log_of(&log.file("log")));
    Some((recorded, asked))
}

/// All that a dump tells is known, so nothing may be wrong, or missing.
fn all_are_right(recorded: &Recorded, asked: &Asked) {
    let told = format!("{:?}", (asked.right, asked.wrong, asked.doubtful));
    recorded.check(asked.wrong == 0, &format!("samples named wrong: {told}"));
    let (doubtful, unnamed) = (asked.doubtful, asked.unnamed);
    recorded.check(doubtful == 0, &format!("{doubtful} doubtful: {told}"));
    recorded.check(unnamed == 0, &format!("{unnamed} unnamed: {told}"));
    recorded.check(asked.named.len() > 1000, &told);
    let without = asked.without_line;
    recorded.check(without == 0, &format!("{without} without their line"));
}

#[test]
fn each_sample_is_of_the_code_that_was_there_then() {
    let Some((recorded, asked)) = churned(&["--lives", "3000", "--ms", "1.7"]) else {
        return;
    };
    all_are_right(&recorded, &asked);
    shares_are_true("jitdump", &recorded.said[0], &recorded.document, &asked);
}

/// What is told is held back, and comes long after the code has run.
#[test]
fn what_is_told_late_counts_from_its_own_time() {
    let Some((recorded, asked)) = churned(&["--lives", "3000", "--ms", "1.7", "--buffered"]) else {
        return;
    };
    all_are_right(&recorded, &asked);
    shares_are_true("held back", &recorded.said[0], &recorded.document, &asked);
}

/// Far more lives than samples, at addresses that are reused hundreds of times each.
#[test]
fn fifty_thousand_lives() {
    let arguments = ["--lives", "50000", "--ms", "0.06", "--slots", "200"];
    // Each life is short: at the default rate the shares would be known to points only.
    let Some((recorded, asked)) = churned_at(&["--rate", "5000"], &arguments) else {
        return;
    };
    all_are_right(&recorded, &asked);
    shares_are_true("many", &recorded.said[0], &recorded.document, &asked);
}

/// jit_churn with a log in `folder` and its dump in `place`; `None`, said, where it can't be built or sampled.
fn begun(arguments: &[&str], folder: &Folder, place: &Folder) -> Option<Target> {
    let mut churn = Command::new(programs::build(JIT_CHURN)?);
    churn.args(arguments).args(["--wait", "--log"]);
    churn.arg(folder.file("log")).current_dir(place.path());
    can_sample().then(|| Target::ready(churn))
}

/// `vmscope attach` with a recording in `folder`.
fn attach(target: &Target, folder: &Folder, options: &[&str]) -> Command {
    let mut attach = command(["attach", "--quiet", &target.pid().to_string(), "--output"]);
    attach.arg(folder.file("out.vmscope")).args(options);
    attach
}

/// Attaching: what was told before counts too.
#[test]
fn a_dump_that_began_before_the_recording() {
    let (folder, place) = (Folder::new(), Folder::new());
    let Some(mut target) = begun(&["--lives", "3000"], &folder, &place) else {
        return;
    };
    let working = Working::start(attach(&target, &folder, &[]));
    let program: Value = serde_json::from_str(&target.wait()).expect("its report");
    let run = working.end().code(0);
    let log = log_of(&folder.file("log"));
    let recorded = Recorded::read(&folder, place, run);
    let asked = ask(&recorded.profile, &log);
    all_are_right(&recorded, &asked);
    // The dump is the program's: it was there before us.
    let dump = format!("jit-{}.dump", number(&program["pid"]));
    assert_eq!(recorded.place.names(), [dump]);
}

/// The dump of a VM that runs on is still empty. The VM's buffer holds all records.
#[test]
fn a_dump_in_the_buffer_of_a_vm_that_goes_on() {
    let (folder, place) = (Folder::new(), Folder::new());
    let arguments = ["--lives", "8", "--ms", "1000", "--buffered"];
    let Some(mut target) = begun(&arguments, &folder, &place) else {
        return;
    };
    let run = run(attach(&target, &folder, &["--duration", "2"])).code(0);
    let dump = place.file(&format!("jit-{}.dump", target.pid()));
    let written = std::fs::metadata(dump).expect("its dump").len();
    assert_eq!(written, 0, "bytes in the file");
    assert!(target.is_running());
    target.wait();
    let log = log_of(&folder.file("log"));
    let recorded = Recorded::read(&folder, place, run);
    let asked = ask(&recorded.profile, &log);
    all_are_right(&recorded, &asked);
}

/// A perf map has no times: what can't be known is in doubt, and nobody gets it.
#[test]
fn a_map_without_times_leaves_samples_in_doubt() {
    let arguments = [
        "--told", "map", "--lives", "150", "--ms", "30", "--slots", "2",
    ];
    let Some((recorded, asked)) = churned(&arguments) else {
        return;
    };
    recorded.check(asked.wrong == 0, &format!("{} named wrong", asked.wrong));
    recorded.check(asked.doubtful > 0, "nothing is in doubt");
    // Unchanged code has names since its first poll. The poll's time depends on the machine.
    let steady = asked.right[STEADY];
    let lost = asked.steady_lost;
    recorded.check(
        steady > 0 && lost == 0,
        &format!("steady: {steady} right, then {lost} lost"),
    );
    say(&format!(
        "perf map: none named wrong; right {:?}, in doubt {}, unnamed {}",
        asked.right, asked.doubtful, asked.unnamed
    ));
    assert_eq!(
        recorded.document["samples"]["doubtful"].as_u64(),
        Some(whole_doubtful(&recorded))
    );
}

/// The doubtful by entries.
fn whole_doubtful(recorded: &Recorded) -> u64 {
    let entries = whole::list(&recorded.document["entries"]).iter();
    let doubtful = entries.filter(|entry| entry["kind"] == "doubtful");
    doubtful.filter_map(|entry| entry["samples"].as_u64()).sum()
}

/// Nothing is told: generated code is unnamed, the program's own code is named.
#[test]
fn code_that_nobody_tells_of_is_unnamed() {
    let arguments = ["--told", "nothing", "--lives", "500"];
    let Some((recorded, asked)) = churned(&arguments) else {
        return;
    };
    recorded.check(asked.named.is_empty(), &format!("{asked:?}"));
    recorded.check(asked.unnamed > 500, &format!("{asked:?}"));
}
