//! `--lifetimes`: which objects' lifetimes a VM tells.

use crate::memory::parse_bytes;
use clap::Args;
use vmscope_publish_reader::{LifetimeRate, LifetimeUnit};

/// The usual rate: each hundredth object.
const USUAL: &str = "1/100";

/// Options of commands that record.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct LifetimeOptions {
    /// Record lifetimes of objects: of each N-th on average (1/N), or of one object every SIZE
    /// allocated bytes on average (for instance 64K). VMs that tell no lifetimes ignore the option
    #[arg(long, value_name = "1/N|SIZE", num_args = 0..=1, require_equals = true,
          default_missing_value = USUAL, value_parser = parse_rate)]
    lifetimes: Option<LifetimeRate>,
    /// Record this many callers of each allocation
    #[arg(long, value_name = "FRAMES", default_value_t = 0, requires = "lifetimes",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(LifetimeRate::MOST_CALLERS)))]
    lifetime_callers: u32,
}

impl LifetimeOptions {
    /// The rate; `None` for no lifetimes.
    pub fn rate(self) -> Option<LifetimeRate> {
        self.lifetimes.map(|rate| LifetimeRate {
            callers: self.lifetime_callers,
            ..rate
        })
    }
}

/// A rate: `k/n` that reduces to `1/N`, or a number of bytes.
pub fn parse_rate(text: &str) -> Result<LifetimeRate, String> {
    let rate = |unit, distance| LifetimeRate {
        unit,
        distance,
        callers: 0,
    };
    let Some((part, whole)) = text.split_once('/') else {
        return match parse_bytes(text)? {
            0 => Err("the mean distance between samples is at least 1 byte".to_owned()),
            bytes => Ok(rate(LifetimeUnit::Bytes, bytes)),
        };
    };
    let (Ok(part), Ok(whole)) = (part.parse::<u64>(), whole.parse::<u64>()) else {
        return Err(
            "expected a part of the objects, such as 1/100, or a size, such as 64K".to_owned(),
        );
    };
    if part == 0 || whole == 0 {
        return Err("a part of the objects is more than 0".to_owned());
    }
    if part > whole {
        return Err("a part of the objects is at most 1/1".to_owned());
    }
    if whole % part != 0 {
        return Err(format!(
            "{text} does not reduce to 1/N: the mean distance between samples is a whole number of objects"
        ));
    }
    Ok(rate(LifetimeUnit::Objects, whole / part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_part_of_the_objects_or_a_size() {
        let of = |text: &str| parse_rate(text).map(|rate| (rate.unit, rate.distance));
        assert_eq!(of("1/1"), Ok((LifetimeUnit::Objects, 1)));
        assert_eq!(of("2/200"), Ok((LifetimeUnit::Objects, 100)));
        assert_eq!(of("64K"), Ok((LifetimeUnit::Bytes, 65536)));
        for (text, message) in [
            ("0/1", "more than 0"),
            ("1/0", "more than 0"),
            ("5/1", "at most 1/1"),
            ("2/3", "does not reduce to 1/N"),
            ("1/x", "such as 1/100"),
            ("-1/2", "such as 1/100"),
            ("1/2/3", "such as 1/100"),
            ("0", "at least 1 byte"),
            ("often", "expected a size"),
            ("", "expected a size"),
        ] {
            let error = of(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
