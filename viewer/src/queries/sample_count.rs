//! How many samples are in a span of time, as far as that is known.

use crate::present::numbers::count;

/// A number of samples. Of the older ones of a long session only sums over time are kept:
/// where a sum lies across an end of the span, nobody knows how much of it is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleCount {
    /// Sums that reach beyond the span are larger than what it would have.
    Unknown,
    /// About so many: sums at its ends were taken or left as a whole.
    About(u64),
    /// So many.
    Exactly(u64),
}

impl SampleCount {
    /// Of so many samples, with so many in sums that reach beyond an end.
    pub fn of(samples: u64, cut: u64) -> Self {
        match cut {
            0 => SampleCount::Exactly(samples),
            _ if cut >= samples => SampleCount::Unknown,
            _ => SampleCount::About(samples),
        }
    }

    /// The number, where there is one.
    pub fn number(self) -> Option<u64> {
        match self {
            SampleCount::Unknown => None,
            SampleCount::About(samples) | SampleCount::Exactly(samples) => Some(samples),
        }
    }

    /// In words: `1,234`, `~1,234`, `?`.
    pub fn words(self) -> String {
        match self {
            SampleCount::Unknown => "?".to_owned(),
            SampleCount::About(samples) => format!("~{}", count(samples)),
            SampleCount::Exactly(samples) => count(samples),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sums_say_is_not_taken_for_more() {
        assert_eq!(SampleCount::of(1_234, 0).words(), "1,234");
        assert_eq!(SampleCount::of(12_345, 4_096).words(), "~12,345");
        assert_eq!(SampleCount::of(508, 4_096).words(), "?");
        assert_eq!(SampleCount::of(0, 4_096).number(), None);
    }
}
