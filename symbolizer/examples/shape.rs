//! Writes a recording of the shape of a real one, to measure the whole command with:
//! `cargo run -p vmscope-symbolizer --example shape -- node 785000 FILE`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a tool for measuring"
)]

#[path = "../tests/recordings/mod.rs"]
mod recordings;

use recordings::shapes;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, samples, path] = arguments.as_slice() else {
        eprintln!("give: native|still|jit|exact|node SAMPLES FILE");
        std::process::exit(2);
    };
    let samples: u64 = samples.parse().unwrap();
    let bytes = match kind.as_str() {
        "native" => shapes::native(samples),
        "still" => shapes::jit(samples, 2_000, false),
        "jit" => shapes::jit(samples, 100_000, true),
        "exact" => shapes::jit(samples, 100_000, false),
        _ => shapes::node(samples),
    };
    std::fs::write(path, bytes).unwrap();
}
