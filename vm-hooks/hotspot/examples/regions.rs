//! Counts function names of `libjvm.so` (standard input, one per line) by part of the VM; `none`
//! prints names without a part.
#![allow(clippy::print_stdout, reason = "it is what it is for")]
use std::collections::BTreeMap;
use std::io::BufRead as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let none = std::env::args().nth(1).is_some_and(|word| word == "none");
    let rules = vmscope_hotspot::regions::rules();
    let mut counts = BTreeMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some(rule) = rules.iter().find(|rule| rule.apply(&line).is_some()) else {
            continue;
        };
        if none && rule.part.is_empty() {
            println!("{line}");
        }
        *counts
            .entry((rule.region.name(), rule.part.clone()))
            .or_insert(0_u64) += 1;
    }
    let all: u64 = counts.values().sum();
    for ((region, part), count) in counts.iter().filter(|_| !none) {
        let share = *count * 1000 / all.max(1);
        println!(
            "{count:7} {:3}.{} % {region} {part}",
            share / 10,
            share % 10
        );
    }
    Ok(())
}
