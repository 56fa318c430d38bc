//! Table of address ranges beside the plot.

use super::names;
use super::plot::Plot;
use crate::present::document::Value;
use crate::present::numbers::{bytes, count, percent, ratio};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::data_table::{Column, DataTable, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use vmscope_symbolizer::addresses::{Owner, Stretch};

const INCLUDED: usize = 0;
const RANGE: usize = 1;
const FROM: usize = 2;
const TO: usize = 3;
const SIZE: usize = 4;
const SAMPLES: usize = 5;
const SHARE: usize = 6;

const COLUMNS: [Column; 7] = [
    Column::left("", "included", 1),
    Column::left("range", "range", 12).sort(Sort::Up),
    Column::left("", "from", 0).sort(Sort::Up),
    Column::left("", "to", 0),
    Column::right("size", "bytes", 8).rank(1).sort(Sort::Down),
    Column::right("samples", "samples", 9).sort(Sort::Down),
    Column::right("share", "share", 7).sort(Sort::Like(SAMPLES)),
];

/// State of the table; a range's key is its owner.
pub type Table = DataTable<usize, Owner>;

/// Data of the table: a row is an index in the samples' stretches.
#[derive(Clone, Copy, Debug)]
pub struct Ranges<'a> {
    pub plot: &'a Plot,
    pub samples: &'a ZoneSamples,
    pub cx: &'a Cx<'a>,
}

impl Ranges<'_> {
    fn stretch_of(&self, row: usize) -> &Stretch {
        &self.samples.addresses.stretches[row]
    }
}

impl Rows for Ranges<'_> {
    type Row = usize;
    type Key = Owner;

    fn columns(&self, _width: u16) -> Vec<Column> {
        COLUMNS.to_vec()
    }

    fn stretch(&self) -> usize {
        RANGE
    }

    fn sorts(&self) -> Vec<usize> {
        vec![FROM, RANGE, SIZE, SAMPLES]
    }

    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        match parent {
            None => (0..self.samples.addresses.stretches.len()).collect(),
            Some(_) => Vec::new(),
        }
    }

    fn key(&self, row: usize) -> Owner {
        self.stretch_of(row).owner
    }

    fn value(&self, row: usize, column: usize) -> Value {
        let stretch = self.stretch_of(row);
        match column {
            INCLUDED if self.plot.includes(stretch.owner) => Value::Text("yes".to_owned()),
            INCLUDED => Value::Text("no".to_owned()),
            RANGE => {
                let residencies = &self.samples.layout.residencies;
                Value::Text(names::of_stretch(stretch, residencies, self.cx))
            }
            FROM => Value::Text(format!("{:#x}", stretch.start)),
            TO => Value::Text(format!("{:#x}", stretch.end)),
            SIZE => Value::Bytes(stretch.size()),
            SAMPLES => Value::Count(stretch.samples()),
            SHARE => Value::Share(self.share(row)),
            _ => Value::Empty,
        }
    }

    fn sort_key(&self, row: usize, column: usize) -> SortKey {
        match column {
            FROM => SortKey::Number(self.stretch_of(row).start),
            _ => SortKey::of(&self.value(row, column)),
        }
    }

    fn cell(&self, row: usize, column: usize, _room: &Room<'_>) -> Vec<Piece> {
        let is_in = self.plot.includes(self.stretch_of(row).owner);
        let role = if is_in { Role::Text } else { Role::Dim };
        let (role, text) = match self.value(row, column) {
            Value::Text(_) if column == INCLUDED => {
                (role, if is_in { "+" } else { "-" }.to_owned())
            }
            Value::Text(text) => (role, text),
            Value::Bytes(size) => (role, bytes(size)),
            Value::Count(samples) => (role, count(samples)),
            Value::Share(share) => (Role::Heat(share), percent(share)),
            _ => (role, String::new()),
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: usize, text: &mut Finder) -> bool {
        let stretch = self.stretch_of(row);
        text.is_in(&names::of_stretch(
            stretch,
            &self.samples.layout.residencies,
            self.cx,
        ))
    }

    fn share(&self, row: usize) -> f64 {
        ratio(self.stretch_of(row).samples(), self.samples.addresses.total)
    }
}

impl Plot {
    /// Sorted table; selects the user's range, else the cursor's.
    pub fn table(&self, ranges: &Ranges<'_>, height: usize) -> Table {
        let mut table = self.table.clone();
        if let Some(row) = self.listed(ranges.samples) {
            table.expect(ranges.key(row));
        }
        table.arrange(ranges, height);
        table
    }
}
