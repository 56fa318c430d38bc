//! `--lifetimes`: which objects' lifetimes a VM tells.

use crate::memory::parse_bytes;
use clap::Args;
use std::ffi::OsString;
use vmscope_publish_reader::{LifetimeRate, LifetimeUnit};

/// The usual rate: each hundredth object.
const USUAL: &str = "1/100";

/// What is said of other texts.
const EXPECTED: &str = "expected a part of the objects, such as 1/100, or a size, such as 64K; after a part, how to choose \
    (random, every-nth, windows, threads or buffers), such as 1/100,windows; after a size, random or buffers";

/// Ways to choose a part of the objects.
const WAYS: [(&str, LifetimeUnit); 5] = [
    ("random", LifetimeUnit::Objects),
    ("every-nth", LifetimeUnit::EveryNth),
    ("windows", LifetimeUnit::Windows),
    ("threads", LifetimeUnit::Threads),
    ("buffers", LifetimeUnit::Buffers),
];

/// Usual mean size of objects, in bytes: a buffer for one of N objects is N times as large.
const MEAN_SIZE: u64 = 48;

/// Options of commands that record.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct LifetimeOptions {
    /// Record lifetimes of objects: of each N-th on average (1/N), or of one object every SIZE
    /// allocated bytes on average (for instance 64K). VMs that tell no lifetimes ignore the option.
    /// WAY is how objects are chosen, in VMs that know it: random (usual), every-nth, windows (all objects of
    /// one time window of N), threads (each thread gets samples), buffers (as HotSpot does; SIZE or N x 48 bytes each)
    #[arg(long, value_name = "1/N|SIZE[,WAY]", num_args = 0..=1, require_equals = true,
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

/// Arguments, with a rate joined to the option before it: `--lifetimes 1/100` means
/// `--lifetimes=1/100`. No program or process has such a name.
pub fn joined(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut is_own = true;
    for argument in arguments {
        // The rest is a command.
        is_own &= argument != "--";
        let parts = argument.to_str().and_then(|text| text.split_once('/'));
        let is_part = parts.is_some_and(|(part, _)| part.parse::<u64>().is_ok());
        match all.last_mut() {
            Some(last) if is_own && is_part && last == "--lifetimes" => {
                last.push("=");
                last.push(argument);
            }
            _ => all.push(argument),
        }
    }
    all
}

/// A rate: `k/n` that reduces to `1/N`, or a number of bytes; then perhaps a comma and how objects
/// are chosen.
pub fn parse_rate(text: &str) -> Result<LifetimeRate, String> {
    let (amount, way) = text.split_once(',').unwrap_or((text, "random"));
    let way = WAYS.iter().find(|one| one.0 == way);
    let unit = way.ok_or(EXPECTED)?.1;
    let rate = |unit, distance| LifetimeRate {
        unit,
        distance,
        callers: 0,
    };
    let Some((part, whole)) = amount.split_once('/') else {
        let unit = match unit {
            LifetimeUnit::Objects => LifetimeUnit::Bytes,
            LifetimeUnit::Buffers => unit,
            _ => return Err(EXPECTED.to_owned()),
        };
        return match parse_bytes(amount).map_err(|_| EXPECTED.to_owned())? {
            0 => Err("the mean distance between samples is at least 1 byte".to_owned()),
            bytes => Ok(rate(unit, bytes)),
        };
    };
    let (Ok(part), Ok(whole)) = (part.parse::<u64>(), whole.parse::<u64>()) else {
        return Err(EXPECTED.to_owned());
    };
    if part == 0 || whole == 0 {
        return Err("the sampled part must be more than 0".to_owned());
    }
    if part > whole {
        return Err("the sampled part must be at most 1/1".to_owned());
    }
    if whole % part != 0 {
        return Err(format!(
            "{amount} does not reduce to 1/N: the mean distance between samples is a whole number of objects"
        ));
    }
    let every = whole / part;
    Ok(match unit {
        // No buffer holds two objects.
        LifetimeUnit::Buffers if every == 1 => rate(unit, 1),
        LifetimeUnit::Buffers => rate(unit, every.saturating_mul(MEAN_SIZE)),
        _ => rate(unit, every),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_objects_may_follow_the_option() {
        let of = |line: &str| {
            let joined = joined(line.split(' ').map(OsString::from));
            let words: Vec<_> = joined.iter().filter_map(|word| word.to_str()).collect();
            words.join(" ")
        };
        for (line, same) in [
            ("demo --lifetimes 1/10 -e 1", "demo --lifetimes=1/10 -e 1"),
            ("demo --lifetimes dataframe", "demo --lifetimes dataframe"),
            ("attach --lifetimes 4711", "attach --lifetimes 4711"),
            (
                "record --lifetimes -- a/b 1/2",
                "record --lifetimes -- a/b 1/2",
            ),
            ("record -- x --lifetimes 1/2", "record -- x --lifetimes 1/2"),
            ("demo --lifetimes 5/1", "demo --lifetimes=5/1"),
            (
                "demo --lifetimes 1/9,windows",
                "demo --lifetimes=1/9,windows",
            ),
        ] {
            assert_eq!(of(line), same);
        }
    }

    #[test]
    fn a_rate_is_a_part_of_the_objects_or_a_size() {
        let of = |text: &str| parse_rate(text).map(|rate| (rate.unit, rate.distance));
        assert_eq!(of("1/1"), Ok((LifetimeUnit::Objects, 1)));
        assert_eq!(of("2/200"), Ok((LifetimeUnit::Objects, 100)));
        assert_eq!(of("64K"), Ok((LifetimeUnit::Bytes, 65536)));
        assert_eq!(of("64KB,random"), Ok((LifetimeUnit::Bytes, 65536)));
        assert_eq!(of("64K,buffers"), Ok((LifetimeUnit::Buffers, 65536)));
        assert_eq!(of("1/100,buffers"), Ok((LifetimeUnit::Buffers, 4800)));
        assert_eq!(of("1/1,buffers"), Ok((LifetimeUnit::Buffers, 1)));
        assert_eq!(of("1/100,random"), Ok((LifetimeUnit::Objects, 100)));
        assert_eq!(of("3/30,every-nth"), Ok((LifetimeUnit::EveryNth, 10)));
        assert_eq!(of("1/100,windows"), Ok((LifetimeUnit::Windows, 100)));
        assert_eq!(of("1/100,threads"), Ok((LifetimeUnit::Threads, 100)));
        for (text, message) in [
            ("0/1", "more than 0"),
            ("1/0", "more than 0"),
            ("5/1", "at most 1/1"),
            ("2/3", "does not reduce to 1/N"),
            ("1/x", "such as 1/100"),
            ("-1/2", "such as 1/100"),
            ("1/2/3", "such as 1/100"),
            ("0", "at least 1 byte"),
            ("often", "such as 1/100"),
            ("", "such as 1/100"),
            ("1/100,often", "every-nth, windows, threads or buffers"),
            ("1/100,", "every-nth, windows, threads or buffers"),
            (
                "1/100,windows,threads",
                "every-nth, windows, threads or buffers",
            ),
            ("64K,windows", "after a size, random or buffers"),
            ("0,buffers", "at least 1 byte"),
            ("5/1,threads", "at most 1/1"),
        ] {
            let error = of(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
