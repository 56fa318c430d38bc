//! Calls by vtable and itable (docs/truth.md §9): the stubs have names, and samples in them know their
//! callers in the right shares.

use vmscope_symbolizer::Profile;
use vmscope_symbolizer::profile::Site;

use crate::common::in_turn;
use crate::common::say;
use crate::hotspot::jdks::RELEASES;
use crate::known::{Known, Layout, Tier, Way};
use crate::measured::{T, batch_means};

/// The sites of the samples in stubs, while the program measured itself.
fn in_stubs<'a>(known: &'a Known, name: &str) -> Vec<&'a Site> {
    let profile: &Profile = &known.recorded.profile;
    let program = &known.recorded.said[0];
    let time = |name: &str| program[name].as_u64().expect("ns");
    let measured = time("measured_from_ns")..=time("measured_to_ns");
    let samples = &profile.trace.samples;
    let rows = samples.times.iter().zip(&samples.places);
    let rows = rows.filter(|(time, _)| measured.contains(&time.0));
    let sites = rows.map(|(_, &place)| profile.site_at(place));
    let is_of = |site: &&Site| {
        let entry = &profile.entries[site.entry];
        entry.name.starts_with(name)
    };
    sites.filter(is_of).collect()
}

#[test]
fn stubs_know_their_callers() {
    for (turn, operation) in ["virtual", "interface"].into_iter().enumerate() {
        for release in in_turn(RELEASES, turn) {
            let way = Way {
                release,
                tier: Tier::Tiered,
                precise: false,
                operation,
                layout: Layout::Methods,
            };
            let Some(known) = way.recorded(way.loops()) else {
                return;
            };
            let what = format!("{release} {operation}");
            let unnamed = in_stubs(&known, "vtable chunks").len();
            let stub = if operation == "virtual" {
                "vtable stub, index "
            } else {
                "itable stub, index 0"
            };
            let sites = in_stubs(&known, stub);
            let ranges = &known.ranges;
            let profile = &known.recorded.profile;
            // The range of the caller. Other methods (of the JDK) call by vtable, too.
            let calling = |site: &&Site| {
                let first = profile.callers_of(site).next()?;
                first.bytecode?;
                let range = ranges
                    .iter()
                    .position(|range| first.name.contains(&range.method));
                Some(range.unwrap_or(ranges.len()))
            };
            let callers: Vec<Option<usize>> = sites.iter().map(calling).collect();
            let unknown = callers.iter().filter(|range| range.is_none()).count();
            let measured = callers.into_iter().flatten();
            let hits: Vec<usize> = measured.filter(|range| *range < ranges.len()).collect();
            let elsewhere = sites.len() - unknown - hits.len();
            known.check(
                unnamed == 0 && hits.len() > 600,
                &format!("{what}: {} in stubs, {unnamed} unnamed", hits.len()),
            );
            known.check(
                unknown == 0 && 100 * elsewhere < hits.len(),
                &format!(
                    "{what}: {unknown} of {} without caller, {elsewhere} with another",
                    sites.len()
                ),
            );
            let mut shown = Vec::new();
            for (index, range) in ranges.iter().enumerate() {
                let share = batch_means(&hits, |hit| hit == index);
                let bound = T * share.error + known.missing();
                let told = format!(
                    "{what}: {} reported {:.4}, true {:.4}, bound {bound:.4}",
                    range.method, share.share, range.truth
                );
                known.check(
                    (share.share - range.truth).abs() <= bound && bound < 0.15,
                    &told,
                );
                shown.push(format!(
                    "{:.2} % (true {:.2} %)",
                    100.0 * share.share,
                    100.0 * range.truth
                ));
            }
            say(&format!(
                "{what}: {} samples in stubs, all with callers: {}",
                hits.len(),
                shown.join(", ")
            ));
        }
    }
}
