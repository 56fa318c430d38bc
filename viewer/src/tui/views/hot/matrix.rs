//! Matrix of category × method or category × thread, drawn as a grid or as a nested tree-table.

use super::matrix_page::{Key, Page, Row, SELECTED, title};
use super::narrow::narrow;
use super::side::{ItemKey, Side};
use super::{SORT, act_on_table, document, expand_choices, grid};
use crate::present::document::Document;
use crate::queries::entry_index::IndexCache;
use crate::queries::matrix::{Matrix, Shape};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::Command;
use crate::tui::views::empty::{no_samples, say};
use crate::tui::views::{Act, Choice, Click, Cx, Find, Press, View};
use crate::tui::widgets::data_table::{Clicked, DataTable, Rows, above_footer, footer};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::cmp::Reverse;
use vmscope_symbolizer::matrix::{Axis, Row as Counted};
use vmscope_symbolizer::{EntryId, Stop};

pub type Table = DataTable<Row, Key>;

#[derive(Clone, Debug, Default)]
pub struct MatrixView {
    axis: Axis,
    /// Nested tree-table instead of a grid.
    pub is_nested: bool,
    /// Categories as rows.
    pub turned: bool,
    /// Parts of regions as categories.
    pub in_parts: bool,
    index: IndexCache,
    matrix: Fetched<Shape, Matrix>,
    table: Table,
    /// Selected grid column; `None` for sums.
    column: Option<ItemKey>,
}

impl MatrixView {
    pub fn new(axis: Axis, index: IndexCache) -> Self {
        MatrixView {
            axis,
            index,
            ..MatrixView::default()
        }
    }

    fn page(&self) -> Option<Page<'_>> {
        let side = Side {
            matrix: self.matrix.get()?,
            turned: self.turned,
        };
        let column = self.column.as_ref();
        Some(Page {
            side,
            is_nested: self.is_nested,
            column: column.and_then(|column| side.other().find(column)),
            most: side.most(),
        })
    }

    /// Calls the table with data and height; `None` without a matrix.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Page<'_>, usize) -> T,
    ) -> Option<T> {
        let height = match self.is_nested {
            true => Table::height(above_footer(cx.area)),
            false => Table::height(grid::rows_area(cx.area)),
        };
        let mut table = std::mem::take(&mut self.table);
        let result = self.page().map(|page| call(&mut table, &page, height));
        self.table = table;
        result
    }

    pub fn arrange(&mut self, cx: &Cx<'_>) {
        self.with_table(cx, |table, page, height| table.arrange(page, height));
    }

    fn selected_key(&self) -> Option<Key> {
        Some(self.page()?.key(self.table.selected()?))
    }

    /// Swaps rows and columns; the selected cell stays selected.
    pub fn turn(&mut self, cx: &Cx<'_>) {
        let (row, inner) = self.selected_key().unzip();
        let column = self.column.take();
        let new_row = match self.is_nested {
            true => inner.flatten(),
            false => column,
        };
        self.turned = !self.turned;
        if !self.is_nested {
            self.column.clone_from(&row);
        }
        self.with_table(cx, |table, page, height| {
            table.arrange(page, height);
            let path = new_row.zip(row).and_then(|(outer, inner)| {
                let item = page.side.find(&outer)?;
                let inner = Some(page.side.other().find(&inner)?);
                Some([Row { item, inner: None }, Row { item, inner }])
            });
            match path {
                Some(path) if page.is_nested => table.reveal(page, &path, height),
                Some([row, _]) => table.select_key(page, &page.key(row), height),
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
            if let Some(key) = key {
                table.expect(key);
            }
            table.arrange(page, height);
            let row = table.selected();
            if row.is_some_and(|row| !table.is_expanded(page, row)) {
                table.toggle(page, height);
            }
        });
    }

    /// Selects a grid column; column 0 holds sums.
    fn select_column(&mut self, place: usize, cx: &Cx<'_>) {
        let key = self.page().and_then(|page| {
            let column = u32::try_from(place.checked_sub(1)?).ok()?;
            Some(page.side.other().key(column))
        });
        self.column = key;
        let is_sorted = |page: &Page<'_>| self.table.sorted(page).0 == SELECTED;
        if self.page().is_some_and(|page| is_sorted(&page)) {
            self.arrange(cx);
        }
    }

    /// Executes grid commands; returns `false` for others.
    fn act_in_grid(&mut self, command: Command, cx: &Cx<'_>) -> bool {
        let Some(page) = self.page() else {
            return false;
        };
        let now = page.column.map_or(0, |column| column as usize + 1);
        match command {
            Command::Left => self.select_column(now.saturating_sub(1), cx),
            Command::Right => {
                let last = page.side.other().len();
                self.select_column((now + 1).min(last), cx);
            }
            Command::NextHot | Command::PreviousHot => {
                let is_back = command == Command::PreviousHot;
                if let Some((row, column)) = grid::next_hot(&page, &self.table, is_back) {
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

    fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let (Some(page), Some(row)) = (self.page(), self.table.selected()) else {
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
        narrow(cx, page.side.matrix, cell)
    }

    /// Opens a method; toggles other rows.
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

    fn hottest_entry(&self, key: &ItemKey, cx: &Cx<'_>) -> Option<EntryId> {
        let ItemKey::Row(Counted::Method(method)) = key else {
            return None;
        };
        let entries = self
            .matrix
            .get()?
            .entries_of(cx.profile, None, Some(*method));
        let samples = |entry: EntryId| Some(cx.summary?.samples_of(entry));
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
                self.with_table(cx, |table, page, height| {
                    act_on_table(table, command, page, height);
                });
            }
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let (area, column) = match (self.is_nested, self.page()) {
            (true, _) => (above_footer(cx.area), None),
            (false, Some(page)) => {
                let column = grid::column_at(&page, cx.area, click.at.x);
                (grid::rows_area(cx.area), column)
            }
            (false, None) => return Vec::new(),
        };
        if !self.is_nested && grid::is_heading(cx.area, click) {
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
        let Some(Clicked::Row { twice, .. }) = clicked else {
            return Vec::new();
        };
        if let Some(column) = column {
            self.select_column(column, cx);
        }
        match twice {
            true => self.open(cx),
            false => Vec::new(),
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
        if page.side.matrix.total == 0 {
            return say(&no_samples(cx), cx, frame, area);
        }
        if !self.is_nested {
            return grid::draw(&page, &self.table, cx.theme, frame, area);
        }
        let details = self.table.selected();
        let details = details.map(|row| page.details(row, cx.theme));
        let above = footer(&details.unwrap_or_default(), cx.theme, frame, area);
        self.table.draw(&page, cx.theme, frame, above);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let table = match self.page() {
            Some(page) if self.is_nested => Some(Table::export(&page, self.table.visible(), stop)?),
            Some(page) => Some(grid::export(&page, &self.table, stop)?),
            None => None,
        };
        Some(document(&self.crumb(cx), table))
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let sorts = self.page().map(|page| Table::choices(&page, SORT));
        let mut choices = sorts.unwrap_or_default();
        if self.is_nested {
            choices.extend(expand_choices());
        }
        choices
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        let name = match (self.is_nested, self.axis) {
            (true, axis) => title(self.turned, axis),
            (false, Axis::Methods) => "category × method",
            (false, Axis::Threads) => "category × thread",
        };
        let sorted = self.page().map(|page| self.table.crumb(&page));
        let sorted = sorted.unwrap_or_default();
        let parts = [
            name,
            if self.in_parts { "in parts" } else { "" },
            if self.turned && !self.is_nested {
                "turned"
            } else {
                ""
            },
            sorted.trim_start_matches("sorted "),
        ];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    fn is_pending(&self) -> bool {
        self.matrix.is_pending()
    }
}
