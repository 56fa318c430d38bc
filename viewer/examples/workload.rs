//! Demo program for profiling: four threads that work for three seconds of CPU time each, in the
//! program, in inlined functions, in libraries and in the kernel.
//!
//! ```text
//! cargo build --profile profiling --bins --example workload
//! target/profiling/vmscope record -- target/profiling/examples/workload
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// How long each thread works, by the wall clock.
const TIME: Duration = Duration::from_secs(3);

fn main() -> std::io::Result<()> {
    let end = Instant::now() + TIME;
    let spawn = |name: &str, work: fn(Instant) -> u64| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(end))
    };
    let threads = [
        spawn("matrix", matrix)?,
        spawn("primes", primes)?,
        spawn("words", words)?,
        spawn("reader", reader)?,
    ];
    for thread in threads {
        // A panicked thread has said so itself.
        std::hint::black_box(thread.join().unwrap_or(0));
    }
    Ok(())
}

/// Multiplies matrices: one hot loop, into which `dot` is inlined.
fn matrix(end: Instant) -> u64 {
    const SIZE: usize = 128;
    let a: Vec<f64> = (0..SIZE * SIZE).map(|i| (i % 7) as f64).collect();
    let mut rounds = 0;
    while Instant::now() < end {
        let mut product = vec![0.0; SIZE * SIZE];
        for row in 0..SIZE {
            for column in 0..SIZE {
                product[row * SIZE + column] = dot::<SIZE>(&a, row, column);
            }
        }
        std::hint::black_box(&product);
        rounds += 1;
    }
    rounds
}

#[inline(always)]
fn dot<const SIZE: usize>(a: &[f64], row: usize, column: usize) -> f64 {
    (0..SIZE)
        .map(|k| a[row * SIZE + k] * a[k * SIZE + column])
        .sum()
}

/// Sieves primes.
fn primes(end: Instant) -> u64 {
    let mut found = 0;
    while Instant::now() < end {
        found += sieve(200_000);
    }
    found
}

#[inline(never)]
fn sieve(limit: usize) -> u64 {
    let mut composite = vec![false; limit];
    let mut primes = 0;
    for number in 2..limit {
        if !composite[number] {
            primes += 1;
            for multiple in (number * number..limit).step_by(number) {
                composite[multiple] = true;
            }
        }
    }
    primes
}

/// Counts words in a map: comparisons, allocations, copies.
fn words(end: Instant) -> u64 {
    let mut counted = 0;
    while Instant::now() < end {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for number in 0u32..20_000 {
            *counts.entry(word(number)).or_default() += 1;
        }
        counted += counts.len() as u64;
    }
    counted
}

#[inline(never)]
fn word(number: u32) -> String {
    format!("word-{}", number.wrapping_mul(2_654_435_761) % 5_000)
}

/// Reads zeros: time in the kernel.
fn reader(end: Instant) -> u64 {
    let mut buffer = [0; 4096];
    let mut bytes = 0;
    if let Ok(mut zeros) = File::open("/dev/zero") {
        while Instant::now() < end {
            bytes += zeros.read(&mut buffer).unwrap_or(0) as u64;
        }
    }
    bytes
}
