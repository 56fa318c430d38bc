//! The lines of a method's listing, laid out: all of them, whatever is folded.

use crate::annotate::layout::{
    Bracket, Line, by_file, bytecode_lines, has_bytecodes, place_in, place_name, samples_of,
    source_lines, source_of_bytecodes,
};
use crate::annotate::source::Source;
use crate::present::numbers::some;
use crate::queries::method::{Found, Pieces, id_of, id_of_callee, id_of_spot, mark_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use vmscope_records::BytecodePc;
use vmscope_symbolizer::annotate::{Annotation, Inlined, Row, Spot, Subject};

/// Lines of a source file around those with samples.
const CONTEXT: usize = 8;

/// So many source files of one method are asked for, those with most samples.
const MAX_FILES: usize = 8;

/// A source file, as far as it is known.
#[derive(Clone, Debug)]
pub enum Text {
    /// It is being read.
    Asked,
    /// It is there.
    Read(Source),
    /// There is none; why.
    None(String),
}

/// Source files by the names that recordings give them.
pub type Texts = BTreeMap<String, Text>;

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A place in the method or in one that was inlined.
    Place,
    /// A method that was inlined here.
    Callee(Subject),
    /// A heading.
    Heading,
    /// Source text above bytecodes, lines left out, a case of a PIC.
    Note,
}

/// A line of the listing.
#[derive(Clone, Debug)]
pub struct Item {
    /// Tells it apart, whatever else is there: of a place, [`id_of_spot`].
    pub id: u64,
    /// The number of the place whose samples are its own: of a method inlined at one place
    /// alone, that place's; `None` where it has none of its own.
    pub place: Option<u64>,
    /// How deep it is inlined.
    pub depth: usize,
    /// What it is.
    pub what: What,
    /// The bytecode, the source text, the name.
    pub text: String,
    /// The same without what was read from a file of this machine; `None` where nothing
    /// else is there.
    pub plain: Option<String>,
    /// The bytecode's pc or the line.
    pub number: String,
    /// The source line of a bytecode.
    pub line: Option<u32>,
    /// Whether a range of several bytecodes begins, goes on or ends here.
    pub bracket: Bracket,
    /// Samples here.
    pub own: u64,
    /// Those and the ones in what was inlined here.
    pub all: u64,
    /// `~` approximate, `?` place not known.
    pub mark: &'static str,
    /// 95 % half-width of the share.
    pub error: Option<f64>,
    /// Its machine code.
    pub machine: Pieces,
    /// Whether the lines after it that are deeper belong to it.
    pub has_children: bool,
}

/// The names of the source files of a method that are worth asking for.
pub fn wanted(annotation: &Annotation) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if has_bytecodes(annotation) {
        names.extend(source_of_bytecodes(annotation));
    }
    let files = by_file(annotation).into_iter().take(MAX_FILES);
    names.extend(files.map(|(file, _)| file.to_owned()));
    names.retain(|name| !name.is_empty());
    names
}

/// All lines.
pub fn lay_out(found: &Found, texts: &Texts) -> Vec<Item> {
    let mut out = Out {
        found,
        texts,
        items: Vec::new(),
    };
    out.cases();
    if has_bytecodes(&found.annotation) {
        out.bytecodes();
        out.files();
    } else {
        out.files();
        out.bytecodes();
    }
    out.items
}

struct Out<'a> {
    found: &'a Found,
    texts: &'a Texts,
    items: Vec<Item>,
}

impl<'a> Out<'a> {
    fn push(&mut self, what: What, id: u64, depth: usize, text: String) -> Option<&mut Item> {
        let machine = self.found.machine.get(&id).cloned().unwrap_or_default();
        let place = (what == What::Place).then_some(id);
        self.items.push(Item {
            id,
            place,
            depth,
            what,
            plain: Some(text.clone()),
            text,
            number: String::new(),
            line: None,
            bracket: Bracket::None,
            own: 0,
            all: 0,
            mark: "",
            error: None,
            machine,
            has_children: false,
        });
        self.items.last_mut()
    }

    fn note(&mut self, what: What, text: String) {
        let id = id_of(u64::MAX, (self.items.len(), &text));
        self.push(what, id, 0, text);
    }

    fn cases(&mut self) {
        let cases = &self.found.cases;
        if cases.is_empty() {
            return;
        }
        let count = some(cases.len() as u64, "case", "cases");
        self.note(What::Heading, format!("{count}: receiver -> method"));
        for case in cases {
            let unless = |text: &str| {
                let text = if text.is_empty() { "(not known)" } else { text };
                text.to_owned()
            };
            let text = format!("  {} -> {}", unless(&case.class), unless(&case.target));
            self.note(What::Note, text);
        }
    }

    fn text(&self, file: &str) -> Option<&'a Source> {
        match self.texts.get(file) {
            Some(Text::Read(source)) => Some(source),
            _ => None,
        }
    }

    fn bytecodes(&mut self) {
        let annotation = &self.found.annotation;
        let texts = self.texts;
        let source = source_of_bytecodes(annotation).and_then(|file| texts.get(&file));
        let source = match source {
            Some(Text::Read(source)) => Some(source),
            _ => None,
        };
        if source.is_some_and(|source| source.changed) {
            self.note(What::Note, CHANGED.to_owned());
        }
        let mut last = None;
        for line in bytecode_lines(annotation) {
            if let Some(source) = source
                && let Some(number) = line.source
                && last.replace(number) != Some(number)
                && let Some(text) = source.line(number)
            {
                self.note(What::Note, format!("// {}", text.trim()));
                self.last_is_of_a_file();
            }
            let spot = || line.number.parse().ok().map(BytecodePc).map(Spot::Bytecode);
            let spot = line.row.map(|row| row.spot.clone()).or_else(spot);
            self.line(&line, spot, &line.text, Some(line.text.clone()));
        }
    }

    fn files(&mut self) {
        let annotation = &self.found.annotation;
        for (file, rows) in by_file(annotation) {
            let name = if file.is_empty() {
                "(file not known)"
            } else {
                file
            };
            let samples = some(samples_of(&rows), "sample", "samples");
            self.note(What::Heading, format!("{name}: {samples}"));
            match self.texts.get(file) {
                Some(Text::None(why)) => {
                    self.note(What::Note, format!("(no source text: {why})"));
                }
                Some(Text::Read(source)) if source.changed => {
                    self.note(What::Note, CHANGED.to_owned());
                }
                _ => {}
            }
            let source = self.text(file);
            let begin = annotation.line.filter(|_| annotation.file == file);
            let shared: Arc<str> = file.into();
            let lines = source_lines(&rows, source, begin, CONTEXT);
            for line in lines {
                if line.skipped > 0 {
                    let lines = some(line.skipped as u64, "line", "lines");
                    self.note(What::Note, format!("... {lines} without samples"));
                }
                let spot = line.number.parse().ok().map(|line| Spot::Line {
                    file: Arc::clone(&shared),
                    line,
                });
                let text = match line.row {
                    Some(row) if line.text.is_empty() => place_name(row),
                    _ => line.text.clone(),
                };
                let plain = line.row.map(place_name);
                self.line(&line, spot, &text, plain);
            }
        }
    }

    /// The line that came last is of a file of this machine: it is written nowhere.
    fn last_is_of_a_file(&mut self) {
        if let Some(item) = self.items.last_mut() {
            item.plain = None;
        }
    }

    fn line(&mut self, line: &Line, spot: Option<Spot>, text: &str, plain: Option<String>) {
        let id = spot.as_ref().map_or_else(
            || id_of(u64::MAX, self.items.len()),
            |spot| id_of_spot(0, spot),
        );
        let bracket = line.bracket;
        let (number, source) = (line.number.clone(), line.source);
        if let Some(item) = self.push(What::Place, id, 0, text.to_owned()) {
            item.plain = plain;
            item.number = number;
            item.line = source;
            item.bracket = bracket;
            if let Some(row) = line.row {
                fill(item, row);
            }
        }
        if let Some(row) = line.row {
            self.inlined(&row.inlined, id, 1);
        }
    }

    /// What was inlined at a place; as deep as it goes, which the annotation bounds.
    fn inlined(&mut self, inlined: &[Inlined], parent: u64, depth: usize) {
        for callee in inlined {
            let id = id_of_callee(parent, &callee.subject);
            // What fell into one place needs no line for it.
            let only = match callee.rows.as_slice() {
                [only] => Some(only),
                _ => None,
            };
            let place = only.map_or_else(String::new, |row| format!(" {}", place_in(row)));
            let text = format!("{}{place}", callee.name);
            if let Some(item) = self.push(What::Callee(callee.subject.clone()), id, depth, text) {
                if let Some(row) = only {
                    fill(item, row);
                    item.place = Some(id_of_spot(id, &row.spot));
                } else {
                    item.mark = mark_of(&callee.all);
                    item.has_children = true;
                }
                item.all = callee.all.samples();
                item.error = callee.error;
            }
            match only {
                Some(row) => self.inlined(&row.inlined, id_of_spot(id, &row.spot), depth + 1),
                None => {
                    for row in &callee.rows {
                        self.place(row, id, depth + 1);
                    }
                }
            }
        }
    }

    fn place(&mut self, row: &Row, parent: u64, depth: usize) {
        let id = id_of_spot(parent, &row.spot);
        let text = match &row.spot {
            Spot::Line { file, line } => self.text(file).and_then(|source| source.line(*line)),
            _ => None,
        };
        let text = text.map_or_else(String::new, |text| format!("  {}", text.trim()));
        let plain = place_in(row);
        let text = format!("{plain}{text}");
        if let Some(item) = self.push(What::Place, id, depth, text) {
            item.plain = Some(plain);
            fill(item, row);
        }
        self.inlined(&row.inlined, id, depth + 1);
    }
}

const CHANGED: &str =
    "(the file was changed after the recording began: its lines may be others now)";

fn fill(item: &mut Item, row: &Row) {
    item.own = row.own.samples();
    item.all = row.samples();
    item.mark = mark_of(&row.own);
    item.error = row.error;
    item.has_children = !row.inlined.is_empty();
    // Where lines are what is counted in, the line is its number already.
    if !matches!(row.spot, Spot::Line { .. }) {
        item.line = item.line.or(row.line);
    }
}
