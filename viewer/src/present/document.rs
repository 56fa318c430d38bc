//! What a view shows, apart from how: what copying and exporting write.

use vmscope_symbolizer::Stop;

/// So many rows are made between two looks at [`Stop`].
const LOOK_EVERY: usize = 256;

/// Goes through rows that may be a hundred thousand, telling how far it is; `None` where it
/// was stopped.
pub fn each<T>(
    rows: impl ExactSizeIterator<Item = T>,
    stop: &Stop,
    mut visit: impl FnMut(T),
) -> Option<()> {
    let all = rows.len();
    for (done, row) in rows.enumerate() {
        if done.is_multiple_of(LOOK_EVERY) {
            stop.look(done, all)?;
        }
        visit(row);
    }
    stop.tell(all as u64, all as u64);
    Some(())
}

/// What a view shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The view's name with what of it is shown.
    pub title: String,
    /// Its parts, from top to bottom.
    pub parts: Vec<Part>,
}

/// A part of a view.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Lines of text.
    Text(Vec<String>),
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it is of; may be empty.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<Vec<Value>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading: also its name in CSV and JSON.
    pub name: String,
    /// Whether its cells are set flush right.
    pub right: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: not known, or none.
    Empty,
    /// A text; names are as the recording has them, made harmless when they are written.
    Text(String),
    /// A count.
    Count(u64),
    /// A share, 0 to 1.
    Share(f64),
    /// Seconds.
    Seconds(f64),
    /// Bytes.
    Bytes(u64),
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Columns stacked of series.
    Stacked {
        /// What it is of.
        title: String,
        /// What the horizontal axis counts, with its ends: `("time", "s", 0.0, 20.0)`.
        axis: Axis,
        /// The series, from bottom to top: names and values, one for each column.
        series: Vec<(String, Vec<f64>)>,
    },
    /// Columns with a line over them.
    Histogram {
        /// What it is of.
        title: String,
        /// The horizontal axis.
        axis: Axis,
        /// The columns.
        columns: Vec<f64>,
        /// The line: 0 to 1 at each column; may be empty.
        line: Vec<f64>,
    },
    /// A flame graph: lines `frame;frame;frame count` of collapsed stacks.
    Flame {
        /// What it is of.
        title: String,
        /// The stacks.
        collapsed: Vec<String>,
    },
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it counts.
    pub name: String,
    /// Its labels at equal distances, the first and the last at its ends.
    pub labels: Vec<String>,
}

impl Table {
    /// A table without rows; columns whose name begins with `>` are set flush right.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let column = |name: &&str| Column {
            name: name.trim_start_matches('>').to_owned(),
            right: name.starts_with('>'),
        };
        Table {
            title: title.to_owned(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }
}
