//! Limits of a report's accuracy (docs/truth.md).

mod exactness;
mod omitted;
mod resolution;

pub(crate) use exactness::{Exact, exactness_of};
pub use resolution::{native_of, unnamed_generated};

use crate::present::numbers::{count, percent, some};
use std::collections::BTreeSet;
use vmscope_records::recording::Damage;
use vmscope_records::{
    EndReason, Exactness, Limit, LimitKind, LossReason, ModuleState, Stream, ThreadEnd, TimeNs,
    is_shared_memory,
};
use vmscope_symbolizer::summary::is_loss_in;
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::{Profile, SiteId, Summary};

/// A limit of accuracy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthLine {
    /// Number of affected samples, if known.
    pub samples: Option<u64>,
    /// A sentence; continues the number of samples.
    pub text: String,
    /// May be empty.
    pub remedy: String,
    pub about: About,
    /// Affected part of the profile.
    pub concerns: Concerns,
}

/// Kind of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Incomplete recording.
    Damage,
    /// Lost samples or records.
    Losses,
    /// Fewer samples than promised.
    Delivery,
    /// Imprecise resolution.
    Resolution,
    /// Code or files changed during the recording.
    Changes,
    /// Missing permissions or reports.
    Limits,
}

/// Affected part of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concerns {
    /// Everything, or nothing in particular.
    Everything,
    Window(TimeNs, TimeNs),
    Threads,
    /// Nameless entries of generated code.
    UnnamedGenerated,
    /// Other nameless entries.
    Unnamed,
    /// Entries of doubtful samples.
    Doubtful,
    Interpreter,
    /// Entries with ranges of this exactness: of VM code (`Some(true)`), of native code
    /// (`Some(false)`), of both.
    Worth(Exactness, Option<bool>),
}

impl TruthLine {
    fn new(samples: Option<u64>, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        TruthLine {
            samples,
            text: text.into(),
            remedy: remedy.into(),
            about: About::Limits,
            concerns: Concerns::Everything,
        }
    }

    /// Number of samples, then the sentence.
    pub fn in_full(&self) -> String {
        match self.samples {
            Some(samples) => format!("{} {}", some(samples, "sample", "samples"), self.text),
            None => self.text.clone(),
        }
    }

    fn about(self, about: About) -> Self {
        TruthLine { about, ..self }
    }

    fn concerning(self, concerns: Concerns) -> Self {
        TruthLine { concerns, ..self }
    }
}

/// Minimum good delivery, as a share of promised samples.
const GOOD_DELIVERY: f64 = 0.99;

/// Periods of CPU time below which the loss of half a period on each of two CPUs is more than a
/// twentieth of a thread's samples.
const BRIEF_PERIODS: f64 = 20.0;

/// Minimum number of promised samples for a meaningful delivery: chance adds or removes one sample
/// per thread.
const ENOUGH_PROMISED: f64 = 200.0;

/// All limits, the worst first.
#[must_use]
pub fn truth_of(profile: &Profile, summary: &Summary) -> Vec<TruthLine> {
    let mut lines = Vec::new();
    how_it_ended(profile, &mut lines);
    tell_about(&mut lines, About::Damage);
    if summary.total == 0 {
        let what = if profile.trace.samples.times.is_empty() {
            "no samples: the threads hardly ran, or nothing reached the recording"
        } else {
            "no samples match this filter"
        };
        lines.push(TruthLine::new(None, what, ""));
    }
    tell_about(&mut lines, About::Delivery);
    losses(profile, summary, &mut lines);
    tell_about(&mut lines, About::Losses);
    delivery(profile, summary, &mut lines);
    tell_about(&mut lines, About::Delivery);
    resolution::tell(profile, summary, &mut lines);
    omitted::tell(profile, &mut lines);
    tell_about(&mut lines, About::Resolution);
    modules(profile, summary, &mut lines);
    // The VM's own limit of callers, if any, is the newest limit.
    let of_callers = |limit: &&Limit| limit.kind == LimitKind::Callers;
    let callers = profile.trace.limits.iter().rev().find(of_callers);
    // Limits of callers concern frame pointers.
    let has_callers = profile.trace.samples.chain_ends.unknown > 0;
    // Reasons for missing samples and names stand beside their numbers.
    let no_names = resolution::reason_for_no_names(profile, summary);
    let is_told = |limit: &Limit| no_names.is_some_and(|one| std::ptr::eq(one, limit));
    let limits = profile.trace.limits.iter();
    let limits = limits.filter(|limit| limit.kind != LimitKind::Missing && !is_told(limit));
    let limits = limits.filter(|limit| {
        !of_callers(limit) || has_callers && callers.is_some_and(|one| std::ptr::eq(one, *limit))
    });
    for limit in limits {
        let line = TruthLine::new(None, limit.text.clone(), limit.remedy.clone());
        lines.push(line.about(match limit.kind {
            LimitKind::NoSymbols => About::Resolution,
            LimitKind::NotSampled => About::Delivery,
            _ => About::Limits,
        }));
    }
    callers_are_incomplete(profile, summary, &mut lines);
    lines
}

/// Chains of callers that end before the thread's first frame, by reason. Counts cover the whole
/// recording, even under a filter.
fn callers_are_incomplete(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    let samples = &profile.trace.samples;
    let ends = &samples.chain_ends;
    let part = match summary.total < samples.times.len() as u64 {
        true => "in the whole recording ",
        false => "",
    };
    let broken = match ends.unknown {
        0 => "without outer callers: a frame has no unwind rule",
        _ => "without outer callers: a frame pointer led to no code",
    };
    // Chains by frame pointers have the kernel's bound, or that of the VM's own sampler.
    let deeper = match ends.unknown {
        0 => "record with a greater --max-depth",
        _ => "record with --engine=kernel --call-graph=auto",
    };
    let told = [
        (ends.broken, broken, ""),
        (ends.depth, "beyond the maximum depth of callers", deeper),
        (
            ends.stack,
            "without outer callers: their stacks are larger than the copies",
            "record with a greater --stack-size",
        ),
        (
            ends.behind,
            "without callers: vmscope was too slow to unwind them",
            "record with a smaller --rate or --stack-size",
        ),
        (
            ends.guessed,
            "with callers that rest on a frame pointer alone: code without an unwind table",
            "",
        ),
        (
            ends.late,
            "with callers read from the stack after the sample: nothing confirms them",
            "record with a greater --stack-size",
        ),
    ];
    for (count, text, remedy) in told.into_iter().filter(|(count, ..)| *count > 0) {
        lines.push(TruthLine::new(Some(count), format!("{part}{text}"), remedy));
    }
}

/// Assigns a kind to lines without one.
fn tell_about(lines: &mut [TruthLine], about: About) {
    for line in lines.iter_mut().filter(|line| line.about == About::Limits) {
        line.about = about;
    }
}

/// Begin of the recording.
fn start_of(profile: &Profile) -> TimeNs {
    let session = profile.trace.session.as_ref();
    session.map_or(TimeNs(0), |session| session.time)
}

fn how_it_ended(profile: &Profile, lines: &mut Vec<TruthLine>) {
    let trace = &profile.trace;
    let start = start_of(profile);
    let at = |time: TimeNs| format!("{:.1} s", time.since(start).as_secs_f64());
    match &trace.end {
        // The recording continues.
        None if profile.omitted.is_some() || trace.unread.is_some() => {}
        None => lines.push(TruthLine::new(
            None,
            format!(
                "the recording ends abruptly after {}: vmscope was killed, or the machine stopped",
                at(trace.ending.last_time)
            ),
            "",
        )),
        Some(end) if end.reason.is_early() => {
            let text = format!(
                "the recording ends early, after {}: {}",
                at(end.time),
                end.detail
            );
            let remedy = match end.reason {
                EndReason::MemoryFull => "record with a greater --max-memory",
                _ => "",
            };
            lines.push(TruthLine::new(None, text, remedy));
        }
        Some(_) => {}
    }
    if let Some(unread) = trace.unread {
        let (bytes, of) = (count(unread.bytes), count(unread.offset + unread.bytes));
        let text = format!(
            "the last {bytes} of {of} bytes of the recording were not read, or in part: they need \
             more than {} MB of memory",
            count(unread.max_memory >> 20)
        );
        lines.push(TruthLine::new(
            None,
            text,
            "report with a greater --max-memory",
        ));
    }
    for Damage {
        offset,
        bytes,
        why,
        at_end,
    } in &trace.ending.damages
    {
        let (bytes, at_end) = (count(*bytes), if *at_end { ", at its end" } else { "" });
        lines.push(TruthLine::new(
            None,
            format!("{bytes} bytes of the recording are damaged (byte {offset}{at_end}): {why}"),
            "",
        ));
    }
    let unlisted = trace
        .ending
        .damage_count
        .saturating_sub(trace.ending.damages.len() as u64);
    if unlisted > 0 {
        let bytes = count(trace.ending.damaged_bytes);
        let text = format!("{unlisted} more damaged places, {bytes} bytes damaged in all");
        lines.push(TruthLine::new(None, text, ""));
    }
    for (number, what) in [
        (
            trace.unknown_records,
            "records of unknown kinds (from a later vmscope) were skipped",
        ),
        (
            trace.malformed_records,
            "records could not be decoded and were skipped",
        ),
        (
            trace.disordered_samples,
            "samples are out of time order: the code may have changed meanwhile",
        ),
    ] {
        if number > 0 {
            lines.push(TruthLine::new(
                None,
                format!("{} {what}", count(number)),
                "",
            ));
        }
    }
}

/// Streams with losses, in words; lines of samples begin with their number.
const STREAMS: [(Stream, &str); 5] = [
    (Stream::Samples, ""),
    (Stream::Any, "records of any kind, perhaps samples, "),
    (
        Stream::Process,
        "events of threads, processes and mappings ",
    ),
    (
        Stream::Adapter,
        "VM code events (some code may be misnamed) ",
    ),
    (Stream::Lifetimes, "object lifetime events "),
];

fn losses(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    let words = [
        (
            LossReason::RingOverrun,
            "lost because the kernel's ring was full",
            "a lower --rate",
        ),
        (
            LossReason::Throttled,
            "throttled by the kernel",
            "a lower --rate",
        ),
        (
            LossReason::ChannelOverrun,
            "lost because the writer was too slow",
            "a faster disk",
        ),
        (LossReason::TooLarge, "too large to be recorded", ""),
        (LossReason::KeepLastFull, "not kept", ""),
        (LossReason::Undecodable, "that could not be decoded", ""),
        (LossReason::Other, "lost", ""),
    ];
    let start = start_of(profile);
    let kinds = STREAMS
        .iter()
        .flat_map(|stream| words.iter().map(move |words| (*stream, *words)));
    for ((stream, things), (reason, what, remedy)) in kinds {
        let of_this = profile.trace.lost.iter().filter(|lost| {
            lost.stream == stream
                && lost.reason == reason
                && is_loss_in(profile, lost, summary.window)
        });
        let (mut lost, mut from, mut to) = (0u64, TimeNs(u64::MAX), TimeNs(0));
        for loss in of_this {
            lost = loss.count.saturating_add(lost);
            from = from.min(loss.from);
            to = to.max(loss.to);
        }
        if lost > 0 {
            let second = |time: TimeNs| time.since(start).as_secs_f64();
            let is_of_samples = stream == Stream::Samples;
            let number = if is_of_samples {
                String::new()
            } else {
                format!("{} ", count(lost))
            };
            let text = format!(
                "{number}{things}{what}, between {:.1} s and {:.1} s",
                second(from),
                second(to)
            );
            let line = TruthLine::new(is_of_samples.then_some(lost), text, remedy);
            lines.push(line.concerning(Concerns::Window(from, to)));
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of samples are far below 2^52 and not negative"
)]
fn delivery(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    let Some(promised) = summary.promised else {
        // A filter by code leaves no number, either: CPU time has no location.
        if !summary.by_code {
            let text = "number of expected samples unknown: no thread's CPU time was read";
            lines.push(TruthLine::new(None, text, ""));
        }
        return;
    };
    let delivered = summary.total as f64 / promised.max(1.0);
    if promised >= ENOUGH_PROMISED && delivered < GOOD_DELIVERY {
        let missing = (promised - summary.total as f64) as u64;
        let mut text = format!(
            "expected by the threads' CPU time, but missing ({} received)",
            percent(delivered)
        );
        let mut remedy = "";
        let unseen = unseen_threads(profile, summary);
        if unseen > 0 {
            let unseen = count(unseen);
            text.push_str(&format!(
                "; {unseen} threads ended before their first sample (one period after their start)"
            ));
            remedy = "a higher --rate";
        }
        let (brief, missing_there) = brief_threads(summary);
        if missing_there * 2.0 > missing as f64 {
            text.push_str(&format!(
                "; most of them of {} with less than {BRIEF_PERIODS} periods of CPU time each",
                some(brief, "thread", "threads")
            ));
            remedy = "a higher --rate";
        }
        let reasons = profile.trace.limits.iter();
        for reason in reasons.filter(|limit| limit.kind == LimitKind::Missing) {
            text.push_str(&format!("; {}", reason.text));
        }
        let line = TruthLine::new(Some(missing), text, remedy);
        lines.push(line.concerning(Concerns::Threads));
    }
    if summary.after_last_cpu > 0 {
        let text = "after the last reading of their threads' CPU time: they count as expected";
        lines.push(TruthLine::new(Some(summary.after_last_cpu), text, ""));
    }
    if summary.threads_without_cpu > 0 {
        let text = format!(
            "the CPU time of {} is unknown: the number of expected samples is too low",
            some(summary.threads_without_cpu, "thread", "threads")
        );
        lines.push(TruthLine::new(None, text, "").concerning(Concerns::Threads));
    }
}

/// Threads with little CPU time, and their missing samples. A thread loses half a period on each CPU
/// on average (docs/truth.md).
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn brief_threads(summary: &Summary) -> (u64, f64) {
    let promised = summary.threads.iter();
    let promised = promised.filter_map(|thread| Some((thread.promised?, thread.samples)));
    let brief = promised.filter(|(promised, _)| *promised > 0.0 && *promised < BRIEF_PERIODS);
    brief.fold((0, 0.0), |(threads, missing), (promised, samples)| {
        (threads + 1, missing + promised - samples as f64)
    })
}

/// Threads that ended in the window without any sample in the recording.
fn unseen_threads(profile: &Profile, summary: &Summary) -> u64 {
    let trace = &profile.trace;
    let mut seen = profile.time_buckets.have_samples(&trace.samples);
    seen.resize(trace.threads.len(), false);
    let (from, to) = summary.window;
    let unseen = trace.threads.iter().zip(seen).filter(|(thread, seen)| {
        let ended = |end: &ThreadEnd| !end.alive && (from..=to).contains(&end.time);
        !seen && thread.end.as_ref().is_some_and(ended)
    });
    unseen.count() as u64
}

/// Files that differ from the running ones.
fn modules(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    let trace = &profile.trace;
    // The summary may be older than the newest sites.
    let is_hit = |site: SiteId| summary.sites.get(site).is_some_and(|n| *n > 0);
    let mut hit = BTreeSet::new();
    for (place, &site) in trace.places.iter().zip(&profile.site_of_place) {
        if let Place::Native(module, ..) = place
            && is_hit(site)
        {
            hit.insert(*module);
        }
    }
    for module in hit.iter().filter_map(|key| trace.modules.get(key)) {
        let path = &module.path;
        // Shared memory always counts as deleted.
        if is_shared_memory(path.as_bytes()) {
            continue;
        }
        let text = match &module.state {
            ModuleState::Deleted => format!("{path} was deleted while it ran"),
            ModuleState::Replaced => {
                format!("{path} was replaced while it ran")
            }
            ModuleState::Unreadable(why) => format!("{path} could not be read: {why}"),
            _ => continue,
        };
        let about = match &module.state {
            ModuleState::Unreadable(_) => About::Limits,
            _ => About::Changes,
        };
        lines.push(TruthLine::new(None, text, "").about(about));
    }
}
