//! Which lines a listing has: all bytecodes or source lines in order, each place's samples
//! beside its own, and quiet stretches folded.

use super::source::Source;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::annotate::{Annotation, Inlined, Row, Spot, Tier};

/// Fewer lines than this are not worth folding: the line that says so is one itself.
const MIN_FOLDED: usize = 3;

/// More lines around a place are not laid out.
const MAX_CONTEXT: u32 = 10_000;

/// Where in a range of bytecodes a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bracket {
    /// In none, or in one alone.
    None,
    /// The first of several.
    First,
    /// In the middle.
    Inside,
    /// The last.
    Last,
}

/// A line of a listing, before it is printed.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The place with samples that begins here, if one does.
    pub row: Option<&'a Row>,
    /// Whether the line continues or begins a range of several.
    pub bracket: Bracket,
    /// The bytecode's pc or the line's number; empty for what is neither.
    pub number: String,
    /// The source line of a bytecode.
    pub source: Option<u32>,
    /// The bytecode or the source text.
    pub text: String,
    /// Lines of the source file that were left out before this one.
    pub skipped: usize,
    /// Whether it is shown although nothing near it has samples: a function's first line.
    pub keep: bool,
}

impl<'a> Line<'a> {
    fn of_row(row: &'a Row, text: String) -> Self {
        Line {
            row: Some(row),
            bracket: Bracket::None,
            number: String::new(),
            source: row.line,
            text,
            skipped: 0,
            keep: false,
        }
    }

    /// Methods inlined here.
    pub fn inlined(&self) -> &'a [Inlined] {
        self.row.map_or(&[], |row| &row.inlined)
    }

    fn samples(&self) -> u64 {
        self.row.map_or(0, Row::samples)
    }
}

/// What is printed: a line, or the account of lines that are folded.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A line.
    Line(Line<'a>),
    /// So many lines, with so many samples.
    Folded {
        /// Lines.
        lines: usize,
        /// Their samples.
        samples: u64,
        /// Whether they are the inside of a range.
        inside: bool,
    },
}

/// What a place is called where it has no line of its own.
pub fn place_name(row: &Row) -> String {
    match &row.spot {
        Spot::Entry => "(at entry)".to_owned(),
        // What has no places inside is known as well as can be.
        Spot::Unknown if row.own.samples() == row.own.exact => "(as a whole)".to_owned(),
        Spot::Unknown => "(place not known)".to_owned(),
        Spot::Bytecode(pc) => pc.to_string(),
        Spot::Range { from, to, .. } => {
            let from = from.map_or_else(|| "entry".to_owned(), |pc| pc.to_string());
            let to = to.map_or_else(|| "end".to_owned(), |pc| pc.to_string());
            format!("{from}->{to}")
        }
        Spot::Line { file, line } => {
            let file = file.rsplit('/').next().unwrap_or(file);
            if file.is_empty() {
                format!("line {line}")
            } else {
                format!("{file}:{line}")
            }
        }
    }
}

/// A place in an inlined method.
pub fn place_in(row: &Row) -> String {
    let place = place_name(row);
    match (&row.spot, row.line) {
        (Spot::Bytecode(_), Some(line)) => {
            format!("@{place} (line {line})")
        }
        (Spot::Bytecode(_), None) => format!("@{place}"),
        _ => place,
    }
}

/// A tier for people: where a VM has one only, the region says what it is.
pub fn tier_name(tier: &Tier) -> &str {
    match tier.region {
        _ if !tier.name.is_empty() => &tier.name,
        Region::Generated => "compiled",
        region => region.name(),
    }
}

/// Whether the method is shown by its bytecodes first.
pub fn has_bytecodes(annotation: &Annotation) -> bool {
    let is_bytecode = |row: &Row| matches!(row.spot, Spot::Bytecode(_) | Spot::Range { .. });
    !annotation.listing.is_empty() || annotation.rows.iter().any(is_bytecode)
}

/// The method's rows that are lines, by file, those with most samples first.
pub fn by_file(annotation: &Annotation) -> Vec<(&str, Vec<&Row>)> {
    let mut files: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &annotation.rows {
        if let Spot::Line { file, .. } = &row.spot {
            files.entry(file).or_default().push(row);
        }
    }
    let mut files: Vec<(&str, Vec<&Row>)> = files.into_iter().collect();
    files.sort_by_key(|(_, rows)| std::cmp::Reverse(samples_of(rows)));
    files
}

/// The samples of rows.
pub fn samples_of(rows: &[&Row]) -> u64 {
    rows.iter().map(|row| row.samples()).sum()
}

/// The source file of a method that has bytecodes, as its package says: VMs name it
/// without a folder, so only a folder that was given can hold it.
pub fn source_of_bytecodes(annotation: &Annotation) -> Option<String> {
    let Annotation { file, class, .. } = annotation;
    if file.is_empty() {
        return None;
    }
    let package = class.rsplit_once('.').map_or("", |(package, _)| package);
    let path = format!("{}/{file}", package.replace('.', "/"));
    Some(path.trim_start_matches('/').to_owned())
}

/// The lines of the method's bytecodes, with the rows that are no source lines.
pub fn bytecode_lines(annotation: &Annotation) -> Vec<Line<'_>> {
    let mut before: FxHashMap<usize, Vec<Line>> = FxHashMap::default();
    let mut lines: Vec<Line> = (annotation.listing.iter())
        .map(|listed| Line {
            row: None,
            bracket: Bracket::None,
            number: listed.pc.to_string(),
            source: listed.line,
            text: listed.text.clone(),
            skipped: 0,
            keep: false,
        })
        .collect();
    let end = lines.len();
    // Where the last range ends that has a bracket.
    let mut bracketed = 0;
    for row in &annotation.rows {
        if matches!(row.spot, Spot::Line { .. }) {
            continue;
        }
        let std::ops::Range {
            start: first,
            end: last,
        } = row.spot.in_listing(&annotation.listing);
        // A range of several needs the margin for its bracket.
        let margin = last - first == 1 || first >= bracketed;
        let free = margin && lines.get(first).is_some_and(|line| line.row.is_none());
        if first >= last || !free {
            let mut line = Line::of_row(row, place_name(row));
            if let Spot::Bytecode(pc) = row.spot {
                line.number = pc.to_string();
                line.text = String::new();
            }
            before.entry(first).or_default().push(line);
            continue;
        }
        if last - first == 1 {
            if let Some(line) = lines.get_mut(first) {
                line.row = Some(row);
            }
            continue;
        }
        bracketed = last;
        for (index, line) in lines.iter_mut().enumerate().take(last).skip(first) {
            line.bracket = match index {
                _ if index == first => Bracket::First,
                _ if index + 1 == last => Bracket::Last,
                _ => Bracket::Inside,
            };
            if index == first {
                line.row = Some(row);
            }
        }
    }
    let mut all = Vec::with_capacity(lines.len() + annotation.rows.len());
    for (index, line) in lines.into_iter().enumerate() {
        all.extend(before.remove(&index).into_iter().flatten());
        all.push(line);
    }
    all.extend(before.remove(&end).into_iter().flatten());
    all
}

/// The lines of one file: those with samples, and where there is source text, those
/// within `context` of them. `begin` is the method's first line, where it is known to be in
/// that file.
pub fn source_lines<'a>(
    rows: &[&'a Row],
    source: Option<&Source>,
    begin: Option<u32>,
    context: usize,
) -> Vec<Line<'a>> {
    let mut by_number: BTreeMap<u32, Option<&Row>> = BTreeMap::new();
    for row in rows {
        if let Spot::Line { line, .. } = row.spot {
            by_number.insert(line, Some(row));
        }
    }
    if let Some(source) = source {
        let context = u32::try_from(context).unwrap_or(u32::MAX).min(MAX_CONTEXT);
        let places: Vec<u32> = by_number.keys().copied().collect();
        for place in places {
            let around = place.saturating_sub(context)..=place.saturating_add(context);
            for number in around.filter(|&number| source.line(number).is_some()) {
                by_number.entry(number).or_default();
            }
        }
        if let Some(begin) = begin.filter(|&begin| source.line(begin).is_some()) {
            by_number.entry(begin).or_default();
        }
    }
    let mut before = None;
    let lines = by_number.into_iter().map(|(number, row)| {
        let skipped = before.map_or(0, |before: u32| number - before - 1);
        before = Some(number);
        let text = source.map(|source| source.line(number).unwrap_or("(not in the file)"));
        Line {
            row,
            bracket: Bracket::None,
            number: number.to_string(),
            source: None,
            text: text.unwrap_or_default().to_owned(),
            // Without the text nobody knows what those lines are.
            skipped: source.map_or(0, |_| usize::try_from(skipped).unwrap_or(usize::MAX)),
            keep: begin == Some(number),
        }
    });
    lines.collect()
}

/// Folds what is further than `context` from every line with at least `min` samples.
pub fn fold(lines: Vec<Line<'_>>, context: usize, min: u64) -> Vec<Piece<'_>> {
    let is_loud = |line: &Line| line.row.is_some() && line.samples() >= min;
    let mut kept: Vec<bool> = lines.iter().map(|line| line.keep).collect();
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| is_loud(line)) {
        let from = index.saturating_sub(context);
        let to = index
            .saturating_add(context)
            .min(lines.len().saturating_sub(1));
        for slot in kept.iter_mut().take(to + 1).skip(from) {
            *slot = true;
        }
    }
    // A range that begins with samples shows its end.
    let mut in_loud = false;
    for (line, slot) in lines.iter().zip(&mut kept) {
        match line.bracket {
            Bracket::First => in_loud = is_loud(line),
            Bracket::Last => *slot |= in_loud,
            Bracket::None => in_loud = false,
            Bracket::Inside => {}
        }
    }
    let mut pieces = Vec::new();
    let mut folded: Vec<Line> = Vec::new();
    for (mut line, kept) in lines.into_iter().zip(kept) {
        if kept {
            let skipped = std::mem::take(&mut line.skipped);
            unfold(&mut folded, skipped, &mut pieces);
            pieces.push(Piece::Line(line));
        } else {
            folded.push(line);
        }
    }
    unfold(&mut folded, 0, &mut pieces);
    pieces
}

/// Tells of folded lines, and of `skipped` ones behind them.
fn unfold<'a>(folded: &mut Vec<Line<'a>>, skipped: usize, pieces: &mut Vec<Piece<'a>>) {
    let among = folded.iter().map(|line| line.skipped);
    let skipped = among.fold(skipped, usize::saturating_add);
    if skipped == 0 && folded.len() < MIN_FOLDED {
        pieces.extend(folded.drain(..).map(Piece::Line));
        return;
    }
    pieces.push(Piece::Folded {
        lines: skipped.saturating_add(folded.len()),
        samples: folded.iter().map(Line::samples).sum(),
        inside: skipped == 0 && folded.iter().all(|line| line.bracket == Bracket::Inside),
    });
    folded.clear();
}
