//! Which lines a listing has: all bytecodes or source lines in order, each place's samples
//! beside its own, and quiet stretches folded.

use super::source::Source;
use rustc_hash::FxHashMap;
use vmscope_symbolizer::annotate::{Annotation, Inlined, Row, Spot};

/// Fewer lines than this are not worth folding: the line that says so is one itself.
const MIN_FOLDED: usize = 3;

/// More lines of a source file than this are not laid out: a recording may claim that a
/// function reaches from the first line to the four thousand millionth.
const MAX_LINES: u32 = 100_000;

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
}

impl<'a> Line<'a> {
    fn of_row(row: &'a Row, text: String) -> Self {
        Line {
            row: Some(row),
            bracket: Bracket::None,
            number: String::new(),
            source: row.line,
            text,
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
pub fn spot_name(spot: &Spot) -> String {
    match spot {
        Spot::Entry => "(at entry)".to_owned(),
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
            let mut line = Line::of_row(row, spot_name(&row.spot));
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
/// between and `context` around them. `begin` is the method's first line, where it is known
/// to be in that file.
pub fn source_lines<'a>(
    rows: &[&'a Row],
    source: Option<&Source>,
    begin: Option<u32>,
    context: usize,
) -> Vec<Line<'a>> {
    let number = |row: &&'a Row| match &row.spot {
        Spot::Line { line, .. } => Some((*line, *row)),
        _ => None,
    };
    let numbered: Vec<(u32, &Row)> = rows.iter().filter_map(number).collect();
    let of_row = |&(number, row): &(u32, &'a Row)| Line {
        row: Some(row),
        bracket: Bracket::None,
        number: number.to_string(),
        source: None,
        text: String::new(),
    };
    let first = numbered.iter().map(|(line, _)| *line).chain(begin).min();
    let last = numbered.iter().map(|(line, _)| *line).max();
    let (Some(source), Some(first), Some(last)) = (source, first, last) else {
        return numbered.iter().map(of_row).collect();
    };
    let context = u32::try_from(context).unwrap_or(u32::MAX);
    let from = first.saturating_sub(context).max(1);
    let to = last.saturating_add(context);
    if to - from > MAX_LINES {
        return numbered.iter().map(of_row).collect();
    }
    let by_number: FxHashMap<u32, &Row> = numbered.iter().copied().collect();
    let mut lines = Vec::new();
    for number in from..=to {
        let (row, text) = (by_number.get(&number).copied(), source.line(number));
        if row.is_none() && text.is_none() {
            continue;
        }
        lines.push(Line {
            row,
            bracket: Bracket::None,
            number: number.to_string(),
            source: None,
            text: text.unwrap_or("(not in the file)").to_owned(),
        });
    }
    lines
}

/// Folds what is further than `context` from every line with at least `min` samples.
pub fn fold(lines: Vec<Line<'_>>, context: usize, min: u64) -> Vec<Piece<'_>> {
    let is_loud = |line: &Line| line.row.is_some() && line.samples() >= min;
    let mut kept = vec![false; lines.len()];
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
    for (line, kept) in lines.into_iter().zip(kept) {
        if kept {
            unfold(&mut folded, &mut pieces);
            pieces.push(Piece::Line(line));
        } else {
            folded.push(line);
        }
    }
    unfold(&mut folded, &mut pieces);
    pieces
}

fn unfold<'a>(folded: &mut Vec<Line<'a>>, pieces: &mut Vec<Piece<'a>>) {
    if folded.len() < MIN_FOLDED {
        pieces.extend(folded.drain(..).map(Piece::Line));
        return;
    }
    pieces.push(Piece::Folded {
        lines: folded.len(),
        samples: folded.iter().map(Line::samples).sum(),
        inside: folded.iter().all(|line| line.bracket == Bracket::Inside),
    });
    folded.clear();
}
