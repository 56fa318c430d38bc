//! Lifetimes of objects, with input that users may have: wrong rates, recordings that hold too
//! little, too much or nothing, a VM that is killed.

use crate::common::vmscope::{Folder, Run, Working, await_samples, can_sample, command, run};
use crate::recordings::lifetimes::{birth, heap, scavenged};
use crate::recordings::{PROCESS, Recording};
use nix::sys::signal::Signal;
use vmscope_records::{
    Birth, Class, ClassKey, Collection, CollectionKey, Counter, CounterMeaning, Fate, Record,
    SiteKey, TimeNs,
};

/// `vmscope` with these arguments, in the folder.
fn in_folder(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = command(arguments);
    command.current_dir(folder.path());
    run(command)
}

/// A folder with a recording under the usual name.
fn with(recording: &mut Recording, end: u64) -> Folder {
    let folder = Folder::new();
    let bytes = recording.end(end).bytes();
    std::fs::write(folder.file("recording.vmscope"), bytes).expect("a file");
    folder
}

#[test]
fn wrong_rates_are_refused_before_anything_starts() {
    let folder = Folder::new();
    for (rate, why) in [
        ("0/1", "the sampled part must be more than 0"),
        ("5/1", "the sampled part must be at most 1/1"),
        ("2/3", "2/3 does not reduce to 1/N"),
        (
            "often",
            "expected a part of the objects, such as 1/100, or a size",
        ),
        ("", "expected a part of the objects"),
    ] {
        let option = format!("--lifetimes={rate}");
        for arguments in [
            &["record", &option, "--", "touch", "started"][..],
            &["attach", &option, "1"],
            &["demo", &option],
            &["reference-vm", &option, "dataframe"],
        ] {
            in_folder(&folder, arguments).code(2).says(why);
        }
    }
    // As a user may write it.
    in_folder(&folder, &["demo", "--lifetimes", "5/1"])
        .code(2)
        .says("the sampled part must be at most 1/1");
    crate::common::vmscope::nothing_is_left(&folder);
}

#[test]
fn a_recording_without_lifetimes_says_how_to_record_them() {
    let classes_alone = with(&mut heap(), 1000);
    let none = with(&mut Recording::of("embedded"), 1000);
    for folder in [classes_alone, none] {
        for command in ["gc", "lifetimes"] {
            in_folder(&folder, &[command])
                .code(2)
                .says("recording.vmscope has no lifetimes of objects")
                .says("--lifetimes=1/100");
        }
        let report = in_folder(&folder, &["report", "--full"]).code(0);
        let is_silent = !report.stdout.contains("Lifetimes of objects");
        report.check(is_silent, "nothing to report");
        let json = in_folder(&folder, &["report", "--json"]).code(0).json();
        assert!(json.get("lifetimes").is_none() && json.get("collector_costs").is_none());
    }
}

#[test]
fn a_run_that_is_too_short_says_how_many_collections_are_missing() {
    let mut recording = heap();
    recording
        .births((0..3).map(|object| birth(object, 10 * object)))
        .collection(1, "scavenge", 100, 200)
        .fates(Some(1), 200, &[(0, Fate::Died), (1, Fate::Survived)]);
    let folder = with(&mut recording, 1000);
    let needed = format!(
        "(at least {} needed)",
        vmscope_symbolizer::lifetimes::least_squares::LEAST_OBSERVATIONS
    );
    for arguments in [&["gc"][..], &["report", "--full"]] {
        in_folder(&folder, arguments)
            .code(0)
            .prints("scavenge: no model, 1 collection observed")
            .prints(&needed)
            .prints("Advice: none that the data support");
    }
    in_folder(&folder, &["lifetimes"])
        .code(0)
        .prints("3 objects recorded singly");
}

#[test]
fn objects_that_wait_for_finalization_are_told() {
    for (waiting, is_told) in [(1234.0, true), (0.0, false)] {
        let mut recording = scavenged();
        for (name, value) in [("waiting", waiting), ("waiting for", 2.5e9)] {
            recording.put(Record::Counter(Counter {
                process: PROCESS,
                time: TimeNs(300),
                section: "Finalization".to_owned(),
                name: name.to_owned(),
                unit: String::new(),
                meaning: CounterMeaning::Gauge,
                value,
            }));
        }
        let folder = with(&mut recording, 400_000_000);
        for command in ["gc", "lifetimes"] {
            let ran = in_folder(&folder, &[command]).code(0);
            let says = "1,234 objects wait for finalization at the end; the queue was never empty in the last 2.5 s";
            match is_told {
                true => drop(ran.prints(says)),
                false => {
                    let is_silent = !ran.stdout.contains("finalization");
                    ran.check(is_silent, "nothing waits");
                }
            }
        }
    }
}

#[test]
fn few_samples_say_how_many_are_needed() {
    for (number, is_few) in [(40, true), (500, false)] {
        let mut recording = heap();
        recording.births((0..number).map(|object| Birth {
            weight: 10.0,
            ..birth(object, 10 * object)
        }));
        let ran = in_folder(&with(&mut recording, 10_000), &["lifetimes"]).code(0);
        let says = "Only 40 objects were sampled: shares may be off by 15.50 points. 385 objects \
                    are needed for 5 points";
        match is_few {
            true => drop(ran.prints(says)),
            false => {
                let is_silent = !ran.stdout.contains("needed");
                ran.check(is_silent, "enough");
            }
        }
    }
}

#[test]
fn the_report_has_both_sections_and_json_the_same_documents() {
    let folder = with(&mut scavenged(), 400_000_000);
    let report = in_folder(&folder, &["report", "--full", "--width", "80"]).code(0);
    let report = report
        .prints("The collector's time, by site")
        .prints("Model: a scavenge takes 1.000 ms")
        .prints("Lifetimes of objects, by site")
        .prints("(vmscope lifetimes also shows:");
    let widest = report.stdout.lines().map(|line| line.chars().count()).max();
    report.check(widest <= Some(80), "the text fits");
    let json = in_folder(&folder, &["report", "--json"]).code(0).json();
    for (field, command) in [("collector_costs", "gc"), ("lifetimes", "lifetimes")] {
        let alone = in_folder(&folder, &[command, "--json"]).code(0).json();
        assert_eq!(json[field], alone, "{field}");
    }
}

#[test]
fn rows_that_do_not_fit_are_counted_together() {
    let mut recording = scavenged();
    let many = 4..504u64;
    for key in many.clone() {
        recording.put(Record::Class(Class {
            key: ClassKey(key),
            process: crate::recordings::PROCESS,
            name: format!("Many{key}"),
        }));
        recording.site(key, &[(9, u32::try_from(key).expect("small"))]);
    }
    recording.births(many.map(|key| Birth {
        class: ClassKey(key),
        site: Some(SiteKey(key)),
        ..birth(10_000 + key, 300_000_000 + key)
    }));
    let folder = with(&mut recording, 400_000_000);
    for (by, rows) in [("site", 502), ("class", 502)] {
        let others = format!("{} more", rows - 20);
        in_folder(&folder, &["gc", "--by", by])
            .code(0)
            .prints(&others);
        // Objects of all rows together are all objects.
        let csv = in_folder(&folder, &["lifetimes", "--by", by, "--csv"]).code(0);
        let table = csv.stdout.split("\n\n").next().unwrap_or_default();
        let numbers = table.lines().filter_map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            cells.get(1)?.parse::<u64>().ok()
        });
        let all: u64 = numbers.sum();
        csv.check(all == 40 * 10 + 60 + 500, &format!("{all} objects"));
    }
}

/// The last collection has begun, and the recording ends.
#[test]
fn a_vm_that_dies_in_a_collection_leaves_a_report() {
    let mut recording = scavenged();
    recording.put(Record::Collection(Box::new(Collection {
        key: CollectionKey(100),
        process: crate::recordings::PROCESS,
        time: TimeNs(399_000_000),
        kind: "scavenge".to_owned(),
        begin: Some(TimeNs(398_000_000)),
        ..Collection::default()
    })));
    recording.fates(Some(100), 399_000_000, &[(458, Fate::Survived)]);
    // In eight chunks.
    let records = recording.records().iter().cloned();
    let bytes = Recording::empty().bytes_and(records, 50_000_000);
    let folder = Folder::new();
    // The file may end anywhere, too.
    for cut in [0, 1, 100, bytes.len() / 3] {
        let rest = &bytes[..bytes.len() - cut];
        std::fs::write(folder.file("recording.vmscope"), rest).expect("a file");
        for arguments in [&["gc"][..], &["lifetimes"], &["report", "--full"]] {
            in_folder(&folder, arguments).code(0).prints("by site");
        }
    }
}

#[test]
fn a_vm_killed_at_any_moment_leaves_a_report() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    for samples in [300, 2000] {
        let name = format!("{samples}.vmscope");
        let file = folder.file(&name);
        let mut record = command(["record", "--lifetimes=1/10", "--output"]);
        record.arg(&file).arg("--");
        record.arg(env!("CARGO_BIN_EXE_vmscope"));
        record.args(["reference-vm", "dataframe", "--seconds", "60"]);
        let working = Working::start(record);
        await_samples(&file, samples);
        let vm = children_of(working.pid());
        let [vm] = vm[..] else { panic!("{vm:?}") };
        nix::sys::signal::kill(vm, Signal::SIGKILL).expect("it runs");
        working.end().code(137).prints("Collector");
        for arguments in [
            &["gc", &name][..],
            &["lifetimes", &name],
            &["report", &name, "--full"],
        ] {
            in_folder(&folder, arguments).code(0).prints("by site");
        }
    }
}

/// Child processes.
fn children_of(pid: u32) -> Vec<nix::unistd::Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let children = tasks.flat_map(|task| {
        let path = task.expect("a thread").path().join("children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        let pids: Vec<i32> = children
            .split(' ')
            .filter_map(|pid| pid.parse().ok())
            .collect();
        pids
    });
    children.map(nix::unistd::Pid::from_raw).collect()
}
