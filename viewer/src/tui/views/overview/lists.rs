//! Lists of regions with parts, entries, threads.

use crate::present::entries::labels_of;
use crate::present::names::{region_letter, region_name};
use crate::present::names::{role_name, thread_name};
use crate::present::numbers::{count, ratio, some};
use crate::present::text;
use crate::present::text::wrap;
use crate::queries::overview::Overview as Digest;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::no_samples;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;

/// Region, or part of a region, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Region(usize),
    Part(usize, usize),
}

/// Lines that fit: all regions, then parts with most samples. With too many regions, the regions near
/// the selection.
fn rows(digest: &Digest, height: usize, selected: usize) -> Vec<Row> {
    if digest.regions.len() > height {
        let top = (selected + 1).saturating_sub(height);
        let shown = top..digest.regions.len().min(top + height);
        return shown.map(Row::Region).collect();
    }
    let regions = digest.regions.iter().enumerate();
    let parts = regions.clone().flat_map(|(region, (_, _, parts))| {
        let parts = parts.iter().enumerate();
        parts.map(move |(part, (_, samples))| (*samples, region, part))
    });
    let mut parts: Vec<(u64, usize, usize)> = parts.collect();
    parts.sort_by_key(|&(samples, region, part)| (std::cmp::Reverse(samples), region, part));
    parts.truncate(height.saturating_sub(digest.regions.len()));
    let mut rows = Vec::new();
    for (region, _) in regions {
        rows.push(Row::Region(region));
        let mut shown: Vec<usize> = parts
            .iter()
            .filter(|one| one.1 == region)
            .map(|one| one.2)
            .collect();
        shown.sort_unstable();
        rows.extend(shown.into_iter().map(|part| Row::Part(region, part)));
    }
    rows
}

/// Region of a line.
pub fn region_at(digest: &Digest, height: usize, selected: usize, line: usize) -> Option<usize> {
    rows(digest, height, selected)
        .get(line)
        .map(|row| match row {
            Row::Region(region) | Row::Part(region, _) => *region,
        })
}

pub fn regions(
    (digest, is_native): (&Digest, bool),
    (focused, selected): (bool, usize),
    pane: &Pane<'_>,
    frame: &mut Frame<'_>,
) {
    pane.heading(frame, " Where the time went", "");
    let name = 13;
    let bar = pane.columns().saturating_sub(name + 3 + 8 + 1);
    let height = pane.rows().saturating_sub(1);
    for (line, row) in rows(digest, height, selected).into_iter().enumerate() {
        let (Row::Region(at) | Row::Part(at, _)) = row;
        let Some((region, samples, parts)) = digest.regions.get(at) else {
            continue;
        };
        let role = Role::Region(*region);
        let (label, samples, sign, is_part) = match row {
            Row::Region(_) => {
                let label = format!(
                    " {} {}",
                    region_letter(*region, is_native),
                    region_name(*region, is_native)
                );
                (label, *samples, pane.theme.fill(*region, is_native), false)
            }
            Row::Part(_, part) => {
                let Some((name, samples)) = parts.get(part) else {
                    continue;
                };
                let name = if name.is_empty() { "not divided" } else { name };
                let sign = pane.theme.sign("╌", "-").chars().next().unwrap_or('-');
                (format!("    {name}"), *samples, sign, true)
            }
        };
        let share = ratio(samples, digest.total);
        let of_bar = if bar > 0 {
            fill(sign, share, bar)
        } else {
            String::new()
        };
        let (of_name, of_share) = if is_part {
            (Role::Dim, Role::Dim)
        } else {
            (Role::Text, Role::Strong)
        };
        let bits: [Bit; 3] = [
            (of_name, text::name(&label, name + 3)),
            (of_share, text::right(&format!("{:.2}%", share * 100.0), 7)),
            (role, format!(" {of_bar}")),
        ];
        let is_selected = focused && row == Row::Region(selected);
        pane.marked(frame, line + 1, &bits, is_selected);
    }
}

/// Bar of a region's fill sign; every share above 0 is visible.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "columns of a screen"
)]
fn fill(sign: char, share: f64, columns: usize) -> String {
    let cells = (share.clamp(0.0, 1.0) * columns as f64).round() as usize;
    let cells = cells.max(usize::from(share > 0.0));
    sign.to_string().repeat(cells)
}

pub fn entries(
    cx: &Cx<'_>,
    digest: &Digest,
    (focused, list): (bool, ListState),
    pane: &Pane<'_>,
    frame: &mut Frame<'_>,
) {
    let all = some(digest.entries_hit as u64, "entry", "entries");
    pane.heading(frame, "Hottest", &format!("of {all}; 2 shows all"));
    if digest.entries.is_empty() {
        let text = wrap(&no_samples(cx), pane.columns().max(1), 0);
        for (line, row) in text.lines().zip(1..) {
            pane.line(frame, row, &[(Role::Text, line.to_owned())]);
        }
        return;
    }
    let hottest = digest.entries.first().map_or(0, |one| one.1);
    let is_wide = pane.columns() >= 60;
    let bar = if is_wide { 12 } else { 5 };
    let samples_columns = if is_wide { 9 } else { 0 };
    let height = pane.rows().saturating_sub(1);
    let top = list.top(digest.entries.len(), height);
    let columns = pane.columns().saturating_sub(7 + samples_columns + bar + 4);
    let shown = || digest.entries.iter().enumerate().skip(top).take(height);
    let ids = shown().map(|(_, (id, _))| *id);
    let names = labels_of(cx.profile, &digest.namesakes, ids, columns);
    for (line, ((index, &(id, samples)), name)) in shown().zip(names).enumerate() {
        let region = cx.profile.entries[id].region;
        let share = ratio(samples, digest.total);
        let heat = ratio(samples, hottest);
        let mut bits = vec![(
            Role::Strong,
            text::right(&format!("{:.2}%", share * 100.0), 6),
        )];
        if is_wide {
            bits.push((Role::Dim, text::right(&count(samples), samples_columns)));
        }
        bits.push((Role::Heat(heat), format!(" {}", pane.theme.bar(heat, bar))));
        let letter = region_letter(region, cx.profile.is_native());
        bits.push((Role::Region(region), format!(" {letter} ")));
        bits.push((Role::Text, name));
        let is_selected = focused && index == list.selected();
        pane.marked(frame, line + 1, &bits, is_selected);
    }
}

pub fn threads(
    cx: &Cx<'_>,
    (focused, list): (bool, ListState),
    pane: &Pane<'_>,
    frame: &mut Frame<'_>,
) {
    let Some(summary) = cx.summary else {
        return;
    };
    let all = some(summary.threads.len() as u64, "thread", "threads");
    pane.heading(frame, " Threads", &all);
    let height = pane.rows().saturating_sub(1);
    let top = list.top(summary.threads.len(), height);
    let shown = summary.threads.iter().enumerate().skip(top).take(height);
    for (line, (index, one)) in shown.enumerate() {
        let thread = &cx.profile.trace.threads[one.thread];
        let share = summary.share(one.samples);
        let role_columns = if pane.columns() < 44 { 0 } else { 10 };
        let role = match role_columns {
            0 => String::new(),
            _ => format!(" {:<9}", role_name(thread.thread.role)),
        };
        let name = pane.columns().saturating_sub(1 + 8 + 9 + role_columns);
        let bits: [Bit; 4] = [
            (
                Role::Text,
                format!(" {}", text::name(&thread_name(&thread.thread), name)),
            ),
            (Role::Dim, role),
            (Role::Dim, text::right(&count(one.samples), 8)),
            (
                Role::Heat(share),
                text::right(&format!("{:.1}%", share * 100.0), 8),
            ),
        ];
        let is_selected = focused && index == list.selected();
        pane.marked(frame, line + 1, &bits, is_selected);
    }
}
