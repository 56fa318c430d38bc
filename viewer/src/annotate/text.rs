//! An annotated method as text: what limits its truth, what it is, then its lines.

mod head;
mod rows;

use super::AnnotateArgs;
use super::layout::{
    by_file, bytecode_lines, fold, has_bytecodes, samples_of, source_lines, source_of_bytecodes,
};
use super::source::Source;
use crate::present::numbers::{percent, ratio, some};
use crate::present::text::wrap;
use crate::report::text::width;
use anyhow::Result;
use rows::{SourceOf, Titles};
use std::io::Write;
use vmscope_symbolizer::annotate::Annotation;
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

/// What all parts of the text need.
struct Page<'a> {
    profile: &'a Profile,
    summary: &'a Summary,
    annotation: &'a Annotation,
    args: &'a AnnotateArgs,
    width: usize,
}

/// Writes the whole text.
///
/// # Errors
/// When `out` takes nothing.
pub(super) fn write(
    profile: &Profile,
    summary: &Summary,
    filter: &Filter,
    annotation: &Annotation,
    args: &AnnotateArgs,
    out: &mut dyn Write,
) -> Result<()> {
    let page = Page {
        profile,
        summary,
        annotation,
        args,
        width: width(args.width),
    };
    page.truth(out)?;
    page.head(filter, out)?;
    if has_bytecodes(annotation) {
        page.bytecodes(out)?;
        page.files(out)?;
    } else {
        page.files(out)?;
        page.bytecodes(out)?;
    }
    page.legend(out)
}

impl<'a> Page<'a> {
    /// The method's bytecodes, and what of it has no line.
    fn bytecodes(&self, out: &mut dyn Write) -> Result<()> {
        let lines = bytecode_lines(self.annotation);
        if lines.is_empty() {
            return Ok(());
        }
        let titles = if has_bytecodes(self.annotation) {
            BYTECODES
        } else {
            PLACES
        };
        let source = self.source_of_bytecodes(out)?;
        writeln!(out)?;
        let pieces = fold(lines, self.args.context, self.least());
        let source = source.as_ref().map(|text| SourceOf { file: "", text });
        self.listing(titles, &pieces, source, out)
    }

    /// The method's lines, by file, those with most samples first.
    fn files(&self, out: &mut dyn Write) -> Result<()> {
        for (file, rows) in by_file(self.annotation) {
            let begin = (self.annotation.line).filter(|_| self.annotation.file == file);
            writeln!(out)?;
            let share = percent(ratio(samples_of(&rows), self.annotation.all.samples()));
            let number = some(samples_of(&rows), "sample", "samples");
            let name = if file.is_empty() {
                "(file not known)"
            } else {
                file
            };
            let heading = format!("{name}: {number}, {share} of the method");
            writeln!(out, "{}", wrap(&heading, self.width, 2))?;
            let source = if self.args.no_source {
                None
            } else {
                self.source(file, out)?
            };
            let lines = source_lines(&rows, source.as_ref(), begin, self.args.context);
            let pieces = fold(lines, self.args.context, self.least());
            let titles = Titles {
                text: if source.is_some() { "source" } else { "" },
                ..LINES
            };
            let source = source.as_ref().map(|text| SourceOf { file, text });
            self.listing(titles, &pieces, source, out)?;
        }
        Ok(())
    }

    /// A source file; says why there is none, or what is wrong with it.
    fn source(&self, name: &str, out: &mut dyn Write) -> Result<Option<Source>> {
        let session = self.profile.trace.session.as_ref();
        let recorded = session.map_or(0, |session| session.wall_clock_unix_ns);
        match Source::find(name, &self.args.source, recorded) {
            Ok(source) => {
                if source.changed {
                    let text = "(the file was changed after the recording began: its lines may \
                                be others now)";
                    writeln!(out, "{}", wrap(text, self.width, 2))?;
                }
                Ok(Some(source))
            }
            Err(why) => {
                let text = format!("(no source text: {why})");
                writeln!(out, "{}", wrap(&text, self.width, 2))?;
                Ok(None)
            }
        }
    }

    /// The source of a method that has bytecodes, where a folder was given.
    fn source_of_bytecodes(&self, out: &mut dyn Write) -> Result<Option<Source>> {
        if self.args.source.is_empty() || self.annotation.listing.is_empty() {
            return Ok(None);
        }
        match source_of_bytecodes(self.annotation) {
            Some(path) => self.source(&path, out),
            None => Ok(None),
        }
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
