//! The recorded program: command, machine, facts, filter, marks.

use super::page::{Page, narrowed_to};
use crate::present::names::{attached, pids, region_key};
use crate::present::numbers::{session_time, some};
use crate::present::text::{cut_at_word, harmless};
use crate::queries::truth::truth_of;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use vmscope_records::{Fact, Mark, ProcessKey, SampleClock};
use vmscope_symbolizer::Profile;

/// Maximum number of listed marks.
const MAX_MARKS: usize = 100;

/// Maximum width of a command line and of a process's facts; the JSON report has them whole.
const MAX_COMMAND: usize = 400;

/// Shortest fact in bytes that may repeat a part of the command line.
const MIN_REPEATED: usize = 16;

/// Maximum number of processes with facts of their own.
const MAX_PROCESSES: usize = 4;

pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let trace = &page.profile.trace;
    let Some(session) = &trace.session else {
        return;
    };
    let command = cut_at_word(&session.command.join(" "), MAX_COMMAND);
    let when = session_time(session.wall_clock_unix_ns);
    page.paragraph(out, &format!("{command}  {when}"));
    let vm = &session.vm;
    let kind = match vm.kind.as_str() {
        "native" => "native program".to_owned(),
        kind => format!("{kind} {}", vm.version).trim_end().to_owned(),
    };
    let clock = match session.clock {
        SampleClock::Cpu => "CPU time: waiting threads have no samples",
        _ => "wall-clock time",
    };
    let modes = match session.kernel_included {
        true => "user and kernel",
        false => "user only",
    };
    // Imports know neither machine nor scheduling.
    let machine = match session.host.is_empty() {
        true => String::new(),
        false => format!(
            ", on {} ({}, {} CPUs)",
            session.host, session.kernel, session.cpus
        ),
    };
    let scheduling = match session.scheduling.is_empty() {
        true => String::new(),
        false => format!("{}, ", session.scheduling),
    };
    let line = format!(
        "{kind}, {}{machine}; {} engine, {scheduling}{modes}; clock: {clock}",
        pids(trace),
        session.engine,
    );
    page.paragraph(out, &line);
    for facts in facts_by_process(&told(page.profile)) {
        page.paragraph(out, &cut_at_word(&facts, MAX_COMMAND));
    }
    if let Some(narrowed) = narrowed_to(page.profile, page.filter, page.summary) {
        page.paragraph(out, &narrowed);
    }
    let marks = marks(page);
    for (seconds, text) in marks.iter().take(MAX_MARKS) {
        let line = format!("mark at {seconds:.3} s: {}", harmless(text));
        page.paragraph(out, line.trim_end());
    }
    if marks.len() > MAX_MARKS {
        let more = (marks.len() - MAX_MARKS) as u64;
        let more = some(more, "more mark", "more marks");
        out.push_str(&format!("({more} omitted)\n"));
    }
}

/// The user's marks in the window, by time: seconds since the recording's begin, text.
fn marks<'a>(page: &Page<'a>) -> Vec<(f64, &'a str)> {
    let trace = &page.profile.trace;
    let begin = trace.session.as_ref().map(|session| session.time);
    let (from, to) = page.summary.window;
    let marks = trace.marks.iter();
    let marks = marks.filter(|mark| (from..=to).contains(&mark.time));
    let mark = |mark: &'a Mark| Some((mark.time.since(begin?).as_secs_f64(), &*mark.text));
    marks.filter_map(mark).collect()
}

/// Facts for readers. What VMs were asked through the environment concerns VMs only; what is a part
/// of the command line stands there.
fn told(profile: &Profile) -> Vec<Fact> {
    let trace = &profile.trace;
    let command = trace.session.as_ref();
    let command = command.map_or_else(String::new, |session| session.command.join(" "));
    let facts = trace.facts.iter();
    let facts = facts.filter(|fact| fact.name != "environment" || !profile.is_native());
    let facts =
        facts.filter(|fact| fact.value.len() < MIN_REPEATED || !command.contains(&fact.value));
    facts.cloned().collect()
}

/// A line of facts per process, the newest fact of each name. Equal lines appear once.
fn facts_by_process(facts: &[Fact]) -> Vec<String> {
    let mut by_process: Vec<(ProcessKey, Vec<&Fact>)> = Vec::new();
    for fact in facts {
        let known = by_process.iter().position(|(key, _)| *key == fact.process);
        let at = known.unwrap_or_else(|| {
            by_process.push((fact.process, Vec::new()));
            by_process.len() - 1
        });
        let Some((_, facts)) = by_process.get_mut(at) else {
            continue;
        };
        match facts.iter_mut().find(|known| known.name == fact.name) {
            Some(known) => *known = fact,
            None => facts.push(fact),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let mut left_out = 0;
    for (_, facts) in by_process {
        let facts = facts.iter();
        let facts = facts.map(|fact| format!("{}: {}", fact.name, fact.value));
        let line = facts.collect::<Vec<_>>().join("  ");
        if lines.contains(&line) {
            continue;
        }
        match lines.len() < MAX_PROCESSES {
            true => lines.push(line),
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        lines.push(format!(
            "(facts of {} omitted)",
            some(left_out, "more process", "more processes")
        ));
    }
    lines
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a period")]
pub(super) fn json(page: &Page<'_>) -> Result<Value> {
    let (profile, summary) = (page.profile, page.summary);
    let trace = &profile.trace;
    let session = trace.session.as_ref();
    let session = session.context("the recording is empty")?;
    let facts = trace.facts.iter();
    let mut facts: Vec<_> = facts
        .map(|fact| (fact.name.clone(), fact.value.clone()))
        .collect();
    facts.sort_by(|(a, _), (b, _)| a.cmp(b));
    let facts: Map<String, Value> = facts
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let limits = truth_of(profile, summary).into_iter().map(|line| {
        let mut json = json!({ "text": line.text });
        if let Some(samples) = line.samples {
            json["samples"] = samples.into();
        }
        if !line.remedy.is_empty() {
            json["remedy"] = line.remedy.into();
        }
        json
    });
    let mut json = json!({
        "vm": { "kind": session.vm.kind, "version": session.vm.version },
        "command": session.command,
        "pid": session.pid.0,
        "pids": attached(trace).iter().map(|pid| pid.0).collect::<Vec<_>>(),
        "seconds": page.seconds(),
        "clock": match session.clock {
            SampleClock::Wall => "wall",
            _ => "cpu",
        },
        "rate_hz": 1e9 / session.period.0 as f64,
        "achieved_hz": page.frequency(),
        "period_ns": session.period.0,
        "engine": session.engine,
        "scheduling": session.scheduling,
        "kernel_included": session.kernel_included,
        "host": session.host,
        "kernel": session.kernel,
        "wall_clock_unix_ns": session.wall_clock_unix_ns,
        "facts": facts,
        "complete": trace.end.is_some() && trace.unread.is_none(),
        "limits": limits.collect::<Vec<_>>(),
    });
    if narrowed_to(profile, page.filter, summary).is_some() {
        let (from, to) = summary.window;
        let regions = page.filter.only.regions.iter();
        let regions = regions.map(|region| region_key(*region, profile.is_native()));
        let regions: Vec<&str> = regions.collect();
        json["filter"] = json!({
            "regions": (!regions.is_empty()).then_some(regions),
            "threads": page.filter.threads.as_ref().map(|threads| threads.len()),
            "from_seconds": from.since(session.time).as_secs_f64(),
            "to_seconds": to.since(session.time).as_secs_f64(),
        });
    }
    Ok(json)
}

/// `None` without marks.
pub(super) fn marks_json(page: &Page<'_>) -> Option<Value> {
    let marks = marks(page).into_iter();
    let marks = marks.map(|(seconds, text)| json!({ "seconds": seconds, "text": text }));
    let marks: Vec<Value> = marks.collect();
    (!marks.is_empty()).then(|| marks.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::TimeNs;

    #[test]
    fn facts_are_told_once() {
        let fact = |process, name: &str, value: &str| Fact {
            process: ProcessKey(process),
            time: TimeNs(0),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let mut facts = vec![
            fact(1, "JVM", "HotSpot"),
            fact(1, "heap", "1 GiB"),
            fact(2, "JVM", "HotSpot 17"),
            fact(1, "JVM", "HotSpot 17"),
            fact(2, "heap", "1 GiB"),
        ];
        assert_eq!(facts_by_process(&facts), ["JVM: HotSpot 17  heap: 1 GiB"]);
        facts.extend((3..9).map(|key| fact(key, "heap", &key.to_string())));
        let lines = facts_by_process(&facts);
        assert_eq!(lines.len(), MAX_PROCESSES + 1);
        assert_eq!(
            lines.last().map(String::as_str),
            Some("(facts of 3 more processes omitted)")
        );
    }
}
