//! How many bytes a sample takes in a recording, headers included, and how fast
//! samples are read back: `cargo run --release -p vmscope-records --example
//! bytes_per_sample`.
//!
//! The typical samples are those of threads that spin in a few hot functions, at
//! vmscope's period with ±3 µs of jitter, flushed every 0.3 s as a live recording
//! is. The worst ones have nothing in common: uniformly random times, threads and
//! addresses.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a measuring program: its output is its purpose, a failure ends it"
)]

use std::io::Cursor;
use std::time::Instant;
use vmscope_records::recording::{Item, Reader, Writer};
use vmscope_records::{Avma, Content, CpuMode, Record, Sample, ThreadKey, TimeNs};

const PERIOD_NS: u64 = 713_927;
const JITTER_NS: u64 = 3_000;
const FLUSH_NS: u64 = 300_000_000;

/// Splitmix64: good enough for jitter, the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// `seconds` of `threads` threads. Each thread spins in five functions of 40 instructions, first
/// instructions hotter than last; `kernel` of 100 samples are in one of 200 kernel
/// places.
fn typical(threads: u32, seconds: u64, kernel: u64) -> Vec<Sample> {
    let mut random = Random(u64::from(threads));
    let mut samples = Vec::new();
    for thread in 0..threads {
        let phase = random.below(PERIOD_NS);
        for tick in 0..seconds * 1_000_000_000 / PERIOD_NS {
            let time = 1_000_000_000_000 + phase + tick * PERIOD_NS + random.below(2 * JITTER_NS);
            if random.below(100) < kernel {
                let pc = 0xffff_ffff_8100_0000 + random.below(200) * 0x1234;
                samples.push(sample(time, thread + 1, pc, CpuMode::Kernel));
                continue;
            }
            let function = random.below(5).min(random.below(5));
            let pc = 0x5555_5556_0000 + function * 0x2a0 + random.below(40) * 4;
            samples.push(sample(time, thread + 1, pc, CpuMode::User));
        }
    }
    samples.sort_by_key(|sample| sample.time);
    samples
}

/// As many samples with nothing in common.
fn random(count: u64, address_bits: u32) -> Vec<Sample> {
    let mut random = Random(7);
    let mut samples: Vec<Sample> = (0..count)
        .map(|_| {
            let time = random.below(count * PERIOD_NS);
            let thread = random.below(1 << 20) as u32;
            let pc = random.next() >> (64 - address_bits);
            let mode = match random.below(2) {
                0 => CpuMode::User,
                _ => CpuMode::Kernel,
            };
            sample(time, thread, pc, mode)
        })
        .collect();
    samples.sort_by_key(|sample| sample.time);
    samples
}

fn sample(time: u64, thread: u32, pc: u64, mode: CpuMode) -> Sample {
    Sample {
        time: TimeNs(time),
        thread: ThreadKey(thread),
        pc: Avma(pc),
        mode,
        detail: None,
    }
}

fn measure(what: &str, samples: &[Sample]) {
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let mut flush_at = samples[0].time.0 + FLUSH_NS;
    for sample in samples {
        if sample.time.0 >= flush_at {
            writer.flush().unwrap();
            flush_at += FLUSH_NS;
        }
        writer.put(Record::Sample(sample.clone())).unwrap();
    }
    writer.flush().unwrap();
    let written = writer.written();
    let (bytes, _) = writer
        .end(vmscope_records::RecordingEnd {
            time: TimeNs(0),
            reason: vmscope_records::EndReason::Other,
            detail: String::new(),
            samples: 0,
            recorder_cpu_ns: 0,
        })
        .unwrap();
    let began = Instant::now();
    let mut read = 0;
    let mut reader = Reader::open(Cursor::new(bytes)).unwrap();
    while let Some(chunk) = reader.next_chunk(Content::SAMPLES).unwrap() {
        for item in chunk.items() {
            if let Item::Samples(samples) = item {
                read += samples.len();
            }
        }
    }
    assert_eq!(read, samples.len());
    println!(
        "{what:34} {:6.2} bytes/sample, read at {:5.1} M samples/s",
        written.sample_bytes as f64 / written.samples as f64,
        read as f64 / began.elapsed().as_secs_f64() / 1e6,
    );
}

fn main() {
    for threads in [1, 4, 32] {
        measure(
            &format!("typical, {threads} threads"),
            &typical(threads, 600 / u64::from(threads), 0),
        );
    }
    measure("typical, 4 threads, 10 % kernel", &typical(4, 150, 10));
    measure("random, 47-bit addresses", &random(1 << 20, 47));
    measure("random, 64-bit addresses", &random(1 << 20, 64));
}
