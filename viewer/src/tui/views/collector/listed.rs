//! The head, and the table of collections.

use super::Collector;
use super::rows::{By, Collections, Row};
use super::told::Told;
use crate::report::words::{brief, bytes_short, count, percent, ratio};
use crate::tui::theme::{Role, Theme};
use crate::tui::views::Cx;
use crate::tui::views::empty::no_samples;
use crate::tui::widgets::pane::Pane;
use crate::tui::widgets::table::{self, Col, Look, Piece};
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_symbolizer::Region;

const CAUSE: usize = 3;

const BAR: usize = 12;

const COLUMNS: [Col; 9] = [
    Col::new("time", 9, true, 0),
    Col::new("duration", 9, true, 0),
    Col::new("kind", 10, false, 0),
    Col::new("cause", 14, false, 0),
    Col::new("collector", 12, false, 3),
    Col::new("before > after", 14, true, 1),
    Col::new("heap", BAR, false, 4),
    Col::new("samples", 8, true, 2),
    Col::new("in GC", 7, true, 0),
];

impl Collector {
    pub(super) fn head(cx: &Cx<'_>, all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
        let seen = count(all.rows.len() as u64);
        let counted = match all.counted {
            Some(counted) => {
                format!("{counted:.0} collections by the VM's count, {seen} seen")
            }
            None => format!("{seen} collections seen"),
        };
        let observed = format!(", {} whole", count(all.observed));
        let took = all.took.map_or_else(String::new, |ns| {
            let (from, to) = all.window;
            let elapsed = to.since(from).as_secs_f64().max(1e-9);
            format!(", {:.0} ms ({})", ns / 1e6, percent(ns / 1e9 / elapsed))
        });
        let of = if all.narrowed {
            ", of the whole process"
        } else {
            ""
        };
        pane.line(
            frame,
            0,
            &[
                (Role::Strong, format!(" {counted}{of}")),
                (Role::Text, format!("{observed}{took}")),
            ],
        );
        let parts = all.parts.iter().take(8);
        let parts = parts.map(|(name, samples)| format!("{name} {}", count(*samples)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        if all.total == 0 {
            let text = format!(" {}", no_samples(cx));
            return pane.line(frame, 1, &[(Role::Dim, text)]);
        }
        let told = Told::of(all.in_collector, all.cut);
        let of_all = told.number().map_or_else(String::new, |samples| {
            format!(" ({})", percent(ratio(samples, all.total)))
        });
        let plural = if told == Told::Exactly(1) { "" } else { "s" };
        let samples = format!(" {} sample{plural} in the collector{of_all}", told.words());
        pane.line(
            frame,
            1,
            &[
                (Role::Region(Region::Gc), samples),
                (Role::Dim, format!(": {parts}")),
            ],
        );
        if all.has_sums() {
            let text =
                " ? ~ of older samples only sums over time are kept, longer than a collection";
            pane.line(frame, 2, &[(Role::Warning, text.to_owned())]);
        }
    }

    pub(super) fn table(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.rows();
        let heap = rows
            .iter()
            .filter_map(|row| row.before.max(row.after))
            .max();
        let longest = rows.iter().filter_map(Row::length).max().unwrap_or(0);
        let sorted = match self.by {
            By::Time => 0,
            By::Duration | By::Seen => 1,
            By::Kind => 2,
            By::Cause => CAUSE,
            By::Collector => 4,
            By::Before | By::After => 5,
            By::Samples => 7,
            By::InCollector => 8,
        };
        let look = Look {
            theme: cx.theme,
            columns: &COLUMNS,
            stretch: CAUSE,
            sorted: Some((sorted, self.by.falls() == self.reverse)),
            rows: rows.len(),
            list: self.list,
        };
        table::draw(look, frame, area, |index| {
            let Some(row) = rows.get(index) else {
                return Vec::new();
            };
            let (duration, role) = match row.length() {
                Some(length) => (brief(length), Role::Heat(ratio(length, longest))),
                None => (row.seen().to_owned(), Role::Warning),
            };
            let or_blank = |told: Option<Told>| told.map_or_else(String::new, Told::words);
            let arrow = cx.theme.sign("→", ">");
            let told = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), bytes_short);
            let around = match (row.before, row.after) {
                (None, None) => String::new(),
                (before, after) => format!("{} {arrow} {:>5}", told(before), told(after)),
            };
            vec![
                Piece::text(format!("{:.3}", cx.seconds(row.time))),
                Piece::of(role, duration),
                Piece::text(row.kind.clone()),
                Piece::text(row.cause.clone()),
                Piece::of(Role::Dim, row.collector.clone()),
                Piece::text(around),
                Piece::of(Role::Region(Region::Gc), heap_bar(cx.theme, row, heap)),
                Piece::of(Role::Dim, or_blank(row.samples())),
                Piece::text(or_blank(row.in_collector())),
            ]
        });
    }
}

/// What is left of the heap, what was freed, and what was free before.
fn heap_bar(theme: &Theme, row: &Row, heap: Option<u64>) -> String {
    let Some((heap, after)) = heap.zip(row.after).filter(|(heap, _)| *heap > 0) else {
        return String::new();
    };
    let cells = |bytes: u64| {
        let cells = u128::from(bytes) * BAR as u128 / u128::from(heap);
        usize::try_from(cells).unwrap_or(BAR).min(BAR)
    };
    let left = cells(after).max(usize::from(after > 0));
    let freed = cells(row.before.unwrap_or(after)).saturating_sub(left);
    let (full, freed_sign) = (theme.sign("█", "#"), theme.sign("░", "-"));
    format!("{}{}", full.repeat(left), freed_sign.repeat(freed))
}
