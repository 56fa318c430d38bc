//! Options of reports.

use super::calls::CallsOptions;
use crate::memory::MemoryOption;
use crate::present::names::{region_key, region_name};
use anyhow::{Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ColorChoice, ValueEnum};
use rustc_hash::FxHashSet;
use vmscope_records::{DurationNs, LimitKind, TimeNs};
use vmscope_symbolizer::{Filter, Only, Profile, Region, ThreadId};

/// Default minimum share, in percent.
pub(super) const MIN_SHARE: f64 = 0.1;

#[derive(Args, Clone, Debug)]
pub struct ReportOptions {
    /// Print JSON (a documented schema: docs/report-json.md) instead of text
    #[arg(long)]
    pub json: bool,
    /// Print all sections, in the form of VMProfiler's reports, instead of one screen
    #[arg(long, group = "form")]
    pub full: bool,
    #[command(flatten)]
    pub calls: CallsOptions,
    /// Number of functions in the one-screen report
    #[arg(long, value_name = "N", default_value_t = 15, conflicts_with = "form")]
    pub top: usize,
    /// Colours of the one-screen report (auto: on a terminal, unless NO_COLOR is set)
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    #[command(flatten)]
    pub narrow: NarrowOptions,
    #[command(flatten)]
    pub memory: MemoryOption,
    /// Only samples before this second of the recording
    #[arg(long, visible_alias = "until", value_name = "SECS", value_parser = seconds,
          allow_negative_numbers = true)]
    pub to: Option<f64>,
    /// Merge entries with a smaller share of their group into ...others...
    /// (default: 0.1, and single samples in large groups; 1 in call trees)
    #[arg(long, requires = "form", value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub min_share: Option<f64>,
    /// Order of the entries
    #[arg(long, requires = "full", value_enum, default_value_t = SortBy::Samples)]
    pub sort: SortBy,
    /// Which functions to split into bytecode ranges or source lines
    #[arg(long, requires = "full", value_enum, default_value_t = RangeDetail::Auto)]
    pub ranges: RangeDetail,
    /// Count samples in inlined native functions for these functions, not for their callers
    #[arg(long)]
    pub inlined: bool,
    /// Width of the text in columns (default: the terminal's, else 100)
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
}

/// Selection of samples, for reports and exports.
#[derive(Args, Clone, Debug, Default)]
pub struct NarrowOptions {
    /// Only these threads: thread ids, or names with `*` for any text
    #[arg(long, value_name = "TID|NAME", value_delimiter = ',')]
    pub threads: Vec<String>,
    /// Only samples after this second of the recording
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub from: Option<f64>,
    /// Only samples whose own function is in these regions
    #[arg(long, value_name = "REGION", value_delimiter = ',', ignore_case = true,
          value_parser = region_values())]
    pub region: Vec<String>,
}

/// Names of regions as in the JSON; the text's names are aliases.
fn region_values() -> PossibleValuesParser {
    let regions = Region::ALL.map(|region| (region, false));
    let values = regions.into_iter().chain([(Region::Vm, true)]);
    PossibleValuesParser::new(values.map(|(region, is_native)| {
        PossibleValue::new(region_key(region, is_native)).alias(region_name(region, is_native))
    }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Most samples first
    Samples,
    /// By name
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RangeDetail {
    /// JIT code only
    Auto,
    /// Also native code, by source lines
    All,
    /// None
    None,
}

/// Seconds since the recording's begin.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("expected a number of seconds, at least 0".to_owned()),
    }
}

/// A percentage, 0 to 100.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage from 0 to 100".to_owned()),
    }
}

impl NarrowOptions {
    /// The requested filter; `to` is the exclusive end in seconds.
    ///
    /// # Errors
    /// Unknown threads or regions, or a window that is empty or after the recording.
    pub fn filter(&self, profile: &Profile, to: Option<f64>) -> Result<Filter> {
        let start = beginning(profile);
        let at = |secs: f64| {
            let offset = std::time::Duration::try_from_secs_f64(secs).unwrap_or_default();
            start.plus(DurationNs::from(offset))
        };
        if let (Some(from), Some(to)) = (self.from, to)
            && from >= to
        {
            bail!("the window is empty: it begins at {from} s and ends at {to} s");
        }
        let length = end(profile).since(start).as_secs_f64();
        if let Some(from) = self.from
            && from >= length
        {
            bail!("--from {from} is after the recording's end: it is {length:.1} s long");
        }
        let (from, to) = (self.from.map(at), to.map(at));
        let threads = if self.threads.is_empty() {
            None
        } else {
            Some(self.chosen(profile)?)
        };
        Ok(Filter {
            threads,
            from,
            to,
            only: Only {
                regions: self.regions(profile.is_native())?,
                ..Only::default()
            },
            ..Filter::default()
        })
    }

    fn regions(&self, is_native: bool) -> Result<Vec<Region>> {
        let mut regions = Vec::new();
        for wanted in &self.region {
            let is_wanted = |region: &Region| {
                let names = [
                    region_key(*region, is_native),
                    region_name(*region, is_native),
                ];
                names.iter().any(|name| name.eq_ignore_ascii_case(wanted))
            };
            let Some(region) = Region::ALL.into_iter().find(is_wanted) else {
                let whose = if is_native { "program" } else { "VM" };
                let own = region_key(Region::Vm, is_native);
                bail!("no region `{wanted}` in this recording: the {whose}'s own code is `{own}`");
            };
            if !regions.contains(&region) {
                regions.push(region);
            }
        }
        Ok(regions)
    }

    fn chosen(&self, profile: &Profile) -> Result<FxHashSet<ThreadId>> {
        let mut chosen = FxHashSet::default();
        for wanted in &self.threads {
            let before = chosen.len();
            let tid = wanted.parse::<u32>().ok();
            for (id, thread) in profile.trace.threads.enumerated() {
                let thread = &thread.thread;
                if tid == Some(thread.tid.0) || matches_glob(wanted, &thread.name) {
                    chosen.insert(id);
                }
            }
            if chosen.len() == before {
                bail!("no thread matches `{wanted}`: `vmscope report --full` lists all threads");
            }
        }
        Ok(chosen)
    }
}

/// Begin of the kept recording.
pub fn beginning(profile: &Profile) -> TimeNs {
    let kept = profile
        .trace
        .limits
        .iter()
        .filter(|l| l.kind == LimitKind::OnlyNewestKept);
    let session = profile
        .trace
        .session
        .as_ref()
        .map_or(TimeNs(0), |session| session.time);
    kept.map(|limit| limit.time).max().unwrap_or(session)
}

/// End of the recording.
fn end(profile: &Profile) -> TimeNs {
    let trace = &profile.trace;
    let end = trace.end.as_ref().map(|end| end.time);
    end.unwrap_or(trace.ending.last_time)
}

/// Whether `name` matches `pattern`; `*` matches any text.
fn matches_glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, matches) in [
            ("main", "main", true),
            ("main", "mainly", false),
            ("GC*", "GC Thread#0", true),
            ("*#0", "GC Thread#0", true),
            ("G*T*0", "GC Thread#0", true),
            ("*", "", true),
            ("a*a", "a", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches_glob(pattern, name), matches, "{pattern} on {name}");
        }
    }
}
