//! What is shown, written for other programs: text, CSV, JSON, SVG.

mod csv;
mod json;
mod svg;
#[cfg(test)]
mod tests;
mod text;

pub use text::text_of;

use super::document::Document;
use std::path::Path;
use vmscope_symbolizer::Stop;

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As it is on the screen, whole.
    Text,
    /// Its tables.
    Csv,
    /// Its tables and charts, with full numbers.
    Json,
    /// Its charts.
    Svg,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::Text, Format::Csv, Format::Json, Format::Svg];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::Svg => "SVG",
        }
    }

    /// What its files end in.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Svg => "svg",
        }
    }

    /// The format of a file, by its name.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let mut all = Format::ALL.into_iter();
        all.find(|format| format.extension() == extension)
    }
}

/// What is shown, in a format, or a sentence where there is nothing of that kind in it;
/// `None` where it was stopped.
pub fn encode(shown: &Document, format: Format, stop: &Stop) -> Option<Result<Vec<u8>, String>> {
    match format {
        Format::Text => text_of(shown, stop).map(|text| Ok(text.into_bytes())),
        Format::Csv => csv::encode(shown, stop),
        Format::Json => json::encode(shown, stop),
        Format::Svg => Some(svg::encode(shown)),
    }
}
