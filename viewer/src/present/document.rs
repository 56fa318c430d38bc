//! Contents of a view, without layout: input of copies and exports.

use vmscope_symbolizer::Stop;

/// Number of rows between two checks of [`Stop`].
const LOOK_EVERY: usize = 256;

/// Visits rows (possibly a hundred thousand) and reports progress; `None` after a stop.
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

/// Contents of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The view's name, with the shown part.
    pub title: String,
    /// From top to bottom.
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Lines.
    Text(Vec<String>),
    Table(Table),
    Chart(Chart),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// May be empty.
    pub title: String,
    pub columns: Vec<Column>,
    /// Rows, each with a cell per column.
    pub rows: Vec<Vec<Value>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading; also the name in CSV and JSON.
    pub name: String,
    /// Whether cells are flush right.
    pub right: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unknown, or none.
    Empty,
    /// Text as recorded; encoders escape it.
    Text(String),
    Count(u64),
    /// Share, 0 to 1.
    Share(f64),
    Seconds(f64),
    Bytes(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Stacked columns.
    Stacked {
        title: String,
        /// Horizontal axis.
        axis: Axis,
        /// Series from bottom to top: name, value of each column.
        series: Vec<(String, Vec<f64>)>,
    },
    /// Columns with a line over them.
    Histogram {
        title: String,
        /// Horizontal axis.
        axis: Axis,
        columns: Vec<f64>,
        /// Line height per column, 0 to 1; may be empty.
        line: Vec<f64>,
    },
    /// Colours by value, on a logarithmic scale.
    Heat {
        title: String,
        /// Horizontal axis. With as many labels as columns, each names a column.
        across: Axis,
        /// Vertical axis, from the bottom. With as many labels as rows, each names a row.
        up: Axis,
        /// Values by column, each from the bottom; 0 is empty.
        cells: Vec<Vec<f64>>,
        /// Unit of the values.
        unit: &'static str,
    },
    /// Curves.
    Lines {
        title: String,
        /// Horizontal axis.
        across: Axis,
        /// Vertical axis, from the bottom.
        up: Axis,
        /// Series: name, points from 0 to 1 in both directions.
        series: Vec<(String, Vec<(f64, f64)>)>,
    },
    /// Flame graph.
    Flame {
        title: String,
        /// Unit of the counts.
        unit: &'static str,
        /// Collapsed stacks: lines `frame;frame;frame count`.
        collapsed: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity.
    pub name: String,
    /// Labels at equal distances, the first and the last at the axis's ends.
    pub labels: Vec<String>,
}

impl Axis {
    pub fn new(name: &str, labels: impl IntoIterator<Item = String>) -> Self {
        Axis {
            name: name.to_owned(),
            labels: labels.into_iter().collect(),
        }
    }
}

impl Table {
    /// A table without rows. `>` before a column's name: flush right.
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
