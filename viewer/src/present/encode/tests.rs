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
    assert!(picture.contains(">one<"), "{picture}");
    assert!(picture.contains("highest column: 4"), "{picture}");
}

/// Width, height, and the bytes of all rows of a PNG, each with its filter.
fn decoded(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let (mut at, mut kinds, mut rows) = (8, Vec::new(), Vec::new());
    while at < png.len() {
        let data = at + 8..at + 8 + number(at) as usize;
        let mut crc = flate2::Crc::new();
        crc.update(&png[at + 4..data.end]);
        assert_eq!(number(data.end), crc.sum());
        kinds.push(String::from_utf8_lossy(&png[at + 4..at + 8]).into_owned());
        if png[at + 4..].starts_with(b"IDAT") {
            let mut reader = flate2::read::ZlibDecoder::new(&png[data.clone()]);
            std::io::Read::read_to_end(&mut reader, &mut rows).unwrap();
        }
        at = data.end + 4;
    }
    assert_eq!(kinds, ["IHDR", "IDAT", "IEND"]);
    (number(16), number(20), rows)
}

#[test]
fn a_png_has_the_colours_of_the_svg() {
    let (width, height, rows) = decoded(&encode(&shown(), Format::Png).unwrap());
    assert_eq!((width, height), (1200, 720));
    assert_eq!(rows.len(), 720 * (1 + 3 * 1200));
    let pixel = |x: usize, y: usize| &rows[y * 3601 + 1 + 3 * x..][..3];
    // The first chart: series one, 2 of 4, below series two, in the right half; white in the left.
    assert_eq!(pixel(900, 270), [0x00, 0x9e, 0x73]);
    assert_eq!(pixel(900, 100), [0xe6, 0x9f, 0x00]);
    assert_eq!(pixel(300, 100), [255, 255, 255]);
    // The second one: its first column.
    assert_eq!(pixel(200, 360 + 270), [0x56, 0xb4, 0xe9]);
    // Its title is black.
    let title = (360 + 10..360 + 30).flat_map(|y| (40..110).map(move |x| (x, y)));
    let black = title.filter(|(x, y)| pixel(*x, *y) == [0, 0, 0]).count();
    assert!(black > 50, "{black}");
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
        unit: "bytes",
        collapsed: vec!["main;a 3".into(), "main;b 1".into()],
    };
    let shown = Document {
        title: String::new(),
        parts: vec![Part::Chart(flame)],
    };
    let picture = String::from_utf8(encode(&shown, Format::Svg).unwrap()).unwrap();
    assert!(picture.contains("main (4 bytes"), "{picture}");
    let says = encode(&shown, Format::Png).unwrap_err();
    assert!(says.contains("export SVG"), "{says}");
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

fn axis(labels: &[&str]) -> Axis {
    Axis::new("axis", labels.iter().map(|one| (*one).to_owned()))
}

fn alone(chart: Chart, format: Format) -> String {
    let shown = Document {
        title: String::new(),
        parts: vec![Part::Chart(chart)],
    };
    String::from_utf8(encode(&shown, format).unwrap()).unwrap()
}

#[test]
fn heat_maps_of_numbers_are_shades() {
    let heat = Chart::Heat {
        title: "<Heat>".into(),
        across: axis(&["0 s", "4 s"]),
        up: axis(&["low", "high"]),
        // Columns from the bottom: two rows make a line.
        cells: vec![
            vec![1000.0, 0.0, 0.0, 0.0],
            vec![0.0, 1.0, 0.0, 0.0],
            vec![0.0, 0.0, 0.0, f64::NAN],
            vec![0.0, 0.0, 5.0, 5.0],
        ],
        unit: "objects",
    };
    let text = alone(heat.clone(), Format::Text);
    let wanted = "\n\n<Heat>\n      axis (1 to 1,000 objects: .:-=+*#%@)\n\
                  high |   =\n low |@.\n      0 s4 s  axis\n";
    assert_eq!(text, wanted);
    let picture = alone(heat.clone(), Format::Svg);
    // The ground, five cells, the legend.
    assert_eq!(picture.matches("<rect").count(), 1 + 4 + 20, "{picture}");
    assert!(picture.contains("1,000 objects (logarithmic)"), "{picture}");
    // Least and greatest value have the scale's end colours.
    assert!(
        picture.contains("#fde725") && picture.contains("#440154"),
        "{picture}"
    );
    let json: serde_json::Value = serde_json::from_str(&alone(heat, Format::Json)).unwrap();
    assert_eq!(json["parts"][0]["chart"]["cells"][0][0], 1000.0);
}

#[test]
fn heat_maps_of_names_are_tables() {
    let heat = Chart::Heat {
        title: "Heat".into(),
        across: axis(&["A", "B"]),
        up: axis(&["first", "second"]),
        cells: vec![vec![1234.0, 0.0], vec![0.0, 2.0]],
        unit: "bytes",
    };
    let text = alone(heat.clone(), Format::Text);
    let wanted = "\n\nHeat (bytes)\naxis        A  B\nsecond         2\nfirst   1,234\n";
    assert_eq!(text, wanted);
    let picture = alone(heat, Format::Svg);
    assert!(picture.contains("first: A: 1,234 bytes"), "{picture}");
}

#[test]
fn curves_stay_in_the_picture() {
    let lines = Chart::Lines {
        title: "Curves".into(),
        across: axis(&["0", "1"]),
        up: axis(&["0 %", "100 %"]),
        series: vec![("one".into(), vec![(0.0, 1.0), (2.0, -1.0), (1.0, f64::NAN)])],
    };
    let picture = alone(lines.clone(), Format::Svg);
    assert!(
        picture.contains("points=\"70.0,40.0 1160.0,280.0\""),
        "{picture}"
    );
    // The curve, and the grid.
    assert_eq!(picture.matches("<polyline").count(), 1 + 2, "{picture}");
    assert!(alone(lines, Format::Text).contains("one          2   -1"));
}
