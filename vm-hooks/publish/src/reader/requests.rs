//! A profiler's requests to a VM.

use std::sync::atomic::Ordering;

use super::Attached;
use crate::callbacks::LifetimeRate;
use crate::layout::word;
use crate::sampler::{SamplerCommand, SamplerOptions, SamplerStatus, ThreadTicks};

impl Attached {
    /// Asks for a snapshot, and returns its number. The VM answers at a safe point, between
    /// `SnapshotBegin` and `SnapshotEnd` with this number or a greater one.
    pub fn request_snapshot(&self) -> u64 {
        self.request(word::SNAPSHOTS_REQUESTED)
    }

    /// Numbers of the newest snapshot begun, and of the newest snapshot finished.
    #[must_use]
    pub fn snapshots(&self) -> (u64, u64) {
        let number = |index| self.memory.word(index).load(Ordering::Acquire);
        (number(word::SNAPSHOTS_BEGUN), number(word::SNAPSHOTS_DONE))
    }

    /// Asks for a full collection, and returns the request's number.
    pub fn request_collection(&self) -> u64 {
        self.request(word::COLLECTIONS_REQUESTED)
    }

    /// Number of the newest request for a collection that the VM answered.
    #[must_use]
    pub fn collections_done(&self) -> u64 {
        let done = self.memory.word(word::COLLECTIONS_DONE);
        done.load(Ordering::Acquire)
    }

    /// Sets which objects' lifetimes the VM publishes, for all profilers.
    pub fn set_lifetime_rate(&self, rate: LifetimeRate) -> u64 {
        let set = |index, value| self.memory.word(index).store(value, Ordering::Relaxed);
        set(word::RATE_UNIT, rate.unit as u64);
        set(word::RATE_DISTANCE, rate.distance);
        set(word::RATE_CALLERS, rate.callers.into());
        self.request(word::RATES_REQUESTED)
    }

    /// The VM's count of events too long for the stream.
    #[must_use]
    pub fn too_long(&self) -> u64 {
        self.memory.word(word::TOO_LONG).load(Ordering::Relaxed)
    }

    fn request(&self, index: usize) -> u64 {
        let number = self.memory.word(index).fetch_add(1, Ordering::Release);
        let attention = self.memory.word(word::ATTENTION);
        attention.store(1, Ordering::Release);
        number.wrapping_add(1)
    }

    /// Starts the VM's sampler at its next safe point, or changes its options. A sampler that a
    /// profiler started ends with the last profiler. [`sampler_status`](Self::sampler_status) tells
    /// whether the sampler started.
    pub fn start_sampler(&self, options: &SamplerOptions) -> u64 {
        let set = |index, value| self.memory.word(index).store(value, Ordering::Relaxed);
        set(word::SAMPLER_PERIOD, options.period_ns());
        set(word::SAMPLER_OPTIONS, options.bits());
        self.sampler_command(SamplerCommand::Start)
    }

    /// Stops the VM's sampler at its next tick.
    pub fn stop_sampler(&self) -> u64 {
        self.sampler_command(SamplerCommand::Stop)
    }

    /// Drops the samples in the ring at the next tick or safe point.
    pub fn clear_samples(&self) -> u64 {
        self.sampler_command(SamplerCommand::Clear)
    }

    /// Number of the newest sampler command carried out.
    #[must_use]
    pub fn sampler_commands_done(&self) -> u64 {
        self.memory.word(word::SAMPLER_DONE).load(Ordering::Acquire)
    }

    /// State and counters of the VM's sampler.
    #[must_use]
    pub fn sampler_status(&self) -> SamplerStatus {
        SamplerStatus::read(&self.memory)
    }

    /// Tick counts of the VM's registered threads.
    #[must_use]
    pub fn sampled_threads(&self) -> Vec<ThreadTicks> {
        ThreadTicks::read(&self.memory)
    }

    fn sampler_command(&self, command: SamplerCommand) -> u64 {
        let place = self.memory.word(word::SAMPLER_COMMAND);
        place.store(command as u64, Ordering::Relaxed);
        self.request(word::SAMPLER_REQUESTED)
    }
}
