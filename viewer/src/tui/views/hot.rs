//! All entries: in order, in groups, each with its ranges; and as a matrix of categories and
//! methods or threads.

mod draw;
mod grid;
mod listing;
mod matrix;
mod order;
mod rows;
mod state;
#[cfg(test)]
mod tests;

use super::{Act, Choice, Click, Cx, Find, Press, View};
use crate::report::words::some;
use crate::tui::jobs::{Answer, Question, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::lens::Narrow;
use crate::tui::shown::{Part, Shown};
use crate::tui::theme::Role;
use crate::tui::widgets::{table, text};
use draw::Page;
use grid::{Grid, GridBy};
use listing::{Facts, Listing};
use matrix::{Matrix, Shape, Who, entries_of};
use order::{By, Grouping};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
pub use state::Hot;
use state::{Form, HOT, height};
use std::sync::Arc;
use vmscope_symbolizer::{Filter, Profile};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Toggle, &[ch(' ')], "expand", "expand or collapse: a group, an entry's ranges"),
    own(Command::Sort, &[ch('s')], "sort", "sort by the next column"),
    own(Command::Reverse, &[ch('S')], "", "sort the other way round"),
    own(Command::Group, &[ch('b')], "group", "group by the next of method, class, region, kind, thread, tier; turn the matrix round"),
    own(Command::GroupBack, &[ch('B')], "", "group by the one before"),
    own(Command::Mode, &[ch('m')], "matrix", "the list; a matrix of categories and methods; of categories and threads"),
    own(Command::ZoomIn, &[ch('+'), ch('=')], "", "in the matrix: regions in their parts, by tier and phase"),
    own(Command::ZoomOut, &[ch('-')], "", "in the matrix: regions as a whole"),
    own(Command::NextHot, &[ch('}')], "", "the next hot row or cell"),
    own(Command::PreviousHot, &[ch('{')], "", "the hot row or cell before"),
];

/// The numbers of the palette's lines.
const SORT: u16 = 0;
const GROUP: u16 = 100;
const FORM: u16 = 200;
const EXPAND: u16 = 300;
const COLLAPSE: u16 = 301;

/// The numbers of the questions.
const FACTS: u8 = 0;
const LISTING: u8 = 1;
const MATRIX: u8 = 2;

impl View for Hot {
    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        match command {
            Command::Mode => self.form = self.form.next(),
            Command::Own(number) => self.own(number, cx),
            _ if self.form == Form::List => return self.act_in_list(command, cx),
            _ => return self.act_in_matrix(command, cx),
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let line = click.at.y.saturating_sub(cx.area.y);
        let x = click.at.x.saturating_sub(cx.area.x);
        let is_press = matches!(click.what, Press::Down | Press::Double);
        if self.form == Form::List {
            if line == 0 && is_press {
                // The second press of a double click is none of its own: it would turn the order.
                if click.what == Press::Down {
                    self.sort_by_heading(x, cx);
                }
                return Vec::new();
            }
            let line = usize::from(line.saturating_sub(1));
            let height = height(cx.area);
            if line >= height && is_press {
                return Vec::new();
            }
            let is_row = self.list.press(click.what, line, self.rows.len(), height);
            if is_row && click.what == Press::Double {
                return self.act(Command::Open, cx);
            }
            return Vec::new();
        }
        let Some(matrix) = self.matrix.get() else {
            return Vec::new();
        };
        let rows = self.grid.rows();
        let height = grid_height(cx.area);
        let column = self.grid.column_at(matrix, cx.area.width, x);
        if line < grid::HEAD {
            if let Some(column) = column.filter(|_| is_press) {
                self.grid.column = column;
                self.grid.by = if column == 0 {
                    GridBy::Sum
                } else {
                    GridBy::Column
                };
                self.grid.arrange(matrix, height);
            }
            return Vec::new();
        }
        let line = usize::from(line - grid::HEAD);
        if line >= height && is_press {
            return Vec::new();
        }
        let is_row = self.grid.list.press(click.what, line, rows, height);
        if let Some(column) = column.filter(|_| is_row) {
            self.grid.column = column;
        }
        if is_row && click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut questions = Vec::new();
        let of_profile = Stamp {
            lens: 0,
            profile: cx.stamp.profile,
        };
        let facts = self.facts.ask(FACTS, (), of_profile, |profile, stop| {
            Some(Arc::new(Facts::of(profile, stop)?))
        });
        questions.extend(facts);
        // What is made of a summary waits for the newest.
        let is_known = self.facts.answered() == Some(&((), of_profile));
        let Some((facts, summary)) = (self.facts.get().filter(|_| is_known)).zip(cx.summary) else {
            return questions;
        };
        let facts = Arc::clone(facts);
        let filter = cx.lens.filter().clone();
        if self.form == Form::List {
            if cx.summed == cx.stamp {
                let (order, summary) = (self.order, Arc::clone(summary));
                let asked = self
                    .listing
                    .ask(LISTING, order, cx.stamp, move |profile, stop| {
                        Listing::of(profile, &facts, &summary, (&filter, order), stop)
                    });
                questions.extend(asked);
            }
            return questions;
        }
        let shape = self.shape();
        let asked = self
            .matrix
            .ask(MATRIX, shape, cx.stamp, move |profile, stop| {
                Matrix::of(profile, &facts, &filter, shape, stop)
            });
        questions.extend(asked);
        questions
    }

    fn answer(&mut self, number: u8, answer: Option<Answer>, cx: &Cx<'_>) {
        match number {
            FACTS => self.facts.take(answer),
            LISTING => {
                let node = self.selected_node();
                self.listing.take(answer);
                self.flatten(node, cx);
            }
            _ => {
                let before = self.matrix.get().map(|matrix| matrix.shape);
                self.keep_cell();
                self.matrix.take(answer);
                if let Some(matrix) = self.matrix.get() {
                    if before.map(|shape| shape.axis) != Some(matrix.shape.axis) {
                        self.grid = Grid::standing(self.grid.turned);
                        self.kept_cell = None;
                    }
                    if before != Some(matrix.shape) {
                        self.grid_search.forget_origin();
                    }
                    self.grid.arrange(matrix, grid_height(cx.area));
                }
                self.restore_cell(cx);
            }
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        if self.form == Form::List || pattern.is_empty() {
            self.grid_search.forget_origin();
            return self.find_in_list(pattern, find, cx);
        }
        let Some(matrix) = self.matrix.get() else {
            return false;
        };
        let (grid, rows) = (&self.grid, self.grid.rows());
        let now = grid.list.selected().min(rows.saturating_sub(1));
        let found = (self.grid_search).find(pattern, find, rows, now, |row, text| {
            let item = grid.item_of(row);
            item.is_some_and(|item| text.is_in(grid.row(matrix, item).0))
        });
        found.select(|row| self.grid.list.select(row, rows, grid_height(cx.area)))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let samples = match self.form {
            Form::List => self.listing.get().map(|listing| listing.total),
            _ => self.fitting_matrix().map(|matrix| matrix.total),
        };
        match samples {
            None => say(cx, frame, area, "counting ..."),
            Some(0) => say(cx, frame, area, &nothing(cx.profile, cx.lens.filter())),
            Some(_) if self.form == Form::List => self.draw_list(cx, frame, area),
            Some(_) => {
                if let Some(matrix) = self.fitting_matrix() {
                    self.grid.draw(matrix, cx.theme, frame, area);
                }
            }
        }
    }

    fn shown(&self, cx: &Cx<'_>) -> Shown {
        let crumb = self.crumb(cx);
        let comma = if crumb.is_empty() { "" } else { ", " };
        let table = match self.form {
            Form::List => self.page(cx).map(|page| page.table(&self.rows)),
            _ => (self.fitting_matrix()).map(|matrix| self.grid.table(matrix)),
        };
        Shown {
            title: format!("Hot list{comma}{crumb}"),
            parts: table.map(Part::Table).into_iter().collect(),
        }
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let line = |text: String, number: u16| Choice { text, number };
        let mut choices = Vec::new();
        if self.form == Form::List {
            let sorts = By::ALL.into_iter().zip(SORT..);
            choices.extend(sorts.map(|(by, n)| line(format!("sort by {}", by.name()), n)));
            let groups = Grouping::ALL.into_iter().zip(GROUP..);
            choices.extend(groups.map(|(by, n)| line(format!("group by {}", by.name()), n)));
            let hot = format!("expand all hot ones (from {:.0} % on)", HOT * 100.0);
            choices.push(line(hot, EXPAND));
            choices.push(line("collapse all".to_owned(), COLLAPSE));
        } else {
            let sorts = ["sum", "the selected column", "name"]
                .into_iter()
                .zip(SORT..);
            choices.extend(sorts.map(|(by, n)| line(format!("sort the matrix by {by}"), n)));
        }
        let forms = Form::ALL.into_iter().zip(FORM..);
        let forms = forms.filter(|(form, _)| *form != self.form);
        choices.extend(forms.map(|(form, n)| line(format!("show {}", form.name()), n)));
        choices
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        match self.form {
            Form::List => {
                let mut parts = Vec::new();
                if self.order.grouping != Grouping::None {
                    parts.push(format!("by {}", self.order.grouping.name()));
                }
                if self.order.by != By::Share || self.order.reversed {
                    let way = if self.order.reversed {
                        ", reversed"
                    } else {
                        ""
                    };
                    parts.push(format!("sorted by {}{way}", self.order.by.name()));
                }
                parts.join(", ")
            }
            form => {
                let turned = if self.grid.turned { ", turned" } else { "" };
                let parts = if self.in_parts { ", in parts" } else { "" };
                format!("{}{parts}{turned}", form.name())
            }
        }
    }

    fn is_pending(&self) -> bool {
        let shown = match self.form {
            Form::List => self.listing.is_pending(),
            _ => self.matrix.is_pending(),
        };
        shown || self.facts.is_pending()
    }
}

impl Hot {
    fn own(&mut self, number: u16, cx: &Cx<'_>) {
        let at = |first: u16| usize::from(number.saturating_sub(first));
        match number {
            EXPAND => self.expand_hot(cx),
            COLLAPSE => {
                let node = self.selected_node();
                self.expanded.clear();
                self.flatten(node, cx);
            }
            FORM.. => self.form = Form::ALL.get(at(FORM)).copied().unwrap_or(self.form),
            GROUP.. => {
                let grouping = Grouping::ALL.get(at(GROUP)).copied();
                self.order.grouping = grouping.unwrap_or_default();
            }
            _ if self.form == Form::List => {
                self.order.by = By::ALL.get(at(SORT)).copied().unwrap_or_default();
                self.order.reversed = false;
            }
            _ => {
                let all = [GridBy::Sum, GridBy::Column, GridBy::Name];
                self.grid.by = all.get(at(SORT)).copied().unwrap_or_default();
                self.grid.reversed = false;
                self.arrange(cx);
            }
        }
    }

    fn arrange(&mut self, cx: &Cx<'_>) {
        if let Some(matrix) = self.matrix.get() {
            self.grid.arrange(matrix, grid_height(cx.area));
        }
    }

    /// Which matrix is to be shown.
    fn shape(&self) -> Shape {
        Shape {
            axis: self.form.axis(),
            in_parts: self.in_parts,
        }
    }

    /// The matrix, if it is the one that is to be shown.
    fn fitting_matrix(&self) -> Option<&Matrix> {
        self.matrix
            .get()
            .filter(|matrix| matrix.shape.axis == self.form.axis())
    }

    fn act_in_matrix(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let height = grid_height(cx.area);
        let axis = self.form.axis();
        let Some(matrix) = self.matrix.get().filter(|matrix| matrix.shape.axis == axis) else {
            return Vec::new();
        };
        if self.grid.act(command, matrix, height) {
            self.grid_search.forget_origin();
            return Vec::new();
        }
        match command {
            Command::Group | Command::GroupBack => self.grid.turn(matrix, height),
            Command::Sort => {
                self.grid.by = match self.grid.by {
                    GridBy::Sum => GridBy::Column,
                    GridBy::Column => GridBy::Name,
                    GridBy::Name => GridBy::Sum,
                };
                self.grid.arrange(matrix, height);
            }
            Command::Reverse => {
                self.grid.reversed = !self.grid.reversed;
                self.grid.arrange(matrix, height);
            }
            Command::NextHot => self.grid.select_hot(matrix, false, height),
            Command::PreviousHot => self.grid.select_hot(matrix, true, height),
            Command::ZoomIn => self.in_parts = true,
            Command::ZoomOut => self.in_parts = false,
            Command::Open | Command::Only => return self.narrow_to_cell(cx),
            _ => {}
        }
        Vec::new()
    }

    /// Filters to the selected cell, as far as filters can tell it: they go by where a sample
    /// fell, not by whom it was for.
    fn narrow_to_cell(&self, cx: &Cx<'_>) -> Vec<Act> {
        let (Some(matrix), Some((row, column))) = (self.fitting_matrix(), self.grid.selected())
        else {
            return Vec::new();
        };
        let Some(facts) = self.facts.get() else {
            return Vec::new();
        };
        let (who, category) = if self.grid.turned {
            (column, Some(row))
        } else {
            (Some(row), column)
        };
        let samples = match (who, category) {
            (Some(who), Some(category)) => matrix.cell(who, category),
            _ => self.grid.row(matrix, row).1,
        };
        if samples == 0 {
            return vec![Act::Say("there are no samples in this cell".to_owned())];
        }
        let who = who.and_then(|who| matrix.who.get(who as usize));
        let category = category.and_then(|at| matrix.categories.get(at as usize));
        let mut acts = Vec::new();
        let all = category.map_or(matrix.total, |category| category.samples);
        let other = |what: &str| {
            let more = some(all.saturating_sub(samples), "sample", "samples");
            Act::Say(format!(
                "filters go by where a sample fell: {more} of {what} are shown, too"
            ))
        };
        let mut own = None;
        match who.map(|who| &who.what) {
            Some(&Who::Method(method)) => {
                let mut entries =
                    entries_of(cx.profile, facts, category.map(|c| &c.what), Some(method));
                let is_own = |id: &u32| vmscope_symbolizer::methods::is_method(cx.profile, *id);
                entries.retain(is_own);
                if entries.is_empty() {
                    acts.push(other("other methods"));
                } else {
                    own = Some(entries);
                }
            }
            Some(Who::Thread(thread)) => {
                let only = Some([*thread].into_iter().collect());
                acts.push(Act::Narrow(Narrow::Threads(only)));
            }
            Some(Who::Compiled(_) | Who::Nobody(_)) if category.is_some() => {
                acts.push(other("others"));
            }
            Some(Who::Compiled(name)) => {
                let text = format!("{name} has no samples of its own, only of its compilers");
                return vec![Act::Say(text)];
            }
            Some(Who::Nobody(_)) => {
                let text = "choose a cell of this row: whose samples are is no filter";
                return vec![Act::Say(text.to_owned())];
            }
            None => {}
        }
        match (own, category.map(|category| &category.what)) {
            (Some(entries), _) => acts.insert(0, Act::Narrow(Narrow::Entries(entries))),
            (None, Some(category)) => {
                let entries = entries_of(cx.profile, facts, Some(category), None);
                let region = Act::Narrow(Narrow::Regions(vec![category.region]));
                // A part that is a tier is a filter with a name.
                let is_of_tier = |part: &str| {
                    !part.is_empty()
                        && entries.iter().all(|id| {
                            let entry = cx.profile.entries.get(*id as usize);
                            entry.is_some_and(|entry| entry.tier == part)
                        })
                };
                match category.part.as_deref() {
                    None => acts.insert(0, region),
                    Some(part) if is_of_tier(part) => {
                        let tiers = vec![part.to_owned()];
                        acts.insert(0, Act::Narrow(Narrow::Tiers(tiers)));
                        acts.insert(0, region);
                    }
                    Some(_) => acts.insert(0, Act::Narrow(Narrow::Entries(entries))),
                }
            }
            (None, None) => {}
        }
        acts
    }

    fn page<'a>(&'a self, cx: &Cx<'a>) -> Option<Page<'a>> {
        Some(Page {
            profile: cx.profile,
            listing: self.listing.get()?,
            theme: cx.theme,
        })
    }

    fn sort_by_heading(&mut self, x: u16, cx: &Cx<'_>) {
        let (whats, columns) = draw::columns(cx.area.width);
        let fitting = table::fitting(&columns, name_at(whats), usize::from(cx.area.width));
        let mut left = 0;
        for (at, width) in fitting {
            if (left..=left + width).contains(&usize::from(x)) {
                if let Some(by) = whats.get(at).and_then(|what| what.by()) {
                    self.order.reversed = self.order.by == by && !self.order.reversed;
                    self.order.by = by;
                }
                return;
            }
            left += width + 1;
        }
    }

    fn draw_list(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(page) = self.page(cx) else {
            return;
        };
        let (whats, columns) = draw::columns(area.width);
        let stretch = name_at(whats);
        let fitting = table::fitting(&columns, stretch, usize::from(area.width));
        let by = page.listing.by;
        // Of several, the one that is a number or a word.
        let is_sorted = |what: &draw::What| match by {
            By::Share => *what == draw::What::Share,
            by => what.by() == Some(by),
        };
        let look = table::Look {
            theme: cx.theme,
            columns: &columns,
            stretch,
            sorted: whats
                .iter()
                .position(is_sorted)
                .map(|at| (at, page.listing.reversed)),
            rows: self.rows.len(),
            list: self.list,
        };
        let above = Rect {
            height: area.height.saturating_sub(1),
            ..area
        };
        table::draw(look, frame, above, |index| {
            let row = self.rows.get(index);
            row.map_or_else(Vec::new, |row| page.pieces(row, whats, &fitting))
        });
        if let Some(row) = self.selected() {
            let details = format!(" {}", page.details(row));
            let details = text::line(&details, usize::from(area.width));
            let bottom = Rect {
                y: area.bottom().saturating_sub(1),
                height: area.height.min(1),
                ..area
            };
            frame.render_widget(Line::styled(details, cx.theme.style(Role::Dim)), bottom);
        }
    }
}

fn name_at(whats: &[draw::What]) -> usize {
    let at = whats.iter().position(|what| *what == draw::What::Name);
    at.unwrap_or(0)
}

/// Rows of the matrix on the screen.
fn grid_height(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(grid::HEAD + 1))
}

/// Why there is nothing to show, and what would change that.
fn nothing(profile: &Profile, filter: &Filter) -> String {
    if !filter.is_everything() {
        return "None of the samples are among what is chosen. x removes the newest filter, X \
                all of them."
            .to_owned();
    }
    let text = "There are no samples in this recording: the threads hardly ran, or nothing \
                reached it.";
    if profile.trace.end.is_none() {
        return format!("{text} It was cut off or is just beginning.");
    }
    format!("{text} 9 shows what limits it; `vmscope record -- CMD` makes another.")
}

fn say(cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect, what: &str) {
    let columns = usize::from(area.width).saturating_sub(4);
    let text = crate::report::words::wrap(what, columns.max(1), 0);
    let lines: Vec<Line> = text
        .lines()
        .map(|line| Line::raw(format!("  {line}")))
        .collect();
    let inner = Rect {
        y: area.y + area.height.min(1),
        height: area.height.saturating_sub(1),
        ..area
    };
    let text = ratatui::widgets::Paragraph::new(lines).style(cx.theme.style(Role::Text));
    frame.render_widget(text, inner);
}
