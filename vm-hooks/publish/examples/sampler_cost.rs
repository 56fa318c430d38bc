//! Cost of the sampler to its own process, and delivered part of the promised samples:
//! `cargo run --release -p vmscope-publish --example sampler_cost [PAIRS] [chains]`.
//!
//! Pairs of runs of the same work, with the sampler and without, in turns. It prints the difference
//! of the process's CPU times (all threads) in percent, with its 95 % half-width.
#![cfg_attr(loom, allow(unused, reason = "the tests with loom have the ring only"))]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints what it found"
)]

#[cfg(not(loom))]
fn main() {
    use std::hint::black_box;

    use vmscope_publish::event::ThreadRole;
    use vmscope_publish::reader::Attached;
    use vmscope_publish::sampler::SamplerOptions;
    use vmscope_publish::{Options, Publisher};

    /// CPU time in nanoseconds of all threads of this process.
    fn cpu() -> f64 {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let threads = threads.filter_map(|task| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("schedstat")).ok()?;
            stat.split(' ').next()?.parse::<f64>().ok()
        });
        threads.sum()
    }

    /// CPU time in nanoseconds of this thread.
    fn own_cpu() -> f64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        stat.split(' ').next().unwrap().parse().unwrap()
    }

    fn work() -> u64 {
        let mut value = 1_u64;
        for round in 0..200_000_000_u64 {
            value = black_box(value ^ round).wrapping_mul(3);
        }
        value
    }

    let mut arguments = std::env::args().skip(1);
    let pairs: u32 = arguments.next().map_or(10, |pairs| pairs.parse().unwrap());
    let options = SamplerOptions {
        chains: arguments.next().is_some(),
        ..SamplerOptions::default()
    };
    let publisher = Publisher::new(&Options::default()).unwrap();
    publisher
        .register_thread(ThreadRole::Mutator, "main")
        .unwrap();
    let attached = Attached::new(publisher.file().try_clone().unwrap(), None).unwrap();
    let (mut percents, mut sampled) = (Vec::new(), 0.0);
    for _ in 0..pairs {
        let before = cpu();
        black_box(work());
        let without = cpu() - before;
        let before = cpu();
        publisher.start_sampler(&options).unwrap();
        let own = own_cpu();
        black_box(work());
        // What its thread used is read while it runs: threads that ended are in no sum.
        let with = cpu() - before;
        sampled += own_cpu() - own;
        publisher.stop_sampler();
        percents.push((with / without - 1.0) * 100.0);
    }
    let count = f64::from(pairs);
    let mean = percents.iter().sum::<f64>() / count;
    let squares: f64 = percents.iter().map(|p| (p - mean).powi(2)).sum();
    let half_width = 1.96 * (squares / (count - 1.0) / count).sqrt();
    println!("cost: {mean:.2} % ± {half_width:.2} of the process's CPU time");
    let thread = attached.sampled_threads()[0];
    let promised = sampled / options.period.as_nanos() as f64;
    println!(
        "samples: {} of {promised:.0} promised by CPU time ({:.2} %)",
        thread.samples,
        thread.samples as f64 / promised * 100.0
    );
    println!("{thread:?}\n{:?}", publisher.sampler_status());
}

#[cfg(loom)]
fn main() {}
