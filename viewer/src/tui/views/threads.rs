//! The threads: each with its role, its share and its activity over time; which of them
//! all views include.

mod choose;
mod draw;
mod facts;
mod shown;
#[cfg(test)]
mod tests;

use super::{Act, Choice, Click, Cx, Find, Press, View};
use crate::report::text::role_name;
use crate::tui::document::Document;
use crate::tui::jobs::{Answer, Fetched, Question, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::{Finder, Search};
use crate::tui::widgets::table;
pub(super) use choose::{only, toggle};
use facts::{By, Facts, Group, Key, Row, Rows, Wanted};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::time_buckets::{By as Counted, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Profile, Stop};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Toggle, &[ch(' ')], "include", "include this thread or group, or leave it out, in all views"),
    own(Command::Sort, &[ch('s')], "sort", "sort by samples, CPU time, kernel share, name, tid, role, start"),
    own(Command::Reverse, &[ch('S')], "", "sort the other way round"),
    own(Command::Group, &[ch('b')], "group", "group by role, name without numbers, process"),
    own(Command::GroupBack, &[ch('B')], "", "group by the one before"),
];

/// What the activity of some rows was asked for.
#[derive(Clone, Debug, PartialEq)]
struct Sparks {
    rows: Vec<Key>,
    columns: usize,
    window: (TimeNs, TimeNs),
    everybody: Filter,
    version: u64,
}

/// Whether a thread's name, tid or role has what is searched for in it.
pub(in crate::tui::views) fn matches(profile: &Profile, thread: u32, text: &mut Finder) -> bool {
    let thread = profile.trace.threads.get(thread as usize);
    thread.is_some_and(|thread| {
        let thread = &thread.thread;
        text.is_in_words(&[
            &thread.name,
            &thread.tid.to_string(),
            role_name(thread.role),
        ])
    })
}

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    wanted: Wanted,
    list: ListState,
    /// What is selected: it stays so when the order changes.
    chosen: Option<Key>,
    facts: Fetched<Filter, Arc<Facts>>,
    /// Counts the answers, which the rows are made of.
    version: u64,
    rows: Fetched<(Wanted, u64), Rows>,
    sparks: Fetched<Sparks, Columns>,
    search: Search,
}

/// The filter without what this view chooses.
fn everybody(cx: &Cx<'_>) -> Filter {
    cx.filters.filter().of_all_threads()
}

fn next<T: Copy + PartialEq>(all: &[T], now: T, by: usize) -> Option<T> {
    let at = all.iter().position(|one| *one == now)?;
    all.get((at + by) % all.len()).copied()
}

impl Threads {
    fn shown_rows(&self) -> &[Row] {
        self.rows.get().map_or(&[], |rows| rows.shown.as_slice())
    }

    fn selected(&self) -> Option<&Row> {
        self.shown_rows().get(self.list.selected())
    }

    fn height(area: Rect) -> usize {
        // The last line tells how many are included.
        table::height(area).saturating_sub(1)
    }

    /// Opens or closes the group that is selected, or that the thread is of.
    fn open(&mut self, open: bool) {
        let at = self.list.selected();
        let rows = self.shown_rows().iter().take(at + 1).rev();
        let name = rows
            .filter_map(|row| match &row.key {
                Key::Group(name) => Some(name.clone()),
                Key::Thread(_) => None,
            })
            .next();
        if let Some(name) = name {
            self.wanted.closed.retain(|other| *other != name);
            if !open {
                self.chosen = Some(Key::Group(name.clone()));
                self.wanted.closed.push(name);
                self.wanted.closed.sort();
            }
        }
    }

    /// Keeps what was selected selected.
    fn reselect(&mut self, cx: &Cx<'_>) {
        let rows = self.shown_rows();
        let count = rows.len();
        let at = rows
            .iter()
            .position(|row| Some(&row.key) == self.chosen.as_ref());
        self.list.keep(at, count, Self::height(cx.area));
    }

    /// What the rows on the screen need; the columns of the screen for a row's activity.
    fn sparks_of(&self, cx: &Cx<'_>) -> Sparks {
        let height = Self::height(cx.area);
        let top = self.list.top(self.shown_rows().len(), height);
        let rows = self.shown_rows().iter().skip(top).take(height);
        let (from, to) = cx.window();
        Sparks {
            rows: rows.map(|row| row.key.clone()).collect(),
            columns: draw::activity_columns(cx.area),
            window: (from, TimeNs(to.0.saturating_add(1))),
            everybody: everybody(cx),
            version: self.version,
        }
    }
}

impl View for Threads {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let (rows, height) = (self.shown_rows().len(), Self::height(cx.area));
        if self.list.act(command, rows, height) {
            self.chosen = self.selected().map(|row| row.key.clone());
            return Vec::new();
        }
        let threads = self.selected().map(|row| Arc::clone(&row.threads));
        match (command, threads) {
            (Command::Toggle, Some(threads)) => return toggle(cx, &threads),
            (Command::Only | Command::Open, Some(threads)) => {
                return only(&threads);
            }
            (Command::Left, _) => self.open(false),
            (Command::Right, _) => self.open(true),
            (Command::Own(number), _) => return self.of_choice(number, cx),
            (Command::Sort, _) => {
                self.wanted.by = next(&By::ALL, self.wanted.by, 1).unwrap_or_default();
            }
            (Command::Reverse, _) => self.wanted.reverse ^= true,
            (Command::Group, _) => {
                self.wanted.group = next(&Group::ALL, self.wanted.group, 1).unwrap_or_default();
            }
            (Command::GroupBack, _) => {
                let by = Group::ALL.len() - 1;
                self.wanted.group = next(&Group::ALL, self.wanted.group, by).unwrap_or_default();
            }
            _ => {}
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let (rows, height) = (self.shown_rows().len(), Self::height(cx.area));
        let Some(line) = click.at.y.checked_sub(cx.area.y + 1).map(usize::from) else {
            return Vec::new();
        };
        if line >= height && matches!(click.what, Press::Down | Press::Double) {
            return Vec::new();
        }
        let is_row = self.list.press(click.what, line, rows, height);
        self.chosen = self.selected().map(|row| row.key.clone());
        if !is_row {
            return Vec::new();
        }
        // The first column is what a click there changes.
        match click.what {
            Press::Double => self.act(Command::Open, cx),
            Press::Down if click.at.x == cx.area.x => self.act(Command::Toggle, cx),
            _ => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        // Which threads are included changes nothing here.
        let stamp = Stamp {
            filters: 0,
            ..cx.stamp
        };
        let filter = everybody(cx);
        let of = filter.clone();
        let facts = self
            .facts
            .ask(0, filter.clone(), stamp, move |profile, stop| {
                Facts::of(profile, &of, stop)
            });
        let mut questions: Vec<Question> = facts.into_iter().collect();
        if let Some(facts) = self.facts.get().map(Arc::clone) {
            let wanted = self.wanted.clone();
            let key = (wanted.clone(), self.version);
            let rows = self
                .rows
                .ask(1, key, Stamp::default(), move |profile, stop| {
                    Rows::of(profile, &facts, &wanted, stop)
                });
            questions.extend(rows);
        }
        // Which threads there is activity of is known by the rows.
        let rows_are_of = self.rows.answered().map(|(key, _)| key);
        if self.facts.answered() != Some(&(filter, stamp))
            || rows_are_of != Some(&(self.wanted.clone(), self.version))
        {
            return questions;
        }
        let key = self.sparks_of(cx);
        if !key.rows.is_empty() && key.columns > 0 {
            let height = Self::height(cx.area);
            let top = self.list.top(self.shown_rows().len(), height);
            let rows = self.shown_rows().iter().skip(top).take(height);
            let is_own = |row: &&Row| matches!(row.key, Key::Thread(_)) || !row.open;
            let rows = rows.zip(0u32..).filter(|(row, _)| is_own(row));
            let threads: Vec<(u32, Arc<[u32]>)> = rows
                .map(|(row, number)| (number, Arc::clone(&row.threads)))
                .collect();
            let asked = key.clone();
            let sparks = self.sparks.ask(2, key, stamp, move |profile, stop| {
                let mut of_thread = vec![u32::MAX; profile.trace.threads.len()];
                for (number, threads) in &threads {
                    for &thread in threads.iter() {
                        if let Some(slot) = of_thread.get_mut(thread as usize) {
                            *slot = *number;
                        }
                    }
                }
                let what = ColumnsOf {
                    window: asked.window,
                    columns: asked.columns,
                    by: Counted::Rows {
                        of_thread: &of_thread,
                        rows: u32::try_from(asked.rows.len()).unwrap_or(0),
                    },
                };
                Columns::of(profile, &what, &asked.everybody, stop)
            });
            questions.extend(sparks);
        }
        questions
    }

    fn answer(&mut self, number: u8, answer: Option<Answer>, cx: &Cx<'_>) {
        match number {
            0 => {
                self.facts.take(answer);
                self.version += 1;
            }
            1 => {
                self.rows.take(answer);
                self.reselect(cx);
            }
            _ => self.sparks.take(answer),
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let rows = self.rows.get().map_or(&[][..], |rows| &rows.shown);
        let (count, now) = (rows.len(), self.list.selected());
        let found = (self.search).find(pattern, find, count, now, |row, text| {
            rows.get(row).is_some_and(|row| match &row.key {
                Key::Thread(thread) => matches(cx.profile, *thread, text),
                Key::Group(name) => text.is_in(name),
            })
        });
        found.select(|row| {
            self.list.select(row, count, Self::height(cx.area));
            self.chosen = self.selected().map(|row| row.key.clone());
        })
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.draw_all(cx, frame, area);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        self.table(cx, stop)
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        Self::all_choices()
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        self.wanted.group.name().to_owned()
    }

    fn is_pending(&self) -> bool {
        self.facts.is_pending() || self.rows.is_pending() || self.sparks.is_pending()
    }
}
