//! Documents for other programs: text, CSV, JSON, SVG, PNG.

mod csv;
mod draw;
mod json;
mod png;
mod svg;
#[cfg(test)]
mod tests;
mod text;

pub use json::value as json_value;
pub use text::{cell, fitted_lines, short_cell, table_lines, text_of};

use super::document::{Chart, Document, Part};
use std::path::Path;
use vmscope_symbolizer::Stop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The whole document as on the screen.
    Text,
    /// Tables.
    Csv,
    /// Tables and charts, with full numbers.
    Json,
    /// Charts.
    Svg,
    /// Charts, without flame graphs.
    Png,
}

impl Format {
    /// Formats that views export.
    pub const ALL: [Format; 4] = [Format::Text, Format::Csv, Format::Json, Format::Svg];

    pub const fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::Svg => "SVG",
            Format::Png => "PNG",
        }
    }

    /// Extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Svg => "svg",
            Format::Png => "png",
        }
    }

    /// Format of a file, by its name.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let mut all = Format::ALL.into_iter();
        all.find(|format| format.extension() == extension)
    }
}

/// Encoded document, or an error sentence for documents without suitable parts; `None` after a
/// stop.
pub fn encode(shown: &Document, format: Format, stop: &Stop) -> Option<Result<Vec<u8>, String>> {
    match format {
        Format::Text => text_of(shown, stop).map(|text| Ok(text.into_bytes())),
        Format::Csv => csv::encode(shown, stop),
        Format::Json => json::encode(shown, stop),
        Format::Svg => Some(charts(shown).and_then(|charts| svg::encode(&charts))),
        Format::Png => Some(charts(shown).and_then(|charts| png::encode(&charts))),
    }
}

/// The document's charts. A document without charts gives an error message.
fn charts(shown: &Document) -> Result<Vec<&Chart>, String> {
    let charts = shown.parts.iter().filter_map(|part| match part {
        Part::Chart(chart) => Some(chart),
        Part::Text(_) | Part::Table(_) => None,
    });
    let charts: Vec<&Chart> = charts.collect();
    match charts.is_empty() {
        true => Err("this view shows no chart: export text, CSV or JSON".to_owned()),
        false => Ok(charts),
    }
}

/// A whole number with commas.
fn rounded(value: f64) -> String {
    crate::present::numbers::number(value.round())
}

/// Places of positive values between the least and the greatest, on a logarithmic scale.
#[derive(Clone, Copy, Debug, Default)]
struct LogScale {
    least: f64,
    most: f64,
}

impl LogScale {
    /// Scale of the positive values; ignores others.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let range = positive.fold(None, |range: Option<(f64, f64)>, value| {
            let (least, most) = range.unwrap_or((value, value));
            Some((least.min(value), most.max(value)))
        });
        let (least, most) = range.unwrap_or_default();
        LogScale { least, most }
    }

    /// Place between 0 (least value) and 1 (greatest value); `None` unless positive.
    fn place(self, value: f64) -> Option<f64> {
        let is_one = self.most <= self.least;
        let place = || (value / self.least).ln() / (self.most / self.least).ln();
        (value > 0.0).then(|| if is_one { 1.0 } else { place().clamp(0.0, 1.0) })
    }
}
