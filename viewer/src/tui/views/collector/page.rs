//! The table of collections: its columns, and what each cell shows.

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

/// Columns of the terminal that the bar of the heap has.
const BAR: usize = 12;

const COLUMNS: [Column; 12] = [
    Column::right("time", "time", 9).sort(Sort::Up),
    Column::right("duration", "duration", 9).sort(Sort::Down),
    Column::left("kind", "kind", 10).sort(Sort::Up),
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

/// What is shown: rows are indices in [`Collections::rows`].
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    cx: Cx<'a>,
    all: &'a Collections,
    /// The most bytes that any heap had.
    heap: Option<u64>,
    /// The longest duration, in ns.
    longest: u64,
}

impl<'a> Page<'a> {
    /// Of all collections.
    pub fn of(cx: &Cx<'a>, all: &'a Collections) -> Self {
        let rows = || all.rows.iter();
        Page {
            cx: *cx,
            all,
            heap: rows().filter_map(|row| row.before.max(row.after)).max(),
            longest: rows().filter_map(Collection::length).max().unwrap_or(0),
        }
    }

    /// What is left of the heap, what was freed, and what was free before.
    fn heap_bar(&self, row: &Collection, theme: &Theme) -> String {
        let heap = self.heap.zip(row.after).filter(|(heap, _)| *heap > 0);
        let Some((heap, after)) = heap else {
            return String::new();
        };
        let cells = |bytes: u64| {
            let cells = u128::from(bytes) * BAR as u128 / u128::from(heap);
            usize::try_from(cells).unwrap_or(BAR).min(BAR)
        };
        let left = cells(after).max(usize::from(after > 0));
        let freed = cells(row.before.unwrap_or(after)).saturating_sub(left);
        let (full, freed_sign) = (theme.sign("█", "#"), theme.sign("░", "-"));
        format!("{}{}", full.repeat(left), freed_sign.repeat(freed))
    }
}

fn samples(count: Option<u64>) -> Value {
    count.map_or(Value::Empty, Value::Count)
}

/// Nanoseconds as a value in seconds.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds below 2^52")]
pub fn seconds(ns: Option<u64>) -> Value {
    ns.map_or(Value::Empty, |ns| Value::Seconds(ns as f64 / 1e9))
}

impl Rows for Page<'_> {
    type Row = usize;
    type Key = Key;

    fn columns(&self, _width: u16) -> Vec<Column> {
        COLUMNS.to_vec()
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
            SAMPLES => samples(row.samples()),
            IN_COLLECTOR => samples(row.in_collector()),
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
