//! An annotated method as text: accuracy, head, lines.

mod head;
mod rows;

use super::AnnotateArgs;
use super::layout::{
    by_file, bytecode_lines, fold, has_bytecodes, samples_of, source_lines, source_of_bytecodes,
};
use super::source::{CHANGED, Source};
use crate::present::numbers::{percent, ratio, some};
use crate::present::text::wrap;
use crate::report::page::width;
use rows::{SourceOf, Titles};
use vmscope_symbolizer::annotate::{Annotation, Calls};
use vmscope_symbolizer::{Filter, Profile, Summary};

const BYTECODES: Titles = Titles {
    number: "pc",
    text: "bytecode",
    one: "bytecode",
    many: "bytecodes",
};
const LINES: Titles = Titles {
    number: "line",
    text: "source",
    one: "line",
    many: "lines",
};
const PLACES: Titles = Titles {
    number: "",
    text: "place",
    one: "place",
    many: "places",
};

struct Page<'a> {
    profile: &'a Profile,
    summary: &'a Summary,
    annotation: &'a Annotation,
    /// The method's calls, if stacks were recorded.
    calls: Option<&'a Calls>,
    args: &'a AnnotateArgs,
    width: usize,
}

pub(super) fn text(
    profile: &Profile,
    summary: &Summary,
    filter: &Filter,
    (annotation, calls): (&Annotation, Option<&Calls>),
    args: &AnnotateArgs,
) -> String {
    let page = Page {
        profile,
        summary,
        annotation,
        calls,
        args,
        width: width(args.width),
    };
    let mut out = String::new();
    page.truth(&mut out);
    page.head(filter, &mut out);
    if has_bytecodes(annotation) {
        page.bytecodes(&mut out);
        page.files(&mut out);
    } else {
        page.files(&mut out);
        page.bytecodes(&mut out);
    }
    page.legend(&mut out);
    out
}

impl Page<'_> {
    fn paragraph(&self, out: &mut String, text: &str) {
        out.push_str(&wrap(text, self.width, 2));
        out.push('\n');
    }

    /// Bytecodes, and places without a line.
    fn bytecodes(&self, out: &mut String) {
        let lines = bytecode_lines(self.annotation);
        if lines.is_empty() {
            return;
        }
        let titles = if has_bytecodes(self.annotation) {
            BYTECODES
        } else {
            PLACES
        };
        let source = self.source_of_bytecodes(out);
        out.push('\n');
        let pieces = fold(lines, self.args.context, self.least());
        let source = source.as_ref().map(|text| SourceOf { file: "", text });
        self.listing(titles, &pieces, source, out);
    }

    /// Source lines by file, most samples first.
    fn files(&self, out: &mut String) {
        for (file, rows) in by_file(self.annotation) {
            let begin = (self.annotation.line).filter(|_| self.annotation.file == file);
            out.push('\n');
            let share = percent(ratio(samples_of(&rows), self.annotation.all.samples()));
            let number = some(samples_of(&rows), "sample", "samples");
            let name = if file.is_empty() {
                "(file unknown)"
            } else {
                file
            };
            let heading = match samples_of(&rows) {
                0 => format!("{name}: calls only"),
                _ => format!("{name}: {number}, {share} of the method"),
            };
            self.paragraph(out, &heading);
            let source = if self.args.no_source {
                None
            } else {
                self.source(file, out)
            };
            let lines = source_lines(&rows, source.as_ref(), begin, self.args.context);
            let pieces = fold(lines, self.args.context, self.least());
            let titles = Titles {
                text: if source.is_some() { "source" } else { "" },
                ..LINES
            };
            let source = source.as_ref().map(|text| SourceOf { file, text });
            self.listing(titles, &pieces, source, out);
        }
    }

    /// Reads a source file; writes why it is missing or doubtful.
    fn source(&self, name: &str, out: &mut String) -> Option<Source> {
        let session = self.profile.trace.session.as_ref();
        let recorded = session.map_or(0, |session| session.wall_clock_unix_ns);
        let found = Source::find(name, &self.args.source, recorded);
        match &found {
            Ok(source) if source.changed => self.paragraph(out, CHANGED),
            Ok(_) => {}
            Err(why) => self.paragraph(out, &format!("(no source text: {why})")),
        }
        found.ok()
    }

    /// Source of a method with bytecodes, beneath a given folder.
    fn source_of_bytecodes(&self, out: &mut String) -> Option<Source> {
        if self.args.source.is_empty() || self.annotation.listing.is_empty() {
            return None;
        }
        let path = source_of_bytecodes(self.annotation)?;
        self.source(&path, out)
    }

    /// Rows with fewer samples are folded.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are far below 2^52, and a percentage of one is no larger"
    )]
    fn least(&self) -> u64 {
        let least = self.annotation.all.samples() as f64 * self.args.min_share / 100.0;
        (least.ceil() as u64).max(1)
    }
}
