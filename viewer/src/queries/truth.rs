//! What limits the truth of a report (TRUTH.md): said before anything else.

mod exactness;
mod omitted;
mod resolution;

pub(crate) use exactness::{Exact, exactness_of};
pub use resolution::unnamed_generated;

use crate::present::numbers::{count, percent, some};
use std::collections::BTreeSet;
use vmscope_records::recording::Damage;
use vmscope_records::{
    EndReason, Exactness, LimitKind, LossReason, ModuleState, Stream, ThreadEnd, TimeNs,
};
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::{Profile, Summary};

/// One thing that limits what a report can truthfully say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthLine {
    /// The samples it concerns, where that is known.
    pub samples: Option<u64>,
    /// What it is, a sentence.
    pub text: String,
    /// What would improve it; may be empty.
    pub remedy: String,
    /// What kind of thing it is.
    pub about: About,
    /// What of the profile it concerns.
    pub concerns: Concerns,
}

/// What kind of thing limits the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// The recording is not whole.
    Damage,
    /// Samples or records are known to be lost.
    Losses,
    /// Not all samples that were promised arrived.
    Delivery,
    /// Samples are not resolved as well as they might be.
    Resolution,
    /// Code or files changed while they were looked at.
    Changes,
    /// What was not permitted, or is not told.
    Limits,
}

/// What of the profile a line concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concerns {
    /// Nothing in particular, or all of it.
    Everything,
    /// A time.
    Window(TimeNs, TimeNs),
    /// Threads.
    Threads,
    /// Entries of generated code without a name.
    UnnamedGenerated,
    /// Other entries without a name.
    Unnamed,
    /// Entries that stand for doubtful samples.
    Doubtful,
    /// The interpreter.
    Interpreter,
    /// Entries that have ranges worth so much: of the code that VMs made or interpret
    /// (`Some(true)`), of native code (`Some(false)`), of both.
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

    fn about(self, about: About) -> Self {
        TruthLine { about, ..self }
    }

    fn concerning(self, concerns: Concerns) -> Self {
        TruthLine { concerns, ..self }
    }
}

/// Below this share of the promised samples, delivery is worth a line of its own.
const GOOD_DELIVERY: f64 = 0.99;

/// With fewer promised samples than this, the delivery rate says nothing: one sample
/// more or less for each thread is chance.
const ENOUGH_PROMISED: f64 = 200.0;

/// Everything that limits the truth of a report, the gravest first.
#[must_use]
pub fn truth_of(profile: &Profile, summary: &Summary) -> Vec<TruthLine> {
    let mut lines = Vec::new();
    how_it_ended(profile, &mut lines);
    tell_about(&mut lines, About::Damage);
    if summary.total == 0 {
        let what = if profile.trace.samples.times.is_empty() {
            "no samples were taken: the threads hardly ran, or nothing reached the recording"
        } else {
            "no samples are among those threads in that time"
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
    for limit in &profile.trace.limits {
        let line = TruthLine::new(None, limit.text.clone(), limit.remedy.clone());
        lines.push(line.about(match limit.kind {
            LimitKind::NoSymbols => About::Resolution,
            LimitKind::NotSampled => About::Delivery,
            _ => About::Limits,
        }));
    }
    let truncated = profile.trace.samples.truncated_chains;
    if truncated > 0 {
        let text = "caller chains were cut off at their greatest depth";
        lines.push(TruthLine::new(
            Some(truncated),
            text,
            "record with a greater --max-depth",
        ));
    }
    lines
}

/// Says of the lines that are new what they are about, unless they say so themselves.
fn tell_about(lines: &mut [TruthLine], about: About) {
    for line in lines.iter_mut().filter(|line| line.about == About::Limits) {
        line.about = about;
    }
}

fn how_it_ended(profile: &Profile, lines: &mut Vec<TruthLine>) {
    let trace = &profile.trace;
    let start = trace
        .session
        .as_ref()
        .map_or(TimeNs(0), |session| session.time);
    let at = |time: TimeNs| format!("{:.1} s", time.since(start).as_secs_f64());
    match &trace.end {
        // It goes on.
        None if profile.omitted.is_some() => {}
        None => lines.push(TruthLine::new(
            None,
            format!(
                "the recording was cut off after {}: vmscope was killed, or the machine stopped; \
                 what happened after that is not in this report",
                at(trace.ending.last_time)
            ),
            "",
        )),
        Some(end) if matches!(end.reason, EndReason::WriteFailed | EndReason::EngineFailed) => {
            let text = format!(
                "the recording ends early, after {}: {}",
                at(end.time),
                end.detail
            );
            lines.push(TruthLine::new(None, text, ""));
        }
        Some(_) => {}
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
            "records of kinds that this vmscope does not know were skipped",
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

/// Whose losses are told apart, with their words; samples have a column of their own.
const STREAMS: [(Stream, &str); 5] = [
    (Stream::Samples, ""),
    (
        Stream::Any,
        "records of any kind, samples among them or not, ",
    ),
    (Stream::Process, "news of threads, processes and mappings "),
    (
        Stream::Adapter,
        "entries of what a VM tells of its code (it may have no name, or that of older code) ",
    ),
    (Stream::Lifetimes, "births, survivals or deaths "),
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
            "lost because the writer was held up",
            "a faster disk",
        ),
        (LossReason::TooLarge, "too large to be recorded", ""),
        (LossReason::KeepLastFull, "not kept", ""),
        (LossReason::Undecodable, "that could not be decoded", ""),
        (LossReason::Other, "lost", ""),
    ];
    let start = profile
        .trace
        .session
        .as_ref()
        .map_or(TimeNs(0), |session| session.time);
    let kinds = STREAMS
        .iter()
        .flat_map(|stream| words.iter().map(move |words| (*stream, *words)));
    for ((stream, things), (reason, what, remedy)) in kinds {
        let of_this = profile.trace.lost.iter().filter(|lost| {
            lost.stream == stream
                && lost.reason == reason
                && lost.from <= summary.window.1
                && lost.to >= summary.window.0
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
        let text = "how many samples were promised is not known: no thread's CPU time was read";
        lines.push(TruthLine::new(None, text, ""));
        return;
    };
    let delivered = summary.total as f64 / promised.max(1.0);
    if promised >= ENOUGH_PROMISED && delivered < GOOD_DELIVERY {
        let missing = (promised - summary.total as f64) as u64;
        let mut text = format!(
            "promised by the threads' CPU time but not delivered ({} arrived)",
            percent(delivered)
        );
        let mut remedy = "";
        let unseen = unseen_threads(profile, summary);
        if unseen > 0 {
            let unseen = count(unseen);
            text.push_str(&format!(
                "; {unseen} threads ended before their first sample, which comes a period \
                 after their start, and what they ran does not show"
            ));
            remedy = "a higher --rate";
        }
        let line = TruthLine::new(Some(missing), text, remedy);
        lines.push(line.concerning(Concerns::Threads));
    }
    if summary.after_last_cpu > 0 {
        let text = "were taken after their threads' CPU time was last read: they count as promised";
        lines.push(TruthLine::new(Some(summary.after_last_cpu), text, ""));
    }
    if summary.threads_without_cpu > 0 {
        let text = format!(
            "the CPU time of {} is not known, so that less was promised than they used",
            some(summary.threads_without_cpu, "thread", "threads")
        );
        lines.push(TruthLine::new(None, text, "").concerning(Concerns::Threads));
    }
}

/// Threads that ended in the window without a sample in the whole recording.
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

/// Files that are not what ran.
fn modules(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    let trace = &profile.trace;
    let is_hit = |site: &u32| summary.sites.get(*site as usize).is_some_and(|n| *n > 0);
    let mut hit = BTreeSet::new();
    for (place, site) in trace.places.iter().zip(&profile.site_of_place) {
        if let Place::Native(module, _) = place
            && is_hit(site)
        {
            hit.insert(*module);
        }
    }
    for module in hit.iter().filter_map(|key| trace.modules.get(key)) {
        let path = &module.path;
        let text = match &module.state {
            ModuleState::Deleted => format!("{path} was deleted while it ran"),
            ModuleState::Replaced => {
                format!(
                    "{path} was replaced while it ran: the file there now is not the one that ran"
                )
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
