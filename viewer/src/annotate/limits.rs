//! What limits the truth of a listing.

use crate::present::numbers::{count, percent, ratio, some};
use vmscope_symbolizer::annotate::{Annotation, MAX_DEPTH};

/// Fewer samples of a method than this say little about any place in it.
const FEW_SAMPLES: u64 = 100;

/// What is true of every listing (TRUTH.md §3).
pub const SKID: &str = "A sample is charged to the instruction after a slow one (skid): what \
                        costs may stand one line above.";

/// What limits the truth of this listing, a sentence each.
pub fn limits(annotation: &Annotation) -> Vec<String> {
    let (all, total) = (&annotation.all, annotation.all.samples());
    let share = |part| percent(ratio(part, total));
    let is = |count: u64| if count == 1 { "is" } else { "are" };
    let mut lines = Vec::new();
    if total < FEW_SAMPLES {
        let samples = some(total, "sample", "samples");
        lines.push(format!(
            "{samples} of this method {} few: a longer recording would have more",
            is(total)
        ));
    }
    let mut limited = |samples: u64, what: &str| {
        if samples > 0 {
            let number = some(samples, "sample", "samples");
            lines.push(format!(
                "{number} ({}) {} {what}",
                share(samples),
                is(samples)
            ));
        }
    };
    limited(
        all.approximate,
        "in places that are approximate, by the nearest debug record (marked ~)",
    );
    limited(
        all.method_only,
        "known to be of this method, or inlined into it, and not where in it (marked ?)",
    );
    limited(
        annotation.too_deep,
        &format!("inlined more than {MAX_DEPTH} deep, and shown there"),
    );
    if annotation.listings > 1 {
        lines.push(format!(
            "{} methods of this name have different bytecodes: the longest are shown, with \
             the samples of all",
            count(annotation.listings as u64)
        ));
    }
    lines
}
