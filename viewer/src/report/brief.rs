//! The default report, one screen: regions, accuracy, hottest entries, cost of the VM's own parts,
//! threads, next commands.

use super::page::{Page, narrowed_to};
use crate::lifetimes::headline;
use crate::present::collections::collector_lines;
use crate::present::entries::labels_of;
use crate::present::entries::{inference, marked};
use crate::present::names::{pids, region_name};
use crate::present::numbers::{count, percent, points, ratio, session_time, some};
use crate::present::shorten::label;
use crate::present::text::{cut, cut_at_word, fit, harmless, width as text_width, wrap};
use crate::queries::overview::{Overview, overview};
use crate::queries::threads::{Group, GroupBy, Threads, knows_kernel};
use crate::queries::truth::{About, TruthLine};
use anstyle::{AnsiColor, Style};
use std::path::Path;
use vmscope_symbolizer::compilers::Compilers;
use vmscope_symbolizer::summary::Quality;
use vmscope_symbolizer::{Region, Stop};

/// Columns before a name: share, error, samples, region.
const BEFORE_NAME: usize = 8 + 7 + 12 + 2 + 11 + 2;

/// Maximum number of limits on one screen.
const MAX_LIMITS: usize = 3;

/// Maximum number of threads or groups of threads.
const MAX_THREADS: usize = 4;

/// Maximum number of parts of a region in a line.
const MAX_PARTS: usize = 4;

/// Minimum share of samples for which a limit matters on one screen.
const MATTERS: f64 = 0.05;

const STRONG: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The report of the recording at `path`, with escape sequences for styles.
pub(super) fn text(page: &Page<'_>, path: &Path) -> String {
    let mut out = String::new();
    let stop = Stop::new();
    let Some(answer) = overview(page.profile, page.filter, page.summary, &stop) else {
        return out;
    };
    head(page, &mut out);
    if answer.total > 0 {
        out.push('\n');
        verdict(page, &answer, &mut out);
    }
    for (title, text) in headline(&page.profile.trace, path, page.options.memory) {
        titled(page, STRONG, title, &text, &mut out);
    }
    accuracy(page, &answer.truth, &mut out);
    if answer.total > 0 {
        out.push('\n');
        hottest(page, &answer, &mut out);
        out.push('\n');
        collector(page, &answer, &mut out);
        compilers(page, &answer, &mut out);
        kernel(page, &answer, &mut out);
        threads(page, &mut out);
    }
    next(page, path, &mut out);
    out
}

/// Appends `Title  text`, wrapped, later lines indented.
fn titled(page: &Page<'_>, style: Style, title: &str, text: &str, out: &mut String) {
    let wrapped = wrap(&format!("{title} {text}"), page.width, 2);
    let rest = wrapped.strip_prefix(title).unwrap_or(&wrapped);
    out.push_str(&format!("{style}{title}{style:#}{rest}\n"));
}

/// Program, process, time, CPU time.
fn head(page: &Page<'_>, out: &mut String) {
    let Some(session) = &page.profile.trace.session else {
        return;
    };
    let command = cut_at_word(&session.command.join(" "), page.width);
    out.push_str(&format!("{STRONG}{command}{STRONG:#}\n"));
    let vm = match page.profile.is_native() {
        true => "native program".to_owned(),
        false => format!("{} {}", session.vm.kind, session.vm.version),
    };
    let seconds = page.seconds();
    let used = page.summary.cpu_used().map(|(cpu, busy)| {
        let cpu = cpu.as_secs_f64();
        format!(
            ", {cpu:.1} s of CPU time ({busy:.2} of {} CPUs)",
            session.cpus
        )
    });
    let used = used.unwrap_or_default();
    let line = format!(
        "{}, {}, {}: {seconds:.1} s{used}",
        vm.trim_end(),
        pids(&page.profile.trace),
        session_time(session.wall_clock_unix_ns),
    );
    page.paragraph(out, &line);
    if let Some(narrowed) = narrowed_to(page.profile, page.filter, page.summary) {
        page.paragraph(out, &narrowed);
    }
}

/// Regions by samples.
fn verdict(page: &Page<'_>, answer: &Overview, out: &mut String) {
    let shares = answer.regions.iter().map(|(region, samples, _)| {
        let region = region_name(*region, page.profile.is_native());
        format!("{region} {}", percent(ratio(*samples, answer.total)))
    });
    let shares: Vec<String> = shares.collect();
    titled(page, STRONG, "Time:", &shares.join(", "), out);
}

/// Number of samples, resolution, the limits that matter.
fn accuracy(page: &Page<'_>, limits: &[TruthLine], out: &mut String) {
    let summary = page.summary;
    let mut facts = Vec::new();
    match summary.promised {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts of samples are far below 2^52 and not negative"
        )]
        Some(promised) if promised >= 1.0 => facts.push(format!(
            "{} of expected samples received ({} of {})",
            percent(summary.total as f64 / promised),
            count(summary.total),
            count(promised.round() as u64)
        )),
        _ => facts.push(some(summary.total, "sample", "samples")),
    }
    if let Some(error) = summary.errors.iter().copied().reduce(f64::max) {
        facts.push(format!(
            "sampling error ±{} points or better",
            points(error)
        ));
    }
    if !knows_kernel(page.profile) {
        facts.push("kernel time excluded".to_owned());
    }
    titled(page, STRONG, "Accuracy:", &facts.join(", "), out);
    if summary.total > 0 {
        let Quality {
            exact,
            approximate,
            method_only,
            ..
        } = summary.quality;
        let unknown = summary.quality.unresolved + summary.quality.doubtful;
        let function = match page.profile.is_native() {
            true => "function only",
            false => "method or function only",
        };
        let parts = [
            (exact, "exact"),
            (approximate, "approximate"),
            (method_only, function),
            (unknown, "unknown"),
        ];
        let parts = parts.into_iter().filter(|(samples, _)| *samples > 0);
        let parts =
            parts.map(|(samples, what)| format!("{} {what}", percent(summary.share(samples))));
        let parts: Vec<String> = parts.collect();
        page.item(out, 2, &format!("resolved: {}", parts.join(", ")));
        if let Some(line) = inference(summary) {
            page.item(out, 2, &line);
        }
    }
    let matters = |line: &&TruthLine| {
        let share = line.samples.map_or(0.0, |samples| summary.share(samples));
        line.about == About::Damage || share >= MATTERS || summary.total == 0
    };
    let shown: Vec<&TruthLine> = limits.iter().filter(matters).take(MAX_LIMITS).collect();
    for line in &shown {
        let remedy = match line.remedy.as_str() {
            "" => String::new(),
            remedy => format!(" [helps: {remedy}]"),
        };
        let text = cut(&format!("{}{remedy}", line.in_full()), 2 * page.width - 12);
        page.item(out, 2, &format!("- {text}"));
    }
    let more = limits.len().saturating_sub(shown.len());
    if more > 0 {
        let text = some(more as u64, "more limit", "more limits");
        page.item(out, 2, &format!("- {text}: see --full"));
    }
}

/// Entries of all regions, most samples first.
fn hottest(page: &Page<'_>, answer: &Overview, out: &mut String) {
    let heading = format!(
        "{:>8}{:>7}{:>12}  {:<11}  {}",
        "share", "±", "samples", "region", "function"
    );
    out.push_str(&format!("{DIM}{heading}{DIM:#}\n"));
    let columns = page.width.saturating_sub(BEFORE_NAME);
    let shown = answer.entries.len().min(page.options.top);
    let (top, _) = answer.entries.split_at(shown);
    let mut rest = answer.total;
    let ids = top.iter().map(|(id, _)| *id);
    let names = labels_of(page.profile, &page.namesakes, ids, columns);
    for (&(id, samples), name) in top.iter().zip(&names) {
        rest = rest.saturating_sub(samples);
        let region = page.profile.entries[id].region;
        let error = page.summary.error(id).map_or_else(String::new, points);
        let style = style_of(region);
        let word = fit(region_name(region, page.profile.is_native()), 11);
        out.push_str(&format!(
            "{STRONG}{:>8}{STRONG:#}{DIM}{error:>7}{DIM:#}{:>12}  {style}{word}{style:#}  {}\n",
            marked(page.summary, id, percent(ratio(samples, answer.total))),
            count(samples),
            name.trim_end(),
        ));
    }
    let more = answer.entries_hit.saturating_sub(shown) as u64;
    if more > 0 {
        out.push_str(&format!(
            "{:>8}{:>7}{:>12}  {:<11}  {}\n",
            percent(ratio(rest, answer.total)),
            "",
            count(rest),
            "",
            some(more, "more function", "more functions"),
        ));
    }
}

/// Share of a region, and its parts above a thousandth of all samples.
fn share_and_parts(answer: &Overview, wanted: Region) -> Option<String> {
    let mut regions = answer.regions.iter();
    let (_, samples, parts) = regions.find(|(region, ..)| *region == wanted)?;
    let share = |samples: u64| percent(ratio(samples, answer.total));
    let large = parts
        .iter()
        .filter(|(name, samples)| !name.is_empty() && ratio(*samples, answer.total) >= 0.001);
    let large = large.take(MAX_PARTS);
    let large: Vec<String> = large
        .map(|(name, samples)| format!("{name} {}", share(*samples)))
        .collect();
    Some(match large.is_empty() {
        true => share(*samples),
        false => format!("{} ({})", share(*samples), large.join(", ")),
    })
}

/// Cost, number and causes of collections.
fn collector(page: &Page<'_>, answer: &Overview, out: &mut String) {
    let share = share_and_parts(answer, Region::Gc);
    let mut facts: Vec<String> = share.into_iter().collect();
    if answer.collections.tells {
        facts.extend(collector_lines(&answer.collections).into_iter().skip(1));
    }
    if !facts.is_empty() {
        titled(page, STRONG, "Collector:", &facts.join("; "), out);
    }
}

/// Cost of the compilers, and the method that keeps them busy.
fn compilers(page: &Page<'_>, answer: &Overview, out: &mut String) {
    let Some(mut line) = share_and_parts(answer, Region::Compiler) else {
        return;
    };
    if let Some(all) = Compilers::of(page.profile, page.filter, &Stop::new()) {
        line.push_str(&format!(
            "; {} observed",
            some(all.compilations, "compilation", "compilations")
        ));
        if let Some(first) = all.methods.first() {
            let tier = match first.tier.as_str() {
                "" => String::new(),
                tier => format!(" ({tier})"),
            };
            let name = label(&first.name, &tier, page.width / 2);
            let share = percent(ratio(first.samples, all.samples));
            line.push_str(&format!("; most for {name}: {share} of their samples"));
        }
    }
    titled(page, STRONG, "Compilers:", &line, out);
}

/// Cost of the kernel, and its hottest functions.
fn kernel(page: &Page<'_>, answer: &Overview, out: &mut String) {
    let Some(mut line) = share_and_parts(answer, Region::Kernel) else {
        return;
    };
    let of_kernel = answer.entries.iter().filter_map(|&(id, samples)| {
        let entry = &page.profile.entries[id];
        (entry.region == Region::Kernel).then_some((&entry.name, samples))
    });
    let functions = of_kernel.take(MAX_PARTS).map(|(name, samples)| {
        let share = percent(ratio(samples, answer.total));
        format!("{} {share}", label(name, "", page.width / 3))
    });
    let functions: Vec<String> = functions.collect();
    if !functions.is_empty() {
        line.push_str(&format!(": {}", functions.join(", ")));
    }
    titled(page, STRONG, "Kernel:", &line, out);
}

/// Busiest processes where there are several, and busiest threads; threads whose names differ only
/// in numbers are one group.
fn threads(page: &Page<'_>, out: &mut String) {
    let Some(all) = Threads::of(page.profile, page.filter, &Stop::new()) else {
        return;
    };
    let busiest = |by: GroupBy| {
        let mut groups = by.groups(page.profile, &all);
        groups.retain(|group| group.used.samples > 0);
        groups.sort_by_key(|group| std::cmp::Reverse(group.used.samples));
        groups
    };
    let processes = busiest(GroupBy::Process);
    if processes.len() > 1 {
        let name = |group: &Group| group.name.clone();
        groups(page, "Processes:", &processes, name, |_| 1, out);
    }
    let name = |group: &Group| match group.threads.len() {
        1 => group.name.clone(),
        several => format!("{} ({several} threads)", group.name),
    };
    let threads = busiest(GroupBy::Name);
    groups(
        page,
        "Threads:",
        &threads,
        name,
        |group| group.threads.len(),
        out,
    );
}

/// A line of the busiest groups, with the number of other members.
fn groups(
    page: &Page<'_>,
    title: &str,
    groups: &[Group],
    name: impl Fn(&Group) -> String,
    members: impl Fn(&Group) -> usize,
    out: &mut String,
) {
    let busiest = groups.iter().take(MAX_THREADS).map(|group| {
        let share = percent(page.summary.share(group.used.samples));
        format!("{} {share}", cut(&harmless(&name(group)), page.width / 3))
    });
    let mut busiest: Vec<String> = busiest.collect();
    let rest: usize = groups.iter().skip(MAX_THREADS).map(members).sum();
    if rest > 0 {
        busiest.push(some(rest as u64, "more", "more"));
    }
    titled(page, STRONG, title, &busiest.join(", "), out);
}

/// Commands that lead on.
fn next(page: &Page<'_>, path: &Path, out: &mut String) {
    let file = path.display().to_string();
    let file = match file.as_str() {
        crate::record::DEFAULT_OUTPUT => String::new(),
        file => format!(" {file}"),
    };
    let lines = match page.profile.is_native() {
        true => "the hottest function's source lines",
        false => "the hottest method's bytecodes or source lines",
    };
    let mut commands = vec![
        (format!("vmscope view{file}"), "browse it in the terminal"),
        (format!("vmscope annotate{file}"), lines),
        (format!("vmscope report{file} --full"), "all sections"),
        (format!("vmscope report{file} --tree"), "who calls whom"),
    ];
    if page.profile.trace.samples.chains.is_empty() {
        commands.pop();
    }
    if !page.profile.trace.classes.is_empty() {
        let what = "whom the collector works for, and what would help";
        commands.push((format!("vmscope gc{file}"), what));
        let what = "allocated objects and their lifetimes";
        commands.push((format!("vmscope lifetimes{file}"), what));
    }
    let width = commands.iter().map(|(command, _)| text_width(command));
    let width = width.max().unwrap_or(0);
    out.push('\n');
    for (command, what) in &commands {
        let line = format!("{}  {what}", fit(command, width));
        // Commands are for copying: they stay whole.
        let line = match text_width(&line) <= page.width {
            true => &line,
            false => command,
        };
        out.push_str(&format!("{DIM}{line}{DIM:#}\n"));
    }
}

const fn style_of(region: Region) -> Style {
    let color = match region {
        Region::Generated => AnsiColor::Green,
        Region::Interpreter => AnsiColor::Yellow,
        Region::Gc => AnsiColor::Magenta,
        Region::Compiler => AnsiColor::Blue,
        Region::Vm => AnsiColor::Cyan,
        Region::Library => AnsiColor::BrightYellow,
        Region::Kernel => AnsiColor::Red,
        Region::Idle | Region::Unknown => AnsiColor::BrightBlack,
    };
    color.on_default()
}
