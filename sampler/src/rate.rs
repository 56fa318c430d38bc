//! Sampling rates and periods.

use vmscope_records::DurationNs;

/// A sampling rate, stored as its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingRate {
    period_ns: u64,
}

/// An unavailable sampling rate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// Zero, negative, or not a number.
    #[error("the rate must be at least {min} Hz (not {hz})", min = SamplingRate::MIN_HZ)]
    NotARate {
        /// Requested rate, in samples per second.
        hz: f64,
    },
    /// Faster than any engine.
    #[error(
        "{hz} Hz is too high: the rate must be at most {max} Hz (default: 1400.7 Hz)",
        max = SamplingRate::MAX_HZ
    )]
    TooHigh {
        /// Requested rate, in samples per second.
        hz: f64,
    },
    #[error(
        "{hz} Hz is too low: the rate must be at least {min} Hz",
        min = SamplingRate::MIN_HZ
    )]
    /// Below the lowest rate.
    TooLow {
        /// Requested rate, in samples per second.
        hz: f64,
    },
    /// The VM's own sampler has other limits.
    #[error(
        "{hz:.1} Hz is not for the VM's own sampler, which takes {min} to {max} Hz (default: 1400.7 \
         Hz)"
    )]
    NotInVm {
        /// Requested rate, in samples per second.
        hz: f64,
        /// Lowest rate.
        min: f64,
        /// Highest rate.
        max: f64,
    },
    /// The kernel throttles above its limit.
    #[error(
        "{hz:.1} Hz is more than this kernel allows ({limit} Hz): use a lower rate, or raise the \
         limit with `sysctl kernel.perf_event_max_sample_rate={hz:.0}`"
    )]
    AboveKernelLimit {
        /// Requested rate, in samples per second.
        hz: f64,
        /// `/proc/sys/kernel/perf_event_max_sample_rate`.
        limit: u64,
    },
}

impl SamplingRate {
    /// Lowest rate in Hz: a sample per ten seconds.
    pub const MIN_HZ: f64 = 0.1;
    /// Highest rate in Hz. The kernel's cpu-clock ticks are at least 10 µs apart
    /// (`perf_swevent_start_hrtimer`), and at 50 kHz ticks alone use a tenth of the target's time.
    pub const MAX_HZ: f64 = 50_000.0;
    /// 713,927 ns, 1400.7 Hz: seven periods of exactly 1,400 Hz are 5 ms, and would lock on to
    /// timers of 1, 2 and 5 ms (DESIGN.md §3).
    pub const DEFAULT: SamplingRate = SamplingRate { period_ns: 713_927 };

    /// The rate of `hz` samples per second of the engine's clock.
    ///
    /// # Errors
    /// [`RateError`] unless `hz` lies between [`Self::MIN_HZ`] and [`Self::MAX_HZ`].
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bounds on hz keep the period between 2e4 and 1e10"
    )]
    pub fn from_hz(hz: f64) -> Result<Self, RateError> {
        if !hz.is_finite() || hz <= 0.0 {
            return Err(RateError::NotARate { hz });
        }
        if hz > Self::MAX_HZ {
            return Err(RateError::TooHigh { hz });
        }
        if hz < Self::MIN_HZ {
            return Err(RateError::TooLow { hz });
        }
        Ok(Self {
            period_ns: (1e9 / hz).round() as u64,
        })
    }

    /// Mean distance between two samples of a thread.
    #[must_use]
    pub const fn period(self) -> DurationNs {
        DurationNs(self.period_ns)
    }

    /// Samples per second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "periods are below 2^53 ns")]
    pub fn hz(self) -> f64 {
        1e9 / self.period_ns as f64
    }

    /// Refuses rates above the kernel's `perf_event_max_sample_rate`.
    ///
    /// # Errors
    /// [`RateError::AboveKernelLimit`].
    #[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
    pub fn check_against_kernel(self, max_sample_rate: u64) -> Result<(), RateError> {
        if self.hz() > max_sample_rate as f64 {
            return Err(RateError::AboveKernelLimit {
                hz: self.hz(),
                limit: max_sample_rate,
            });
        }
        Ok(())
    }
}

impl Default for SamplingRate {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_that_are_none_are_refused() {
        for hz in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                SamplingRate::from_hz(hz),
                Err(RateError::NotARate { .. })
            ));
        }
        assert!(matches!(
            SamplingRate::from_hz(1e6),
            Err(RateError::TooHigh { .. })
        ));
        assert!(matches!(
            SamplingRate::from_hz(0.01),
            Err(RateError::TooLow { .. })
        ));
    }

    #[test]
    fn a_rate_is_kept_as_its_period() {
        let rate = SamplingRate::from_hz(1000.0).expect("a fair rate");
        assert_eq!(rate.period(), DurationNs(1_000_000));
        assert_eq!(SamplingRate::default().period(), DurationNs(713_927));
        assert!((SamplingRate::DEFAULT.hz() - 1400.7).abs() < 0.01);
    }

    #[test]
    fn the_kernels_limit_is_named_with_its_remedy() {
        let error = SamplingRate::DEFAULT
            .check_against_kernel(1000)
            .expect_err("1000 is less than 1400");
        assert!(
            error
                .to_string()
                .contains("perf_event_max_sample_rate=1401")
        );
        assert!(SamplingRate::DEFAULT.check_against_kernel(20_000).is_ok());
    }
}
