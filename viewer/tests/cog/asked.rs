//! Samples of a replica against the replica's log.

use std::collections::BTreeMap;
use std::path::Path;

use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::{Profile, Region, profile_of};

use crate::common::say;
use crate::common::vmscope::await_trace;
use crate::measured::{Worst, batch_means};

/// The place that a spot's samples belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the spot.
    pub spot: &'static str,
    /// Name of its entry.
    pub entry: &'static str,
    /// Bytecodes before and after, if known.
    pub range: Option<(u32, u32)>,
}

pub const fn place(spot: &'static str, entry: &'static str, range: Option<(u32, u32)>) -> Place {
    Place { spot, entry, range }
}

/// One call of a spot: nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Call {
    place: usize,
    begin: u64,
    end: u64,
    cpu: u64,
}

/// Outcome of the samples during calls.
#[derive(Debug, Default)]
pub struct Asked {
    /// Places of samples in order of time. The calls at these times have the same places.
    pub right: Vec<usize>,
    /// Numbers of samples of another place, by names of both.
    pub wrong: BTreeMap<String, usize>,
    /// Samples of the right method outside the loop: the frame's code.
    pub beside: usize,
    /// Places of samples in doubt.
    pub doubtful: Vec<usize>,
    pub unnamed: usize,
    /// Samples of the kernel and of clock reads.
    pub elsewhere: usize,
    calls: Vec<Call>,
}

/// Whole calls in a log. A killed process may leave half a line.
fn calls(log: &Path, places: &[Place]) -> Vec<Call> {
    let text = std::fs::read_to_string(log).expect("the replica's log");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let call = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("nanoseconds");
        let place = places.iter().position(|place| place.spot == words[0]);
        Call {
            place: place.expect("a known spot"),
            begin: number(1),
            end: number(2),
            cpu: number(3),
        }
    };
    whole.lines().map(call).collect()
}

/// Waits until a growing recording names `count` samples of a spot.
pub fn await_right(recording: &Path, log: &Path, places: &[Place], spot: &str, count: usize) {
    let place = places.iter().position(|place| place.spot == spot);
    let place = place.expect("a known spot");
    await_trace(
        recording,
        &format!("{count} samples are of {spot}"),
        |trace| {
            let profile = profile_of(trace, Vec::new(), false);
            let right = ask(&profile, log, places).right_of(place);
            (right >= count).then_some(())
        },
    );
}

/// Compares each sample with the call at its time.
pub fn ask(profile: &Profile, log: &Path, places: &[Place]) -> Asked {
    let calls = calls(log, places);
    let mut asked = Asked::default();
    let samples = &profile.trace.samples;
    for (time, &at) in samples.times.iter().zip(&samples.places) {
        let after = calls.partition_point(|call| call.begin <= time.0);
        let call = after.checked_sub(1).map(|at| calls[at]);
        let Some(call) = call.filter(|call| time.0 <= call.end) else {
            continue;
        };
        let site = profile.site_at(at);
        let entry = &profile.entries[site.entry];
        let range = site.from.zip(site.to).map(|(from, to)| (from.0, to.0));
        let wanted = &places[call.place];
        let is_code = matches!(entry.region, Region::Generated | Region::Unknown);
        if entry.name == wanted.entry && range == wanted.range {
            asked.right.push(call.place);
        } else if entry.name == wanted.entry && site.from.is_none() {
            asked.beside += 1;
        } else if entry.kind == EntryKind::Doubtful {
            asked.doubtful.push(call.place);
        } else if is_code && entry.kind == EntryKind::Unnamed {
            asked.unnamed += 1;
        } else if is_code || places.iter().any(|place| place.entry == entry.name) {
            let name = &entry.name;
            let wrong = asked
                .wrong
                .entry(format!("{name} {range:?} for {wanted:?}"));
            *wrong.or_default() += 1;
        } else {
            asked.elsewhere += 1;
        }
    }
    asked.calls = calls;
    asked
}

impl Asked {
    /// Number of right samples of a place.
    pub fn right_of(&self, place: usize) -> usize {
        self.right.iter().filter(|one| **one == place).count()
    }

    /// Number of samples in doubt of a place.
    pub fn doubtful_of(&self, place: usize) -> usize {
        self.doubtful.iter().filter(|one| **one == place).count()
    }

    /// No sample has the name of another place.
    pub fn check(&self, what: &str) {
        let wrong: usize = self.wrong.values().sum();
        say(&format!(
            "{what}: {} right, {wrong} wrong, {} beside, {} doubtful, {} unnamed, {} elsewhere",
            self.right.len(),
            self.beside,
            self.doubtful.len(),
            self.unnamed,
            self.elsewhere
        ));
        assert_eq!(wrong, 0, "{what}: {:?}", self.wrong);
        assert!(self.beside * 200 <= self.right.len(), "{what}");
    }

    /// Shares of the places in named samples, against the process's own clock in the calls between
    /// `from` and `to`.
    pub fn shares(&self, what: &str, places: &[Place], (from, to): (u64, u64), missing: f64) {
        let within = |call: &&Call| from <= call.begin && call.end <= to;
        let cpu = |place: usize| -> u64 {
            let calls = self.calls.iter().filter(within);
            let of_place = calls.filter(|call| call.place == place);
            of_place.map(|call| call.cpu).sum()
        };
        let all: u64 = (0..places.len()).map(cpu).sum();
        let mut worst = Worst::default();
        for (at, place) in places.iter().enumerate() {
            let share = batch_means(&self.right, |hit| hit == at);
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let truth = cpu(at) as f64 / all as f64;
            worst.compare(place.spot, share, truth, missing);
        }
        say(&format!(
            "{what}: greatest error of a share {:.2} points, {:.1} standard errors; widest bound \
             {:.2} points",
            100.0 * worst.difference,
            worst.in_errors,
            100.0 * worst.bound,
        ));
    }
}
