//! View of one matrix, category × method or category × thread: drawn as a grid or as a nested
//! tree-table.

use super::matrix_page::{Key, Page, Row, SELECTED, title};
use super::narrow::narrow;
use super::way::{Thing, Way};
use super::{COLLAPSE, EXPAND, SORT, document, expand_choices, grid};
use crate::present::document::Document;
use crate::queries::entry_index::IndexCache;
use crate::queries::matrix::{Matrix, Shape};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::Command;
use crate::tui::views::empty::{no_samples, say};
use crate::tui::views::{Act, Choice, Click, Cx, Find, Press, View};
use crate::tui::widgets::data_table::{Clicked, DataTable, HOT, Rows, above_footer, footer};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::cmp::Reverse;
use vmscope_symbolizer::matrix::{Axis, Row as Counted};
use vmscope_symbolizer::{EntryId, Stop};

pub type Table = DataTable<Row, Key>;

/// The matrix of one axis.
#[derive(Clone, Debug)]
pub struct MatrixView {
    axis: Axis,
    /// Nested tree-table, or grid.
    pub is_nested: bool,
    /// Whether the categories are the rows.
    pub turned: bool,
    /// Whether the categories are parts of regions.
    pub in_parts: bool,
    index: IndexCache,
    matrix: Fetched<Shape, Matrix>,
    grid: Table,
    nested: Table,
    /// The selected column of the grid; `None` for the sums.
    column: Option<Thing>,
}

impl MatrixView {
    /// A grid that shares an index of the entries.
    pub fn new(axis: Axis, index: IndexCache) -> Self {
        MatrixView {
            axis,
            is_nested: false,
            turned: false,
            in_parts: false,
            index,
            matrix: Fetched::default(),
            grid: Table::default(),
            nested: Table::default(),
            column: None,
        }
    }

    fn page(&self) -> Option<Page<'_>> {
        let way = Way {
            matrix: self.matrix.get()?,
            turned: self.turned,
        };
        let column = self.column.as_ref();
        Some(Page {
            way,
            is_nested: self.is_nested,
            column: column.and_then(|column| way.turned().find(column)),
            most: way.most(),
        })
    }

    fn table(&self) -> &Table {
        match self.is_nested {
            true => &self.nested,
            false => &self.grid,
        }
    }

    fn table_mut(&mut self) -> &mut Table {
        match self.is_nested {
            true => &mut self.nested,
            false => &mut self.grid,
        }
    }

    /// Calls the table with its data and its height, where the matrix is known.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Page<'_>, usize) -> T,
    ) -> Option<T> {
        let height = match self.is_nested {
            true => Table::height(above_footer(cx.area)),
            false => Table::height(grid::rows_area(cx.area)),
        };
        let mut table = std::mem::take(self.table_mut());
        let result = self.page().map(|page| call(&mut table, &page, height));
        *self.table_mut() = table;
        result
    }

    /// Sorts anew, and keeps the selected row.
    pub fn arrange(&mut self, cx: &Cx<'_>) {
        self.with_table(cx, |table, page, height| table.arrange(page, height));
    }

    /// Key of the selected row.
    fn selected_key(&self) -> Option<Key> {
        Some(self.page()?.key(self.table().selected()?))
    }

    /// Turns rows into columns: the selected cell stays selected, and what stands in a row
    /// becomes the row around it.
    pub fn turn(&mut self, cx: &Cx<'_>) {
        // Only the shown table has rows of this matrix.
        let selected = self.selected_key();
        self.turned = !self.turned;
        self.grid = Table::default();
        let column = self.column.take();
        if !self.is_nested {
            self.column = selected.map(|(row, _)| row);
            if let Some(column) = column {
                self.grid.expect((column, None));
            }
            return self.arrange(cx);
        }
        let inside = selected.and_then(|(outer, inner)| Some((inner?, outer)));
        self.with_table(cx, |table, page, height| {
            table.arrange(page, height);
            let path = inside.and_then(|(outer, inner)| {
                let item = page.way.find(&outer)?;
                let inner = Some(page.way.turned().find(&inner)?);
                Some([Row { item, inner: None }, Row { item, inner }])
            });
            match path {
                Some(path) => table.reveal(page, &path, height),
                None => {
                    table.act(Command::First, page, height);
                }
            }
        });
    }

    /// Shows the nested matrix, with the grid's selected row expanded.
    fn nest(&mut self, cx: &Cx<'_>) {
        let key = self.selected_key();
        self.is_nested = true;
        self.with_table(cx, |table, page, height| {
            table.arrange(page, height);
            let Some(key) = key else {
                return;
            };
            table.select_key(page, &key, height);
            let row = table.selected();
            if row.is_some_and(|row| !table.is_expanded(page, row)) {
                table.toggle(page, height);
            }
        });
    }

    /// Selects a column of the grid by its place; the first one is the sums.
    fn select_column(&mut self, place: usize, cx: &Cx<'_>) {
        let thing = self.page().and_then(|page| {
            let column = u32::try_from(place.checked_sub(1)?).ok()?;
            Some(page.way.turned().thing(column))
        });
        self.column = thing;
        let is_sorted = |page: &Page<'_>| self.grid.sorted(page).0 == SELECTED;
        if self.page().is_some_and(|page| is_sorted(&page)) {
            self.arrange(cx);
        }
    }

    /// Handles grid-only commands; returns whether it did.
    fn act_in_grid(&mut self, command: Command, cx: &Cx<'_>) -> bool {
        let Some(page) = self.page() else {
            return false;
        };
        let now = page.column.map_or(0, |column| column as usize + 1);
        match command {
            Command::Left => self.select_column(now.saturating_sub(1), cx),
            Command::Right => {
                let last = page.way.turned().len();
                self.select_column((now + 1).min(last), cx);
            }
            Command::NextHot | Command::PreviousHot => {
                let is_back = command == Command::PreviousHot;
                if let Some((row, column)) = grid::next_hot(&page, &self.grid, is_back) {
                    let key = page.key(row);
                    self.select_column(column + 1, cx);
                    self.with_table(cx, |table, page, height| {
                        table.select_key(page, &key, height);
                    });
                }
            }
            Command::Toggle => self.nest(cx),
            _ => return false,
        }
        true
    }

    /// Filters to the selected row or cell.
    fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let (Some(page), Some(row)) = (self.page(), self.table().selected()) else {
            return Vec::new();
        };
        let column = if self.is_nested {
            row.inner
        } else {
            page.column
        };
        let cell = match self.turned {
            true => (column, Some(row.item)),
            false => (Some(row.item), column),
        };
        narrow(cx, page.way.matrix, cell)
    }

    /// Opens the method of a row; another row expands or collapses.
    fn open(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        if !self.is_nested {
            return self.only(cx);
        }
        let key = self.selected_key();
        let entry = key.and_then(|(outer, inner)| self.hottest_entry(&inner.unwrap_or(outer), cx));
        if let Some(entry) = entry {
            return vec![Act::Annotate(entry)];
        }
        self.with_table(cx, |table, page, height| table.toggle(page, height));
        Vec::new()
    }

    /// A method's hottest entry.
    fn hottest_entry(&self, thing: &Thing, cx: &Cx<'_>) -> Option<EntryId> {
        let Thing::Who(Counted::Method(method)) = thing else {
            return None;
        };
        let entries = self
            .matrix
            .get()?
            .entries_of(cx.profile, None, Some(*method));
        // The summary may be older than the newest entries.
        let samples = |entry: EntryId| cx.summary?.entries.get(entry as usize).copied();
        let entries = entries.into_iter();
        entries.max_by_key(|&entry| (samples(entry), Reverse(entry)))
    }

    /// Errors take longer, so the first question omits them. Growing recordings keep old errors
    /// until new ones arrive.
    fn shape_to_ask(&self, now: Stamp) -> Shape {
        let shape = Shape {
            axis: self.axis,
            in_parts: self.in_parts,
            has_errors: self.is_nested,
        };
        let is_counted = self.matrix.answered().is_some_and(|(before, stamp)| {
            let has_grown = before.has_errors && stamp.filters == now.filters;
            before.without_errors() == shape.without_errors() && (*stamp == now || has_grown)
        });
        match is_counted {
            true => shape,
            false => shape.without_errors(),
        }
    }

    /// Display name without orientation or order.
    fn name(&self) -> &'static str {
        match self.axis {
            Axis::Methods => "category × method",
            Axis::Threads => "category × thread",
        }
    }
}

impl View for MatrixView {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        if !self.is_nested && self.act_in_grid(command, cx) {
            return Vec::new();
        }
        match command {
            Command::Group | Command::GroupBack => self.turn(cx),
            Command::ZoomIn => self.in_parts = true,
            Command::ZoomOut => self.in_parts = false,
            Command::Open => return self.open(cx),
            Command::Only => return self.only(cx),
            _ => {
                self.with_table(cx, |table, page, height| match command {
                    Command::Toggle => {
                        table.toggle(page, height);
                    }
                    Command::Own(EXPAND) => table.set_all(page, Some(HOT), height),
                    Command::Own(COLLAPSE) => table.set_all(page, None, height),
                    Command::Own(line) => table.choose(page, line - SORT, height),
                    _ => {
                        table.act(command, page, height);
                    }
                });
            }
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let mut area = above_footer(cx.area);
        if !self.is_nested {
            let Some(page) = self.page() else {
                return Vec::new();
            };
            let column = grid::column_at(&page, cx.area, click.at.x);
            area = grid::rows_area(cx.area);
            if grid::is_heading(cx.area, click) {
                let is_press = matches!(click.what, Press::Down | Press::Double);
                if let Some(column) = column.filter(|_| is_press) {
                    self.select_column(column, cx);
                    self.with_table(cx, |table, page, height| {
                        let (_, reversed) = table.sorted(page);
                        table.sort_by(page, (grid::sort_of(column), reversed), height);
                    });
                }
                return Vec::new();
            }
            let clicked = self.with_table(cx, |table, page, _| table.click(click, page, area));
            if let Some(Clicked::Row { twice, .. }) = clicked {
                if let Some(column) = column {
                    self.select_column(column, cx);
                }
                if twice {
                    return self.open(cx);
                }
            }
            return Vec::new();
        }
        match self.with_table(cx, |table, page, _| table.click(click, page, area)) {
            Some(Clicked::Row { twice: true, .. }) => self.open(cx),
            _ => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let (index, version) = (self.index.clone(), cx.stamp.profile);
        let (shape, filter) = (self.shape_to_ask(cx.stamp), cx.filters.filter().clone());
        let asked = self.matrix.ask(shape, cx.stamp, move |profile, stop| {
            let index = index.get(profile, version, stop)?;
            Matrix::of(profile, &index, &filter, shape, stop)
        });
        asked.into_iter().collect()
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        if self.matrix.take(ended) {
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
        let Some(page) = self.page() else {
            return say("counting ...", cx, frame, area);
        };
        if page.way.matrix.total == 0 {
            return say(&no_samples(cx), cx, frame, area);
        }
        if !self.is_nested {
            return grid::draw(&page, &self.grid, cx.theme, frame, area);
        }
        let details = self.nested.selected();
        let details = details.map(|row| page.details(row, cx.theme));
        let above = footer(&details.unwrap_or_default(), cx.theme, frame, area);
        self.nested.draw(&page, cx.theme, frame, above);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let table = match self.page() {
            Some(page) if self.is_nested => {
                Some(Table::export(&page, self.nested.visible(), stop)?)
            }
            Some(page) => Some(grid::export(&page, &self.grid, stop)?),
            None => None,
        };
        Some(document(&self.crumb(cx), table))
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let sorts = self.page().map(|page| Table::choices(&page, SORT));
        let mut choices = sorts.unwrap_or_default();
        if self.is_nested {
            choices.extend(expand_choices());
            return choices;
        }
        for choice in &mut choices {
            choice.text = choice.text.replacen("sort by", "sort the matrix by", 1);
        }
        choices
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        let parts = if self.in_parts { ", in parts" } else { "" };
        if !self.is_nested {
            let turned = if self.turned { ", turned" } else { "" };
            return format!("{}{parts}{turned}", self.name());
        }
        let sorted = self.page().map(|page| self.nested.crumb(&page));
        let sorted = sorted.unwrap_or_default();
        let sorted = match sorted.strip_prefix("sorted ") {
            Some(sorted) => format!(", {sorted}"),
            None => sorted,
        };
        format!("{}{parts}{sorted}", title(self.turned, self.axis))
    }

    fn is_pending(&self) -> bool {
        self.matrix.is_pending()
    }
}
