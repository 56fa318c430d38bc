//! Lines of a listing, samples in the margin.

use super::Page;
use crate::annotate::layout::{Bracket, Line, Nested, Piece, flatten, place_in, tier_name};
use crate::annotate::source::Source;
use crate::present::numbers::{count, percent, points, ratio, some};
use crate::present::text::{cut, fit};
use vmscope_symbolizer::annotate::{Row, Spot, Tally};

/// Columns of share, error, samples, mark and bracket, with blanks.
const MARGIN: usize = 8 + 1 + 8 + 1 + 9 + 1 + 1 + 1 + 1 + 1;

/// Columns of samples in called code.
const CALLED_COLUMNS: usize = 9;

/// Columns of a tier's samples.
const TIER_COLUMNS: usize = 11;

/// Maximum number of tiers with columns, and minimum page width.
const MAX_TIERS: usize = 4;
const WIDE: usize = 120;

/// Prefix of source lines between bytecodes.
const SOURCE_MARK: &str = "// ";

/// Column widths.
struct Columns {
    /// Whether called code has a column.
    called: bool,
    /// Number of tiers with columns.
    tiers: usize,
    number: usize,
    /// Of a bytecode's source line; 0: none.
    line: usize,
    text: usize,
}

/// Headings of columns, names of lines.
#[derive(Clone, Copy)]
pub(super) struct Titles {
    pub number: &'static str,
    pub text: &'static str,
    pub one: &'static str,
    pub many: &'static str,
}

/// Source text with its file.
#[derive(Clone, Copy)]
pub(super) struct SourceOf<'a> {
    pub file: &'a str,
    pub text: &'a Source,
}

/// Cells of a line.
#[derive(Default)]
struct Shown<'a> {
    tally: Option<&'a Tally>,
    error: Option<f64>,
    /// Samples in called code.
    called: u64,
    bracket: &'a str,
    number: &'a str,
    line: Option<u32>,
    text: &'a str,
}

/// Source text of a place in the listing's own file.
fn text_of(row: &Row, source: Option<SourceOf>) -> String {
    let text = match (&row.spot, source) {
        (Spot::Line { file, line }, Some(source)) if **file == *source.file => {
            source.text.line(*line)
        }
        _ => None,
    };
    text.map_or_else(String::new, |text| format!("  {}", text.trim()))
}

impl Page<'_> {
    pub(super) fn listing(
        &self,
        titles: Titles,
        pieces: &[Piece],
        source: Option<SourceOf>,
        out: &mut String,
    ) {
        let columns = self.columns(titles, pieces);
        self.titles(titles, &columns, out);
        let mut last_source = None;
        for piece in pieces {
            let line = match piece {
                Piece::Line(line) => line,
                Piece::Folded {
                    lines,
                    samples,
                    inside,
                } => {
                    let shown = Shown {
                        bracket: if *inside { "|" } else { "" },
                        text: &folded(titles, *lines, *samples, *inside),
                        ..Shown::default()
                    };
                    self.put(&columns, &shown, out);
                    continue;
                }
            };
            if let Some(SourceOf { text: source, .. }) = source
                && let Some(number) = line.source
                && last_source.replace(number) != Some(number)
                && let Some(text) = source.line(number)
            {
                let shown = Shown {
                    line: Some(number),
                    text: &format!("{SOURCE_MARK}{}", text.trim()),
                    ..Shown::default()
                };
                self.put(&columns, &shown, out);
            }
            let own = line.row.map(|row| &row.own);
            let shown = Shown {
                tally: own.filter(|own| own.samples() > 0),
                error: line.row.and_then(|row| row.error),
                called: line.called(),
                bracket: match line.bracket {
                    Bracket::None => "",
                    Bracket::First => "/",
                    Bracket::Inside => "|",
                    Bracket::Last => "\\",
                },
                number: &line.number,
                line: line.source,
                text: &line.text,
            };
            self.put(&columns, &shown, out);
            self.inlined(line, &columns, source, out);
        }
    }

    /// What was inlined at a line.
    fn inlined(&self, line: &Line, columns: &Columns, source: Option<SourceOf>, out: &mut String) {
        let bracket = match line.bracket {
            Bracket::First | Bracket::Inside => "|",
            Bracket::None | Bracket::Last => "",
        };
        let mut lines = Vec::new();
        flatten(line.inlined(), (1, 0), self.least(), &mut lines);
        for (depth, _, nested) in lines {
            let indent = "  ".repeat(depth);
            let (text, tally, error) = match nested {
                Nested::Callee(callee, only) => {
                    let place = only.map_or_else(String::new, |row| format!(" {}", place_in(row)));
                    let text = format!("{indent}> {}{place}", callee.name);
                    let text = fit(&text, columns.text);
                    (text, Some(&callee.all), callee.error)
                }
                Nested::Place(row) => {
                    let text = format!("{indent}{}{}", place_in(row), text_of(row, source));
                    let own = Some(&row.own).filter(|own| own.samples() > 0);
                    (text, own, None)
                }
                Nested::Others {
                    are_methods,
                    number,
                    samples,
                } => {
                    let (mark, [one, many]) = match are_methods {
                        true => ("> ", ["method", "methods"]),
                        false => ("", ["place", "places"]),
                    };
                    let number = some(number, one, many);
                    let samples = some(samples, "sample", "samples");
                    let text = format!("{indent}{mark}...others... ({number}, {samples})");
                    (text, None, None)
                }
            };
            let shown = Shown {
                tally,
                error,
                bracket,
                text: &text,
                ..Shown::default()
            };
            self.put(columns, &shown, out);
        }
    }

    fn columns(&self, titles: Titles, pieces: &[Piece]) -> Columns {
        let lines = || {
            pieces.iter().filter_map(|piece| match piece {
                Piece::Line(line) => Some(line),
                Piece::Folded { .. } => None,
            })
        };
        let number = lines().map(|line| line.number.len()).max().unwrap_or(0);
        let number = number.max(titles.number.len());
        let source = lines().filter_map(|line| line.source).max();
        let line = source.map_or(0, |line| line.to_string().len().max("line".len()));
        let several = self.annotation.tiers.len() > 1 && self.width >= WIDE;
        let tiers = if several {
            self.annotation.tiers.len().min(MAX_TIERS)
        } else {
            0
        };
        let called = lines().any(|line| line.called() > 0);
        let called_columns = usize::from(called) * (CALLED_COLUMNS + 1);
        let tier_columns = tiers * (TIER_COLUMNS + 1);
        let used = MARGIN + called_columns + tier_columns + number + 1 + line;
        let used = used + usize::from(line > 0);
        Columns {
            called,
            tiers,
            number,
            line,
            text: self.width.saturating_sub(used + 1),
        }
    }

    fn titles(&self, titles: Titles, columns: &Columns, out: &mut String) {
        let mut text = format!("{:>8} {:>8} {:>9} ", "share", "±", "samples");
        if columns.called {
            text.push_str(&format!(" {:>CALLED_COLUMNS$}", "callees"));
        }
        for tier in self.annotation.tiers.iter().take(columns.tiers) {
            let name = fit(tier_name(tier), TIER_COLUMNS);
            text.push_str(&format!(" {:>TIER_COLUMNS$}", name.trim_end()));
        }
        let (number, line) = (columns.number, columns.line);
        text.push_str(&format!("   {:>number$} ", titles.number));
        if line > 0 {
            text.push_str(&format!("{:>line$} ", "line"));
        }
        text.push_str(&format!(" {}", titles.text));
        out.push_str(text.trim_end());
        out.push('\n');
    }

    fn put(&self, columns: &Columns, shown: &Shown, out: &mut String) {
        let all = self.annotation.all.samples();
        let (mut share, mut samples, mut error) = Default::default();
        if let Some(tally) = shown.tally {
            share = percent(ratio(tally.samples(), all));
            samples = count(tally.samples());
            error = (shown.error).map_or_else(String::new, |e| format!("±{}", points(e)));
        }
        let mark = match shown.tally {
            Some(tally) if tally.approximate > 0 => "~",
            Some(tally) if tally.method_only > 0 => "?",
            _ => "",
        };
        let mut text = format!("{share:>8} {error:>8} {samples:>9} {mark:1}");
        if columns.called {
            let called = Some(shown.called).filter(|called| *called > 0);
            let called = called.map_or_else(String::new, count);
            text.push_str(&format!(" {called:>CALLED_COLUMNS$}"));
        }
        for tier in 0..columns.tiers {
            let of_tier = shown.tally.and_then(|tally| tally.tiers.get(tier));
            let of_tier = of_tier.filter(|samples| **samples > 0);
            let of_tier = of_tier.map_or_else(String::new, |samples| count(*samples));
            text.push_str(&format!(" {of_tier:>TIER_COLUMNS$}"));
        }
        let (number, bracket) = (columns.number, shown.bracket);
        text.push_str(&format!(" {bracket:1} {:>number$} ", shown.number));
        if columns.line > 0 {
            let (line, columns) = (shown.line, columns.line);
            let line = line.map_or_else(String::new, |line| line.to_string());
            text.push_str(&format!("{line:>columns$} "));
        }
        text.push_str(&format!(" {}", cut(shown.text, columns.text)));
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

fn folded(titles: Titles, lines: usize, samples: u64, inside: bool) -> String {
    if inside {
        return format!(
            "... {} more {} in this range",
            count(lines as u64),
            titles.many
        );
    }
    let lines = some(lines as u64, titles.one, titles.many);
    match samples {
        0 => format!("... {lines} without samples"),
        samples => format!("... {lines} with {}", some(samples, "sample", "samples")),
    }
}
