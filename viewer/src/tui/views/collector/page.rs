//! Table of collections.

use crate::present::document::Value;
use crate::present::numbers::{brief, bytes_short, count, ratio};
use crate::queries::collections::{Collections, Key, Row as Collection};
use crate::tui::theme::{Role, Theme};
use crate::tui::views::Cx;
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort};
use crate::tui::widgets::search::Finder;
use vmscope_symbolizer::Region;

const TIME: usize = 0;
const DURATION: usize = 1;
const KIND: usize = 2;
const CAUSE: usize = 3;
const COLLECTOR: usize = 4;
const STOPS: usize = 5;
const BEFORE: usize = 6;
const AFTER: usize = 7;
const HEAP: usize = 8;
const SAMPLES: usize = 9;
const IN_COLLECTOR: usize = 10;
const OBSERVED: usize = 11;

/// Width of the heap's bar.
const BAR: usize = 12;

const COLUMNS: [Column; 12] = [
    Column::right("time", "time", 9).sort(Sort::Up),
    Column::right("duration", "duration", 9).sort(Sort::Down),
    Column::left("kind", "kind", 11).sort(Sort::Up),
    Column::left("cause", "cause", 14).sort(Sort::Up),
    Column::left("collector", "collector", 12)
        .rank(3)
        .sort(Sort::Up),
    Column::left("", "stops", 0),
    Column::right("before > after", "before", 14)
        .rank(1)
        .sort(Sort::Down),
    Column::right("", "after", 0).sort(Sort::Down),
    Column::left("heap", "", BAR)
        .rank(4)
        .sort(Sort::Like(AFTER)),
    Column::right("samples", "samples", 8)
        .rank(2)
        .sort(Sort::Down),
    Column::right("in GC", "in collector", 7).sort(Sort::Down),
    Column::left("", "observed", 0).sort(Sort::Up),
];

/// Data of the table; a row is an index in [`Collections::rows`].
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    cx: Cx<'a>,
    all: &'a Collections,
    /// Maximum heap use in bytes.
    heap: u64,
    /// Maximum duration in ns.
    longest: u64,
    /// Whether any collection reported the bytes before it.
    knows_before: bool,
}

impl<'a> Page<'a> {
    pub fn of(cx: &Cx<'a>, all: &'a Collections) -> Self {
        let lengths = all.rows.iter().filter_map(Collection::length);
        Page {
            cx: *cx,
            all,
            heap: all.heap(),
            longest: lengths.max().unwrap_or(0),
            knows_before: all.rows.iter().any(|row| row.before.is_some()),
        }
    }

    /// Bar of used, freed and free memory.
    fn heap_bar(&self, row: &Collection, theme: &Theme) -> String {
        let Some(after) = row.after.filter(|_| self.heap > 0) else {
            return String::new();
        };
        let cells = |bytes: u64| {
            let cells = u128::from(bytes) * BAR as u128 / u128::from(self.heap);
            usize::try_from(cells).unwrap_or(BAR).min(BAR)
        };
        let left = cells(after).max(usize::from(after > 0));
        let freed = cells(row.before.unwrap_or(after)).saturating_sub(left);
        let (full, freed_sign) = (theme.sign("█", "#"), theme.sign("░", "-"));
        format!("{}{}", full.repeat(left), freed_sign.repeat(freed))
    }
}

/// Value in seconds.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds below 2^52")]
pub fn seconds(ns: Option<u64>) -> Value {
    ns.map_or(Value::Empty, |ns| Value::Seconds(ns as f64 / 1e9))
}

impl Rows for Page<'_> {
    type Row = usize;
    type Key = Key;

    fn columns(&self, _width: u16) -> Vec<Column> {
        let mut columns = COLUMNS.to_vec();
        if !self.knows_before {
            columns[BEFORE] = Column::right("after", "after", 6)
                .rank(1)
                .sort(Sort::Like(AFTER));
        }
        columns
    }

    fn stretch(&self) -> usize {
        CAUSE
    }

    fn sorts(&self) -> Vec<usize> {
        vec![
            TIME,
            DURATION,
            KIND,
            CAUSE,
            COLLECTOR,
            BEFORE,
            AFTER,
            SAMPLES,
            IN_COLLECTOR,
            OBSERVED,
        ]
    }

    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        match parent {
            None => (0..self.all.rows.len()).collect(),
            Some(_) => Vec::new(),
        }
    }

    fn key(&self, row: usize) -> Key {
        self.all.rows[row].key
    }

    fn value(&self, row: usize, column: usize) -> Value {
        let row = &self.all.rows[row];
        let word = |text: &str| Value::Text(text.to_owned());
        match column {
            TIME => Value::Seconds(self.cx.seconds(row.time)),
            DURATION => seconds(row.length()),
            KIND => word(&row.kind),
            CAUSE => word(&row.cause),
            COLLECTOR => word(&row.collector),
            STOPS => word(if row.stops { "yes" } else { "no" }),
            BEFORE => row.before.map_or(Value::Empty, Value::Bytes),
            AFTER => row.after.map_or(Value::Empty, Value::Bytes),
            SAMPLES => row.samples().map_or(Value::Empty, Value::Count),
            IN_COLLECTOR => row.in_collector().map_or(Value::Empty, Value::Count),
            OBSERVED => word(row.seen()),
            _ => Value::Empty,
        }
    }

    fn cell(&self, row: usize, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let row = &self.all.rows[row];
        let or_blank = |samples: Option<u64>| samples.map_or_else(String::new, count);
        let (role, text) = match column {
            TIME => (Role::Text, format!("{:.3}", self.cx.seconds(row.time))),
            DURATION => match row.length() {
                Some(length) => (Role::Heat(ratio(length, self.longest)), brief(length)),
                None => (Role::Warning, row.seen().to_owned()),
            },
            KIND => (Role::Text, row.kind.clone()),
            CAUSE => (Role::Text, row.cause.clone()),
            COLLECTOR => (Role::Dim, row.collector.clone()),
            BEFORE => {
                let arrow = room.theme.sign("→", ">");
                let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), bytes_short);
                let text = match (row.before, row.after) {
                    (None, None) => String::new(),
                    (_, after) if !self.knows_before => bytes(after),
                    (before, after) => format!("{} {arrow} {:>5}", bytes(before), bytes(after)),
                };
                (Role::Text, text)
            }
            HEAP => (Role::Region(Region::Gc), self.heap_bar(row, room.theme)),
            SAMPLES => (Role::Dim, or_blank(row.samples())),
            _ => (Role::Text, or_blank(row.in_collector())),
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: usize, text: &mut Finder) -> bool {
        let row = &self.all.rows[row];
        text.is_in_words(&[&row.kind, &row.cause, &row.collector])
    }
}
