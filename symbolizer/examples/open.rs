//! Opens a recording as a view does, and says what that took: time and memory.
//! `cargo run --release -p vmscope-symbolizer --example open -- FILE`, of a file that the
//! example `shape` wrote.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for measuring"
)]

use std::fs::File;
use std::time::Instant;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::{Filter, Summary, Trace, profile_of};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let begin = Instant::now();
    let trace = Trace::read(&mut Reader::open(File::open(path).unwrap()).unwrap()).unwrap();
    println!("trace: {:?}", begin.elapsed());
    let profile = profile_of(trace, Vec::new(), true);
    println!("profile: {:?}", begin.elapsed());
    let summary = Summary::of(&profile, &Filter::default());
    println!("first summary: {:?}", begin.elapsed());
    let (slices, cells) = profile.slices.size();
    println!("{} samples, {} sites", summary.total, profile.sites.len());
    println!("{slices} slices, {cells} cells");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    for line in status
        .lines()
        .filter(|l| l.starts_with("VmHWM") || l.starts_with("VmRSS"))
    {
        println!("{line}");
    }
}
