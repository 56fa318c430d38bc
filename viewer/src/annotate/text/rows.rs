//! The lines of a listing, with their samples in the margin.

use super::Page;
use crate::annotate::layout::{Bracket, Piece, place_in, tier_name};
use crate::annotate::source::Source;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::{cut, fit};
use anyhow::Result;
use std::io::Write;
use vmscope_symbolizer::annotate::{Inlined, Row, Spot, Tally};

/// Columns of share, error, samples, mark and bracket, with the spaces between.
const MARGIN: usize = 8 + 1 + 8 + 1 + 9 + 1 + 1 + 1 + 1 + 1;

/// Columns of a tier's samples.
const TIER_COLUMNS: usize = 11;

/// So many tiers have columns, if the page is at least so wide.
const MAX_TIERS: usize = 4;
const WIDE: usize = 120;

/// Columns of what a source line begins with, between bytecodes.
const SOURCE_MARK: &str = "// ";

/// The columns of one listing.
struct Columns {
    /// Tiers that have columns.
    tiers: usize,
    number: usize,
    /// Of a bytecode's source line; 0 where there are none.
    line: usize,
    text: usize,
}

/// The words of one listing.
#[derive(Clone, Copy)]
pub(super) struct Titles {
    /// Over the numbers.
    pub number: &'static str,
    /// Over the text.
    pub text: &'static str,
    /// What a line is called.
    pub one: &'static str,
    /// What lines are called.
    pub many: &'static str,
}

/// A source file's text.
#[derive(Clone, Copy)]
pub(super) struct SourceOf<'a> {
    /// The file, as rows name it.
    pub file: &'a str,
    /// Its text.
    pub text: &'a Source,
}

/// What all lines of a tree of inlined methods have in common.
struct Tree<'a> {
    columns: &'a Columns,
    source: Option<SourceOf<'a>>,
    bracket: &'static str,
}

impl Tree<'_> {
    /// The source text of a place, if it is in the listing's own file.
    fn text_of(&self, row: &Row) -> String {
        let text = match (&row.spot, self.source) {
            (Spot::Line { file, line }, Some(source)) if **file == *source.file => {
                source.text.line(*line)
            }
            _ => None,
        };
        text.map_or_else(String::new, |text| format!("  {}", text.trim()))
    }
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
        titles: Titles,
        pieces: &[Piece],
        source: Option<SourceOf>,
        out: &mut dyn Write,
    ) -> Result<()> {
        let columns = self.columns(titles, pieces);
        self.titles(titles, &columns, out)?;
        let mut last_source = None;
        for piece in pieces {
            let line = match piece {
                Piece::Line(line) => line,
                Piece::Folded {
                    lines,
                    samples,
                    inside,
                } => {
                    let text = folded(titles, *lines, *samples, *inside);
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
            if let Some(SourceOf { text: source, .. }) = source
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
            let tree = Tree {
                columns: &columns,
                source,
                bracket: if inside { "|" } else { "" },
            };
            self.inlined(&tree, line.inlined(), 1, out)?;
        }
        Ok(())
    }

    /// Methods inlined at a line, each with its places; as deep as they go, which the
    /// annotation bounds.
    fn inlined(
        &self,
        tree: &Tree,
        inlined: &[Inlined],
        depth: usize,
        out: &mut dyn Write,
    ) -> Result<()> {
        let indent = "  ".repeat(depth);
        let least = self.least();
        let (mut others, mut samples) = (0u64, 0);
        for callee in inlined {
            if callee.all.samples() < least {
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
                bracket: tree.bracket,
                text: &fit(&text, tree.columns.text),
                ..Shown::default()
            };
            self.put(tree.columns, &shown, out)?;
            if let Some(row) = only {
                self.inlined(tree, &row.inlined, depth + 1, out)?;
                continue;
            }
            let (mut quiet, mut folded) = (0u64, 0);
            for row in &callee.rows {
                if row.samples() < least {
                    quiet += 1;
                    folded += row.samples();
                    continue;
                }
                let text = format!("{indent}  {}{}", place_in(row), tree.text_of(row));
                let shown = Shown {
                    tally: Some(&row.own).filter(|own| own.samples() > 0),
                    bracket: tree.bracket,
                    text: &text,
                    ..Shown::default()
                };
                self.put(tree.columns, &shown, out)?;
                self.inlined(tree, &row.inlined, depth + 2, out)?;
            }
            let places = some(quiet, "place", "places");
            self.others(tree, &format!("{indent}  "), &places, folded, out)?;
        }
        let methods = some(others, "method", "methods");
        self.others(tree, &format!("{indent}> "), &methods, samples, out)
    }

    /// What was too little for lines of its own, if anything was.
    fn others(
        &self,
        tree: &Tree,
        indent: &str,
        what: &str,
        samples: u64,
        out: &mut dyn Write,
    ) -> Result<()> {
        if samples == 0 {
            return Ok(());
        }
        let samples = some(samples, "sample", "samples");
        let text = format!("{indent}...others... ({what}, {samples})");
        let shown = Shown {
            bracket: tree.bracket,
            text: &text,
            ..Shown::default()
        };
        self.put(tree.columns, &shown, out)
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
        let used = MARGIN + tiers * (TIER_COLUMNS + 1) + number + 1 + line + usize::from(line > 0);
        Columns {
            tiers,
            number,
            line,
            text: self.width.saturating_sub(used + 1),
        }
    }

    fn titles(&self, titles: Titles, columns: &Columns, out: &mut dyn Write) -> Result<()> {
        let mut text = format!("{:>8} {:>8} {:>9} ", "share", "±", "samples");
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

fn folded(titles: Titles, lines: usize, samples: u64, inside: bool) -> String {
    if inside {
        return format!(
            "... {} more {} of this range",
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
