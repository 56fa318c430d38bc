//! A recording of known_shares beside what the program says of itself, and how the two
//! are compared.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use vmscope_symbolizer::stacks::{each_stack, frames_of};
use vmscope_symbolizer::{Filter, Profile, SiteId, StackId};

use crate::common::vmscope::{Folder, can_sample, command, profile, report, run};
use crate::common::{programs, say};

/// Batches of consecutive samples (docs/truth.md §4 wants at least 30).
pub const BATCHES: usize = 64;

/// See the head of this file.
pub const T: f64 = 7.0;

/// Cycles per thread and recording: some 2.1 s of CPU time of each, some 2,900 samples.
pub const CYCLES: &str = "500";

/// How the cycles' lengths differ, in per cent. Cycles of a multiple of the period are sampled at
/// constant places, invisible to statistics over samples: docs/truth.md counts that among what is
/// known to be wrong.
pub const JITTER: &str = "20";

/// A source line of a function: what has a known share.
pub type Range = (String, u64);

/// Share with standard error.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub share: f64,
    pub error: f64,
}

impl Share {
    /// Compares this share of a range with the prediction from the shares before `slowed` took twice as
    /// long (docs/truth.md §6): 2 s / (1 + s) for the slowed range, `before` / (1 + s) for each other, as the
    /// others take as long as before.
    pub fn compare_slowed(
        self,
        range: &str,
        (before, slowed, is_slowed): (Share, Share, bool),
        missing: f64,
        worst: &mut Worst,
    ) {
        let whole = 1.0 + slowed.share;
        // Error bound of the prediction: its derivatives, with equal signs.
        let (predicted, error) = if is_slowed {
            (
                2.0 * before.share / whole,
                2.0 * before.error / whole.powi(2),
            )
        } else {
            let of_slowed = before.share * slowed.error / whole.powi(2);
            (before.share / whole, before.error / whole + of_slowed)
        };
        let measured = Share {
            share: self.share,
            // Recordings are independent of each other.
            error: self.error.hypot(error),
        };
        worst.compare(range, measured, predicted, missing);
    }
}

/// A recording of known_shares, and what the program said of itself.
pub struct Measured {
    pub profile: Profile,
    /// What `report --json` says.
    pub document: Value,
    pub program: Value,
    /// What the host took of the CPUs meanwhile.
    pub stolen_ns: f64,
}

impl Measured {
    pub fn new(recording: &Path, program: Value, stolen_before: f64) -> Self {
        let stolen_ns = stolen_ns() - stolen_before;
        let (profile, _) = profile(recording);
        let document = report(recording, &["--json"]).code(0).json();
        Measured {
            profile,
            document,
            program,
            stolen_ns,
        }
    }

    /// `vmscope record` of known_shares with these loop counts.
    pub fn of_command(loops: &str) -> Option<Self> {
        Self::of_program(programs::KNOWN_SHARES, loops, &[], |_| {})
    }

    /// The same of a variant of known_shares, with further options; `look` sees the recording.
    pub fn of_program(
        program: programs::Program,
        loops: &str,
        options: &[&str],
        look: impl FnOnce(&Path),
    ) -> Option<Self> {
        let program = programs::build(program)?;
        if !can_sample() {
            return None;
        }
        let stolen = stolen_ns();
        let folder = Folder::new();
        let recording = folder.file("out.vmscope");
        let mut command = command(["record", "--quiet", "--output"]);
        command.arg(&recording).args(options).arg("--").arg(program);
        command.args(["--threads", "2", "--cycles", CYCLES, "--loops", loops]);
        command.args(["--jitter", JITTER]);
        let output = run(command).code(0);
        look(&recording);
        Some(Self::new(&recording, output.json(), stolen))
    }

    /// Delivered and promised samples (docs/truth.md §2).
    pub fn delivery(&self) -> (f64, f64) {
        let samples = &self.document["samples"];
        (number(&samples["total"]), number(&samples["promised"]))
    }

    /// Undelivered share of promised samples.
    pub fn missing(&self) -> f64 {
        let (delivered, promised) = self.delivery();
        ((promised - delivered) / promised).max(0.0)
    }

    /// Time share of each range over all recordings, by the program's clock; of all threads or of
    /// one.
    pub fn truth(&self, tid: Option<u64>) -> BTreeMap<Range, f64> {
        let mut seconds = BTreeMap::new();
        for thread in list(&self.program["threads"]) {
            if tid.is_some_and(|tid| thread["tid"].as_u64() != Some(tid)) {
                continue;
            }
            for range in list(&thread["ranges"]) {
                *seconds.entry(range_of(range)).or_insert(0.0) += number(&range["seconds"]);
            }
        }
        let all: f64 = seconds.values().sum();
        seconds.into_values_with(|value| value / all)
    }

    /// Sample share of each range over all recordings, with error.
    pub fn shares(&self, tid: Option<u64>) -> BTreeMap<Range, Share> {
        let trace = &self.profile.trace;
        let known: Vec<Range> = self.truth(tid).into_keys().collect();
        // Range of each place.
        let sites = &self.profile.site_of_place;
        let range_of_place = sites.map(|_, &site| {
            let site = &self.profile.sites[site];
            let name = &self.profile.entries[site.entry].name;
            let line = u64::from(site.frame.line?);
            known
                .iter()
                .position(|(function, at)| function == name && *at == line)
        });
        let rows = trace.samples.threads.iter().zip(&trace.samples.places);
        let of_thread = rows.filter(|(thread, _)| {
            let its_tid = trace.threads[**thread].thread.tid.0;
            tid.is_none_or(|tid| tid == u64::from(its_tid))
        });
        let hits: Vec<usize> = of_thread
            .filter_map(|(_, &place)| range_of_place[place])
            .collect();
        let ranges = known.into_iter().enumerate();
        let share = |index| batch_means(&hits, |hit| hit == index);
        ranges.map(|(index, range)| (range, share(index))).collect()
    }

    /// The same by function: the two lines of one function together.
    pub fn by_function(&self) -> Vec<(String, Share, f64)> {
        let truth = self.truth(None);
        let known: Vec<Range> = truth.keys().cloned().collect();
        let trace = &self.profile.trace;
        let functions: Vec<usize> = trace
            .samples
            .places
            .iter()
            .filter_map(|&place| {
                let name = &self.profile.entry_at(place).name;
                known.iter().position(|(function, _)| function == name)
            })
            .collect();
        let mut all = Vec::new();
        for (index, (function, _)) in known.iter().enumerate() {
            if known[..index].iter().any(|(before, _)| before == function) {
                continue;
            }
            let of_it = truth.iter().filter(|((name, _), _)| name == function);
            let truth = of_it.map(|(_, share)| share).sum();
            let share = batch_means(&functions, |hit| hit == index);
            // The report prints these counts.
            let hits = functions.iter().filter(|hit| **hit == index).count();
            let mut entries = list(&self.document["entries"]).iter();
            let entry = entries.find(|entry| entry["name"] == **function);
            let reported = entry.and_then(|entry| entry["samples"].as_u64());
            assert_eq!(reported, Some(hits as u64), "{function}");
            all.push((function.clone(), share, truth));
        }
        all
    }

    /// Sample share of each direct caller of a function, with error and number, over all samples of
    /// the function; and the truth. The callers are the ranges' functions.
    pub fn callers_of(&self, callee: &str) -> Vec<(String, Share, u64, f64)> {
        let mut truth: BTreeMap<String, f64> = BTreeMap::new();
        for ((function, _), share) in self.truth(None) {
            *truth.entry(function).or_default() += share;
        }
        let profile = &self.profile;
        let mut nodes = Vec::new();
        let stacks = each_stack(profile, &Filter::default(), |sample| {
            nodes.push(sample.node)
        });
        // Number of the direct caller of the innermost occurrence; without a known caller, their count.
        let caller_in = |node: StackId| {
            let sites: Vec<SiteId> = stacks.path(node).collect();
            let frames = sites
                .iter()
                .rev()
                .flat_map(|&site| frames_of(profile, site, true));
            let names: Vec<&str> = frames.map(|frame| &*frame.place.name).collect();
            let at = names.iter().rposition(|name| *name == callee)?;
            let caller = at.checked_sub(1).map(|caller| names[caller]);
            let known = |caller: &str| truth.keys().position(|name| name == caller);
            Some(caller.and_then(known).unwrap_or(truth.len()))
        };
        let hits: Vec<usize> = nodes.into_iter().filter_map(caller_in).collect();
        let shares = truth.iter().enumerate().map(|(index, (name, truth))| {
            let count = hits.iter().filter(|hit| **hit == index).count() as u64;
            let share = batch_means(&hits, |hit| hit == index);
            (name.clone(), share, count, *truth)
        });
        shares.collect()
    }

    pub fn tids(&self) -> Vec<u64> {
        let threads = list(&self.program["threads"]).iter();
        threads
            .filter_map(|thread| thread["tid"].as_u64())
            .collect()
    }

    /// Every share there is, of two threads, against the program's own clock.
    pub fn agrees_with_its_clock(&self, what: &str) {
        let tids = self.tids();
        assert_eq!(tids.len(), 2);
        self.agrees_of(what, &tids);
    }

    /// Compares the shares of all threads together, and of each thread in `tids`.
    pub fn agrees_of(&self, what: &str, tids: &[u64]) {
        let missing = self.missing();
        let mut worst = Worst::default();
        for (function, share, truth) in self.by_function() {
            worst.compare(&function, share, truth, missing);
        }
        for tid in std::iter::once(None).chain(tids.iter().copied().map(Some)) {
            let truth = self.truth(tid);
            for (range, share) in self.shares(tid) {
                let name = format!("{} line {} of {tid:?}", range.0, range.1);
                worst.compare(&name, share, truth[&range], missing);
            }
        }
        let (delivered, promised) = self.delivery();
        say(&format!(
            "{what}: {delivered} samples of {promised:.0} promised ({:.2} %), \
             {} comparisons: greatest error {:.2} points, {:.1} standard errors; \
             widest bound {:.2} points",
            100.0 * delivered / promised,
            worst.comparisons,
            100.0 * worst.difference,
            worst.in_errors,
            100.0 * worst.bound,
        ));
        self.is_delivered();
    }

    /// docs/truth.md §2. What the host takes away can't be made up for, and is known as stolen
    /// time on most machines; a guest's own load takes little. docs/truth.md says what is
    /// delivered: this bound is for any machine that a test may run on.
    pub fn is_delivered(&self) {
        let (delivered, promised) = self.delivery();
        let period = number(&self.document["session"]["period_ns"]);
        let chance = self.chance();
        let least = 0.97 * promised - self.stolen_ns / period - chance;
        assert!(
            delivered >= least && delivered <= 1.02 * promised + chance,
            "{delivered} of {promised} ± {chance}, {} ns stolen",
            self.stolen_ns
        );
        assert_eq!(self.document["samples"]["lost"], 0);
    }
}

impl Measured {
    /// Samples that chance adds or removes: six standard deviations, which it exceeds in 2e-9 of all
    /// cases. None with the kernel engine, whose ticks follow each thread's own CPU time.
    ///
    /// The in-VM sampler's ticks are a renewal process in wall time, common to all threads: their gaps'
    /// deviation is half a period, so that of n ticks is √n / 2, and each has a sample of each thread
    /// that runs. Whether a thread that competes for CPUs runs at a tick, with the probability p, adds
    /// p (1 - p) to the variance, for each tick.
    fn chance(&self) -> f64 {
        if self.document["session"]["engine"] != "in-vm" {
            return 0.0;
        }
        let (_, promised) = self.delivery();
        let seconds = number(&self.document["session"]["seconds"]);
        let period = number(&self.document["session"]["period_ns"]) / 1e9;
        let ticks = seconds / period;
        let each = list(&self.document["threads"]).iter();
        let parts = each.map(|thread| (number(&thread["cpu_ns"]) / 1e9 / seconds).min(1.0));
        let of_running: f64 = parts.map(|part| ticks * part * (1.0 - part)).sum();
        6.0 * (promised.powi(2) / ticks / 4.0 + of_running).sqrt()
    }
}

/// How much of all CPUs' time the host has taken since the machine started: the eighth
/// figure of /proc/stat, in ticks of 10 ms.
pub fn stolen_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let ticks = text.split_whitespace().nth(8);
    ticks.and_then(|ticks| ticks.parse().ok()).unwrap_or(0.0) * 1e7
}

/// The greatest of what was compared.
#[derive(Debug, Default)]
pub struct Worst {
    pub comparisons: usize,
    pub difference: f64,
    pub in_errors: f64,
    pub bound: f64,
}

impl Worst {
    #[track_caller]
    pub fn compare(&mut self, name: &str, share: Share, truth: f64, missing: f64) {
        let Share { share, error } = share;
        let (difference, bound) = ((share - truth).abs(), T * error + missing);
        assert!(
            difference <= bound,
            "{name}: reported {share:.4}, true {truth:.4}, standard error {error:.5}, \
             not delivered {missing:.4}"
        );
        // Else it would prove nothing: far above what errors are, as they vary too.
        assert!(T * error < 0.1, "{name}: {error} is too wide a bound");
        self.comparisons += 1;
        self.difference = self.difference.max(difference);
        self.in_errors = self.in_errors.max(difference / error.max(1e-9));
        self.bound = self.bound.max(bound);
    }
}

/// A share in `hits`, and its standard error by batch means.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn batch_means(hits: &[usize], counts: impl Fn(usize) -> bool) -> Share {
    let part = |hits: &[usize]| {
        let counted = hits.iter().filter(|hit| counts(**hit)).count();
        counted as f64 / hits.len() as f64
    };
    let size = hits.len() / BATCHES;
    assert!(size >= 20, "{} samples are too few", hits.len());
    let means: Vec<f64> = hits.chunks_exact(size).take(BATCHES).map(part).collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
    let variance = squares / (BATCHES - 1) as f64;
    Share {
        share: part(hits),
        error: (variance / BATCHES as f64).sqrt(),
    }
}

trait IntoValuesWith {
    fn into_values_with(self, change: impl Fn(f64) -> f64) -> Self;
}

impl IntoValuesWith for BTreeMap<Range, f64> {
    fn into_values_with(self, change: impl Fn(f64) -> f64) -> Self {
        let changed = self.into_iter();
        changed.map(|(key, value)| (key, change(value))).collect()
    }
}

pub fn range_of(range: &Value) -> Range {
    let function = range["function"].as_str().expect("a name").to_owned();
    (function, range["line"].as_u64().expect("a line"))
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}
