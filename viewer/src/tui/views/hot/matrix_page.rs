//! Columns and rows of the nested matrix. The grid uses the outer rows and draws its own columns.

use super::side::{ItemKey, Side};
use crate::present::document::Value;
use crate::present::names::region_letter;
use crate::present::numbers::{count, ratio, some};
use crate::present::shorten::Name;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::matrix::Axis;

const OF: usize = 0;
pub const SHARE: usize = 1;
const BAR: usize = 2;
const SAMPLES: usize = 3;
const PARENT: usize = 4;
const LETTER: usize = 5;
pub const NAME: usize = 6;
const ERROR: usize = 7;
/// Selected column of the grid.
pub const SELECTED: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Row of the [`Side`].
    pub item: u32,
    /// Column of the [`Side`] for an inner row.
    pub inner: Option<u32>,
}

/// Identity of a row across answers.
pub type Key = (ItemKey, Option<ItemKey>);

#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub side: Side<'a>,
    /// Nested tree-table instead of a grid.
    pub is_nested: bool,
    /// Selected grid column; `None` for sums.
    pub column: Option<u32>,
    /// Samples of the largest row.
    pub most: u64,
}

pub fn title(turned: bool, axis: Axis) -> &'static str {
    match (turned, axis) {
        (true, Axis::Methods) => "category > method",
        (false, Axis::Methods) => "method > category",
        (true, Axis::Threads) => "category > thread",
        (false, Axis::Threads) => "thread > category",
    }
}

impl Page<'_> {
    pub fn samples(&self, row: Row) -> u64 {
        match row.inner {
            Some(inner) => self.side.cell(row.item, inner),
            None => self.side.samples(row.item),
        }
    }

    fn name(&self, row: Row) -> &str {
        match row.inner {
            Some(inner) => self.side.other().name(inner),
            None => self.side.name(row.item),
        }
    }

    /// Region of a category row.
    fn region(&self, row: Row) -> Option<Region> {
        let category = match (self.side.turned, row.inner) {
            (true, None) => row.item,
            (false, Some(inner)) => inner,
            _ => return None,
        };
        Some(self.side.matrix.columns[category as usize].what.region)
    }

    pub fn details(&self, row: Row, theme: &Theme) -> String {
        let side = self.side;
        let samples = self.samples(row);
        let share = |part, whole| format!("{:.2}%", ratio(part, whole) * 100.0);
        let mut parts = vec![
            self.name(row).to_owned(),
            some(samples, "sample", "samples"),
        ];
        if let Some(inner) = row.inner {
            let whole = share(samples, side.samples(row.item));
            parts.push(format!("{whole} of {}", side.name(row.item)));
            let other = share(samples, side.other().samples(inner));
            parts.push(format!("{other} of its own"));
        } else {
            let inner = side.inner(row.item).len() as u64;
            parts.push(match side.other().title() {
                "category" => some(inner, "category", "categories"),
                "thread" => some(inner, "thread", "threads"),
                _ => some(inner, "method", "methods"),
            });
        }
        if let Some(error) = side.error(row.item, row.inner) {
            parts.push(format!("±{:.2}%", error * 100.0));
        }
        parts.join(theme.sign(" · ", "; "))
    }
}

impl Rows for Page<'_> {
    type Row = Row;
    type Key = Key;

    fn columns(&self, width: u16) -> Vec<Column> {
        let bar = match width {
            ..104 => 8,
            104..170 => 16,
            _ => 30,
        };
        let is_grid = !self.is_nested;
        let (share, selected) = match is_grid {
            true => ("sum", "the selected column"),
            false => ("share", ""),
        };
        let falls_in = |form: bool| if form { Sort::Down } else { Sort::No };
        let title = title(self.side.turned, self.side.matrix.shape.axis);
        let like_share = Sort::Like(SHARE);
        vec![
            Column::left("", "of", 0),
            Column::right("share", share, 7).sort(Sort::Down),
            Column::left("", "", bar).sort(like_share),
            Column::right("samples", "samples", 9).sort(like_share),
            Column::right("of it", "share of parent", 7)
                .rank(2)
                .sort(like_share),
            Column::left("", "", 1).sort(like_share),
            Column::left(title, "name", 30).sort(Sort::Up),
            Column::right("±", "error", 6)
                .rank(1)
                .sort(falls_in(!is_grid)),
            Column::right("", selected, 0).sort(falls_in(is_grid)),
        ]
    }

    fn stretch(&self) -> usize {
        NAME
    }

    fn sorts(&self) -> Vec<usize> {
        match self.is_nested {
            true => vec![SHARE, NAME, ERROR],
            false => vec![SHARE, SELECTED, NAME],
        }
    }

    fn is_tree(&self) -> bool {
        true
    }

    fn can_open(&self, row: Row) -> bool {
        self.is_nested && row.inner.is_none()
    }

    fn children(&self, parent: Option<Row>) -> Vec<Row> {
        let Some(Row { item, .. }) = parent else {
            let items = (0u32..).take(self.side.len());
            return items.map(|item| Row { item, inner: None }).collect();
        };
        let inner = self.side.inner(item).into_iter();
        let rows = inner.map(|inner| Row {
            item,
            inner: Some(inner),
        });
        rows.collect()
    }

    fn key(&self, row: Row) -> Key {
        let inner = row.inner.map(|inner| self.side.other().key(inner));
        (self.side.key(row.item), inner)
    }

    fn value(&self, row: Row, column: usize) -> Value {
        let samples = self.samples(row);
        match (column, row.inner) {
            (OF, Some(_)) => Value::Text(self.side.other().title().to_owned()),
            (OF, None) => Value::Text(self.side.title().to_owned()),
            (SHARE, _) => Value::Share(ratio(samples, self.side.matrix.total)),
            (SAMPLES, _) => Value::Count(samples),
            (PARENT, Some(_)) => Value::Share(ratio(samples, self.side.samples(row.item))),
            (NAME, Some(_)) => Value::Text(format!("  {}", self.name(row))),
            (NAME, None) => Value::Text(self.name(row).to_owned()),
            (ERROR, inner) => {
                let error = self.side.error(row.item, inner);
                error.map_or(Value::Empty, Value::Share)
            }
            (SELECTED, _) => match self.column {
                Some(column) => Value::Count(self.side.cell(row.item, column)),
                None => Value::Count(samples),
            },
            _ => Value::Empty,
        }
    }

    fn sort_key(&self, row: Row, column: usize) -> SortKey {
        match (column, row.inner) {
            (SHARE, _) => SortKey::Number(self.samples(row)),
            (NAME, Some(inner)) => SortKey::Number(self.side.other().rank(inner).into()),
            (NAME, None) => SortKey::Number(self.side.rank(row.item).into()),
            _ => SortKey::of(&self.value(row, column)),
        }
    }

    fn name(&self, row: Row, _columns: &[usize]) -> Option<Name<'_>> {
        let name = self.name(row);
        Some(Name {
            name,
            ..Name::default()
        })
    }

    fn cell(&self, row: Row, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let samples = self.samples(row);
        let region = self.region(row);
        let heat = Role::Heat(ratio(samples, self.most));
        let role = match column {
            SHARE => heat,
            BAR => region.map_or(heat, Role::Region),
            LETTER => region.map_or(Role::Text, Role::Region),
            NAME if row.inner.is_none() => Role::Strong,
            NAME | SAMPLES => Role::Text,
            _ => Role::Dim,
        };
        let text = match (column, self.value(row, column)) {
            (BAR, _) => {
                let (indent, beside) = match row.inner {
                    Some(_) => (1, self.side.most_inner(row.item)),
                    None => (0, self.most),
                };
                let bar = ratio(samples, beside);
                let bar = room.theme.bar(bar, room.width.saturating_sub(indent));
                format!("{}{bar}", " ".repeat(indent))
            }
            (LETTER, _) => {
                let letter = |region| region_letter(region, self.side.matrix.is_native);
                region.map_or_else(String::new, |region| letter(region).to_string())
            }
            (NAME, _) => room.label.to_owned(),
            (SHARE, Value::Share(share)) => format!("{:.2}%", share * 100.0),
            (PARENT, Value::Share(share)) => format!("{:.1}%", share * 100.0),
            (_, Value::Share(share)) => format!("{:.2}", share * 100.0),
            (_, Value::Count(number)) => count(number),
            _ => String::new(),
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: Row, text: &mut Finder) -> bool {
        text.is_in(self.name(row))
    }

    fn share(&self, row: Row) -> f64 {
        ratio(self.samples(row), self.side.matrix.total)
    }
}
