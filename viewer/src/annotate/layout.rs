//! Lines of a listing: bytecodes or source lines in order, samples beside their places, quiet
//! stretches folded.

use super::source::Source;
use crate::queries::method::{id_of_callee, id_of_spot};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::annotate::{Annotation, Inlined, Row, Spot, Tier};
use vmscope_symbolizer::profile::last_component;

/// Minimum number of folded lines; the fold itself takes a line.
const MIN_FOLDED: usize = 3;

/// Maximum number of lines around a place.
const MAX_CONTEXT: u32 = 10_000;

/// Position of a line in a range of bytecodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bracket {
    /// In no range of several lines.
    None,
    First,
    Inside,
    Last,
}

/// A line of a listing.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The place with samples that begins here.
    pub row: Option<&'a Row>,
    pub bracket: Bracket,
    /// Bytecode pc or line number; may be empty.
    pub number: String,
    /// Source line of a bytecode.
    pub source: Option<u32>,
    /// Bytecode or source text.
    pub text: String,
    /// Number of omitted source lines before this one.
    pub skipped: usize,
    /// Whether the line is never folded, as a function's first line.
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

    pub fn inlined(&self) -> &'a [Inlined] {
        self.row.map_or(&[], |row| &row.inlined)
    }

    fn samples(&self) -> u64 {
        self.row.map_or(0, Row::samples)
    }

    /// Samples in code called from the line.
    pub fn called(&self) -> u64 {
        self.row.map_or(0, |row| row.called)
    }
}

/// A line, or a fold.
#[derive(Debug)]
pub enum Piece<'a> {
    Line(Line<'a>),
    /// Folded lines.
    Folded {
        /// Number of lines.
        lines: usize,
        samples: u64,
        /// Whether all lie inside a range.
        inside: bool,
    },
}

/// Name of a place without line number or bytecode.
pub fn place_name(row: &Row) -> String {
    match &row.spot {
        Spot::Entry => "(at entry)".to_owned(),
        // Exact samples in a method without places.
        Spot::Unknown if row.samples() > 0 && row.own.samples() == row.own.exact => {
            "(as a whole)".to_owned()
        }
        Spot::Unknown => "(place unknown)".to_owned(),
        Spot::Bytecode(pc) => pc.to_string(),
        Spot::Range { from, to, .. } => {
            let from = from.map_or_else(|| "entry".to_owned(), |pc| pc.to_string());
            let to = to.map_or_else(|| "end".to_owned(), |pc| pc.to_string());
            format!("{from}->{to}")
        }
        Spot::Line { file, line } => {
            let file = last_component(file);
            if file.is_empty() {
                format!("line {line}")
            } else {
                format!("{file}:{line}")
            }
        }
    }
}

/// Name of a place in an inlined method.
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

/// Name of a tier; VMs with a single tier use the region's name.
pub fn tier_name(tier: &Tier) -> &str {
    match tier.region {
        _ if !tier.name.is_empty() => &tier.name,
        Region::Generated => "compiled",
        region => region.name(),
    }
}

/// What [`tier_name`]s of a method are: tiers, or parts of the VM for its native functions.
pub fn tiers_title(tiers: &[Tier]) -> &'static str {
    let is_code = |tier: &Tier| matches!(tier.region, Region::Generated | Region::Interpreter);
    match tiers.iter().any(is_code) {
        true => "tiers",
        false => "VM component",
    }
}

/// Whether bytecodes come before source lines.
pub fn has_bytecodes(annotation: &Annotation) -> bool {
    let is_bytecode = |row: &Row| matches!(row.spot, Spot::Bytecode(_) | Spot::Range { .. });
    !annotation.listing.is_empty() || annotation.rows.iter().any(is_bytecode)
}

/// Rows of source lines by file, most samples first.
pub fn by_file(annotation: &Annotation) -> Vec<(&str, Vec<&Row>)> {
    let mut files: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &annotation.rows {
        if let Spot::Line { file, .. } = &row.spot {
            files.entry(file).or_default().push(row);
        }
    }
    let mut files: Vec<(&str, Vec<&Row>)> = files.into_iter().collect();
    let called = |rows: &[&Row]| rows.iter().map(|row| row.called).sum::<u64>();
    files.sort_by_key(|(_, rows)| std::cmp::Reverse((samples_of(rows), called(rows))));
    files
}

pub fn samples_of(rows: &[&Row]) -> u64 {
    rows.iter().map(|row| row.samples()).sum()
}

/// Source path of a method with bytecodes, from its package: VMs report no folder, so that only a
/// given folder can hold the file.
pub fn source_of_bytecodes(annotation: &Annotation) -> Option<String> {
    let Annotation { file, class, .. } = annotation;
    if file.is_empty() {
        return None;
    }
    let package = class.rsplit_once('.').map_or("", |(package, _)| package);
    let path = format!("{}/{file}", package.replace('.', "/"));
    Some(path.trim_start_matches('/').to_owned())
}

/// Lines of the bytecodes, with all rows but source lines.
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
    // End of the last bracketed range.
    let mut bracketed = 0;
    for row in &annotation.rows {
        if matches!(row.spot, Spot::Line { .. }) {
            continue;
        }
        let std::ops::Range {
            start: first,
            end: last,
        } = row.spot.in_listing(&annotation.listing);
        // A range of several lines needs the margin for its bracket.
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

/// Lines of one file: lines with samples, and with source text the lines within `context`. `begin`:
/// the method's first line, if in this file.
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
            // Without source text, a gap means nothing.
            skipped: source.map_or(0, |_| usize::try_from(skipped).unwrap_or(usize::MAX)),
            keep: begin == Some(number),
        }
    });
    lines.collect()
}

/// A line below a place: an inlined method, or a place inside the method.
#[derive(Debug)]
pub enum Nested<'a> {
    /// A method. A single place with samples in it shares its line.
    Callee(&'a Inlined, Option<&'a Row>),
    /// A place in the method above.
    Place(&'a Row),
    /// Methods, or places in the method above, without lines of their own: number, samples.
    Others {
        /// Whether they are methods.
        are_methods: bool,
        /// How many.
        number: u64,
        /// Their samples.
        samples: u64,
    },
}

/// Flattens what was inlined at a place into lines: depth, parent id, line. Methods and places
/// with fewer than `least` samples are summed up. Recursion is bounded by the annotation's depth.
pub fn flatten<'a>(
    inlined: &'a [Inlined],
    (depth, parent): (usize, u64),
    least: u64,
    lines: &mut Vec<(usize, u64, Nested<'a>)>,
) {
    let mut others = (0, 0);
    for callee in inlined {
        if callee.all.samples() < least {
            others = (others.0 + 1, others.1 + callee.all.samples());
            continue;
        }
        let id = id_of_callee(parent, &callee.subject);
        if let [only] = &callee.rows[..] {
            lines.push((depth, parent, Nested::Callee(callee, Some(only))));
            let id = id_of_spot(id, &only.spot);
            flatten(&only.inlined, (depth + 1, id), least, lines);
            continue;
        }
        lines.push((depth, parent, Nested::Callee(callee, None)));
        let mut others = (0, 0);
        for row in &callee.rows {
            if row.samples() < least {
                others = (others.0 + 1, others.1 + row.samples());
                continue;
            }
            lines.push((depth + 1, id, Nested::Place(row)));
            let id = id_of_spot(id, &row.spot);
            flatten(&row.inlined, (depth + 2, id), least, lines);
        }
        put_others(false, others, (depth + 1, id), lines);
    }
    put_others(true, others, (depth, parent), lines);
}

fn put_others(
    are_methods: bool,
    (number, samples): (u64, u64),
    (depth, parent): (usize, u64),
    lines: &mut Vec<(usize, u64, Nested<'_>)>,
) {
    if samples > 0 {
        let others = Nested::Others {
            are_methods,
            number,
            samples,
        };
        lines.push((depth, parent, others));
    }
}

/// Folds lines further than `context` from lines with at least `min` samples, or as many in called
/// code.
pub fn fold(lines: Vec<Line<'_>>, context: usize, min: u64) -> Vec<Piece<'_>> {
    let is_loud = |line: &Line| line.row.is_some() && line.samples().max(line.called()) >= min;
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

/// Ends a stretch of folded lines, followed by `skipped` omitted lines.
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
