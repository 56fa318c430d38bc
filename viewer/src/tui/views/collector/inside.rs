//! What is inside one collection: its phases, its samples by part and by thread.

use super::rows::{Key, Row, parts_in_collector, threads_in_collector};
use super::told::Told;
use crate::report::words::{brief, bytes_short, count, ratio};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::pane::{Bit, Pane};
use crate::tui::widgets::text;
use ratatui::Frame;
use vmscope_records::{Collection, TimeNs};
use vmscope_symbolizer::time_buckets::{InSpan, Span};
use vmscope_symbolizer::{Filter, Profile, Region, Stop, Summary};

/// So many phases are shown of one collection.
const MAX_PHASES: usize = 1_000;

/// A phase.
#[derive(Clone, Debug)]
pub struct PhaseRow {
    /// How many phases it is part of.
    pub depth: usize,
    pub name: String,
    pub thread: String,
    pub begin: Option<TimeNs>,
    pub length: Option<u64>,
    pub stops: bool,
    /// The samples in the collector meanwhile (on its thread, where it has one).
    pub samples: Option<Told>,
}

/// What is inside a collection.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    pub key: Key,
    pub phases: Vec<PhaseRow>,
    /// Phases that there was no room for.
    pub left_out: usize,
    pub parts: Vec<(String, u64)>,
    pub threads: Vec<(u32, String, u64)>,
    /// All of its samples in the collector.
    pub samples: Option<Told>,
    pub spaces: Vec<vmscope_records::SpaceUse>,
}

/// Works it out; `None` when that was stopped.
pub fn inside_of(profile: &Profile, filter: &Filter, key: Key, stop: &Stop) -> Option<Inside> {
    let mut found = profile.trace.collections.iter();
    let Some(one) = found.find(|one| Row::key_of(one) == key) else {
        return Some(Inside::default());
    };
    let mut inside = Inside {
        key,
        left_out: one.phases.len().saturating_sub(MAX_PHASES),
        phases: phases_of(profile, filter, one, stop)?,
        spaces: one.spaces.clone(),
        ..Inside::default()
    };
    if let (Some(from), Some(to)) = (one.begin, one.end) {
        let narrowed = Filter {
            from: Some(filter.from.map_or(from, |other| other.max(from))),
            to: Some(filter.to.map_or(to, |other| other.min(to))),
            ..filter.clone()
        };
        let summary = Summary::of_stoppable(profile, &narrowed, stop)?;
        inside.parts = parts_in_collector(profile, &summary);
        inside.threads = threads_in_collector(profile, &narrowed, stop)?;
        let all = summary.regions.get(Region::Gc as usize).copied();
        inside.samples = Some(Told::of(all.unwrap_or(0), summary.decided_whole));
    }
    Some(inside)
}

fn phases_of(
    profile: &Profile,
    filter: &Filter,
    one: &Collection,
    stop: &Stop,
) -> Option<Vec<PhaseRow>> {
    let phases = one.phases.get(..MAX_PHASES).unwrap_or(&one.phases);
    let thread_of =
        |phase: &vmscope_records::Phase| phase.thread.and_then(|key| profile.trace.number_of(key));
    let spans = phases.iter().map(|phase| Span {
        from: phase.begin.unwrap_or_default(),
        to: phase
            .end
            .filter(|_| phase.begin.is_some())
            .unwrap_or_default(),
        thread: thread_of(phase),
    });
    let spans: Vec<Span> = spans.collect();
    let counts = InSpan::of_spans(profile, filter, &spans, stop)?;
    // What is part of a phase comes right behind it.
    let mut parts_of: Vec<Vec<usize>> = vec![Vec::new(); phases.len()];
    let mut waiting: Vec<(usize, usize)> = Vec::new();
    for (index, phase) in phases.iter().enumerate().rev() {
        let outer = phase.within.map(|outer| outer as usize);
        match outer.filter(|outer| *outer < index) {
            Some(outer) => parts_of
                .get_mut(outer)
                .into_iter()
                .for_each(|all| all.push(index)),
            None => waiting.push((index, 0)),
        }
    }
    let mut order = Vec::new();
    while let Some((index, depth)) = waiting.pop() {
        order.push((index, depth));
        let parts = parts_of.get(index).into_iter().flatten();
        waiting.extend(parts.map(|&part| (part, (depth + 1).min(8))));
    }
    let rows = order
        .into_iter()
        .filter_map(|(index, depth)| Some((phases.get(index)?, counts.get(index)?, depth)));
    let rows = rows.map(|(phase, inside, depth)| {
        let thread = thread_of(phase).and_then(|at| profile.trace.threads.get(at as usize));
        let ends = phase.begin.zip(phase.end);
        PhaseRow {
            depth,
            name: phase.name.clone(),
            thread: thread.map_or_else(String::new, |thread| thread.thread.name.clone()),
            begin: phase.begin,
            length: ends.map(|(begin, end)| end.since(begin).0),
            stops: phase.stop_the_world,
            samples: ends.map(|_| Told::of(inside.of(Region::Gc), inside.decided_whole)),
        }
    });
    Some(rows.collect())
}

/// Names with samples, as bars.
pub fn bars<'a>(
    rows: impl Iterator<Item = (&'a str, u64)>,
    total: u64,
    columns: usize,
    pane: &Pane<'_>,
) -> Vec<Vec<Bit>> {
    let bar = (columns / 5).clamp(4, 24);
    let name = columns.saturating_sub(bar + 8 + 7 + 2);
    let of_row = |(label, samples): (&str, u64)| {
        let share = ratio(samples, total);
        vec![
            (Role::Text, format!(" {} ", text::name(label, name))),
            (Role::Heat(share), pane.theme.bar(share, bar)),
            (
                Role::Text,
                text::right(&format!("{:.1}%", share * 100.0), 7),
            ),
            (Role::Dim, text::right(&count(samples), 8)),
        ]
    };
    rows.map(of_row).collect()
}

/// Draws what is inside a row; `inside` may be of another one that was selected before.
pub fn draw(
    cx: &Cx<'_>,
    row: Option<&Row>,
    inside: Option<&Inside>,
    pane: &Pane<'_>,
    frame: &mut Frame<'_>,
) {
    let Some(row) = row else {
        return pane.heading(frame, "No collection is selected", "");
    };
    let at = format!("at {:.3} s", cx.seconds(row.time));
    let length = row
        .length()
        .map_or_else(|| format!("{} was observed", row.seen()), brief);
    let how = if row.stops {
        "the world stands still"
    } else {
        "beside the program"
    };
    let title = vmscope_records::Collection::label(&row.collector, &row.kind);
    pane.heading(frame, &title, &format!("{at}, {length}, {how}"));
    let Some(inside) = inside.filter(|inside| inside.key == row.key) else {
        return;
    };
    let mut lines: Vec<Vec<Bit>> = Vec::new();
    let name = pane.columns().saturating_sub(10 + 10 + 7 + 3);
    if inside.phases.is_empty() {
        let text = " no phase of it was observed".to_owned();
        lines.push(vec![(Role::Dim, text)]);
    } else {
        let head = format!(
            " {}{}{}{}",
            text::name("phase", name),
            text::right("begin", 10),
            text::right("length", 10),
            text::right("samples", 8)
        );
        lines.push(vec![(Role::Dim, head)]);
    }
    for phase in &inside.phases {
        let on = if phase.thread.is_empty() {
            String::new()
        } else {
            format!(" on {}", phase.thread)
        };
        let label = format!("{}{}{on}", "  ".repeat(phase.depth), phase.name);
        let begin = phase
            .begin
            .zip(row.begin)
            .map_or_else(String::new, |(phase, row)| {
                format!("+{}", brief(phase.since(row).0))
            });
        let length = phase.length.map_or_else(|| "?".to_owned(), brief);
        let samples = phase.samples.map_or_else(String::new, Told::words);
        lines.push(vec![
            (Role::Text, format!(" {}", text::name(&label, name))),
            (Role::Dim, text::right(&begin, 10)),
            (Role::Text, text::right(&length, 10)),
            (Role::Text, text::right(&samples, 8)),
        ]);
    }
    if inside.left_out > 0 {
        let text = format!(" ({} more phases are not shown)", inside.left_out);
        lines.push(vec![(Role::Dim, text)]);
    }
    let total = inside.samples.and_then(Told::number).unwrap_or(0);
    if inside.samples == Some(Told::Unknown) {
        let text = " its samples are known by sums over longer times only".to_owned();
        lines.push(vec![(Role::Warning, text)]);
    }
    if total > 0 {
        let about = match inside.samples {
            Some(Told::About(_)) => "about these ",
            _ => "",
        };
        let text = format!(" {about}samples in the collector, by part");
        lines.push(vec![(Role::Title, text)]);
        let parts = inside
            .parts
            .iter()
            .map(|(name, samples)| (name.as_str(), *samples));
        lines.extend(bars(parts, total, pane.columns(), pane));
        lines.push(vec![(Role::Title, " by thread".to_owned())]);
        let threads = inside.threads.iter();
        let threads = threads.map(|(_, name, samples)| (name.as_str(), *samples));
        lines.extend(bars(threads, total, pane.columns(), pane));
    }
    if !inside.spaces.is_empty() {
        lines.push(vec![(Role::Title, " spaces".to_owned())]);
    }
    for space in &inside.spaces {
        let told = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), bytes_short);
        let arrow = cx.theme.sign("→", ">");
        let text = format!(
            " {}{} {arrow} {} of {}",
            text::name(&space.name, 14),
            text::right(&told(space.before), 7),
            text::right(&told(space.after), 7),
            told(space.capacity),
        );
        lines.push(vec![(Role::Text, text)]);
    }
    for (index, line) in lines.iter().enumerate() {
        pane.line(frame, index + 1, line);
    }
}
