//! All lines of a method's listing, independent of folding.

use crate::annotate::layout::{
    Bracket, Line, Nested, by_file, bytecode_lines, flatten, has_bytecodes, place_in, place_name,
    samples_of, source_lines, source_of_bytecodes,
};
use crate::annotate::source::{CHANGED, Source};
use crate::present::numbers::some;
use crate::queries::method::{Found, Pieces, id_of, id_of_callee, id_of_spot, mark_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use vmscope_records::BytecodePc;
use vmscope_symbolizer::annotate::{Annotation, Inlined, Row, Spot, Subject};

/// Lines of a source file around those with samples.
const CONTEXT: usize = 8;

/// Maximum number of requested source files per method, hottest first.
const MAX_FILES: usize = 8;

/// State of a source file.
#[derive(Clone, Debug)]
pub enum Text {
    Asked,
    Read(Source),
    /// Reason of a missing file.
    None(String),
}

/// Source files by the names that recordings give them.
pub type Texts = BTreeMap<String, Text>;

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Place in the method or in an inlined method.
    Place,
    Callee(Subject),
    Heading,
    /// Source text above bytecodes, lines left out, a case of a PIC.
    Note,
}

/// Samples of one version at a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Samples of the line itself.
    pub own: u64,
    /// Samples of the line and of code inlined there.
    pub all: u64,
    /// `~` approximate, `?` unknown place.
    pub mark: &'static str,
    /// 95 % half-width of the share: of `own` for a place, of `all` for an inlined method.
    pub error: Option<f64>,
}

impl Counts {
    /// Counts of a place.
    pub fn of_row(row: &Row) -> Self {
        Counts {
            own: row.own.samples(),
            all: row.samples(),
            mark: mark_of(&row.own),
            error: row.error,
        }
    }

    /// Counts of an inlined method.
    pub fn of_callee(callee: &Inlined) -> Self {
        Counts {
            own: 0,
            all: callee.all.samples(),
            mark: mark_of(&callee.all),
            error: callee.error,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Item {
    /// Unique id; for a place, [`id_of_spot`].
    pub id: u64,
    /// Id of the place that owns the line's samples; a method inlined at a single place shares that
    /// place's line.
    pub place: Option<u64>,
    /// Inlining depth.
    pub depth: usize,
    pub what: What,
    /// The bytecode, the source text, the name.
    pub text: String,
    /// Text without source from this machine's files; `None` for pure source text.
    pub plain: Option<String>,
    /// Bytecode pc or line number.
    pub number: String,
    /// Source line of a bytecode.
    pub line: Option<u32>,
    /// Position in a range of several bytecodes.
    pub bracket: Bracket,
    /// Samples of all versions together, or of the shown version.
    pub counts: Counts,
    /// Samples in code called from a place.
    pub called: u64,
    pub machine: Pieces,
    /// Whether deeper lines follow as children.
    pub has_children: bool,
}

impl Item {
    /// Text for exports, which leave out source text.
    pub fn exported(&self) -> String {
        let indent = "  ".repeat(self.depth.min(32));
        let sign = match self.what {
            What::Callee(_) => "> ",
            _ => "",
        };
        format!(
            "{indent}{sign}{}",
            self.plain.as_deref().unwrap_or_default()
        )
    }
}

/// Source files to request.
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

/// Lines of `annotation`: [`Found::annotation`], perhaps with call sites.
pub fn lay_out(found: &Found, annotation: &Annotation, texts: &Texts) -> Vec<Item> {
    let mut out = Out {
        found,
        annotation,
        texts,
        items: Vec::new(),
    };
    out.cases();
    if has_bytecodes(annotation) {
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
    annotation: &'a Annotation,
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
            counts: Counts::default(),
            called: 0,
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
                let text = if text.is_empty() { "(unknown)" } else { text };
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
        let annotation = self.annotation;
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
        let annotation = self.annotation;
        for (file, rows) in by_file(annotation) {
            let name = if file.is_empty() {
                "(file unknown)"
            } else {
                file
            };
            let samples = match samples_of(&rows) {
                0 => "calls only".to_owned(),
                samples => some(samples, "sample", "samples"),
            };
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

    /// Excludes the last line from exports: source text from a file of this machine.
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
        let mut lines = Vec::new();
        flatten(line.inlined(), (1, id), 0, &mut lines);
        for (depth, parent, nested) in lines {
            self.nested(nested, parent, depth);
        }
    }

    /// Adds a line below a place.
    fn nested(&mut self, nested: Nested<'_>, parent: u64, depth: usize) {
        match nested {
            Nested::Callee(callee, only) => {
                let id = id_of_callee(parent, &callee.subject);
                let place = only.map_or_else(String::new, |row| format!(" {}", place_in(row)));
                let text = format!("{}{place}", callee.name);
                let what = What::Callee(callee.subject.clone());
                if let Some(item) = self.push(what, id, depth, text) {
                    item.has_children = true;
                    let mut counts = Counts::of_callee(callee);
                    if let Some(row) = only {
                        fill(item, row);
                        item.place = Some(id_of_spot(id, &row.spot));
                        (counts.own, counts.mark) = (item.counts.own, item.counts.mark);
                    }
                    item.counts = counts;
                }
            }
            Nested::Place(row) => {
                let text = match &row.spot {
                    Spot::Line { file, line } => {
                        self.text(file).and_then(|source| source.line(*line))
                    }
                    _ => None,
                };
                let text = text.map_or_else(String::new, |text| format!("  {}", text.trim()));
                let plain = place_in(row);
                let text = format!("{plain}{text}");
                let id = id_of_spot(parent, &row.spot);
                if let Some(item) = self.push(What::Place, id, depth, text) {
                    item.plain = Some(plain);
                    fill(item, row);
                }
            }
            Nested::Others { .. } => {}
        }
    }
}

fn fill(item: &mut Item, row: &Row) {
    item.counts = Counts::of_row(row);
    item.called = row.called;
    item.has_children = !row.inlined.is_empty();
    // Source lines have their number already.
    if !matches!(row.spot, Spot::Line { .. }) {
        item.line = item.line.or(row.line);
    }
}
