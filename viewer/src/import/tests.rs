//! A zone and samples of a Cog VM become a recording, and its report.
//! `BLESS=1 cargo test -p vmscope import` rewrites the goldens.

use super::ImportArgs;
use crate::constituents::of_cog;
use crate::print::Printer;
use crate::report::{self, ReportOptions};
use clap::Parser;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

#[derive(Debug, Parser)]
struct Import {
    #[command(flatten)]
    args: ImportArgs,
}

#[derive(Debug, Parser)]
struct Report {
    #[command(flatten)]
    options: ReportOptions,
}

/// Imports files of a folder into its `out.vmscope`.
fn import(folder: &Path, options: &[&str]) -> anyhow::Result<()> {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let files = [
        "--samples",
        &file("samples"),
        "--constituents",
        &file("zone.txt"),
        "--output",
        &file("out.vmscope"),
    ];
    let words = ["vmscope", "vmprofiler"]
        .iter()
        .chain(&files)
        .chain(options);
    let import = Import::try_parse_from(words).unwrap();
    super::run(&import.args, &mut Printer::new(&mut Vec::new()))
}

fn report(folder: &Path, options: &[&str]) -> String {
    let words = [&["report"], options].concat();
    let options = Report::try_parse_from(words).unwrap().options;
    let mut bytes = Vec::new();
    report::run(
        &folder.join("out.vmscope"),
        &options,
        &mut Printer::new(&mut bytes),
    )
    .unwrap();
    String::from_utf8(bytes).unwrap()
}

fn is_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == wanted, "{name} is not:\n{text}");
}

/// A folder with the busy VM's samples, zone and symbols.
fn busy(is_all: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    put("samples", &of_cog::file("busy.samples.tsv.zst"));
    put("symbols.tsv", &of_cog::file("busy.symbols.tsv.zst"));
    put(
        "zone.txt",
        of_cog::pairs_of("busy", true, is_all).as_bytes(),
    );
    let samples = File::open(folder.path().join("samples")).unwrap();
    // The report tells it as the recording's date.
    let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    samples.set_modified(at).unwrap();
    folder
}

fn samples_where(report: &Value, wanted: impl Fn(&Value) -> bool) -> u64 {
    let entries = report["entries"].as_array().unwrap().iter();
    let entries = entries.filter(|entry| wanted(entry));
    entries
        .map(|entry| entry["samples"].as_u64().unwrap())
        .sum()
}

#[test]
fn the_busy_vm_has_its_known_figures() {
    let folder = busy(true);
    let symbols = folder.path().join("symbols.tsv");
    let symbols = ["--symbols", symbols.to_str().unwrap(), "--hz", "1400"];
    import(folder.path(), &symbols).unwrap();
    let text = report(folder.path(), &["--full", "--width=100"]);
    println!("{text}");
    let json: Value = serde_json::from_str(&report(folder.path(), &["--json"])).unwrap();
    println!(
        "{}",
        serde_json::to_string_pretty(&json["entries"][0]).unwrap()
    );
    println!(
        "{}",
        serde_json::to_string_pretty(&json["entries"][3]).unwrap()
    );
    is_golden("import-busy-100.txt", &text);
}
