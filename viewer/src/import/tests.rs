//! A zone and samples of a Cog VM become a recording, and its report.
//! `BLESS=1 cargo test -p vmscope import` rewrites the goldens.

use super::ImportArgs;
use crate::constituents::of_cog;
use crate::constituents::tests::is_golden;
use crate::print::Printer;
use crate::report::{self, ReportOptions};
use clap::Parser;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use vmscope_records::Pid;

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
    super::run(&import.args)
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

/// The report as JSON.
fn json(folder: &Path) -> Value {
    serde_json::from_str(&report(folder, &["--json"])).unwrap()
}

fn samples_where(report: &Value, wanted: impl Fn(&Value) -> bool) -> u64 {
    let entries = report["entries"].as_array().unwrap().iter();
    let samples = entries
        .filter(|entry| wanted(entry))
        .map(|entry| entry["samples"].as_u64());
    samples.map(Option::unwrap).sum()
}

fn samples_in(report: &Value, region: &str) -> u64 {
    samples_where(report, |entry| entry["region"] == region)
}

fn samples_of(report: &Value, name: &str) -> u64 {
    samples_where(report, |entry| entry["name"] == name)
}

fn starts_with(entry: &Value, prefix: &str) -> bool {
    entry["name"].as_str().unwrap().starts_with(prefix)
}

const TOP: [(&str, u64); 4] = [
    ("Object>>at:", 773),
    ("Bench>>fib:", 677),
    ("Bench>>sieve:", 536),
    ("BlockClosure>>value:", 416),
];

#[test]
fn the_busy_vm_has_its_known_figures() {
    let folder = busy(true);
    let symbols = folder.path().join("symbols.tsv");
    let symbols = ["--symbols", symbols.to_str().unwrap(), "--hz", "1400"];
    import(folder.path(), &symbols).unwrap();
    let json = json(folder.path());
    let is_method = |entry: &Value| entry["name"].as_str().unwrap().contains(">>");
    let is_freed = |entry: &Value| starts_with(entry, "freed");
    let is_code = |entry: &Value| entry["region"] == "generated";
    let of_code = |wanted: &dyn Fn(&Value) -> bool| {
        samples_where(&json, |entry| is_code(entry) && wanted(entry))
    };
    assert_eq!(of_code(&is_method), 7040);
    assert_eq!(of_code(&is_freed), 1242);
    assert_eq!(of_code(&|entry| starts_with(entry, "ce")), 11);
    let in_program = ["vm", "interpreter", "gc", "compiler"];
    let of_program = in_program.map(|region| samples_in(&json, region));
    assert_eq!(of_program.iter().sum::<u64>(), 108, "{of_program:?}");
    assert!(
        of_program.iter().all(|samples| *samples > 0),
        "{of_program:?}"
    );
    assert_eq!(samples_in(&json, "kernel"), 50);
    assert_eq!(samples_where(&json, |_| true), 8462);
    assert_eq!(samples_of(&json, "freed area"), 1021);
    for (name, samples) in TOP {
        assert_eq!(samples_of(&json, name), samples, "{name}");
    }
    let text = report(folder.path(), &["--full", "--width=100"]);
    is_golden("import-busy-100.txt", &text);
}

/// Samples as words, and a zone as the primitive answers it: freed code counts for the code before it.
#[test]
fn words_and_the_primitives_answer_are_told_with_their_limits() {
    let folder = busy(false);
    let text = of_cog::file("busy.samples.tsv.zst");
    let text = String::from_utf8(text).unwrap();
    let pc = |line: &str| {
        let digits = line.rsplit_once("\t0x").unwrap().1;
        u64::from_str_radix(digits, 16).unwrap().to_le_bytes()
    };
    let words: Vec<u8> = text.lines().skip(1).flat_map(pc).collect();
    std::fs::write(folder.path().join("samples"), words).unwrap();
    import(folder.path(), &[]).unwrap();
    let json = json(folder.path());
    assert_eq!(samples_in(&json, "generated"), 8293);
    assert_eq!(samples_where(&json, |entry| starts_with(entry, "freed")), 0);
    let text = report(folder.path(), &["--full", "--width=1000"]);
    for limit in [
        "the samples have no times: they stand 1/1501 s apart in the order of the buffer",
        "the constituents omit freed code and blocks inside methods",
        "clock: wall-clock time",
        "pid unknown",
        "5.638 seconds; 1,501 samples/s",
    ] {
        assert!(text.contains(limit), "{limit}:\n{text}");
    }
}

/// A position-independent program names its functions where `--load-address` says.
#[test]
fn a_binary_names_native_code_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let path = program.to_str().unwrap();
    let maps = vmscope_process::read_maps(Pid(std::process::id())).unwrap();
    let own = maps
        .entries
        .iter()
        .find(|one| one.path() == Some(path.as_bytes()));
    let load = format!("{:x}", own.unwrap().start.0);
    let function: fn(&str) -> Vec<u8> = of_cog::file;
    let pc = function as usize;
    std::fs::write(folder.path().join("samples"), format!("{pc}\n{pc}\n16\n")).unwrap();
    let zone = "~CogCode~ | 4096\n~CCFree~ | 4096\n~CCEnd~ | 8192\n";
    std::fs::write(folder.path().join("zone.txt"), zone).unwrap();
    let error = import(folder.path(), &["--symbols", path]).unwrap_err();
    assert!(
        error.to_string().contains("is position-independent"),
        "{error}"
    );
    assert!(!folder.path().join("out.vmscope").exists());
    import(folder.path(), &["--symbols", path, "--load-address", &load]).unwrap();
    let json = json(folder.path());
    let named = samples_where(&json, |entry| {
        entry["name"].as_str().unwrap().contains("of_cog::file")
    });
    assert_eq!(named, 2, "{json}");
}
