//! The same view in every format.

use super::Format;
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use vmscope_symbolizer::Stop;

/// All of it, without being stopped.
fn encode(shown: &Document, format: Format) -> Result<Vec<u8>, String> {
    super::encode(shown, format, &Stop::new()).expect("nobody stops it")
}

fn shown() -> Document {
    let mut table = Table::new("Entries", &["name", ">samples", ">share", ">time"]);
    table.rows = vec![
        vec![
            Value::Text("a,\"b\"".into()),
            Value::Count(1234),
            Value::Share(0.5),
            Value::Seconds(1.25),
        ],
        vec![
            Value::Text("=1+\u{1b}[2J<b>".into()),
            Value::Empty,
            Value::Empty,
            Value::Bytes(7),
        ],
    ];
    let axis = Axis {
        name: "s".into(),
        labels: vec!["0".into(), "5".into(), "10".into()],
    };
    let series = vec![
        ("one".to_owned(), vec![1.0, 2.0]),
        ("two".to_owned(), vec![0.0, 2.0]),
    ];
    let stacked = Chart::Stacked {
        title: "Activity".into(),
        axis: axis.clone(),
        series,
    };
    let histogram = Chart::Histogram {
        title: "<Pauses>".into(),
        axis,
        columns: vec![3.0, 0.0, 1.0],
        line: vec![0.75, 0.75, 1.0],
    };
    Document {
        title: "Everything".into(),
        parts: vec![
            Part::Text(vec!["a line".into()]),
            Part::Table(table),
            Part::Chart(stacked),
            Part::Chart(histogram),
        ],
    }
}

fn text(format: Format) -> String {
    String::from_utf8(encode(&shown(), format).unwrap()).unwrap()
}

#[test]
fn text_is_what_can_be_read() {
    let text = text(Format::Text);
    assert!(text.starts_with("Everything\n\na line\n"), "{text}");
    let heads = text.lines().find(|line| line.starts_with("name")).unwrap();
    let row = text.lines().find(|line| line.contains("1,234")).unwrap();
    assert_eq!(
        heads.find("samples").unwrap() + 7,
        row.find("1,234").unwrap() + 5,
        "{text}"
    );
    assert!(text.contains("=1+\\u{1b}[2J<b>"), "{text}");
    assert!(text.contains("Activity"), "{text}");
}

#[test]
fn csv_has_whole_numbers_and_no_formulas() {
    let expected =
        "name,samples,share,time\n\"a,\"\"b\"\"\",1234,0.5,1.25\n'=1+\\u{1b}[2J<b>,,,7\n";
    assert_eq!(text(Format::Csv), expected);
}

#[test]
fn json_has_everything() {
    let value: serde_json::Value = serde_json::from_str(&text(Format::Json)).unwrap();
    assert_eq!(value["parts"][1]["table"]["rows"][0][1], 1234);
    assert_eq!(
        value["parts"][1]["table"]["rows"][1][1],
        serde_json::Value::Null
    );
    assert_eq!(value["parts"][2]["chart"]["series"][1]["values"][1], 2.0);
    assert_eq!(value["parts"][3]["chart"]["kind"], "histogram");
}

#[test]
fn pictures_are_xml_with_every_column_and_name() {
    let picture = text(Format::Svg);
    assert_eq!(picture.matches("<rect").count(), 1 + 3 + 2, "{picture}");
    assert_eq!(picture.matches("<polyline").count(), 1);
    assert!(picture.contains("&lt;Pauses&gt;"), "{picture}");
    assert!(picture.contains("\none\n"), "{picture}");
}

#[test]
fn what_is_not_there_is_said() {
    let nothing = Document::default();
    assert!(
        encode(&nothing, Format::Csv)
            .unwrap_err()
            .contains("no table")
    );
    assert!(
        encode(&nothing, Format::Svg)
            .unwrap_err()
            .contains("no chart")
    );
}

#[test]
fn flame_graphs_are_pictures_too() {
    let flame = Chart::Flame {
        title: "Stacks".into(),
        collapsed: vec!["main;a 3".into(), "main;b 1".into()],
    };
    let shown = Document {
        title: String::new(),
        parts: vec![Part::Chart(flame)],
    };
    let picture = String::from_utf8(encode(&shown, Format::Svg).unwrap()).unwrap();
    assert!(picture.contains("main (4 samples"), "{picture}");
}

#[test]
fn a_legend_stays_in_the_picture() {
    let names = (0..60).map(|n| format!("a series with a rather long name, {n}"));
    let series = names.map(|name| (name, vec![1.0])).collect();
    let chart = Chart::Stacked {
        title: String::new(),
        axis: Axis {
            name: String::new(),
            labels: Vec::new(),
        },
        series,
    };
    let shown = Document {
        title: String::new(),
        parts: vec![Part::Chart(chart)],
    };
    let picture = String::from_utf8(encode(&shown, Format::Svg).unwrap()).unwrap();
    assert!(!picture.contains("x=\"-"), "{picture}");
    let drawn = picture.matches("a series").count();
    assert!(drawn > 4, "{picture}");
    assert!(
        picture.contains(&format!("and {} more", 60 - drawn)),
        "{picture}"
    );
}

#[test]
fn long_tables_can_be_stopped_and_tell_how_far_they_are() {
    let mut table = Table::new("", &["number"]);
    table.rows = (0..10_000).map(|n| vec![Value::Count(n)]).collect();
    let shown = Document {
        title: String::new(),
        parts: vec![Part::Table(table)],
    };
    for format in [Format::Text, Format::Csv, Format::Json] {
        let stop = Stop::new();
        assert!(super::encode(&shown, format, &stop).is_some());
        assert!(stop.told().0 >= 10_000, "{format:?}: {:?}", stop.told());
        let stopped = Stop::new();
        stopped.stop();
        assert!(
            super::encode(&shown, format, &stopped).is_none(),
            "{format:?}"
        );
    }
}
