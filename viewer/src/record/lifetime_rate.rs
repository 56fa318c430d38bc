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

/// A rate of objects or of bytes.
pub fn parse_rate(text: &str) -> Result<LifetimeRate, String> {
    let rate = |unit, distance| LifetimeRate {
        unit,
        distance,
        callers: 0,
    };
    let Some((of, all)) = text.split_once('/') else {
        return match parse_bytes(text) {
            Ok(bytes) if bytes > 1 => Ok(rate(LifetimeUnit::Bytes, bytes)),
            _ => Err("expected a rate such as 1/100, or a size such as 64K".to_owned()),
        };
    };
    match (of.trim().parse::<u64>(), all.trim().parse::<u64>()) {
        (Ok(0), Ok(_)) | (Ok(_), Ok(0)) => {
            Err("a rate of 0 records nothing; leave the option out".to_owned())
        }
        (Ok(of), Ok(all)) if of > all => Err("the greatest rate is 1/1, every object".to_owned()),
        (Ok(of), Ok(all)) if all % of == 0 => Ok(rate(LifetimeUnit::Objects, all / of)),
        (Ok(_), Ok(_)) => Err("expected a fraction that reduces to 1/N".to_owned()),
        _ => Err("expected a rate such as 1/100, or a size such as 64K".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_reduced_fractions_or_sizes() {
        let rate = |text| parse_rate(text).map(|rate| (rate.unit, rate.distance));
        assert_eq!(rate("1/100"), Ok((LifetimeUnit::Objects, 100)));
        assert_eq!(rate("5/10"), Ok((LifetimeUnit::Objects, 2)));
        assert_eq!(rate("1/1"), Ok((LifetimeUnit::Objects, 1)));
        assert_eq!(rate("64K"), Ok((LifetimeUnit::Bytes, 65_536)));
        for wrong in ["0/1", "1/0", "5/1", "2/3", "-1/2", "1/x", "", "0", "many"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
