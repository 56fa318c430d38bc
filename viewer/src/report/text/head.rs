//! The report's head: what limits its truth, then what it is a report of.

use super::Page;
use crate::report::truth::{TruthLine, truth_of};
use crate::report::words::{percent, ratio, some, wrap};
use anyhow::Result;
use std::io::Write;
use vmscope_records::SampleClock;
use vmscope_symbolizer::Filter;

impl Page<'_> {
    /// What limits the truth of the report: before anything else.
    pub(super) fn truth(&self, out: &mut dyn Write) -> Result<()> {
        let lines = truth_of(self.profile, self.summary);
        let quality = &self.summary.quality;
        let share = |part| percent(ratio(part, self.summary.total));
        let exact = format!(
            "Resolved exactly: {}, approximately: {}, to the {} only: {}, not at all: {}.",
            share(quality.exact),
            share(quality.approximate),
            if self.profile.is_native() {
                "function"
            } else {
                "method"
            },
            share(quality.method_only),
            share(quality.unresolved + quality.doubtful),
        );
        if lines.is_empty() {
            writeln!(out, "Nothing is known to limit the truth of this report.")?;
        } else {
            writeln!(out, "What limits the truth of this report:")?;
        }
        for TruthLine {
            samples,
            text,
            remedy,
        } in &lines
        {
            let number = samples.map_or_else(String::new, |n| some(n, "sample", "samples") + " ");
            let remedy = if remedy.is_empty() {
                String::new()
            } else {
                format!(" [helps: {remedy}]")
            };
            let line = format!("- {number}{text}{remedy}");
            writeln!(out, "{}", wrap(&line, self.width, 2))?;
        }
        if self.summary.total > 0 {
            writeln!(out, "{}", wrap(&exact, self.width, 2))?;
            let error = self.summary.errors.iter().copied().reduce(f64::max);
            if let Some(error) = error {
                // Of the entry that is known worst; --json has each one's own.
                let points = error * 100.0;
                let line = format!(
                    "The entries' shares of the total are good to ±{points:.2} points or better \
                     (95 %, by batch means)."
                );
                writeln!(out, "{}", wrap(&line, self.width, 2))?;
            }
        }
        writeln!(out)?;
        Ok(())
    }

    /// Program, date, facts; and what the report was narrowed to.
    pub(super) fn head(&self, filter: &Filter, out: &mut dyn Write) -> Result<()> {
        let Some(session) = &self.profile.trace.session else {
            return Ok(());
        };
        let command = session.command.join(" ");
        let when = session_time(session.wall_clock_unix_ns);
        writeln!(
            out,
            "{}",
            wrap(&format!("{command}  {when}"), self.width, 2)
        )?;
        let vm = &session.vm;
        let kind = if vm.kind == "native" {
            "native program".to_owned()
        } else {
            format!("{} {}", vm.kind, vm.version).trim_end().to_owned()
        };
        let clock = match session.clock {
            SampleClock::Cpu => "CPU time: a thread that waits is not sampled",
            _ => "wall-clock time",
        };
        let modes = if session.kernel_included {
            "user and kernel"
        } else {
            "user only"
        };
        let line = format!(
            "{kind}, pid {}, on {} ({}, {} CPUs); {} engine, {}, {modes}; clock: {clock}",
            session.pid,
            session.host,
            session.kernel,
            session.cpus,
            session.engine,
            session.scheduling,
        );
        writeln!(out, "{}", wrap(&line, self.width, 2))?;
        let facts: Vec<String> = (self.profile.trace.facts.iter())
            .map(|fact| format!("{}: {}", fact.name, fact.value))
            .collect();
        if !facts.is_empty() {
            writeln!(out, "{}", wrap(&facts.join("  "), self.width, 2))?;
        }
        if filter.threads.is_some() || filter.from.is_some() || filter.to.is_some() {
            let threads = match &filter.threads {
                Some(threads) => format!(
                    "{} of {} threads",
                    threads.len(),
                    self.profile.trace.threads.len()
                ),
                None => "all threads".to_owned(),
            };
            let second = |time: vmscope_records::TimeNs| time.since(session.time).as_secs_f64();
            let (from, to) = self.summary.window;
            writeln!(
                out,
                "only {threads}, {:.3} s to {:.3} s",
                second(from),
                second(to)
            )?;
        }
        Ok(())
    }
}

/// Wall-clock time as `YYYY-MM-DD HH:MM:SS` in UTC.
fn session_time(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(0);
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => String::new(),
    }
}
