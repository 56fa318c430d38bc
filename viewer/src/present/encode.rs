//! Documents for other programs: text, CSV, JSON, SVG.

mod csv;
mod json;
mod svg;
#[cfg(test)]
mod tests;
mod text;

pub use json::value as json_value;
pub use text::{cell, fitted_lines, short_cell, table_lines, text_of};

use super::document::Document;
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
}

impl Format {
    pub const ALL: [Format; 4] = [Format::Text, Format::Csv, Format::Json, Format::Svg];

    pub const fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::Svg => "SVG",
        }
    }

    /// Extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Svg => "svg",
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
        Format::Svg => Some(svg::encode(shown)),
    }
}
