//! Long recordings of a large program.

use super::super::{Draw, Recording, code, stack_sample};
use super::{PERIOD, THREADS, thread_of, threads};
use std::iter::once;
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, Constituent, ConstituentKind, CpuMode, DurationNs, Exactness,
    PcMap, Record, Sample, ThreadCpu, ThreadKey, TimeNs,
};

const SIZE: u64 = 0x200;
const AT: u64 = 0x1000_0000;
const SECOND: u64 = 1_000_000_000;

/// Popularity of the constituents of [`view`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popularity {
    /// The n-th has 1/n of the first one's samples.
    Zipf,
    /// All equal, so nothing sums up.
    Uniform,
}

/// `codes` constituents, loaded within the first tenth of the recording, each with eight distinct
/// pcs in five ranges; 8 threads, CPU time read once per second.
pub fn view(samples: u64, codes: u64, popularity: Popularity) -> Vec<u8> {
    let mut draw = Draw(4);
    let program = Program::new(samples, codes);
    let samples = (0..samples).map(|index| {
        let time = index * PERIOD / THREADS;
        let loaded = program.loaded(time);
        let code = match popularity {
            Popularity::Zipf => popular(&mut draw, loaded),
            Popularity::Uniform => draw.below(loaded),
        };
        // Popular constituents are spread over all addresses.
        let code = if loaded == codes {
            code.wrapping_mul(7919) % codes
        } else {
            code
        };
        Record::Sample(Sample {
            time: TimeNs(time),
            pc: Avma(AT + code * SIZE + draw.below(8) * 0x3c),
            thread: thread_of(&mut draw),
            mode: CpuMode::User,
            detail: None,
        })
    });
    program.recording.bytes_and(samples, SECOND / 2)
}

/// The same program with callers: `stacks` distinct stacks of 10 to 40 functions, the n-th with 1/n
/// of the first one's samples. Most stacks share a prefix with another; one in eight is recursive.
/// A stack contains only constituents loaded before.
pub fn called(samples: u64, codes: u64, stacks: u64) -> Vec<u8> {
    let mut draw = Draw(5);
    let program = Program::new(samples, codes);
    let mut all: Vec<Vec<u64>> = Vec::new();
    for at in 0..stacks {
        let there = (at * codes / stacks).max(1);
        all.push(stack(&mut draw, &all, there));
    }
    let samples = (0..samples).map(|index| {
        let time = index * PERIOD / THREADS;
        let there = (program.loaded(time) * stacks / codes).max(1);
        let calls = &all[popular(&mut draw, there) as usize];
        let (leaf, callers) = calls.split_last().unwrap();
        let pc = leaf / SIZE * SIZE + draw.below(8) * 0x3c;
        // Return addresses follow their calls.
        let callers = callers.iter().rev().map(|call| call + 1);
        stack_sample(time, thread_of(&mut draw), once(pc).chain(callers))
    });
    program.recording.bytes_and(samples, SECOND / 2)
}

/// Calls, outermost first, in constituents below `there`.
fn stack(draw: &mut Draw, all: &[Vec<u64>], there: u64) -> Vec<u64> {
    let depth = 10 + draw.below(31) as usize;
    let mut calls = Vec::new();
    if !all.is_empty() {
        let other = &all[popular(draw, all.len() as u64) as usize];
        let kept = other.len().min(depth) - 1 - draw.below(6) as usize;
        calls.extend_from_slice(&other[..kept]);
    }
    let recursive = draw.below(8) == 0;
    while calls.len() < depth {
        let again = calls.len().checked_sub(3).filter(|_| recursive);
        calls.push(match again {
            Some(again) => calls[again],
            None => AT + popular(draw, there) * SIZE + draw.below(4) * 0x70,
        });
    }
    calls
}

/// A number below `below`; n is half as likely as n / 2.
fn popular(draw: &mut Draw, below: u64) -> u64 {
    ((below as f64).powf(draw.unit()) as u64).min(below) - 1
}

/// The program without samples.
struct Program {
    recording: Recording,
    codes: u64,
    /// Interval between two new constituents, in nanoseconds.
    every: u64,
}

impl Program {
    fn new(samples: u64, codes: u64) -> Self {
        let mut recording = Recording::of("Cog");
        threads(&mut recording);
        let entries: Vec<(u32, BytecodePc)> =
            (1..5).map(|n| (n * 0x60, BytecodePc(n * 7))).collect();
        let end = samples * PERIOD / THREADS;
        let every = (end / 10 / codes).max(1);
        for key in 0..codes {
            let start = AT + key * SIZE;
            let kind = match key % 16 {
                0 => ConstituentKind::Interpreter,
                1 => ConstituentKind::Stub,
                _ => ConstituentKind::Method,
            };
            recording.constituent(Constituent {
                kind,
                tier: ["baseline", "optimised"][key as usize / 16 % 2].into(),
                name: format!(
                    "org.example.module{}.Class{}.method{key}",
                    key % 40,
                    key / 20
                ),
                map: PcMap::Boundary {
                    rule: BoundaryRule::AfterInstruction,
                    exactness: Exactness::Exact,
                    entries: entries.clone(),
                },
                ..code(key, key * every, start, start + SIZE)
            });
        }
        for second in 1..=end / SECOND {
            for key in 1..=THREADS {
                let cpu = DurationNs(second * SECOND);
                recording.put(Record::ThreadCpu(ThreadCpu {
                    key: ThreadKey(u32::try_from(key).unwrap()),
                    time: TimeNs(second * SECOND),
                    cpu,
                    cpu_user: Some(cpu),
                }));
            }
        }
        recording.end(end);
        Program {
            recording,
            codes,
            every,
        }
    }

    /// Number of loaded constituents at a time.
    fn loaded(&self, time: u64) -> u64 {
        (time / self.every + 1).min(self.codes)
    }
}
