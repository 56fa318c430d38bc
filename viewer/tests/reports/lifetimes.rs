//! `vmscope lifetimes` and `vmscope gc` of a handmade recording.

use crate::golden_file::{golden_of, golden_text, printed};
use crate::recordings::lifetimes::{birth, heap};
use crate::recordings::{PROCESS, Recording};
use std::process::Command;
use vmscope_records::{
    Birth, ClassKey, Collection, CollectionKey, CollectionScope, Fate, Record, SiteKey, SpaceUse,
    TimeNs,
};

const MS: u64 = 1_000_000;

fn collection(key: u64, kind: &str, cause: &str, begin_ms: u64, length_us: u64) -> Collection {
    let begin = TimeNs(begin_ms * MS);
    let end = TimeNs(begin.0 + length_us * 1000);
    Collection {
        key: CollectionKey(key),
        process: PROCESS,
        time: end,
        kind: kind.into(),
        cause: cause.into(),
        begin: Some(begin),
        end: Some(end),
        scope: CollectionScope::Whole,
        spaces: vec![SpaceUse {
            name: "eden".into(),
            before: Some(4096),
            after: Some(128),
            capacity: Some(8192),
        }],
        survived_bytes: Some(128 * key),
        tenured_bytes: Some(64),
        ..Collection::default()
    }
}

/// A run of one second. Ten scavenges, one every 100 ms from 50 ms on, and full collections at 420 and
/// 820 ms. An object every 10 ms: classes 1 and 2 in turn, every tenth of class 3. Objects of class 1
/// die in the next scavenge, of class 2 in the full collection after their tenuring, of class 3 never.
/// Objects of class 3 hold seven of eight objects of class 2, objects of class 1 hold the others.
/// At 500 ms an object is born that a finalization queue served 5 ms after the scavenge.
fn recording() -> Recording {
    let mut recording = heap();
    recording
        .method(1, "Parser", "next")
        .method(2, "Table", "add: x;")
        .method(9, "Loader", "run");
    let scavenge = |number: u64| 50 + 100 * number;
    for number in 0..10 {
        let cause = if number < 8 { "eden is full" } else { "asked" };
        let length = 100 + 50 * number;
        recording.put(Record::Collection(Box::new(collection(
            number + 1,
            "scavenge",
            cause,
            scavenge(number),
            length,
        ))));
    }
    for (key, at) in [(11, 420), (12, 820)] {
        let full = collection(key, "full", "old space grew", at, 3000);
        recording.put(Record::Collection(Box::new(full)));
    }
    let end = |number: u64| scavenge(number) * MS + (100 + 50 * number) * 1000;
    for object in 0..100 {
        let time = object * 10 * MS + 1;
        let class = if object % 10 == 9 { 3 } else { 1 + object % 2 };
        recording.births([Birth {
            class: ClassKey(class),
            site: Some(SiteKey(class)),
            bytes: 100 * class,
            weight: 4.0,
            allocated_bytes: Some(object * 1000),
            ..birth(object, time)
        }]);
        let next = (0..10).find(|number| scavenge(*number) * MS > time);
        let Some(next) = next else { continue };
        let fate = if class == 1 {
            Fate::Died
        } else {
            Fate::Tenured
        };
        let holder = (class == 2).then_some(if object % 20 == 1 { 1 } else { 3 });
        recording.held(Some(next + 1), end(next), &[(object, fate, holder)]);
        for (key, at) in [(11, 423), (12, 823)] {
            let is_seen = scavenge(next) < at && class > 1;
            let was_seen = scavenge(next) < 423 && class == 2 && key == 12;
            let fate = if class == 2 {
                Fate::Died
            } else {
                Fate::Survived
            };
            if is_seen && !was_seen {
                recording.fates(Some(key), at * MS, &[(object, fate)]);
            }
        }
    }
    recording
        .births([Birth {
            allocated_bytes: Some(50_500),
            ..birth(1000, 500 * MS)
        }])
        .fates(None, end(5) + 5 * MS, &[(1000, Fate::Died)])
        .end(1000 * MS);
    recording
}

#[test]
fn lifetimes_are_tables_and_heat_maps() {
    let file = recording().bytes();
    golden_of("lifetimes", "lifetimes.txt", &file, &["--by", "class"]);
    let units = ["share", "bytes", "scavenges", "full-collections"];
    let tables = units.map(|unit| {
        let text = printed("lifetimes", &file, &["--measure", unit]);
        let (_, rest) = text.split_once("Objects by ").expect("the groups");
        let (_, rest) = rest.split_once("\nObjects by ").expect("heat map");
        let (_, rest) = rest.split_once("\nObjects by ").expect("lifetimes");
        format!("{}\n", rest.split("\n\n").next().unwrap_or_default())
    });
    golden_text("lifetimes-units.txt", &tables.join("\n"));
}

#[test]
fn charts_hold_what_the_tables_do() {
    let text = printed("lifetimes", &recording().bytes(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let charts: Vec<_> = json["parts"].as_array().expect("parts").iter().collect();
    let charts = charts.iter().map(|part| &part["chart"]);
    let charts: Vec<_> = charts.filter(|chart| !chart.is_null()).collect();
    let with = |title: &str| {
        let is_it = |chart: &&&serde_json::Value| {
            chart["title"]
                .as_str()
                .is_some_and(|one| one.starts_with(title))
        };
        let found: Vec<_> = charts.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{title}: {text}");
        *found[0]
    };
    let sum = |values: &serde_json::Value| -> f64 {
        let values = values.as_array().expect("numbers").iter();
        values.map(|value| value.as_f64().expect("a number")).sum()
    };
    // 100 objects with weight 4, and one.
    for title in [
        "Objects by lifetime in time",
        "Objects by lifetime in bytes",
        "Objects by survived scavenges",
        "Objects by survived full",
    ] {
        let series = with(title)["series"].as_array().expect("series").clone();
        let all: f64 = series.iter().map(|one| sum(&one["values"])).sum();
        assert_eq!(all, 401.0, "{title}");
    }
    let heat = with("Objects by birth and lifetime");
    let columns = heat["cells"].as_array().expect("columns");
    assert_eq!(columns.iter().map(sum).sum::<f64>(), 401.0);
    let sites = with("Bytes by site and class");
    let columns = sites["cells"].as_array().expect("columns");
    // 50 objects of class 1 with 100 bytes, 40 of class 2 with 200, 10 of class 3 with 300; times 4.
    let bytes: Vec<f64> = columns.iter().map(sum).collect();
    let labels = sites["across"]["labels"].as_array().expect("labels");
    assert_eq!(labels.len(), 3);
    let classes = [labels[0].as_str(), labels[1].as_str(), labels[2].as_str()];
    assert_eq!(classes, [Some("C2"), Some("C1"), Some("C3")]);
    assert_eq!(bytes, [32_000.0, 20_016.0, 12_000.0]);
    let curves = with("Survival");
    for curve in curves["series"].as_array().expect("series") {
        let points = curve["points"].as_array().expect("points");
        let falls = points
            .windows(2)
            .all(|two| two[0][1].as_f64() >= two[1][1].as_f64());
        assert!(falls && points.len() > 1, "{curve}");
    }
    let flame = with("Allocated bytes by callers");
    let stacks = flame["collapsed"].as_array().expect("stacks");
    let stacks: Vec<&str> = stacks.iter().filter_map(|line| line.as_str()).collect();
    let wanted = [
        "Parser.next@20 32000",
        "Loader.run;Parser.next@10 20016",
        "Loader.run;Parser.next;Table.add: x,@10 12000",
    ];
    assert_eq!(stacks, wanted);
}

#[test]
fn csv_has_each_object() {
    let file = recording().bytes();
    let text = printed("lifetimes", &file, &["--csv"]);
    let (_, objects) = text.split_once("\nclass,site,size,").expect("objects");
    assert_eq!(objects.lines().count(), 1 + 101, "{text}");
    let first = objects.lines().nth(1).expect("an object");
    let cells =
        "C1,Parser.next@10,100,4.000,0.000000001,0,0.0501,0.050099999,5208,0,0,,,Loader.run@5";
    assert_eq!(first, cells);
    let second = objects.lines().nth(2).expect("an object");
    assert!(second.ends_with(",0.0501,C1,"), "{second}");
    let text = printed("lifetimes", &file, &["--csv", "--class", "C3"]);
    assert_eq!(text.matches("C3,Table.add: x;@10,").count(), 10, "{text}");
    let text = printed("lifetimes", &file, &["--objects", "3"]);
    let (_, listed) = text.split_once("Single objects").expect("the list");
    assert_eq!(listed.lines().count(), 1 + 1 + 3, "{text}");
}

#[test]
fn holders_have_rows_in_both_documents() {
    let file = recording().bytes();
    for command in ["gc", "lifetimes"] {
        let text = printed(command, &file, &["--by", "class", "--csv"]);
        let (_, table) = text.split_once("class,held by,").expect("the table");
        let rows: Vec<&str> = table
            .split("\n\n")
            .next()
            .unwrap_or_default()
            .lines()
            .collect();
        // Of the 40 objects of 200 bytes, each for 4, the last two survived no scavenge.
        assert_eq!(rows.len(), 1 + 3, "{text}");
        for (row, (start, end)) in rows[1..].iter().zip([
            ("C2,C3,0.868", ",26400"),
            ("C2,C1,0.131", ",4000"),
            ("C3,\"(a root, or unknown)\",1,0,", ",22800"),
        ]) {
            assert!(row.starts_with(start) && row.ends_with(end), "{row}");
        }
    }
}

#[test]
fn calls_lead_to_allocations() {
    let file = recording().bytes();
    let part = |arguments: &[&str]| {
        let text = printed("lifetimes", &file, arguments);
        let from = text.find(" from Loader.run to ").map_or_else(
            || text.find("Calls that allocate"),
            |at| text[..at].rfind('\n').map(|line| line + 1),
        );
        text[from.expect("a call graph")..].to_owned()
    };
    let texts = [
        part(&[]),
        part(&["--class", "C1"]),
        part(&["--from", "next"]),
        part(&["--from", "Loader.run", "--to", "add:"]),
    ];
    golden_text("lifetimes-callers.txt", &texts.join("\n"));
    for (arguments, says) in [
        (
            ["--from", "nosuch"],
            "no method on the way to an allocation is named nosuch",
        ),
        (["--from", "e"], "`e` matches 3 methods; be more specific"),
        (["--class", "C"], "`C` matches 3 classes; be more specific"),
        (["--class", "D"], "no class is named D"),
    ] {
        assert!(refused(&file, &arguments).contains(says), "{arguments:?}");
    }
    let mut alone = heap();
    let objects = (0..9).map(|n| Birth {
        site: Some(SiteKey(2)),
        ..birth(n, n)
    });
    alone.births(objects).end(100);
    // Site 2 has no callers, unlike the other sites.
    let mut without = Recording::of("embedded");
    for record in alone.records() {
        if !matches!(record, Record::AllocationSite(site) if site.frames.len() > 1) {
            without.put(record.clone());
        }
    }
    let file = without.bytes();
    let text = printed("lifetimes", &file, &[]);
    assert!(text.contains("Call graph: no callers"), "{text}");
    let says = refused(&file, &["--from", "next"]);
    assert!(
        says.contains("record with --lifetimes=1/100 --lifetime-callers"),
        "{says}"
    );
}

/// What vmscope says of wrong arguments.
fn refused(file: &[u8], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("x.vmscope"), file).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_vmscope"))
        .args(["lifetimes", "x.vmscope"])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .expect("vmscope");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn collections_have_pauses_causes_and_delays() {
    let file = recording().bytes();
    let text = printed("gc", &file, &[]);
    let at = text
        .find("Durations of collections")
        .expect("the durations");
    golden_text("gc-activity.txt", &text[at..]);
    let csv = printed("gc", &file, &["--csv"]);
    assert!(csv.matches("\nscavenge,").count() >= 10, "{csv}");
    let json: serde_json::Value =
        serde_json::from_str(&printed("gc", &file, &["--json"])).expect("JSON");
    let charts = json["parts"].as_array().expect("parts").iter();
    let charts: Vec<_> = charts.map(|part| &part["chart"]["series"]).collect();
    let sums = charts
        .iter()
        .filter(|series| !series.is_null())
        .map(|series| {
            [0, 1].map(|at: usize| -> f64 {
                let values = series[at]["values"].as_array().expect("values").iter();
                values.map(|value| value.as_f64().expect("a number")).sum()
            })
        });
    let sums: Vec<[f64; 2]> = sums.collect();
    // 100 + 150 + … + 550 µs, and twice 3 ms; ten and two collections.
    let [[scavenging, full], numbers] = sums[..] else {
        panic!("{sums:?}");
    };
    assert!(
        (scavenging - 3.25).abs() < 1e-9 && (full - 6.0).abs() < 1e-9,
        "{sums:?}"
    );
    assert_eq!(numbers, [10.0, 2.0]);
}

#[test]
fn pages_hold_every_chart() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("x.vmscope"), recording().bytes()).expect("a file");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_vmscope"))
            .args(arguments)
            .current_dir(folder.path())
            .output();
        assert!(output.expect("vmscope").status.success());
    };
    run(&["lifetimes", "x.vmscope", "--html", "page.html"]);
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
    // An inner frame holds the flame graph.
    assert_eq!(page.matches("<svg").count(), 10, "{page}");
    assert_eq!(page.matches("<iframe").count(), 1);
    assert!(!page.contains("<script"));
    run(&["lifetimes", "x.vmscope", "--svg", "charts.svg"]);
    let charts = std::fs::read_to_string(folder.path().join("charts.svg")).expect("charts");
    assert_eq!(charts.matches("<svg").count(), 1);
    assert!(charts.contains("Density of lifetimes"));
    run(&["gc", "x.vmscope", "--png", "charts.png"]);
    let picture = std::fs::read(folder.path().join("charts.png")).expect("a picture");
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
}
