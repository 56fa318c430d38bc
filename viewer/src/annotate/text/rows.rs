//! The lines of a listing, with their samples in the margin.

use super::Page;
use super::head::tier_name;
use crate::annotate::layout::{Bracket, Piece, spot_name};
use crate::annotate::source::Source;
use crate::report::words::{count, cut, fit, percent, ratio, some};
use anyhow::Result;
use std::io::Write;
use vmscope_symbolizer::annotate::{Inlined, Row, Tally};

/// Columns of share, error, samples, mark and bracket, with the spaces between.
const MARGIN: usize = 8 + 1 + 8 + 1 + 9 + 1 + 1 + 1 + 1;

/// Columns of a tier's samples.
const TIER_COLUMNS: usize = 8;

/// So many tiers have columns, if the page is at least so wide.
const MAX_TIERS: usize = 4;
const WIDE: usize = 110;

/// Columns of what a source line begins with, between bytecodes.
const SOURCE_MARK: &str = "// ";

/// The columns of one listing.
struct Columns {
    /// Tiers that have columns.
    tiers: usize,
    number: usize,
    /// Of source lines; 0 where there are none.
    line: usize,
    text: usize,
}

/// What one line shows.
#[derive(Default)]
struct Shown<'a> {
    tally: Option<&'a Tally>,
    error: Option<f64>,
    bracket: &'a str,
    number: &'a str,
    line: Option<u32>,
    text: &'a str,
}

impl Page<'_> {
    pub(super) fn listing(
        &self,
        title: &str,
        pieces: &[Piece],
        source: Option<&Source>,
        out: &mut dyn Write,
    ) -> Result<()> {
        let columns = self.columns(pieces);
        self.titles(title, &columns, out)?;
        let mut last_source = None;
        for piece in pieces {
            let line = match piece {
                Piece::Line(line) => line,
                Piece::Folded {
                    lines,
                    samples,
                    inside,
                } => {
                    let text = folded(title, *lines, *samples, *inside);
                    let bracket = if *inside { "|" } else { "" };
                    self.put(
                        &columns,
                        &Shown {
                            bracket,
                            text: &text,
                            ..Shown::default()
                        },
                        out,
                    )?;
                    continue;
                }
            };
            if let Some(source) = source
                && let Some(number) = line.source
                && last_source.replace(number) != Some(number)
                && let Some(text) = source.line(number)
            {
                let text = format!("{SOURCE_MARK}{}", text.trim());
                let shown = Shown {
                    line: Some(number),
                    text: &text,
                    ..Shown::default()
                };
                self.put(&columns, &shown, out)?;
            }
            let own = line.row.map(|row| &row.own);
            let shown = Shown {
                tally: own.filter(|own| own.samples() > 0),
                error: line.row.and_then(|row| row.error),
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
            self.put(&columns, &shown, out)?;
            let inside = matches!(line.bracket, Bracket::First | Bracket::Inside);
            self.inlined(
                &columns,
                line.inlined(),
                1,
                if inside { "|" } else { "" },
                out,
            )?;
        }
        Ok(())
    }

    /// Methods inlined at a line, each with its places; as deep as they go, which the
    /// annotation bounds.
    fn inlined(
        &self,
        columns: &Columns,
        inlined: &[Inlined],
        depth: usize,
        bracket: &str,
        out: &mut dyn Write,
    ) -> Result<()> {
        let indent = "  ".repeat(depth);
        let (mut others, mut samples) = (0u64, 0);
        for callee in inlined {
            if callee.all.samples() < self.least() {
                others += 1;
                samples += callee.all.samples();
                continue;
            }
            // What fell into one place needs no line for it.
            let only = match callee.rows.as_slice() {
                [only] => Some(only),
                _ => None,
            };
            let place = only.map_or_else(String::new, |row| format!(" {}", place_in(row)));
            let text = format!("{indent}> {}{place}", callee.name);
            let shown = Shown {
                tally: Some(&callee.all),
                error: callee.error,
                bracket,
                text: &text,
                ..Shown::default()
            };
            self.put(columns, &shown, out)?;
            for row in &callee.rows {
                if only.is_none() {
                    self.inlined_row(columns, row, &indent, bracket, out)?;
                }
                let deeper = depth + if only.is_some() { 1 } else { 2 };
                self.inlined(columns, &row.inlined, deeper, bracket, out)?;
            }
        }
        if others > 0 {
            let text = format!(
                "{indent}> ...others... ({}, {})",
                some(others, "method", "methods"),
                some(samples, "sample", "samples")
            );
            let shown = Shown {
                bracket,
                text: &text,
                ..Shown::default()
            };
            self.put(columns, &shown, out)?;
        }
        Ok(())
    }

    fn inlined_row(
        &self,
        columns: &Columns,
        row: &Row,
        indent: &str,
        bracket: &str,
        out: &mut dyn Write,
    ) -> Result<()> {
        if row.samples() < self.least() {
            return Ok(());
        }
        let text = format!("{indent}  {}", place_in(row));
        let shown = Shown {
            tally: Some(&row.own).filter(|own| own.samples() > 0),
            bracket,
            text: &text,
            ..Shown::default()
        };
        self.put(columns, &shown, out)
    }

    fn columns(&self, pieces: &[Piece]) -> Columns {
        let lines = || {
            pieces.iter().filter_map(|piece| match piece {
                Piece::Line(line) => Some(line),
                Piece::Folded { .. } => None,
            })
        };
        let number = lines().map(|line| line.number.len()).max().unwrap_or(0);
        let source = lines().filter_map(|line| line.source).max();
        let line = source.map_or(0, |line| line.to_string().len().max("line".len()));
        let several = self.annotation.tiers.len() > 1 && self.width >= WIDE;
        let tiers = if several {
            self.annotation.tiers.len().min(MAX_TIERS)
        } else {
            0
        };
        let used = MARGIN + tiers * (TIER_COLUMNS + 1) + number + 1 + line + usize::from(line > 0);
        Columns {
            tiers,
            number,
            line,
            text: self.width.saturating_sub(used + 1),
        }
    }

    fn titles(&self, title: &str, columns: &Columns, out: &mut dyn Write) -> Result<()> {
        let mut text = format!("{:>8} {:>8} {:>9} ", "share", "±", "samples");
        for tier in self.annotation.tiers.iter().take(columns.tiers) {
            let name = fit(tier_name(tier), TIER_COLUMNS);
            text.push_str(&format!(" {:>TIER_COLUMNS$}", name.trim_end()));
        }
        let (number, line) = (columns.number, columns.line);
        text.push_str(&format!("   {:>number$} ", ""));
        if line > 0 {
            text.push_str(&format!("{:>line$} ", "line"));
        }
        text.push_str(&format!(" {title}"));
        writeln!(out, "{}", text.trim_end())?;
        Ok(())
    }

    fn put(&self, columns: &Columns, shown: &Shown, out: &mut dyn Write) -> Result<()> {
        let all = self.annotation.all.samples();
        let (mut share, mut samples, mut error) = Default::default();
        if let Some(tally) = shown.tally {
            share = percent(ratio(tally.samples(), all));
            samples = count(tally.samples());
            error = (shown.error).map_or_else(String::new, |e| format!("±{:.2}", e * 100.0));
        }
        let mark = match shown.tally {
            Some(tally) if tally.approximate > 0 => "~",
            Some(tally) if tally.method_only > 0 => "?",
            _ => "",
        };
        let mut text = format!("{share:>8} {error:>8} {samples:>9} {mark:1}");
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
        writeln!(out, "{}", text.trim_end())?;
        Ok(())
    }
}

/// A place in an inlined method.
fn place_in(row: &Row) -> String {
    let place = spot_name(&row.spot);
    match (&row.spot, row.line) {
        (vmscope_symbolizer::annotate::Spot::Bytecode(_), Some(line)) => {
            format!("@{place} (line {line})")
        }
        (vmscope_symbolizer::annotate::Spot::Bytecode(_), None) => format!("@{place}"),
        _ => place,
    }
}

fn folded(title: &str, lines: usize, samples: u64, inside: bool) -> String {
    let (one, many) = match title {
        "bytecode" => ("bytecode", "bytecodes"),
        "source" => ("line", "lines"),
        _ => ("place", "places"),
    };
    let lines = some(lines as u64, one, many);
    match samples {
        _ if inside => format!("... {lines} more of this range"),
        0 => format!("... {lines} without samples"),
        samples => format!("... {lines} with {}", some(samples, "sample", "samples")),
    }
}
