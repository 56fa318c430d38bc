//! Accuracy: limits, number and resolution of samples.

use super::page::Page;
use crate::present::entries::inference;
use crate::present::numbers::{percent, points, ratio, some};
use crate::queries::truth::{native_of, truth_of, unnamed_generated};
use serde_json::{Value, json};
use vmscope_symbolizer::summary::Quality;

/// Before anything else in a report.
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let lines = truth_of(page.profile, page.summary);
    out.push_str(match lines.is_empty() {
        true => "Accuracy: no known limits\n",
        false => "Accuracy:\n",
    });
    for line in lines {
        let remedy = match line.remedy.as_str() {
            "" => String::new(),
            remedy => format!(" [helps: {remedy}]"),
        };
        page.paragraph(out, &format!("- {}{remedy}", line.in_full()));
    }
    if page.summary.total > 0 {
        resolution(page, out);
        // Of the entry with the worst error; JSON has the error of each.
        if let Some(error) = page.summary.errors.iter().copied().reduce(f64::max) {
            let line = format!(
                "Sampling error of shares: ±{} points or better (95 %, by batch means).",
                points(error)
            );
            page.paragraph(out, &line);
        }
        if let Some(line) = inference(page.summary) {
            page.paragraph(out, &line);
        }
    }
    out.push('\n');
}

/// Resolution of a VM's code, then of native code.
fn resolution(page: &Page<'_>, out: &mut String) {
    let (all, code) = (page.summary.quality, page.summary.of_code);
    let mut put = |quality: &Quality, of: &str, whole: &str| {
        let share = |part| percent(ratio(part, quality.total()));
        let line = format!(
            "{of} exactly: {}, approximately: {}, to the {whole} only: {}, not at all: {}.",
            share(quality.exact),
            share(quality.approximate),
            share(quality.method_only),
            share(quality.unresolved + quality.doubtful),
        );
        page.paragraph(out, &line);
    };
    if page.profile.is_native() || code.total() == 0 {
        return put(&all, "Resolved", "function");
    }
    let native = native_of(page.summary);
    let of = |quality: &Quality| some(quality.total(), "sample", "samples");
    let what = format!("JIT and interpreted code ({}): resolved", of(&code));
    put(&code, &what, "method");
    if native.total() > 0 {
        let what = format!("Native code ({}): resolved", of(&native));
        put(&native, &what, "function");
    }
}

pub(super) fn json(page: &Page<'_>) -> Value {
    let summary = page.summary;
    let (all, code) = (&summary.quality, &summary.of_code);
    json!({
        "total": summary.total,
        "vm": summary.vm,
        "promised": summary.promised,
        "lost": summary.lost,
        "unresolved": all.unresolved,
        "unnamed_generated": unnamed_generated(page.profile, summary),
        "without_method": all.without_method,
        "doubtful": all.doubtful,
        "approximate": all.approximate,
        "method_only": all.method_only,
        "exact": all.exact,
        "code": {
            "total": code.total(),
            "exact": code.exact,
            "approximate": code.approximate,
            "method_only": code.method_only,
            "unresolved": code.unresolved,
            "doubtful": code.doubtful,
        },
    })
}
