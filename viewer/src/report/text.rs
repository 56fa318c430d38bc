//! The report as text, in the form of VMProfiler's (the paper's Figure 7).

use super::options::{RangeDetail, ReportOptions, SortBy};
use super::truth::{TruthLine, truth_of};
use super::words::{count, fit, harmless, percent, ratio, wrap};
use anyhow::Result;
use std::collections::BTreeMap;
use std::io::Write;
use vmscope_records::{Counter, CounterMeaning, SampleClock, ThreadRole};
use vmscope_symbolizer::profile::{EntryKind, Site};
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, Summary};

/// Narrower than this, names could not be told apart.
const MIN_WIDTH: usize = 64;

/// Columns of everything but the name: both percentages, samples, cumulative.
const FIXED_COLUMNS: usize = 8 + 2 + 10 + 2 + 1 + 11 + 2 + 12;

/// Groups of entries, in the order of the report: heading, regions.
const NATIVE_GROUPS: [(&str, &[Region]); 5] = [
    (
        "program code",
        &[
            Region::Vm,
            Region::Interpreter,
            Region::Gc,
            Region::Compiler,
        ],
    ),
    ("generated code", &[Region::Generated]),
    ("library code", &[Region::Library]),
    ("kernel code", &[Region::Kernel]),
    ("the rest", &[Region::Idle, Region::Unknown]),
];
const VM_GROUPS: [(&str, &[Region]); 5] = [
    ("generated vm code", &[Region::Generated]),
    (
        "vanilla vm code",
        &[
            Region::Vm,
            Region::Interpreter,
            Region::Gc,
            Region::Compiler,
        ],
    ),
    ("library code", &[Region::Library]),
    ("kernel code", &[Region::Kernel]),
    ("the rest", &[Region::Idle, Region::Unknown]),
];

/// Writes the whole report.
pub(super) fn write(
    profile: &Profile,
    summary: &Summary,
    filter: &Filter,
    options: &ReportOptions,
    out: &mut dyn Write,
) -> Result<()> {
    let page = Page {
        profile,
        summary,
        options,
        width: width(options),
    };
    page.head(filter, out)?;
    page.truth(out)?;
    page.totals(out)?;
    let groups = if profile.is_native() {
        NATIVE_GROUPS
    } else {
        VM_GROUPS
    };
    for (heading, regions) in groups {
        page.group(heading, regions, out)?;
    }
    page.counters(out)?;
    page.threads(out)?;
    Ok(())
}

fn width(options: &ReportOptions) -> usize {
    let terminal = || terminal_size::terminal_size().map(|(columns, _)| columns.0);
    usize::from(options.width.or_else(terminal).unwrap_or(100)).max(MIN_WIDTH)
}

struct Page<'a> {
    profile: &'a Profile,
    summary: &'a Summary,
    options: &'a ReportOptions,
    width: usize,
}

impl Page<'_> {
    fn head(&self, filter: &Filter, out: &mut dyn Write) -> Result<()> {
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
            format!("{} {}", vm.kind, vm.version)
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
        for fact in &self.profile.trace.facts {
            writeln!(out, "{}: {}", harmless(&fact.name), harmless(&fact.value))?;
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

    fn truth(&self, out: &mut dyn Write) -> Result<()> {
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
        writeln!(out)?;
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
            let number = samples.map_or_else(String::new, |n| format!("{} samples ", count(n)));
            let remedy = if remedy.is_empty() {
                String::new()
            } else {
                format!(" [helps: {remedy}]")
            };
            let line = format!("- {number}{text}{remedy}");
            writeln!(out, "{}", wrap(&line, self.width, 2))?;
        }
        writeln!(out, "{}", wrap(&exact, self.width, 2))?;
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn totals(&self, out: &mut dyn Write) -> Result<()> {
        let summary = self.summary;
        let seconds = summary.window.1.since(summary.window.0).as_secs_f64();
        let frequency = if seconds > 0.0 {
            summary.total as f64 / seconds
        } else {
            0.0
        };
        writeln!(out)?;
        writeln!(
            out,
            "{seconds:.3} seconds; sampling frequency {frequency:.0} hz"
        )?;
        if let Some(promised) = summary.promised {
            let delivered = if promised > 0.0 {
                summary.total as f64 / promised
            } else {
                1.0
            };
            let period = self
                .profile
                .trace
                .session
                .as_ref()
                .map_or(0, |session| session.period.0);
            let clock = match self
                .profile
                .trace
                .session
                .as_ref()
                .map(|session| session.clock)
            {
                Some(SampleClock::Wall) => "life",
                _ => "CPU time",
            };
            let line = format!(
                "{} of {:.0} promised samples delivered ({}), {} lost; one every {} ns of a thread's {clock}",
                count(summary.total),
                promised,
                percent(delivered),
                count(summary.lost),
                count(period),
            );
            writeln!(out, "{}", wrap(&line, self.width, 2))?;
        }
        let native = self.profile.is_native();
        let what = if native {
            "the program's own code"
        } else {
            "the VM"
        };
        let line = format!(
            "{} samples in {what} ({} samples in the entire program) {} of total",
            count(summary.vm),
            count(summary.total),
            percent(summary.share(summary.vm)),
        );
        writeln!(out, "{}", wrap(&line, self.width, 2))?;
        if !native {
            writeln!(out)?;
            let generated = summary.regions[Region::Generated as usize];
            for (number, name) in [
                (generated, "generated vm code"),
                (summary.vm - generated, "vanilla vm code"),
            ] {
                writeln!(
                    out,
                    "{} samples in {name} {} of entire vm ({} of total)",
                    count(number),
                    percent(ratio(number, summary.vm)),
                    percent(summary.share(number)),
                )?;
            }
        }
        for (region, number) in Region::ALL.iter().zip(summary.regions) {
            if number > 0 && !(native && *region == Region::Vm) && *region != Region::Generated {
                let name = match region {
                    Region::Library => "shared libraries",
                    Region::Kernel => "the kernel",
                    Region::Gc => "the garbage collector",
                    Region::Interpreter => "the interpreter",
                    Region::Compiler => "JIT compilers",
                    Region::Idle => "waiting",
                    Region::Unknown => "nothing that is known",
                    Region::Vm => "the rest of the VM",
                    Region::Generated => "generated code",
                };
                let share = percent(summary.share(number));
                writeln!(out, "{} samples in {name} {share} of total", count(number))?;
            }
        }
        Ok(())
    }

    /// A table: `% of group (% of total) name (samples) (cumulative)`.
    fn group(&self, heading: &str, regions: &[Region], out: &mut dyn Write) -> Result<()> {
        let all: Vec<EntryId> = (0..)
            .zip(&self.profile.entries)
            .filter(|(_, entry)| regions.contains(&entry.region))
            .map(|(id, _)| id)
            .filter(|&id| self.samples_of(id) > 0)
            .collect();
        let total: u64 = all.iter().map(|&id| self.samples_of(id)).sum();
        if total == 0 {
            return Ok(());
        }
        let mut entries = all;
        // Names break ties, so that a report of the same recording is the same text.
        entries.sort_by(|&a, &b| {
            let by_name = || self.name_of(a).cmp(&self.name_of(b));
            match self.options.sort {
                SortBy::Samples => self
                    .samples_of(b)
                    .cmp(&self.samples_of(a))
                    .then_with(by_name),
                SortBy::Name => by_name(),
            }
        });
        // One more for the space behind a name.
        let name_columns = self.width.saturating_sub(FIXED_COLUMNS) + 1;
        writeln!(out)?;
        writeln!(
            out,
            "{:<20}{:<name_columns$}  {:>11}  {:>12}",
            format!("% of {heading}"),
            "  (% of total)",
            "(samples)",
            "(cumulative)",
        )?;
        let (mut cumulative, mut others, mut other_count) = (0, 0, 0u64);
        for id in entries {
            let samples = self.samples_of(id);
            if ratio(samples, total) * 100.0 < self.options.min_share {
                others += samples;
                other_count += 1;
                continue;
            }
            cumulative += samples;
            self.line(
                ratio(samples, total),
                Some(self.summary.share(samples)),
                &self.name_of(id),
                samples,
                ratio(cumulative, total),
                out,
            )?;
            self.ranges(id, samples, out)?;
        }
        if others > 0 {
            let name = format!("...others... ({})", count(other_count));
            let share = ratio(others, total);
            let all = ratio(cumulative + others, total);
            self.line(
                share,
                Some(self.summary.share(others)),
                &name,
                others,
                all,
                out,
            )?;
        }
        Ok(())
    }

    fn line(
        &self,
        of_group: f64,
        of_total: Option<f64>,
        name: &str,
        samples: u64,
        cumulative: f64,
        out: &mut dyn Write,
    ) -> Result<()> {
        // Ranges have no share of the total: their column is the indentation.
        let (first, second) = match of_total {
            Some(of_total) => (percent(of_group), format!("({})", percent(of_total))),
            None => (String::new(), percent(of_group)),
        };
        let text = format!(
            "{first:>8}  {second:>10}{}{} {:>11}  {:>12}",
            "  ",
            fit(name, self.width.saturating_sub(FIXED_COLUMNS)),
            format!("({})", count(samples)),
            format!("({})", percent(cumulative)),
        );
        writeln!(out, "{}", text.trim_end())?;
        Ok(())
    }

    /// The ranges of an entry, in code order, with their shares of it.
    fn ranges(&self, id: EntryId, total: u64, out: &mut dyn Write) -> Result<()> {
        let entry = self.profile.entries.get(id as usize);
        let split = match self.options.ranges {
            RangeDetail::None => false,
            RangeDetail::All => true,
            RangeDetail::Auto => {
                entry.is_some_and(|entry| matches!(entry.kind, EntryKind::Code(_)))
            }
        };
        if !split {
            return Ok(());
        }
        let mut rows: Vec<(&Site, u64)> = self
            .profile
            .sites
            .iter()
            .zip(&self.summary.sites)
            .filter(|(site, samples)| site.entry == id && **samples > 0)
            .map(|(site, &samples)| (site, samples))
            .collect();
        if rows.iter().all(|(site, _)| range_name(site).is_none()) {
            return Ok(());
        }
        rows.sort_by(|(a, _), (b, _)| {
            let place =
                |site: &Site| (site.from, site.to, site.frame.file.clone(), site.frame.line);
            place(a)
                .cmp(&place(b))
                .then_with(|| range_name(a).cmp(&range_name(b)))
        });
        let mut cumulative = 0;
        for (site, samples) in rows {
            cumulative += samples;
            let mut name = range_name(site).unwrap_or_else(|| "(place not known)".to_owned());
            if site.exactness == vmscope_records::Exactness::Approximate {
                name.insert(0, '~');
            }
            let name = format!("  {name}");
            self.line(
                ratio(samples, total),
                None,
                &name,
                samples,
                ratio(cumulative, total),
                out,
            )?;
        }
        Ok(())
    }

    /// The VM's figures, by section, as differences where they are totals.
    fn counters(&self, out: &mut dyn Write) -> Result<()> {
        let mut sections: BTreeMap<&str, BTreeMap<&str, (f64, &Counter)>> = BTreeMap::new();
        for counter in &self.profile.trace.counters {
            let figures = sections.entry(&counter.section).or_default();
            // The first value, and the newest with all that belongs to it.
            figures
                .entry(&counter.name)
                .or_insert((counter.value, counter))
                .1 = counter;
        }
        let seconds = self
            .summary
            .window
            .1
            .since(self.summary.window.0)
            .as_secs_f64();
        for (section, figures) in sections {
            writeln!(out, "\n**{}**", harmless(section))?;
            for (name, (first, newest)) in figures {
                let (name, unit) = (harmless(name), harmless(&newest.unit));
                let during = newest.value - first;
                match newest.meaning {
                    CounterMeaning::Gauge => {
                        writeln!(out, "{name}\t{} {unit} ({during:+})", newest.value)?;
                    }
                    CounterMeaning::Total => {
                        let rate = if seconds > 0.0 { during / seconds } else { 0.0 };
                        writeln!(out, "{name}\t{during} {unit} ({rate:.0} per second)")?;
                    }
                }
            }
        }
        Ok(())
    }

    fn threads(&self, out: &mut dyn Write) -> Result<()> {
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
            if self.summary.share(row.samples) * 100.0 < self.options.min_share {
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
                thread.thread.tid,
                role_name(thread.thread.role),
                harmless(&thread.thread.name),
            )?;
        }
        if others.0 > 0 {
            writeln!(
                out,
                "{:>9}  ...{} other threads...",
                count(others.1),
                count(others.0)
            )?;
        }
        Ok(())
    }

    fn samples_of(&self, id: EntryId) -> u64 {
        self.summary.entries.get(id as usize).copied().unwrap_or(0)
    }

    fn name_of(&self, id: EntryId) -> String {
        let Some(entry) = self.profile.entries.get(id as usize) else {
            return String::new();
        };
        let mut name = entry.name.clone();
        if !entry.tier.is_empty() {
            name.push_str(&format!(" ({})", entry.tier));
        }
        if !entry.cases.is_empty() {
            let cases: Vec<String> = entry
                .cases
                .iter()
                .map(|case| format!("{} -> {}", case.class, case.target))
                .collect();
            name.push_str(&format!(" - {} ({})", cases.len(), cases.join(", ")));
        }
        // Where a function is from matters for libraries and the kernel's modules.
        let tell = matches!(entry.region, Region::Library)
            || (entry.region == Region::Kernel && entry.module != "[kernel]");
        if tell && !entry.module.is_empty() && !entry.name.contains(&entry.module) {
            name.push_str(&format!(" [{}]", entry.module.trim_matches(['[', ']'])));
        }
        name
    }
}

/// A range's name: `from->to`, or line and the functions it was inlined through.
fn range_name(site: &Site) -> Option<String> {
    let bytecode = |pc: Option<vmscope_records::BytecodePc>, none: &str| {
        pc.map_or_else(|| none.to_owned(), |pc| pc.to_string())
    };
    let mut name = if site.bounded {
        format!(
            "{}->{}",
            bytecode(site.from, "entry"),
            bytecode(site.to, "end")
        )
    } else if let Some(from) = site.from {
        match site.frame.line {
            Some(line) => format!("{from} (line {line})"),
            None => from.to_string(),
        }
    } else {
        place_of(&site.frame)?
    };
    for outer in &site.via {
        name.push_str(" < ");
        name.push_str(&outer.name);
        match (outer.bytecode, outer.line) {
            (Some(pc), _) => name.push_str(&format!("@{pc}")),
            (None, Some(line)) => name.push_str(&format!(":{line}")),
            (None, None) => {}
        }
    }
    Some(name)
}

fn place_of(frame: &vmscope_symbolizer::profile::Frame) -> Option<String> {
    let line = frame.line?;
    let file = frame.file.rsplit('/').next().unwrap_or(&frame.file);
    Some(if file.is_empty() {
        format!("line {line}")
    } else {
        format!("{file}:{line}")
    })
}

/// A thread's role, as reports and the JSON schema name it.
pub(super) fn role_name(role: ThreadRole) -> &'static str {
    match role {
        ThreadRole::Mutator => "mutator",
        ThreadRole::Collector => "collector",
        ThreadRole::Compiler => "compiler",
        ThreadRole::Heartbeat => "heartbeat",
        ThreadRole::Vm => "vm",
        _ => "other",
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
