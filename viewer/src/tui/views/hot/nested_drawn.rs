//! The nested matrix on the screen and in files.

use super::nested::{Nest, Nested, NestedBy};
use super::way::{Thing, Way};
use crate::present::document::{Table, Value, each};
use crate::present::names::region_letter;
use crate::present::numbers::{count, ratio, some};
use crate::present::shorten::label;
use crate::present::text;
use crate::queries::matrix::Category;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::table::{self, Col, Look, Piece};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::matrix::Axis;

/// Where in the columns the name and the error are.
const NAME: usize = 5;
const ERROR: usize = 6;

fn columns(way: Way<'_>, width: u16) -> [Col; 7] {
    let bar = match width {
        ..104 => 8,
        104..170 => 16,
        _ => 30,
    };
    let name = title(way.turned, way.matrix.shape.axis);
    [
        Col::new("share", 7, true, 0),
        Col::new("", bar, false, 0),
        Col::new("samples", 9, true, 0),
        Col::new("of it", 7, true, 2),
        Col::new("", 1, false, 0),
        Col::new(name, 30, false, 0),
        Col::new("±", 6, true, 1),
    ]
}

/// What is in what.
pub fn title(turned: bool, axis: Axis) -> &'static str {
    match (turned, axis) {
        (true, Axis::Methods) => "category > method",
        (false, Axis::Methods) => "method > category",
        (true, Axis::Threads) => "category > thread",
        (false, Axis::Threads) => "thread > category",
    }
}

/// What sorts by a column, at a place of the heading.
pub fn sorts_at(way: Way<'_>, width: u16, x: u16) -> Option<NestedBy> {
    let columns = columns(way, width);
    let mut left = 0;
    for (at, width) in table::fitting(&columns, NAME, usize::from(width)) {
        if (left..=left + width).contains(&usize::from(x)) {
            return Some(match at {
                NAME => NestedBy::Name,
                ERROR => NestedBy::Error,
                _ => NestedBy::Share,
            });
        }
        left += width + 1;
    }
    None
}

impl Nested {
    /// Draws it.
    pub fn draw(&self, way: Way<'_>, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
        let columns = columns(way, area.width);
        let fitting = table::fitting(&columns, NAME, usize::from(area.width));
        let room = fitting.iter().find(|(at, _)| *at == NAME);
        let room = room.map_or(0, |(_, width)| *width);
        let sorted = match self.by {
            NestedBy::Share => 0,
            NestedBy::Name => NAME,
            NestedBy::Error => ERROR,
        };
        let look = Look {
            theme,
            columns: &columns,
            stretch: NAME,
            sorted: Some((sorted, self.reversed)),
            rows: self.rows.len(),
            list: self.list,
        };
        let above = Rect {
            height: area.height.saturating_sub(1),
            ..area
        };
        let most = most_of(way);
        let bar = columns.get(1).map_or(0, |column| column.width);
        table::draw(look, frame, above, |index| {
            let row = self.rows.get(index);
            row.map_or_else(Vec::new, |&row| pieces(way, theme, row, (bar, room), most))
        });
        let details = self.selected().map(|row| details(way, theme, row));
        let details = text::line(&details.unwrap_or_default(), usize::from(area.width));
        let bottom = Rect {
            y: area.bottom().saturating_sub(1),
            height: area.height.min(1),
            ..area
        };
        frame.render_widget(Line::styled(details, theme.style(Role::Dim)), bottom);
    }

    /// All rows, for export; `None` where it was stopped.
    pub fn table(&self, way: Way<'_>, stop: &Stop) -> Option<Table> {
        let mut table = Table::new(
            "",
            &[
                "of",
                "name",
                ">samples",
                ">share",
                ">share of parent",
                ">error",
            ],
        );
        each(self.rows.iter(), stop, |&row| {
            let samples = Nested::samples(way, row);
            let (what, name, parent) = match row.inner {
                Some(inner) => {
                    let inside = way.turned();
                    let share = ratio(samples, way.samples(row.item));
                    let name = format!("  {}", inside.name(inner));
                    (inside.title(), name, Value::Share(share))
                }
                None => (way.title(), way.name(row.item).to_owned(), Value::Empty),
            };
            let error = way.error(row.item, row.inner);
            table.rows.push(vec![
                Value::Text(what.to_owned()),
                Value::Text(name),
                Value::Count(samples),
                Value::Share(ratio(samples, way.matrix.total)),
                parent,
                error.map_or(Value::Empty, Value::Share),
            ]);
        })?;
        Some(table)
    }
}

/// The samples of the greatest row.
fn most_of(way: Way<'_>) -> u64 {
    way.most()
}

/// The category that a row is, or is in.
fn category_of(way: Way<'_>, row: Nest) -> Option<Category> {
    let thing = match (way.turned, row.inner) {
        (true, None) => Some(way.thing(row.item)),
        (false, Some(inner)) => Some(way.turned().thing(inner)),
        _ => None,
    };
    match thing? {
        Thing::Category(category) => Some(category),
        Thing::Who(_) => None,
    }
}

fn pieces(
    way: Way<'_>,
    theme: &Theme,
    row: Nest,
    (bar, room): (usize, usize),
    most: u64,
) -> Vec<Piece> {
    let samples = Nested::samples(way, row);
    let total = way.matrix.total;
    let hot = Role::Heat(ratio(samples, most));
    let region = category_of(way, row).map(|category| category.region);
    let indent = usize::from(row.inner.is_some());
    // Against the greatest of those beside it.
    let (beside, parent) = match row.inner {
        Some(_) => {
            let whole = way.samples(row.item);
            let share = format!("{:.1}%", ratio(samples, whole) * 100.0);
            (way.most_inner(row.item), share)
        }
        None => (most, String::new()),
    };
    let drawn = theme.bar(ratio(samples, beside), bar.saturating_sub(indent));
    let sign = match (row.inner, row.open) {
        (Some(_), _) => "  ",
        (None, true) => theme.sign("▾ ", "- "),
        (None, false) => theme.sign("▸ ", "+ "),
    };
    let name = match row.inner {
        Some(inner) => way.turned().name(inner),
        None => way.name(row.item),
    };
    let indented = " ".repeat(indent * 2);
    let name = label(name, None, "", room.saturating_sub(indented.len() + 2));
    let role = if row.inner.is_some() {
        Role::Text
    } else {
        Role::Strong
    };
    let error = way.error(row.item, row.inner);
    vec![
        Piece::of(hot, format!("{:.2}%", ratio(samples, total) * 100.0)),
        Piece::of(
            region.map_or(hot, Role::Region),
            format!("{}{drawn}", " ".repeat(indent)),
        ),
        Piece::text(count(samples)),
        Piece::of(Role::Dim, parent),
        Piece::of(
            region.map_or(Role::Text, Role::Region),
            region.map_or_else(String::new, |region| region_letter(region).to_string()),
        ),
        Piece::of(role, format!("{indented}{sign}{name}")),
        Piece::of(
            Role::Dim,
            error.map_or_else(String::new, |error| format!("{:.2}", error * 100.0)),
        ),
    ]
}

/// All that is known of a row.
fn details(way: Way<'_>, theme: &Theme, row: Nest) -> String {
    let samples = Nested::samples(way, row);
    let share = |part, whole| format!("{:.2}%", ratio(part, whole) * 100.0);
    let outer = way.name(row.item);
    let mut parts = Vec::new();
    match row.inner {
        Some(inner) => {
            let inside = way.turned();
            parts.push(inside.name(inner).to_owned());
            parts.push(some(samples, "sample", "samples"));
            let whole = share(samples, way.samples(row.item));
            parts.push(format!("{whole} of {outer}"));
            let other = share(samples, inside.samples(inner));
            parts.push(format!("{other} of its own"));
        }
        None => {
            parts.push(outer.to_owned());
            parts.push(some(samples, "sample", "samples"));
            let inner = way.inner(row.item).len() as u64;
            let inside = match way.turned().title() {
                "category" => some(inner, "category", "categories"),
                "thread" => some(inner, "thread", "threads"),
                _ => some(inner, "method", "methods"),
            };
            parts.push(inside);
        }
    }
    if let Some(error) = way.error(row.item, row.inner) {
        parts.push(format!("±{:.2}%", error * 100.0));
    }
    format!(" {}", parts.join(theme.sign(" · ", "; ")))
}
