//! View of all entries, flat or grouped.

use super::list_page::{ERROR, Key, Page, Row};
use super::{COLLAPSE, EXPAND, GROUP, SORT, document, expand_choices};
use crate::present::document::Document;
use crate::queries::entries::{Entries, GroupBy, GroupKey};
use crate::queries::entry_index::IndexCache;
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::Command;
use crate::tui::views::empty::{no_samples, say};
use crate::tui::views::{Act, Choice, Click, Cx, Find, View};
use crate::tui::widgets::data_table::{Clicked, DataTable, HOT, Rows, above_footer, footer};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_symbolizer::{EntryId, Stop, Summary};

type Table = DataTable<Row, Key>;

/// The list.
#[derive(Clone, Debug)]
pub struct List {
    table: Table,
    by: GroupBy,
    index: IndexCache,
    /// Starts building the index early, in parallel with counting.
    indexed: Fetched<(), ()>,
    entries: Fetched<GroupBy, Entries>,
    /// 95 % half-widths of entries' shares.
    errors: Fetched<(), Vec<f64>>,
    /// Running sum of samples per group, in table order.
    cumulative: Vec<u64>,
}

impl List {
    /// A list that shares an index.
    pub fn new(index: IndexCache) -> Self {
        List {
            table: Table::default(),
            by: GroupBy::default(),
            index,
            indexed: Fetched::default(),
            entries: Fetched::default(),
            errors: Fetched::default(),
            cumulative: Vec::new(),
        }
    }

    /// Grouping by thread splits entries, which leaves no error estimates.
    fn has_errors(&self) -> bool {
        self.by != GroupBy::Thread
    }

    fn page<'a>(&'a self, cx: &Cx<'a>) -> Option<Page<'a>> {
        let of = |stamp: Option<Stamp>| stamp.filter(|_| self.has_errors());
        let of_entries = of(self.entries.answered().map(|(_, stamp)| *stamp));
        let of_errors = of(self.errors.answered().map(|(_, stamp)| *stamp));
        let newest = self.errors.get().filter(|_| self.has_errors());
        let newest_errors = newest.map_or(&[][..], Vec::as_slice);
        Some(Page {
            profile: cx.profile,
            entries: self.entries.get()?,
            // Errors of other samples are not shown.
            errors: if of_entries == of_errors {
                newest_errors
            } else {
                &[]
            },
            newest_errors,
            cumulative: &self.cumulative,
        })
    }

    /// Calls the table with its data and its height, where the entries are known.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Page<'_>, usize) -> T,
    ) -> Option<T> {
        let mut table = std::mem::take(&mut self.table);
        let height = Table::height(above_footer(cx.area));
        let result = self.page(cx).map(|page| {
            let result = call(&mut table, &page, height);
            // The order may have changed.
            let mut cumulative = vec![0; page.entries.groups.len()];
            let mut sum = 0;
            for row in table.visible() {
                if let Row::Group(group) = row {
                    sum += page.entries.groups[group].samples;
                    cumulative[group] = sum;
                }
            }
            (result, cumulative)
        });
        self.table = table;
        let (result, cumulative) = result?;
        self.cumulative = cumulative;
        Some(result)
    }

    /// Sorts new entries; in other groups the selected entry stays selected.
    fn arrange(&mut self, is_regrouped: bool, cx: &Cx<'_>) {
        self.with_table(cx, |table, page, height| {
            // The top of the list stays the top.
            let is_at_top = table.selected() == table.visible().next();
            let entry = table.chosen().and_then(Key::entry);
            let entry = entry.filter(|_| !is_at_top);
            table.arrange(page, height);
            let Some(entry) = entry.filter(|_| is_regrouped) else {
                return;
            };
            let is_entry =
                |row: &Row| !matches!(row, Row::Range { .. }) && page.entry(*row) == Some(entry);
            let hides = |row: &Row| {
                let members = page.entries.members_of(page.group(*row)).iter();
                matches!(row, Row::Group(_)) && members.clone().any(|one| one.entry == entry)
            };
            let found = table.visible().find(is_entry);
            if let Some(row) = found.or_else(|| table.visible().find(hides)) {
                table.select_key(page, &page.key(row), height);
            }
        });
    }

    fn group_by(&mut self, step: usize) {
        let all = GroupBy::ALL;
        self.by = all[(self.by as usize + step) % all.len()];
    }

    /// Executes a palette choice.
    fn choose(&mut self, number: u16, cx: &Cx<'_>) {
        if (GROUP..GROUP + GroupBy::ALL.len() as u16).contains(&number) {
            self.by = GroupBy::ALL[usize::from(number - GROUP)];
            return;
        }
        self.with_table(cx, |table, page, height| match number {
            EXPAND => table.set_all(page, Some(HOT), height),
            COLLAPSE => table.set_all(page, None, height),
            line => table.choose(page, line - SORT, height),
        });
    }

    /// The entry to open for the selected row: of a group of a method's entries the hottest.
    fn entry_to_open(&self, cx: &Cx<'_>) -> Option<EntryId> {
        let (page, row) = (self.page(cx)?, self.table.selected()?);
        let group = page.group(row);
        let hottest = page.entries.members_of(group).first();
        let hottest = hottest.filter(|_| matches!(group.key, GroupKey::Method(_)));
        page.entry(row).or_else(|| hottest.map(|one| one.entry))
    }

    fn open(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        match self.entry_to_open(cx) {
            Some(entry) => vec![Act::Annotate(entry)],
            None => {
                self.with_table(cx, |table, page, height| table.toggle(page, height));
                Vec::new()
            }
        }
    }

    /// Filters all views to the selected row.
    fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let (Some(page), Some(row)) = (self.page(cx), self.table.selected()) else {
            return Vec::new();
        };
        let group = page.group(row);
        let of_thread = match group.key {
            GroupKey::Thread(thread) => {
                Some(FilterChange::Threads(Some([thread].into_iter().collect())))
            }
            _ => None,
        };
        let is_of_method = matches!((row, &group.key), (Row::Group(_), GroupKey::Method(_)));
        if let Some(entry) = page.entry(row).filter(|_| !is_of_method) {
            let entry = FilterChange::Entries(vec![entry]);
            let both = of_thread.into_iter().chain([entry]);
            return both.map(Act::FilterChange).collect();
        }
        let change = match (&group.key, page.entries.by) {
            (GroupKey::Region(region), _) => FilterChange::Regions(vec![*region]),
            (GroupKey::Text(text), GroupBy::Class) if !text.is_empty() => {
                FilterChange::Modules(vec![text.to_string()])
            }
            (GroupKey::Text(text), GroupBy::Tier) if !text.is_empty() => {
                FilterChange::Tiers(vec![text.to_string()])
            }
            (GroupKey::Method(first), _) => {
                // Also the entries without samples at present.
                let of_entry = &page.entries.index.methods.of_entry;
                let method = of_entry[*first as usize];
                let all = (0..).zip(of_entry).filter(|(_, of)| **of == method);
                FilterChange::Entries(all.map(|(entry, _)| entry).collect())
            }
            _ => of_thread.unwrap_or_else(|| {
                let members = page.entries.members_of(group).iter();
                FilterChange::Entries(members.map(|member| member.entry).collect())
            }),
        };
        vec![Act::FilterChange(change)]
    }
}

impl View for List {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        match command {
            Command::Group => self.group_by(1),
            Command::GroupBack => self.group_by(GroupBy::ALL.len() - 1),
            Command::Open => return self.open(cx),
            Command::Only => return self.only(cx),
            Command::Own(number) => self.choose(number, cx),
            Command::Toggle => {
                self.with_table(cx, |table, page, height| table.toggle(page, height));
            }
            _ => {
                self.with_table(cx, |table, page, height| table.act(command, page, height));
            }
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let area = above_footer(cx.area);
        match self.with_table(cx, |table, page, _| table.click(click, page, area)) {
            Some(Clicked::Row { twice: true, .. }) => self.open(cx),
            _ => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let (stamp, version) = (cx.stamp, cx.stamp.profile);
        let index = self.index.clone();
        let of_profile = Stamp {
            filters: 0,
            ..stamp
        };
        let indexed = self.indexed.ask((), of_profile, move |profile, stop| {
            index.get(profile, version, stop).map(drop)
        });
        let mut questions: Vec<Question> = indexed.into_iter().collect();
        if self.has_errors() {
            let filter = cx.filters.filter().clone();
            questions.extend(self.errors.ask((), stamp, move |profile, stop| {
                Summary::errors_by_entry(profile, &filter, stop)
            }));
        }
        // The entries wait for the newest summary.
        let Some(summary) = cx.summary.filter(|_| cx.summed == stamp) else {
            return questions;
        };
        let (by, index, summary) = (self.by, self.index.clone(), Arc::clone(summary));
        let filter = cx.filters.filter().clone();
        questions.extend(self.entries.ask(by, stamp, move |profile, stop| {
            let index = index.get(profile, version, stop)?;
            Entries::of(profile, &index, (&summary, &filter), by, stop)
        }));
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.indexed.take(ended);
        let before = self.entries.get().map(|entries| entries.by);
        if self.entries.take(ended) {
            self.arrange(before != self.entries.get().map(|entries| entries.by), cx);
        }
        if self.errors.take(ended) {
            let is_sorted = |page: &Page<'_>| self.table.sorted(page).0 == ERROR;
            if self.page(cx).is_some_and(|page| is_sorted(&page)) {
                self.arrange(false, cx);
            }
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
            return say("counting ...", cx, frame, area);
        };
        if page.entries.total == 0 {
            return say(&no_samples(cx), cx, frame, area);
        }
        let details = self.table.selected();
        let details = details.map(|row| page.details(row, cx.theme));
        let above = footer(&details.unwrap_or_default(), cx.theme, frame, area);
        self.table.draw(&page, cx.theme, frame, above);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let table = match self.page(cx) {
            Some(page) => Some(Table::export(&page, self.table.visible(), stop)?),
            None => None,
        };
        Some(document(&self.crumb(cx), table))
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let sorts = self.page(cx).map(|page| Table::choices(&page, SORT));
        let mut choices = sorts.unwrap_or_default();
        let groups = GroupBy::ALL.into_iter().zip(GROUP..);
        choices.extend(groups.map(|(by, number)| Choice {
            text: format!("group by {}", by.name()),
            number,
        }));
        choices.extend(expand_choices());
        choices
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        let mut parts = Vec::new();
        if self.by != GroupBy::default() {
            parts.push(format!("by {}", self.by.name()));
        }
        let sorted = self.page(cx).map(|page| self.table.crumb(&page));
        parts.extend(sorted.filter(|sorted| !sorted.is_empty()));
        parts.join(", ")
    }

    fn is_pending(&self) -> bool {
        let of_errors = self.has_errors() && self.errors.is_pending();
        self.entries.is_pending() || self.indexed.is_pending() || of_errors
    }
}
