//! What samples are resolved to, as far as that limits a report's truth.

use super::TruthLine;
use crate::report::words::{percent, ratio};
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::summary::Quality;
use vmscope_symbolizer::{Profile, Region, Summary};

/// Samples in executable memory of no file that no adapter knows.
pub(in crate::report) fn unnamed_generated(profile: &Profile, summary: &Summary) -> u64 {
    let of_entry = profile.entries.iter().zip(&summary.entries);
    of_entry
        .filter(|(entry, _)| entry.kind == EntryKind::Unnamed && entry.region == Region::Generated)
        .map(|(_, samples)| samples)
        .sum()
}

pub(super) fn tell(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    let quality = &summary.quality;
    let is = |count: u64| if count == 1 { "is" } else { "are" };
    let of_total = |part| percent(ratio(part, summary.total));
    let generated = unnamed_generated(profile, summary);
    if generated > 0 {
        let why = if profile.is_native() {
            "a JIT's, of a kind that vmscope does not read yet"
        } else {
            "the VM told no name for it, or it was gone before it was read"
        };
        let text = format!(
            "({}) {} in generated code that is not named: {why}",
            of_total(generated),
            is(generated)
        );
        lines.push(TruthLine::new(Some(generated), text, ""));
    }
    let unresolved = quality.unresolved.saturating_sub(generated);
    if unresolved > 0 {
        let has = if unresolved == 1 { "has" } else { "have" };
        let text = format!("({}) {has} no name", of_total(unresolved));
        lines.push(TruthLine::new(Some(unresolved), text, ""));
    }
    if quality.doubtful > 0 {
        let text = format!(
            "({}) {} doubtful: the code there was replaced between two looks at it",
            of_total(quality.doubtful),
            is(quality.doubtful)
        );
        lines.push(TruthLine::new(Some(quality.doubtful), text, ""));
    }
    if quality.without_method > 0 {
        let of_interpreter = quality.interpreted.saturating_add(quality.without_method);
        let text = format!(
            "({} of the interpreter's) {} of no method that its registers and stack would show",
            percent(ratio(quality.without_method, of_interpreter)),
            is(quality.without_method)
        );
        lines.push(TruthLine::new(Some(quality.without_method), text, ""));
    }
    if profile.is_native() {
        near(quality, "", &of_total, lines);
        whole(quality, "function", "debug information", &of_total, lines);
        return;
    }
    // Of what a VM runs something else is known than of native code, and other things help.
    let code = &summary.of_code;
    let native = Quality {
        approximate: quality.approximate.saturating_sub(code.approximate),
        method_only: quality.method_only.saturating_sub(code.method_only),
        ..Quality::default()
    };
    near(code, "the VM's code, ", &of_total, lines);
    whole(code, "method", "", &of_total, lines);
    near(&native, "native code, ", &of_total, lines);
    whole(
        &native,
        "native function",
        "debug information, for lines",
        &of_total,
        lines,
    );
}

fn near(quality: &Quality, of: &str, of_total: &dyn Fn(u64) -> String, lines: &mut Vec<TruthLine>) {
    let samples = quality.approximate;
    if samples > 0 {
        let text = format!(
            "({}) {} in {of}{}ranges that are approximate",
            of_total(samples),
            if samples == 1 { "is" } else { "are" },
            if of.is_empty() { "" } else { "in " },
        );
        lines.push(TruthLine::new(Some(samples), text, ""));
    }
}

fn whole(
    quality: &Quality,
    what: &str,
    remedy: &str,
    of_total: &dyn Fn(u64) -> String,
    lines: &mut Vec<TruthLine>,
) {
    let samples = quality.method_only;
    if samples > 0 {
        let text = format!(
            "({}) {} resolved to the {what} only, not to a place in it",
            of_total(samples),
            if samples == 1 { "is" } else { "are" },
        );
        lines.push(TruthLine::new(Some(samples), text, remedy));
    }
}
