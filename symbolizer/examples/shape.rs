//! Writes a recording of the shape of a real one, to measure the whole command with:
//! `cargo run -p vmscope-symbolizer --example shape -- node 785000 FILE`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a tool for measuring"
)]

#[path = "../tests/recordings/mod.rs"]
mod recordings;

use recordings::shapes::long::{self, Popularity};
use recordings::shapes::{self, Churn};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, samples, path] = arguments.as_slice() else {
        eprintln!("give: native|still|apart|jit|exact|zipf|uniform|called|node SAMPLES FILE");
        std::process::exit(2);
    };
    let samples: u64 = samples.parse().unwrap();
    let bytes = match kind.as_str() {
        "native" => shapes::native(samples),
        "still" => shapes::jit(samples, 100_000, Churn::Still),
        "apart" => shapes::jit(samples, 100_000, Churn::Apart),
        "jit" => shapes::jit(samples, 100_000, Churn::Polled),
        "exact" => shapes::jit(samples, 100_000, Churn::Exact),
        "zipf" => long::view(samples, 100_000, Popularity::Zipf),
        "uniform" => long::view(samples, 100_000, Popularity::Uniform),
        "called" => long::called(samples, 100_000, 200_000),
        _ => shapes::node(samples),
    };
    std::fs::write(path, bytes).unwrap();
}
