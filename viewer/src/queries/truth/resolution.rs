//! What samples are resolved to, as far as that limits a report's truth.

use super::{About, Concerns, TruthLine};
use crate::present::numbers::{percent, ratio};
use vmscope_records::Exactness;
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::summary::Quality;
use vmscope_symbolizer::{Profile, Region, Summary};

/// Samples in executable memory of no file that no adapter knows.
pub fn unnamed_generated(profile: &Profile, summary: &Summary) -> u64 {
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
        let line = TruthLine::new(Some(generated), text, "");
        lines.push(line.concerning(Concerns::UnnamedGenerated));
    }
    let unresolved = quality.unresolved.saturating_sub(generated);
    if unresolved > 0 {
        let has = if unresolved == 1 { "has" } else { "have" };
        let text = format!("({}) {has} no name", of_total(unresolved));
        let line = TruthLine::new(Some(unresolved), text, "");
        lines.push(line.concerning(Concerns::Unnamed));
    }
    if quality.doubtful > 0 {
        let text = format!(
            "({}) {} doubtful: the code there was replaced between two looks at it",
            of_total(quality.doubtful),
            is(quality.doubtful)
        );
        let line = TruthLine::new(Some(quality.doubtful), text, "").about(About::Changes);
        lines.push(line.concerning(Concerns::Doubtful));
    }
    if quality.without_method > 0 {
        let of_interpreter = quality.interpreted.saturating_add(quality.without_method);
        let text = format!(
            "({} of the interpreter's) {} of no method that its registers and stack would show",
            percent(ratio(quality.without_method, of_interpreter)),
            is(quality.without_method)
        );
        let line = TruthLine::new(Some(quality.without_method), text, "");
        lines.push(line.concerning(Concerns::Interpreter));
    }
    if profile.is_native() {
        near((quality, None), "", &of_total, lines);
        let remedy = "debug information";
        whole((quality, None), "function", remedy, &of_total, lines);
        return;
    }
    // Of what a VM runs something else is known than of native code, and other things help.
    let code = &summary.of_code;
    let native = Quality {
        approximate: quality.approximate.saturating_sub(code.approximate),
        method_only: quality.method_only.saturating_sub(code.method_only),
        ..Quality::default()
    };
    let (code, native) = ((code, Some(true)), (&native, Some(false)));
    near(code, "the VM's code, ", &of_total, lines);
    whole(code, "method", "", &of_total, lines);
    near(native, "native code, ", &of_total, lines);
    whole(
        native,
        "native function",
        "debug information, for lines",
        &of_total,
        lines,
    );
}

/// Samples, and whether they are of the VM's code.
type Of<'a> = (&'a Quality, Option<bool>);

fn near(
    (quality, of_vm): Of<'_>,
    of: &str,
    of_total: &dyn Fn(u64) -> String,
    lines: &mut Vec<TruthLine>,
) {
    let samples = quality.approximate;
    if samples > 0 {
        let text = format!(
            "({}) {} in {of}{}ranges that are approximate",
            of_total(samples),
            if samples == 1 { "is" } else { "are" },
            if of.is_empty() { "" } else { "in " },
        );
        let line = TruthLine::new(Some(samples), text, "");
        lines.push(line.concerning(Concerns::Worth(Exactness::Approximate, of_vm)));
    }
}

fn whole(
    (quality, of_vm): Of<'_>,
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
        let line = TruthLine::new(Some(samples), text, remedy);
        lines.push(line.concerning(Concerns::Worth(Exactness::MethodOnly, of_vm)));
    }
}
