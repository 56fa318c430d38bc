//! The threads on the screen.

use super::Threads;
use super::facts::{By, Fact, Key, Row, kernel_share};
use crate::report::text::{role_name, thread_name};
use crate::report::words::{count, ratio, some};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::by_region::{self, GROUPS};
use crate::tui::views::empty::{no_samples, say};
use crate::tui::widgets::table::{self, Col, Look, Piece};
use crate::tui::widgets::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use vmscope_records::TimeNs;

const NAME: usize = 1;
const TID: usize = 2;
const ROLE: usize = 3;
const SAMPLES: usize = 4;
const CPU: usize = 6;
const KERNEL: usize = 8;
const MIX: usize = 9;
const ACTIVITY: usize = 10;
const FROM: usize = 11;

/// The columns in the room there is.
fn columns(area: Rect) -> [Col; 13] {
    let width = usize::from(area.width);
    [
        Col::new("", 1, false, 0),
        Col::new("thread", (width / 5).clamp(14, 40), false, 0),
        Col::new("tid", 8, true, 5),
        Col::new("role", 9, false, 1),
        Col::new("samples", 9, true, 4),
        Col::new("share", 7, true, 0),
        Col::new("CPU s", 8, true, 2),
        Col::new("told %", 6, true, 4),
        Col::new("kern %", 6, true, 3),
        Col::new("regions", (width / 10).clamp(8, 20), false, 0),
        Col::new("activity", (width / 4).max(12), false, 0),
        Col::new("from s", 9, true, 6),
        Col::new("to s", 9, true, 6),
    ]
}

/// Where a column is: its distance from the left, and its width.
fn place(area: Rect, column: usize) -> Option<(u16, usize)> {
    let mut x = 0;
    for (at, width) in table::fitting(&columns(area), ACTIVITY, usize::from(area.width)) {
        if at == column {
            return Some((u16::try_from(x).ok()?, width));
        }
        x += width + 1;
    }
    None
}

/// How many columns the activity has.
pub(super) fn activity_columns(area: Rect) -> usize {
    place(area, ACTIVITY).map_or(0, |(_, width)| width)
}

/// The share of the samples promised that were taken.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn delivered(fact: &Fact) -> Option<f64> {
    let promised = fact.account.promised.filter(|promised| *promised >= 1.0)?;
    Some(fact.samples as f64 / promised)
}

/// Whether samples in the kernel were taken at all.
pub(super) fn knows_kernel(cx: &Cx<'_>) -> bool {
    let session = cx.profile.trace.session.as_ref();
    session.is_none_or(|session| session.kernel_included)
}

/// When a thread began and ended, where that was while it was recorded.
pub(super) fn life(cx: &Cx<'_>, thread: u32) -> (Option<TimeNs>, Option<TimeNs>) {
    let Some(thread) = cx.profile.trace.threads.get(thread as usize) else {
        return (None, None);
    };
    let from = Some(thread.thread.time).filter(|time| *time > cx.begin);
    let end = thread.end.as_ref().filter(|end| !end.alive);
    (from, end.map(|end| end.time))
}

impl Threads {
    pub(super) fn draw_all(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(last) = area.height.checked_sub(1) else {
            return;
        };
        let all = Rect {
            height: last,
            ..area
        };
        let bottom = Rect {
            y: area.y + last,
            height: 1,
            ..area
        };
        let facts = self.facts.get();
        let rows = self.shown_rows();
        if rows.is_empty() && facts.is_some() && !self.is_waiting() {
            return say(&no_samples(cx), cx, frame, area);
        }
        let total = facts.map_or(0, |facts| facts.samples);
        let sorted = match self.wanted.by {
            By::Samples if place(area, SAMPLES).is_none() => SAMPLES + 1,
            By::Samples => SAMPLES,
            By::Cpu => CPU,
            By::Kernel => KERNEL,
            By::Name => NAME,
            By::Tid => TID,
            By::Role => ROLE,
            By::Start => FROM,
        };
        let columns = columns(area);
        let look = Look {
            theme: cx.theme,
            columns: &columns,
            stretch: ACTIVITY,
            sorted: Some((sorted, self.wanted.reverse)),
            rows: rows.len(),
            list: self.list,
        };
        let filter = cx.filters.filter();
        table::draw(look, frame, all, |index| {
            rows.get(index)
                .map_or_else(Vec::new, |row| self.pieces(cx, row, total))
        });
        self.draw_bars(cx, frame, all);
        let threads = super::choose::all(cx.profile).count();
        let included = super::choose::all(cx.profile).filter(|thread| filter.takes_thread(*thread));
        let mut words = format!(
            " {} of {} included",
            count(included.count() as u64),
            some(threads as u64, "thread", "threads")
        );
        if let Some(idle) = facts.map(|facts| facts.idle as u64).filter(|n| *n > 0) {
            words += &format!("; {} of them did not run here", count(idle));
        }
        if total == 0 {
            words = format!(" {}", no_samples(cx));
        } else {
            let busiest = self.busiest(cx) * 100.0;
            words += &format!("; full height of activity: {busiest:.1}% of a thread's time");
        }
        let words = text::line(&words, usize::from(area.width));
        frame.render_widget(Line::styled(words, cx.theme.style(Role::Dim)), bottom);
    }

    fn is_waiting(&self) -> bool {
        self.facts.is_pending() || self.rows.is_pending()
    }

    fn pieces(&self, cx: &Cx<'_>, row: &Row, total: u64) -> Vec<Piece> {
        let fact = &row.fact;
        let filter = cx.filters.filter();
        let is_in = |thread: &&u32| filter.takes_thread(**thread);
        let inside = row.threads.iter().filter(is_in).count();
        let (sign, role) = match inside {
            0 => ("-", Role::Dim),
            n if n < row.threads.len() => ("~", Role::Text),
            _ => ("+", Role::Text),
        };
        let share = ratio(fact.samples, total);
        let percent = |value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("{:.1}", value * 100.0))
        };
        let thread = match &row.key {
            Key::Thread(thread) => cx.profile.trace.threads.get(*thread as usize),
            Key::Group(_) => None,
        };
        let indent = if self.wanted.group == super::Group::None {
            ""
        } else {
            "  "
        };
        let name = match (&row.key, thread) {
            (Key::Group(name), _) => {
                let arrow = match row.open {
                    true => cx.theme.sign("▾", "v"),
                    false => cx.theme.sign("▸", ">"),
                };
                let n = some(row.threads.len() as u64, "thread", "threads");
                let whole = format!("{arrow} {name} ({n})");
                let room = place(cx.area, NAME).map_or(0, |(_, width)| width);
                let label = if text::width(&whole) > room {
                    format!("{arrow} {name} ({})", row.threads.len())
                } else {
                    whole
                };
                Piece::of(Role::Strong, label)
            }
            (_, Some(one)) => Piece::of(role, format!("{indent}{}", thread_name(&one.thread))),
            _ => Piece::text(""),
        };
        let (from, to) = match row.key {
            Key::Thread(thread) => life(cx, thread),
            Key::Group(_) => (None, None),
        };
        let seconds = |time: Option<TimeNs>| {
            time.map_or_else(String::new, |time| format!("{:.3}", cx.seconds(time)))
        };
        let cpu = fact.account.cpu;
        let cpu = cpu.map_or_else(|| "?".to_owned(), |cpu| format!("{:.3}", cpu.as_secs_f64()));
        let kernel = knows_kernel(cx).then(|| kernel_share(fact));
        vec![
            Piece::of(role, sign),
            name,
            Piece::of(
                role,
                thread.map_or_else(String::new, |t| t.thread.tid.to_string()),
            ),
            Piece::of(role, thread.map_or("", |t| role_name(t.thread.role))),
            Piece::of(role, count(fact.samples)),
            Piece::of(Role::Heat(share), format!("{:.2}%", share * 100.0)),
            Piece::of(role, cpu),
            Piece::of(role, percent(delivered(fact))),
            Piece::of(role, percent(kernel.filter(|_| fact.samples > 0))),
            Piece::text(""),
            Piece::text(""),
            Piece::of(role, seconds(from)),
            Piece::of(role, seconds(to)),
        ]
    }

    /// The share of the time that the busiest thread ran in its busiest column, of those on
    /// the screen: so high are the others' shown beside it.
    fn busiest(&self, cx: &Cx<'_>) -> f64 {
        let (Some((asked, _)), Some(columns)) = (self.sparks.answered(), self.sparks.get()) else {
            return 1.0;
        };
        let period = by_region::period_ns(cx.profile);
        let span = asked.window.1.since(asked.window.0).0;
        let column_ns = (span / asked.columns.max(1) as u64).max(1);
        let threads = |key: &Key| {
            let mut rows = self.shown_rows().iter();
            let row = rows.find(|row| row.key == *key);
            row.map_or(1, |row| row.threads.len().max(1) as u64)
        };
        let threads: Vec<u64> = asked.rows.iter().map(threads).collect();
        let mut busiest = 0.0f64;
        for column in 0..asked.columns {
            let rows = columns.column(column).chunks(GROUPS);
            for (counts, threads) in rows.zip(&threads) {
                let ns = column_ns.saturating_mul(*threads);
                let samples = counts.iter().sum();
                busiest = busiest.max(by_region::activity(samples, period, ns));
            }
        }
        if busiest > 0.0 { busiest } else { 1.0 }
    }

    /// The regions and the activity of each row: of several colours, over the table.
    fn draw_bars(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.shown_rows();
        let height = super::Threads::height(Rect {
            height: area.height + 1,
            ..area
        });
        let top = self.list.top(rows.len(), height);
        let asked = self.sparks.answered().map(|(key, _)| key);
        let period = by_region::period_ns(cx.profile);
        let busiest = self.busiest(cx);
        for ((index, row), y) in rows
            .iter()
            .enumerate()
            .skip(top)
            .zip(area.y + 1..area.bottom())
        {
            let base = if index == self.list.selected().min(rows.len().saturating_sub(1)) {
                cx.theme.style(Role::Selected)
            } else {
                Style::new()
            };
            if let Some((x, width)) = place(area, MIX) {
                let cells = by_region::stacked(&row.fact.regions, width);
                let spans = cells.into_iter().map(|region| {
                    let style = cx.theme.style(Role::Region(region)).patch(base);
                    Span::styled(cx.theme.fill(region).to_string(), style)
                });
                let line = Line::from(spans.collect::<Vec<_>>());
                frame.render_widget(line, cell(area, x, y, width));
            }
            let number = asked.and_then(|key| key.rows.iter().position(|one| *one == row.key));
            let (Some(asked), Some(number), Some(columns), Some((x, width))) =
                (asked, number, self.sparks.get(), place(area, ACTIVITY))
            else {
                continue;
            };
            let span = asked.window.1.since(asked.window.0).0;
            // A closed group is full when all of its threads run.
            let threads = row.threads.len().max(1) as u64;
            let column_ns = (span / asked.columns.max(1) as u64).saturating_mul(threads);
            let first = number * GROUPS;
            let spans = (0..asked.columns.min(width)).map(|column| {
                let counts = columns.column(column);
                let counts = counts.get(first..first + GROUPS);
                let counts = counts.unwrap_or_default();
                let share = by_region::activity(counts.iter().sum(), period, column_ns);
                let share = share / busiest;
                let role = by_region::dominant(counts).map_or(Role::Dim, Role::Region);
                let style = cx.theme.style(role).patch(base);
                Span::styled(cx.theme.column(share).to_string(), style)
            });
            let line = Line::from(spans.collect::<Vec<_>>());
            frame.render_widget(line, cell(area, x, y, width));
        }
    }
}

fn cell(area: Rect, x: u16, y: u16, width: usize) -> Rect {
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    Rect::new(area.x.saturating_add(x), y, width, 1).intersection(area)
}
