//! Limits of a listing's accuracy.

use crate::present::numbers::{count, percent, points, ratio, some};
use vmscope_symbolizer::annotate::{Annotation, MAX_DEPTH};

/// Minimum number of samples for a meaningful listing.
const FEW_SAMPLES: u64 = 100;

/// True of every listing (docs/truth.md §3).
pub const SKID: &str = "Skid: samples often hit the instruction after the slow one; the cause may \
                        be one line above.";

/// Share of a method, with methods inlined into it, in all samples; marked if mostly inferred.
pub fn share_of_all(annotation: &Annotation) -> String {
    let all = annotation.all.samples();
    let mark = match annotation.inferred.is_most_of(all) {
        true => "~",
        false => "",
    };
    format!("{mark}{}", percent(ratio(all, annotation.total)))
}

/// Limits of a listing, a sentence each.
pub fn limits(annotation: &Annotation) -> Vec<String> {
    let (all, total) = (&annotation.all, annotation.all.samples());
    let share = |part| percent(ratio(part, total));
    let mut lines = Vec::new();
    // Without samples, only call sites are shown.
    if (1..FEW_SAMPLES).contains(&total) {
        let samples = some(total, "sample", "samples");
        lines.push(format!("only {samples}: record longer"));
    }
    let mut limited = |samples: u64, what: &str| {
        if samples > 0 {
            let number = some(samples, "sample", "samples");
            lines.push(format!("{number} ({}) {what}", share(samples)));
        }
    };
    limited(
        all.approximate,
        "at an approximate place, from the nearest debug record (marked ~)",
    );
    let inferred = annotation.own_inferred;
    limited(
        inferred.samples,
        &format!(
            "of the method itself are inferred from machine code: inference error of its own share \
             ±{} points",
            points(inferred.error(annotation.total))
        ),
    );
    limited(
        all.method_only,
        "in this method or inlined into it; place unknown (marked ?)",
    );
    limited(
        annotation.too_deep,
        &format!("inlined more than {MAX_DEPTH} deep, shown at that depth"),
    );
    if annotation.listings > 1 {
        lines.push(format!(
            "{} methods of this name have different bytecodes: the listing shows the longest, with \
             all samples",
            count(annotation.listings as u64)
        ));
    }
    lines
}
