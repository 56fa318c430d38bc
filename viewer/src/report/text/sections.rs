//! The sections behind the tables: the VM's figures, the threads.

use super::Page;
use crate::report::words::{count, fit, harmless, percent, some};
use anyhow::Result;
use std::io::Write;
use unicode_width::UnicodeWidthStr;
use vmscope_records::{Counter, CounterMeaning, ProcessKey, ThreadRole};

/// Wider names of figures are shortened.
const MAX_NAME_COLUMNS: usize = 32;

/// Columns of a thread's line before its name.
const THREAD_COLUMNS: usize = 9 + 2 + 10 + 2 + 9 + 2 + 10 + 1;

/// So many threads are all shown, small or not.
const FEW_THREADS: usize = 20;

/// A figure of a VM over the report's window.
struct Figure<'a> {
    /// The value that the window began with.
    first: f64,
    newest: &'a Counter,
}

impl Page<'_> {
    /// The VM's figures, by section, in the order in which the VM tells them.
    pub(super) fn counters(&self, out: &mut dyn Write) -> Result<()> {
        let figures = self.figures();
        let mut sections: Vec<(ProcessKey, &str)> = Vec::new();
        for figure in &figures {
            let section = (figure.newest.process, figure.newest.section.as_str());
            if !sections.contains(&section) {
                sections.push(section);
            }
        }
        let several = sections
            .iter()
            .any(|(process, _)| *process != sections[0].0);
        for (process, section) in sections {
            let mut heading = harmless(section);
            if several && let Some(process) = self.profile.trace.processes.get(&process) {
                heading.push_str(&format!(" of pid {}", process.pid));
            }
            writeln!(out, "\n**{heading}**")?;
            let of_section: Vec<_> = figures
                .iter()
                .filter(|figure| {
                    (figure.newest.process, figure.newest.section.as_str()) == (process, section)
                })
                .collect();
            let widths = of_section
                .iter()
                .map(|figure| harmless(&figure.newest.name).width());
            let columns = widths.max().unwrap_or(0).min(MAX_NAME_COLUMNS);
            for figure in of_section {
                let name = fit(
                    &figure.newest.name,
                    columns.max(harmless(&figure.newest.name).width()),
                );
                let line = format!("  {name}  {}", self.value_of(figure));
                writeln!(out, "{}", fit(&line, self.width).trim_end())?;
            }
        }
        Ok(())
    }

    /// Every figure that has a value by the end of the window.
    fn figures(&self) -> Vec<Figure<'_>> {
        let (from, to) = self.summary.window;
        let mut figures: Vec<Figure> = Vec::new();
        let mut index = std::collections::HashMap::new();
        for counter in self.profile.trace.counters.iter().filter(|c| c.time <= to) {
            let key = (counter.process, &counter.section, &counter.name);
            let place = *index.entry(key).or_insert_with(|| {
                figures.push(Figure {
                    first: counter.value,
                    newest: counter,
                });
                figures.len() - 1
            });
            if let Some(figure) = figures.get_mut(place) {
                figure.newest = counter;
                if counter.time <= from {
                    figure.first = counter.value;
                }
            }
        }
        figures
    }

    /// A figure in words: a level with how it changed, or what a total grew by and how
    /// fast.
    fn value_of(&self, figure: &Figure) -> String {
        let newest = figure.newest;
        let (from, to) = self.summary.window;
        let seconds = to.since(from).as_secs_f64();
        let during = newest.value - figure.first;
        let unit = harmless(&newest.unit);
        match (newest.meaning, unit.as_str()) {
            (CounterMeaning::Gauge, _) => {
                let change = with_unit(&signed(during), &unit);
                format!("{} ({change})", with_unit(&number(newest.value), &unit))
            }
            (CounterMeaning::Total, "ns") => {
                let share = if seconds > 0.0 {
                    during / 1e9 / seconds
                } else {
                    0.0
                };
                format!(
                    "{:.3} ms ({} of elapsed time)",
                    during / 1e6,
                    percent(share)
                )
            }
            (CounterMeaning::Total, _) => {
                let rate = if seconds > 0.0 { during / seconds } else { 0.0 };
                format!(
                    "{} ({} per second)",
                    with_unit(&number(during), &unit),
                    number(rate.round())
                )
            }
        }
    }

    pub(super) fn threads(&self, out: &mut dyn Write) -> Result<()> {
        if self.summary.threads.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n**Threads**")?;
        let header = format!(
            "{:>9}  {:>10}  {:>9}  {:<10} name",
            "samples", "CPU (s)", "tid", "role"
        );
        writeln!(out, "{header}")?;
        let mut others = (0u64, 0u64);
        for row in &self.summary.threads {
            let Some(thread) = self.profile.trace.threads.get(row.thread as usize) else {
                continue;
            };
            let small = self.summary.share(row.samples) * 100.0 < self.options.min_share;
            if small && self.summary.threads.len() > FEW_THREADS {
                others = (others.0 + 1, others.1 + row.samples);
                continue;
            }
            let cpu = row
                .cpu
                .map_or_else(|| "?".to_owned(), |cpu| format!("{:.3}", cpu.as_secs_f64()));
            writeln!(
                out,
                "{:>9}  {cpu:>10}  {:>9}  {:<10} {}",
                count(row.samples),
                thread.thread.tid.0,
                role_name(thread.thread.role),
                fit(
                    &thread.thread.name,
                    self.width.saturating_sub(THREAD_COLUMNS)
                )
                .trim_end(),
            )?;
        }
        if others.0 > 0 {
            writeln!(
                out,
                "{:>9}  ...others... ({})",
                count(others.1),
                some(others.0, "thread", "threads")
            )?;
        }
        Ok(())
    }
}

fn with_unit(number: &str, unit: &str) -> String {
    format!("{number} {unit}").trim_end().to_owned()
}

/// A number with a sign, as VMProfiler prints what a space grew by.
fn signed(value: f64) -> String {
    if value < 0.0 {
        number(value)
    } else {
        format!("+{}", number(value))
    }
}

/// A number with a comma before every three digits, and decimals where it has any.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let text = if value.fract() == 0.0 {
        format!("{:.0}", value.abs())
    } else {
        format!("{:.3}", value.abs())
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if decimals.is_empty() { "" } else { "." };
    // More than 64 bits of digits are not worth commas.
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    format!("{sign}{whole}{point}{decimals}")
}

/// A thread's role, as reports and the JSON schema name it.
pub(in crate::report) fn role_name(role: ThreadRole) -> &'static str {
    match role {
        ThreadRole::Mutator => "mutator",
        ThreadRole::Collector => "collector",
        ThreadRole::Compiler => "compiler",
        ThreadRole::Heartbeat => "heartbeat",
        ThreadRole::Vm => "vm",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::{number, signed};

    #[test]
    fn numbers_are_for_people() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1234.5, "1,234.500"),
            (-157_616.0, "-157,616"),
            (f64::NAN, "?"),
            (1e25, "10000000000000000905969664"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(signed(157_616.0), "+157,616");
        assert_eq!(signed(0.0), "+0");
        assert_eq!(signed(-3.0), "-3");
    }
}
