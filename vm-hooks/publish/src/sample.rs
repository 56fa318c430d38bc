//! Samples of the in-VM sampler: their layout in the ring.

use crate::event::wire::{DecodeError, Words};

/// Kind of a sample's record.
pub const KIND: u8 = 1;

/// Most return addresses of a sample.
pub const LONGEST_CHAIN: usize = 64;

/// Words of a sample before its chain: thread id and length of the chain, pc, frame pointer, stack
/// pointer.
pub(crate) const HEAD_WORDS: usize = 4;

/// A sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time in nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// Thread id.
    pub tid: u32,
    /// Interrupted program counter.
    pub pc: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Return addresses found by following frame pointers, innermost first; empty unless asked
    /// for. At most [`LONGEST_CHAIN`].
    pub chain: Vec<u64>,
}

impl Sample {
    /// The sample with this payload.
    ///
    /// # Errors
    ///
    /// If the payload is malformed.
    pub fn decode(time: u64, payload: &[u64]) -> Result<Self, DecodeError> {
        let mut words = Words(payload);
        let first = words.take()?;
        let (pc, fp, sp) = (words.take()?, words.take()?, words.take()?);
        let count = first >> 32;
        let chain = usize::try_from(count).ok();
        let chain = chain.filter(|&count| count <= LONGEST_CHAIN);
        let chain = chain.and_then(|count| words.0.get(..count));
        Ok(Self {
            time,
            tid: first as u32,
            pc,
            fp,
            sp,
            chain: chain.ok_or(DecodeError::Count(count))?.to_vec(),
        })
    }
}
