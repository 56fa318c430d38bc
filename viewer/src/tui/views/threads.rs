//! Threads with role, share and activity over time, and the thread filter of all views.

mod activity;
mod choose;
mod page;
#[cfg(test)]
mod tests;

use super::empty::{no_samples, say};
use super::{Act, Choice, Click, Cx, Find, View};
use crate::present::document::{Document, Part};
use crate::present::names::role_name;
use crate::present::numbers::{count, some};
use crate::queries::threads::{Group, GroupBy, Threads as Uses};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::widgets::data_table::{Clicked, DataTable, above_footer, footer};
use crate::tui::widgets::search::Finder;
use activity::{Activity, Asked};
pub(super) use choose::{only, toggle};
use page::{ACTIVITY, Key, Page, Row};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::time_buckets::Columns;
use vmscope_symbolizer::{Filter, Profile, Stop, ThreadId};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Toggle, &[ch(' ')], "include", "include or exclude this thread or group in all views"),
    own(Command::Sort, &[ch('s')], "sort", "sort by samples, CPU time, kernel share, name, tid, role, start"),
    own(Command::Reverse, &[ch('S')], "", "sort the other way round"),
    own(Command::Group, &[ch('b')], "group", "next grouping: role, name without numbers, process"),
    own(Command::GroupBack, &[ch('B')], "", "previous grouping"),
];

/// Groupings in the order of key presses, each with its breadcrumb text.
const GROUPINGS: [(Option<GroupBy>, &str); 4] = [
    (None, ""),
    (Some(GroupBy::Role), "by role"),
    (Some(GroupBy::Name), "by name"),
    (Some(GroupBy::Process), "by process"),
];

type Table = DataTable<Row, Key>;

/// Whether a thread's name, tid or role matches a search.
pub(in crate::tui::views) fn matches(
    profile: &Profile,
    thread: ThreadId,
    text: &mut Finder,
) -> bool {
    let thread = &profile.trace.threads[thread].thread;
    text.is_in_words(&[
        &thread.name,
        &thread.tid.to_string(),
        role_name(thread.role),
    ])
}

#[derive(Clone, Debug, Default)]
pub struct Threads {
    table: Table,
    /// Index in [`GROUPINGS`].
    grouping: usize,
    threads: Fetched<Filter, Uses>,
    groups: Option<Arc<[Group]>>,
    activity: Fetched<Asked, Columns>,
}

/// Filter without threads.
fn everybody(cx: &Cx<'_>) -> Filter {
    cx.filters.filter().of_all_threads()
}

impl Threads {
    fn page<'a>(&'a self, cx: &Cx<'a>) -> Option<Page<'a>> {
        let activity = self.activity.answered().zip(self.activity.get());
        let activity =
            activity.map(|((asked, _), columns)| Activity::of(cx.profile, asked, columns));
        Some(Page {
            cx: *cx,
            threads: self.threads.get()?,
            groups: self.groups.as_deref(),
            activity,
        })
    }

    /// Calls the table with data and height; `None` before the first answer.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Page<'_>, usize) -> T,
    ) -> Option<T> {
        let mut table = std::mem::take(&mut self.table);
        let height = Table::height(above_footer(cx.area));
        let result = self.page(cx).map(|page| call(&mut table, &page, height));
        self.table = table;
        result
    }

    /// Threads of the selected row.
    fn selected(&self, cx: &Cx<'_>) -> Option<Vec<ThreadId>> {
        let row = self.table.selected()?;
        Some(self.page(cx)?.threads_of(row).to_vec())
    }

    fn group_by(&mut self, grouping: usize, cx: &Cx<'_>) {
        self.grouping = grouping;
        self.arrange(cx);
    }

    /// Groups and sorts again.
    fn arrange(&mut self, cx: &Cx<'_>) {
        let threads = self.threads.get();
        let groups = GROUPINGS[self.grouping].0.zip(threads);
        let groups = groups.map(|(by, threads)| by.groups(cx.profile, threads).into());
        self.groups = groups;
        self.with_table(cx, |table, page, height| table.arrange(page, height));
    }

    /// Question about the activity of visible rows.
    fn activity_to_ask(&self, cx: &Cx<'_>) -> Option<Asked> {
        let page = self.page(cx)?;
        let rows = self.table.on_screen(Table::height(above_footer(cx.area)));
        let rows = rows.map(|row| {
            let is_expanded = matches!(row, Row::Group(_)) && self.table.is_expanded(&page, row);
            let threads = if is_expanded {
                &[]
            } else {
                page.threads_of(row)
            };
            (page_key(&page, row), Arc::from(threads))
        });
        let (from, to) = cx.kept_window();
        Some(Asked {
            rows: rows.collect(),
            columns: Table::place_of(&page, ACTIVITY, cx.area.width)?.1,
            window: (from, TimeNs(to.0.saturating_add(1))),
            everybody: everybody(cx),
        })
    }

    /// Number of included threads, and the scale of the activity.
    fn footer(&self, cx: &Cx<'_>, page: &Page<'_>) -> String {
        if page.threads.samples == 0 {
            return no_samples(cx);
        }
        let filter = cx.filters.filter();
        let threads = choose::all(cx.profile).count();
        let included = choose::all(cx.profile).filter(|thread| filter.takes_thread(*thread));
        let included = count(included.count() as u64);
        let threads = some(threads as u64, "thread", "threads");
        let mut words = format!("{included} of {threads} included");
        if page.threads.idle > 0 {
            let idle = some(page.threads.idle as u64, "thread", "threads");
            words += &format!("; {idle} did not run here");
        }
        let busiest = page.activity.map_or(1.0, |activity| activity.busiest) * 100.0;
        words + &format!("; activity: full height is {busiest:.1}% of a thread's time")
    }
}

fn page_key(page: &Page<'_>, row: Row) -> Key {
    use crate::tui::widgets::data_table::Rows;
    page.key(row)
}

impl View for Threads {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let is_done = self.with_table(cx, |table, page, height| table.act(command, page, height));
        if is_done == Some(true) {
            return Vec::new();
        }
        let count = GROUPINGS.len();
        match command {
            Command::Toggle => {
                return self
                    .selected(cx)
                    .map_or_else(Vec::new, |these| toggle(cx, &these));
            }
            Command::Only | Command::Open => {
                return self
                    .selected(cx)
                    .map_or_else(Vec::new, |these| only(&these));
            }
            Command::Own(number) => return self.of_choice(number, cx),
            Command::Group => self.group_by((self.grouping + 1) % count, cx),
            Command::GroupBack => self.group_by((self.grouping + count - 1) % count, cx),
            _ => {}
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let area = above_footer(cx.area);
        match self.with_table(cx, |table, page, _| table.click(click, page, area)) {
            Some(Clicked::Row { twice: true, .. }) => self.act(Command::Open, cx),
            // A click on the inclusion sign toggles it.
            Some(Clicked::Row {
                column: Some(0), ..
            }) if click.at.x == cx.area.x => self.act(Command::Toggle, cx),
            _ => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        // Answers do not depend on the thread filter.
        let stamp = Stamp {
            filters: 0,
            ..cx.stamp
        };
        let filter = everybody(cx);
        let of = filter.clone();
        let threads = self
            .threads
            .ask(filter.clone(), stamp, move |profile, stop| {
                Uses::of(profile, &of, stop)
            });
        let mut questions: Vec<Question> = threads.into_iter().collect();
        // Visible rows follow from the threads.
        if self.threads.answered() != Some(&(filter, stamp)) {
            return questions;
        }
        let asked = self.activity_to_ask(cx);
        if let Some(asked) = asked.filter(|asked| !asked.rows.is_empty() && asked.columns > 0) {
            let of = asked.clone();
            let activity = self
                .activity
                .ask(asked, stamp, move |profile, stop| of.count(profile, stop));
            questions.extend(activity);
        }
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.activity.take(ended);
        if self.threads.take(ended) {
            self.arrange(cx);
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let found = self.with_table(cx, |table, page, height| {
            table.find(pattern, find, page, height)
        });
        found == Some(true)
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(page) = self.page(cx) else {
            return;
        };
        if self.table.is_empty() && !self.threads.is_pending() {
            return say(&no_samples(cx), cx, frame, area);
        }
        let above = footer(&self.footer(cx, &page), cx.theme, frame, area);
        self.table.draw(&page, cx.theme, frame, above);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let Some(page) = self.page(cx) else {
            return Some(Document::default());
        };
        // Includes threads of collapsed groups.
        let mut rows = self.table.all(&page);
        rows.retain(|row| matches!(row, Row::Thread(_)));
        let table = Table::export(&page, rows.into_iter(), stop)?;
        Some(Document {
            title: "Threads".to_owned(),
            parts: vec![Part::Table(table)],
        })
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let mut choices = choose::choices();
        if let Some(page) = self.page(cx) {
            choices.extend(Table::choices(&page, choose::SORT));
        }
        choices
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        GROUPINGS[self.grouping].1.to_owned()
    }

    fn is_pending(&self) -> bool {
        self.threads.is_pending() || self.activity.is_pending()
    }
}
