//! Samples in columns: a batch has all times, then all threads, then all pcs, which improves
//! compression.

use super::codes::Code;
use super::{Wire, WireError, budget, messages as m};
use crate::{
    Avma, CallChain, ChainEnd, CpuMode, Registers, Sample, SampleDetail, ThreadKey, TimeNs,
};
use prost::Message;

/// Maximum number of samples per batch that a reader accepts and allocates. The writer's batches
/// are far smaller.
const MAX_BATCH_SAMPLES: usize = 1 << 16;

/// Appends the message for `samples` to `out`.
pub(crate) fn encode_samples(samples: &[Sample], out: &mut Vec<u8>) {
    let mut batch = m::SampleBatch {
        first_time: samples.first().map_or(0, |sample| sample.time.0),
        time_deltas: Vec::with_capacity(samples.len()),
        threads: Vec::with_capacity(samples.len()),
        pc_deltas: Vec::with_capacity(samples.len()),
        modes: Vec::new(),
        details: Vec::new(),
    };
    if samples.iter().any(|sample| sample.mode != CpuMode::User) {
        batch.modes = samples
            .iter()
            .map(|sample| u8::try_from(sample.mode.code()).unwrap_or(u8::MAX))
            .collect();
    }
    let mut time = batch.first_time;
    let mut pc = 0;
    for (index, sample) in samples.iter().enumerate() {
        batch.time_deltas.push(delta(&mut time, sample.time.0));
        batch.threads.push(sample.thread.0);
        batch.pc_deltas.push(delta(&mut pc, sample.pc.0));
        if let Some(detail) = &sample.detail {
            batch.details.push(detail_message(index, detail));
        }
    }
    // Encoding into a growing Vec can't fail.
    let _ = batch.encode(out);
}

/// Decodes a batch message, whose columns must have equal lengths. Also returns the approximate
/// memory of the samples in bytes.
pub(crate) fn decode_samples(bytes: &[u8]) -> Result<(Vec<Sample>, usize), WireError> {
    let (batch, memory) = budget::decode::<m::SampleBatch>(bytes)?;
    let count = batch.time_deltas.len();
    if count > MAX_BATCH_SAMPLES {
        return Err(WireError::TooManyParts);
    }
    let modes_fit = batch.modes.is_empty() || batch.modes.len() == count;
    if batch.threads.len() != count || batch.pc_deltas.len() != count || !modes_fit {
        return Err(WireError::Columns("samples"));
    }
    let mut time = batch.first_time;
    let mut pc = 0u64;
    let mut modes = batch.modes.into_iter();
    let mut samples: Vec<Sample> = (batch.time_deltas.into_iter().zip(batch.threads))
        .zip(batch.pc_deltas)
        .map(|((time_delta, thread), pc_delta)| {
            time = time.wrapping_add_signed(time_delta);
            pc = pc.wrapping_add_signed(pc_delta);
            Sample {
                time: TimeNs(time),
                thread: ThreadKey(thread),
                pc: Avma(pc),
                mode: CpuMode::from_code(u32::from(modes.next().unwrap_or(0))),
                detail: None,
            }
        })
        .collect();
    for detail in batch.details {
        let sample = usize::try_from(detail.index)
            .ok()
            .and_then(|index| samples.get_mut(index))
            .ok_or(WireError::Range("index"))?;
        sample.detail = Some(Box::new(detail_of(detail)?));
    }
    let memory = memory + size_of_val(samples.as_slice());
    Ok((samples, memory))
}

/// Difference from `before` to `now`, wrapping; `before` becomes `now`.
fn delta(before: &mut u64, now: u64) -> i64 {
    let step = now.wrapping_sub(*before).cast_signed();
    *before = now;
    step
}

/// Differences of a column's numbers.
pub(super) fn deltas(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0;
    numbers.map(|number| delta(&mut before, number)).collect()
}

/// Numbers of a column of differences.
pub(super) fn sums(steps: Vec<i64>) -> impl Iterator<Item = u64> {
    let mut number = 0u64;
    steps.into_iter().map(move |step| {
        number = number.wrapping_add_signed(step);
        number
    })
}

fn detail_message(index: usize, detail: &SampleDetail) -> m::SampleDetail {
    m::SampleDetail {
        // The writer's batches are far smaller.
        index: u32::try_from(index).unwrap_or(u32::MAX),
        chain: detail.chain.as_ref().map(|chain| m::CallChain {
            kernel_deltas: deltas(chain.kernel.iter().map(|at| at.0)),
            user_deltas: deltas(chain.user.iter().map(|at| at.0)),
            truncated: chain.end == ChainEnd::Depth,
            // Recordings before ends had the flag only.
            end: match chain.end {
                ChainEnd::Depth => 0,
                end => end.code(),
            },
            guessed: chain.guessed,
            late: chain.late,
        }),
        registers: detail.registers.as_ref().map(|registers| m::Registers {
            elf_machine: registers.arch.to_wire(),
            mask: registers.mask,
            values: registers.values.clone(),
        }),
        stack: detail.stack.to_wire(),
        words: detail.words.to_wire(),
    }
}

fn detail_of(detail: m::SampleDetail) -> Result<SampleDetail, WireError> {
    Ok(SampleDetail {
        chain: detail.chain.map(|chain| CallChain {
            kernel: sums(chain.kernel_deltas).map(Avma).collect(),
            user: sums(chain.user_deltas).map(Avma).collect(),
            end: match chain.truncated {
                true => ChainEnd::Depth,
                false => ChainEnd::from_code(chain.end),
            },
            guessed: chain.guessed,
            late: chain.late,
        }),
        registers: detail
            .registers
            .map(|registers| {
                if usize::try_from(registers.mask.count_ones()) != Ok(registers.values.len()) {
                    return Err(WireError::Columns("registers"));
                }
                Ok(Registers {
                    arch: Wire::from_wire(registers.elf_machine)?,
                    mask: registers.mask,
                    values: registers.values,
                })
            })
            .transpose()?,
        stack: Wire::from_wire(detail.stack)?,
        words: Wire::from_wire(detail.words)?,
    })
}
