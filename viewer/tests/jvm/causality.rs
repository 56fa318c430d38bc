//! docs/truth.md §6: one range is made to take twice as long by its loop count alone.

use crate::common::say;
use crate::known::{Layout, Tier, Way};
use crate::measured::{T, Worst};

fn grows(way: Way) {
    let [a, b, c] = way.loops();
    let before = way.recorded([a, b, c]);
    let (Some(before), Some(after)) = (before, way.recorded([a, 2 * b, c])) else {
        return;
    };
    let slowed = before.share(1);
    let lost = before.missing() + after.missing();
    let mut worst = Worst::default();
    for range in 0..before.ranges.len() {
        let name = &before.ranges[range].method;
        let old = (before.share(range), slowed, range == 1);
        after
            .share(range)
            .compare_slowed(name, old, lost, &mut worst);
    }
    let grown = after.share(1).share - slowed.share;
    say(&format!(
        "causality, {way:?}: {:.2} % -> {:.2} %; greatest error {:.2} points, {:.1} standard errors",
        100.0 * slowed.share,
        100.0 * (slowed.share + grown),
        100.0 * worst.difference,
        worst.in_errors,
    ));
    // The bounds would reject unchanged shares.
    assert!(grown > T * slowed.error, "{grown} {slowed:?}");
}

#[test]
fn a_method_slowed_down_grows_by_that_and_no_other_does() {
    grows(Way {
        release: 25,
        tier: Tier::Tiered,
        precise: false,
        operation: "divide",
        layout: Layout::Methods,
    });
}

#[test]
fn a_range_slowed_down_grows_by_that_and_no_other_does() {
    grows(Way {
        release: 17,
        tier: Tier::C1,
        precise: true,
        operation: "field",
        layout: Layout::Ranges,
    });
}
