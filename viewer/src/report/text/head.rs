//! The report's head: what limits its truth, then what it is a report of.

use super::Page;
use crate::present::numbers::{percent, ratio, session_time, some};
use crate::present::text::{harmless, wrap};
use crate::queries::marks::{MAX_LISTED, marks_of};
use crate::queries::truth::{TruthLine, truth_of};
use anyhow::Result;
use std::io::Write;
use vmscope_records::{Fact, ProcessKey, SampleClock};
use vmscope_symbolizer::Filter;
use vmscope_symbolizer::summary::Quality;

/// So many processes' facts are told, where they differ.
const MAX_PROCESSES: usize = 4;

impl Page<'_> {
    /// What limits the truth of the report: before anything else.
    pub(super) fn truth(&self, out: &mut dyn Write) -> Result<()> {
        let lines = truth_of(self.profile, self.summary);
        if lines.is_empty() {
            writeln!(out, "Nothing is known to limit the truth of this report.")?;
        } else {
            writeln!(out, "What limits the truth of this report:")?;
        }
        for TruthLine {
            samples,
            text,
            remedy,
            ..
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
            for line in self.resolved() {
                writeln!(out, "{}", wrap(&line, self.width, 2))?;
            }
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

    /// What the resolution is worth, of a VM's code apart from native code.
    fn resolved(&self) -> Vec<String> {
        let (all, code) = (&self.summary.quality, &self.summary.of_code);
        if self.profile.is_native() || code.total() == 0 {
            return vec![resolved(all, "Resolved", "function", "")];
        }
        let native = Quality {
            exact: all.exact.saturating_sub(code.exact),
            approximate: all.approximate.saturating_sub(code.approximate),
            method_only: all.method_only.saturating_sub(code.method_only),
            unresolved: all.unresolved.saturating_sub(code.unresolved),
            doubtful: all.doubtful.saturating_sub(code.doubtful),
            ..Quality::default()
        };
        let of = |quality: &Quality| some(quality.total(), "sample", "samples");
        let mut lines = vec![resolved(
            code,
            &format!("Generated and interpreted code ({}):", of(code)),
            "method",
            " resolved",
        )];
        if native.total() > 0 {
            let what = format!("Native code ({}):", of(&native));
            lines.push(resolved(&native, &what, "function", " resolved"));
        }
        lines
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
        for facts in told(&self.profile.trace.facts) {
            writeln!(out, "{}", wrap(&facts, self.width, 2))?;
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
        self.marks(out)
    }

    /// What the user named, with its time.
    fn marks(&self, out: &mut dyn Write) -> Result<()> {
        let marks = marks_of(self.profile, self.summary);
        for mark in marks.iter().take(MAX_LISTED) {
            let line = format!("mark at {:.3} s: {}", mark.seconds, harmless(mark.text));
            writeln!(out, "{}", wrap(line.trim_end(), self.width, 2))?;
        }
        if let Some(more) = marks.len().checked_sub(MAX_LISTED).filter(|n| *n > 0) {
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            writeln!(out, "({} not shown)", some(more, "more mark", "more marks"))?;
        }
        Ok(())
    }
}

/// How many of some samples are known how well.
fn resolved(quality: &Quality, of: &str, whole: &str, verb: &str) -> String {
    let share = |part| percent(ratio(part, quality.total()));
    format!(
        "{of}{verb} exactly: {}, approximately: {}, to the {whole} only: {}, not at all: {}.",
        share(quality.exact),
        share(quality.approximate),
        share(quality.method_only),
        share(quality.unresolved + quality.doubtful),
    )
}

/// The facts of each process, as a line: of those of one name the last that was told.
/// Processes of which the same is told are told of once.
fn told(facts: &[Fact]) -> Vec<String> {
    let mut of_process: Vec<(ProcessKey, Vec<&Fact>)> = Vec::new();
    for fact in facts {
        let known = of_process.iter().position(|(key, _)| *key == fact.process);
        let at = known.unwrap_or_else(|| {
            of_process.push((fact.process, Vec::new()));
            of_process.len() - 1
        });
        let Some((_, of_this)) = of_process.get_mut(at) else {
            continue;
        };
        match of_this.iter_mut().find(|known| known.name == fact.name) {
            Some(known) => *known = fact,
            None => of_this.push(fact),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let mut left_out = 0;
    for (_, facts) in of_process {
        let facts = facts
            .iter()
            .map(|fact| format!("{}: {}", fact.name, fact.value));
        let line = facts.collect::<Vec<_>>().join("  ");
        if lines.contains(&line) {
            continue;
        }
        if lines.len() < MAX_PROCESSES {
            lines.push(line);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        lines.push(format!(
            "(what is told of {} is not shown)",
            some(left_out, "more process", "more processes")
        ));
    }
    lines
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
        assert_eq!(told(&facts), ["JVM: HotSpot 17  heap: 1 GiB"]);
        facts.extend((3..9).map(|key| fact(key, "heap", &key.to_string())));
        let lines = told(&facts);
        assert_eq!(lines.len(), MAX_PROCESSES + 1);
        assert_eq!(
            lines.last().map(String::as_str),
            Some("(what is told of 3 more processes is not shown)")
        );
    }
}
