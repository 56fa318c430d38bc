//! Seconds, frequency, samples by region.

use super::page::Page;
use crate::present::names::{region_key, region_phrase};
use crate::present::numbers::{count, percent, ratio, some};
use serde_json::{Value, json};
use vmscope_records::SampleClock;
use vmscope_symbolizer::Region;

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are far below 2^52 and not negative"
)]
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let summary = page.summary;
    let session = page.profile.trace.session.as_ref();
    let seconds = page.seconds();
    let frequency = page.frequency();
    out.push_str(&format!(
        "\n{seconds:.3} seconds; {} samples/s over all threads\n",
        count(frequency.round() as u64)
    ));
    if let Some(promised) = summary.promised {
        let delivered = match promised > 0.0 {
            true => summary.total as f64 / promised,
            false => 1.0,
        };
        let clock = match session.map(|session| session.clock) {
            Some(SampleClock::Wall) => "lifetime",
            _ => "CPU time",
        };
        let line = format!(
            "{} of expected samples received ({} of {}), {} lost; one per {} ns of a thread's {clock}",
            percent(delivered),
            count(summary.total),
            count(promised.round() as u64),
            count(summary.lost),
            count(session.map_or(0, |session| session.period.0)),
        );
        page.paragraph(out, &line);
    }
    let is_native = page.profile.is_native();
    let what = match is_native {
        true => "the program's own code",
        false => "the VM",
    };
    let line = format!(
        "{} samples in {what} ({} samples in the entire program) {} of total",
        count(summary.vm),
        count(summary.total),
        percent(summary.share(summary.vm)),
    );
    page.paragraph(out, &line);
    let of = |region: Region| summary.regions[region as usize];
    let vanilla = summary.vm - of(Region::Generated);
    if !is_native {
        out.push('\n');
        let parts = [(of(Region::Generated), "generated"), (vanilla, "vanilla")];
        for (samples, name) in parts {
            let line = format!(
                "{} samples in {name} vm code {} of entire vm ({} of total)",
                count(samples),
                percent(ratio(samples, summary.vm)),
                percent(summary.share(samples)),
            );
            page.paragraph(out, &line);
        }
    }
    for (region, samples) in Region::ALL.into_iter().zip(summary.regions) {
        let is_above = match region {
            Region::Generated => !is_native,
            // An undivided VM is above as a whole.
            Region::Vm => is_native || samples >= vanilla,
            _ => false,
        };
        if samples > 0 && !is_above {
            let share = percent(summary.share(samples));
            let (samples, name) = (
                some(samples, "sample", "samples"),
                region_phrase(region, is_native),
            );
            out.push_str(&format!("{samples} in {name} {share} of total\n"));
        }
    }
}

pub(super) fn json(page: &Page<'_>) -> Value {
    let regions = Region::ALL.into_iter().zip(page.summary.regions);
    let is_native = page.profile.is_native();
    regions
        .map(|(region, samples)| json!({ "region": region_key(region, is_native), "samples": samples }))
        .collect()
}
