//! View of all entries, flat or grouped.

use super::list_page::{ERROR, Key, Page, Row};
use super::{FORM, GROUP, SORT, act_on_table, document, expand_choices};
use crate::present::document::Document;
use crate::queries::entries::{Entries, GroupBy, GroupKey};
use crate::queries::entry_index::IndexCache;
use crate::queries::inclusive::Inclusive;
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::Command;
use crate::tui::views::empty::{no_samples, say};
use crate::tui::views::{Act, Choice, Click, Cx, Find, View};
use crate::tui::widgets::data_table::{Clicked, DataTable, Rows, above_footer, footer};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_symbolizer::{EntryId, IndexVec, Stop, Summary};

type Table = DataTable<Row, Key>;

#[derive(Clone, Debug, Default)]
pub struct List {
    table: Table,
    by: GroupBy,
    index: IndexCache,
    /// Starts building the index early, in parallel with counting.
    indexed: Fetched<(), ()>,
    /// By grouping, and whether inclusive samples take part.
    entries: Fetched<(GroupBy, bool), Entries>,
    /// Inclusive samples of a recording with stacks.
    inclusive: Fetched<(), Arc<Inclusive>>,
    /// 95 % half-widths of entries' shares.
    errors: Fetched<(), IndexVec<EntryId, f64>>,
    /// Running sum of samples per group, in table order.
    cumulative: Vec<u64>,
}

impl List {
    pub fn new(index: IndexCache) -> Self {
        List {
            index,
            ..List::default()
        }
    }

    /// Entries split by thread have no error estimates.
    fn has_errors(&self) -> bool {
        self.by != GroupBy::Thread
    }

    fn page<'a>(&'a self, cx: &Cx<'a>) -> Option<Page<'a>> {
        let errors = self.errors.get().filter(|_| self.has_errors());
        let of_entries = self.entries.answered().map(|(_, stamp)| stamp);
        let of_errors = self.errors.answered().map(|(_, stamp)| stamp);
        Some(Page {
            profile: cx.profile,
            entries: self.entries.get()?,
            errors,
            are_errors_old: of_entries != of_errors,
            cumulative: &self.cumulative,
        })
    }

    /// Calls the table with data and height; `None` without entries.
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

    /// Sorts new entries; regrouping keeps the selected entry.
    fn arrange(&mut self, is_regrouped: bool, cx: &Cx<'_>) {
        self.with_table(cx, |table, page, height| {
            // A selection at the top stays at the top.
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

    /// Entry for the method view: the row's entry, or the hottest entry of a method.
    fn entry_to_open(&self, cx: &Cx<'_>) -> Option<EntryId> {
        let (page, row) = (self.page(cx)?, self.table.selected()?);
        let group = page.group(row);
        let hottest = page.entries.members_of(group).first();
        let is_function = |_: &&_| match group.key {
            GroupKey::Method(_) => true,
            _ => page.entries.by == GroupBy::Innermost,
        };
        let hottest = hottest.filter(is_function);
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
                // Includes entries without samples.
                let of_entry = &page.entries.index.methods.of_entry;
                let method = of_entry[*first];
                let all = of_entry.enumerated().filter(|(_, of)| **of == method);
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
            Command::Own(number @ GROUP..FORM) => {
                let by = GroupBy::ALL.get(usize::from(number - GROUP));
                self.by = by.copied().unwrap_or(self.by);
            }
            _ => {
                self.with_table(cx, |table, page, height| {
                    act_on_table(table, command, page, height);
                });
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
        // A growing profile would need a new index of its stacks every second.
        let has_stacks =
            !cx.profile.trace.samples.chains.is_empty() && cx.profile.omitted.is_none();
        if has_stacks {
            let (stacks, filter) = (cx.stacks.clone(), cx.filters.filter().clone());
            questions.extend(self.inclusive.ask((), stamp, move |profile, stop| {
                let stacks = stacks.get(profile, stop)?;
                Inclusive::of(profile, &stacks, &filter, stop).map(Arc::new)
            }));
        }
        // Entries need the newest summary; the first ones do not wait for inclusive samples.
        let is_counted = self.inclusive.answered() == Some(&((), stamp));
        let is_first = self.inclusive.get().is_none();
        let is_ready = cx.summed == stamp && (!has_stacks || is_counted || is_first);
        let Some(summary) = cx.summary.filter(|_| is_ready) else {
            return questions;
        };
        let inclusive = self.inclusive.get().filter(|_| is_counted).cloned();
        let (by, index, summary) = (self.by, self.index.clone(), Arc::clone(summary));
        let filter = cx.filters.filter().clone();
        let key = (by, inclusive.is_some());
        questions.extend(self.entries.ask(key, stamp, move |profile, stop| {
            let index = index.get(profile, version, stop)?;
            Entries::of(profile, &index, (&summary, &filter), by, inclusive, stop)
        }));
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.indexed.take(ended);
        self.inclusive.take(ended);
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
        let of_stacks = self.inclusive.is_pending();
        self.entries.is_pending() || self.indexed.is_pending() || of_stacks || of_errors
    }
}
