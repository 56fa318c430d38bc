//! The threads: each with its role, its share and its activity over time; which of them
//! all views include.

use super::{Act, Click, Cx, Find, View};
use crate::report::words::ratio;
use crate::tui::jobs::{Answer, Fetched, Question, Stop};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::lens::Narrow;
use crate::tui::shown::{Cell, Part, Shown, Table};
use crate::tui::theme::Role;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table::{self, Col, Look, Piece};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use rustc_hash::FxHashSet;
use vmscope_symbolizer::{Filter, Profile, Summary};

const NAME: usize = 1;

const COLUMNS: [Col; 6] = [
    col("", 1, false, 0),
    col("thread", 16, false, 0),
    col("tid", 8, true, 2),
    col("role", 9, false, 1),
    col("samples", 11, true, 3),
    col("share", 7, true, 0),
];

const fn col(name: &'static str, width: usize, right: bool, rank: u8) -> Col {
    Col {
        name,
        width,
        right,
        rank,
    }
}

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Toggle, &[crate::tui::keys::key(KeyCode::Char(' '))], "include", "include this thread, or leave it out, in all views"),
    own(Command::Sort, &[ch('s')], "sort", "sort by samples, name, tid, role"),
];

/// What threads are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By {
    #[default]
    Samples,
    Name,
    Tid,
    Role,
}

/// A thread's row.
#[derive(Clone, Debug)]
struct Row {
    thread: u32,
    samples: u64,
}

/// The view.
#[derive(Debug, Default)]
pub struct Threads {
    by: By,
    list: ListState,
    rows: Fetched<By, Vec<Row>>,
    origin: Option<usize>,
}

/// All threads that have samples in the window, included or not.
fn rows_of(profile: &Profile, filter: &Filter, by: By, stop: &Stop) -> Option<Vec<Row>> {
    let everybody = Filter {
        threads: None,
        ..filter.clone()
    };
    let summary = Summary::of_stoppable(profile, &everybody, stop)?;
    let threads = summary.threads.iter();
    let mut rows: Vec<Row> = threads
        .map(|one| Row {
            thread: one.thread,
            samples: one.samples,
        })
        .collect();
    let thread = |row: &Row| {
        profile
            .trace
            .threads
            .get(row.thread as usize)
            .map(|t| &t.thread)
    };
    match by {
        By::Samples => rows.sort_by_key(|row| std::cmp::Reverse(row.samples)),
        By::Name => rows.sort_by_key(|row| thread(row).map(|t| t.name.clone())),
        By::Tid => rows.sort_by_key(|row| thread(row).map(|t| t.tid.0)),
        By::Role => rows.sort_by_key(|row| thread(row).map(|t| format!("{:?}", t.role))),
    }
    Some(rows)
}

impl Threads {
    fn rows(&self) -> &[Row] {
        self.rows.get().map_or(&[], Vec::as_slice)
    }

    fn selected(&self) -> Option<&Row> {
        self.rows().get(self.list.selected())
    }

    /// Whether a thread's name, tid or role has `pattern` in it.
    fn matches(cx: &Cx<'_>, row: &Row, pattern: &str) -> bool {
        let thread = cx.profile.trace.threads.get(row.thread as usize);
        thread.is_some_and(|thread| {
            let thread = &thread.thread;
            let text = format!("{} {} {:?}", thread.name, thread.tid, thread.role);
            text.to_lowercase().contains(&pattern.to_lowercase())
        })
    }

    fn toggle(&self, cx: &Cx<'_>) -> Vec<Act> {
        let Some(row) = self.selected() else {
            return Vec::new();
        };
        let all: FxHashSet<u32> = (0u32..).take(cx.profile.trace.threads.len()).collect();
        let mut chosen = cx
            .lens
            .filter()
            .threads
            .clone()
            .unwrap_or_else(|| all.clone());
        if !chosen.remove(&row.thread) {
            chosen.insert(row.thread);
        }
        if chosen.is_empty() {
            return vec![Act::Say("one thread at least is included".to_owned())];
        }
        let chosen = (chosen != all).then_some(chosen);
        vec![Act::Narrow(Narrow::Threads(chosen))]
    }
}

impl View for Threads {
    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let (rows, height) = (self.rows().len(), table::height(cx.area));
        if self.list.act(command, rows, height) {
            return Vec::new();
        }
        match command {
            Command::Toggle => self.toggle(cx),
            Command::Only | Command::Open => {
                let only = self
                    .selected()
                    .map(|row| [row.thread].into_iter().collect());
                only.map_or_else(Vec::new, |only| {
                    vec![Act::Narrow(Narrow::Threads(Some(only)))]
                })
            }
            Command::Sort => {
                self.by = match self.by {
                    By::Samples => By::Name,
                    By::Name => By::Tid,
                    By::Tid => By::Role,
                    By::Role => By::Samples,
                };
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let (rows, height) = (self.rows().len(), table::height(cx.area));
        let Some(line) = click.at.y.checked_sub(cx.area.y + 1) else {
            return Vec::new();
        };
        let is_row = self.list.press(click.what, usize::from(line), rows, height);
        if is_row && click.what == super::Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let (filter, by) = (cx.lens.filter().clone(), self.by);
        let asked = self.rows.ask(0, by, cx.stamp, move |profile, stop| {
            rows_of(profile, &filter, by, stop)
        });
        asked.into_iter().collect()
    }

    fn answer(&mut self, _number: u8, answer: Option<Answer>, _cx: &Cx<'_>) {
        self.rows.take(answer);
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        if pattern.is_empty() {
            self.origin = None;
            return true;
        }
        let now = *self.origin.get_or_insert(self.list.selected());
        let count = self.rows().len();
        let found = super::next_match(count, now, self.list.selected(), find, |index| {
            let row = self.rows().get(index);
            row.is_some_and(|row| Self::matches(cx, row, pattern))
        });
        if let Some(found) = found {
            self.list.select(found, count, table::height(cx.area));
        }
        found.is_some()
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let total: u64 = self.rows().iter().map(|row| row.samples).sum();
        let sorted = match self.by {
            By::Samples => 4,
            By::Name => NAME,
            By::Tid => 2,
            By::Role => 3,
        };
        let look = Look {
            theme: cx.theme,
            columns: &COLUMNS,
            stretch: NAME,
            sorted: Some((sorted, false)),
            rows: self.rows().len(),
            list: self.list,
        };
        table::draw(look, frame, area, |index| {
            let Some(row) = self.rows().get(index) else {
                return Vec::new();
            };
            let Some(thread) = cx.profile.trace.threads.get(row.thread as usize) else {
                return Vec::new();
            };
            let chosen = cx.lens.filter().threads.as_ref();
            let is_in = chosen.is_none_or(|chosen| chosen.contains(&row.thread));
            let role = if is_in { Role::Text } else { Role::Dim };
            let share = ratio(row.samples, total);
            vec![
                Piece::of(role, if is_in { "+" } else { "-" }),
                Piece::of(role, thread.thread.name.clone()),
                Piece::of(role, thread.thread.tid.to_string()),
                Piece::of(role, format!("{:?}", thread.thread.role).to_lowercase()),
                Piece::of(role, crate::report::words::count(row.samples)),
                Piece::of(Role::Heat(share), format!("{:.2}%", share * 100.0)),
            ]
        });
    }

    fn shown(&self, cx: &Cx<'_>) -> Shown {
        let columns = ["thread", ">tid", "role", ">samples", ">share"];
        let mut table = Table::new("", &columns);
        let total: u64 = self.rows().iter().map(|row| row.samples).sum();
        for row in self.rows() {
            let Some(thread) = cx.profile.trace.threads.get(row.thread as usize) else {
                continue;
            };
            table.rows.push(vec![
                Cell::Text(thread.thread.name.clone()),
                Cell::Count(u64::from(thread.thread.tid.0)),
                Cell::Text(format!("{:?}", thread.thread.role).to_lowercase()),
                Cell::Count(row.samples),
                Cell::Share(ratio(row.samples, total)),
            ]);
        }
        Shown {
            title: "Threads".to_owned(),
            parts: vec![Part::Table(table)],
        }
    }

    fn is_pending(&self) -> bool {
        self.rows.is_pending()
    }
}
