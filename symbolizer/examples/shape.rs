//! Writes a recording of the shape of a real one, to measure the whole command with:
//! `cargo run -p vmscope-symbolizer --example shape -- node 785000 FILE`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a tool for measuring"
)]

#[path = "../tests/recordings/mod.rs"]
mod recordings;

use recordings::shapes::{self, Churn, Popularity};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, samples, path] = arguments.as_slice() else {
        eprintln!("give: native|still|apart|jit|exact|zipf|uniform|node SAMPLES FILE");
        std::process::exit(2);
    };
    let samples: u64 = samples.parse().unwrap();
    let bytes = match kind.as_str() {
        "native" => shapes::native(samples),
        "still" => shapes::jit(samples, 100_000, Churn::Still),
        "apart" => shapes::jit(samples, 100_000, Churn::Apart),
        "jit" => shapes::jit(samples, 100_000, Churn::Polled),
        "exact" => shapes::jit(samples, 100_000, Churn::Exact),
        "zipf" => shapes::view(samples, 100_000, Popularity::Zipf),
        "uniform" => shapes::view(samples, 100_000, Popularity::Uniform),
        _ => shapes::node(samples),
    };
    std::fs::write(path, bytes).unwrap();
}
