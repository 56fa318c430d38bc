//! Lines above the listing: name, share, limits.

use super::sides::Side;
use super::versions::Versions;
use crate::annotate::layout::{tier_name, tiers_title};
use crate::annotate::limits::{SKID, limits, share_of_all};
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::shorten::Name;
use crate::present::text;
use crate::queries::method::Found;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::pane::Bit;
use vmscope_symbolizer::annotate::{Call, Calls};

/// Maximum number of named methods into which this one was inlined, of callers, of callees.
const MAX_INTO: usize = 3;

/// The name, and where it begins.
pub fn name(found: &Found) -> (String, Option<String>) {
    let annotation = &found.annotation;
    let file = annotation.file.rsplit('/').next().unwrap_or_default();
    let place = match (file, annotation.line) {
        ("", None) => None,
        ("", Some(line)) => Some(format!("line {line}")),
        (file, Some(line)) => Some(format!("{file}:{line}")),
        (file, None) => Some(file.to_owned()),
    };
    (annotation.name.clone(), place)
}

/// Share of samples, also with callees, tiers, methods into which it was inlined. `calls`: from
/// stacks.
pub fn figures(found: &Found, calls: Option<&Calls>) -> String {
    let annotation = &found.annotation;
    let (all, own) = (annotation.all.samples(), annotation.own.samples());
    let inclusive = calls.map(|calls| {
        let share = percent(ratio(calls.samples, calls.total));
        format!("on the stack of {} ({share})", count(calls.samples))
    });
    if all == 0 {
        return match inclusive.filter(|_| calls.is_some_and(|calls| calls.samples > 0)) {
            Some(inclusive) => format!("no own samples; {inclusive}"),
            None => "no samples match the filters".to_owned(),
        };
    }
    let error = annotation
        .error
        .map_or_else(String::new, |error| format!(" ±{:.2}", error * 100.0));
    let share = share_of_all(annotation);
    let whole = if found.is_of_newest {
        "the newest samples"
    } else {
        "all"
    };
    let mut parts = vec![format!(
        "{share}{error} of {whole}: {}",
        some(all, "sample", "samples")
    )];
    parts.extend(inclusive);
    if own < all {
        parts.push(format!("{} of them in inlined methods", count(all - own)));
    }
    let named = annotation.tiers.iter().any(|tier| !tier.name.is_empty());
    if named || annotation.tiers.len() > 1 {
        let title = tiers_title(&annotation.tiers);
        let tiers = annotation.tiers.iter();
        let tiers = tiers.map(|tier| format!("{} {}", tier_name(tier), count(tier.samples)));
        let tiers = tiers.collect::<Vec<_>>().join(", ");
        parts.push(format!("{title}: {tiers}"));
    }
    if !annotation.into.is_empty() {
        let into = annotation.into.iter().take(MAX_INTO);
        let into = into.map(|(name, samples)| format!("{name} {}", count(*samples)));
        let mut names = into.collect::<Vec<_>>().join(", ");
        let more = annotation.into.len().saturating_sub(MAX_INTO);
        if more > 0 {
            names.push_str(&format!(" and {more} more"));
        }
        parts.push(format!("inlined into {names}"));
    }
    parts.join("; ")
}

/// The callers and callees with most samples.
fn around(calls: &Calls) -> String {
    let named = |kind: &str, all: &[Call]| {
        let most = all.iter().take(MAX_INTO);
        let most = most.map(|call| format!("{} {}", call.name, count(call.samples)));
        let names = most.collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("{kind}: {names}"))
    };
    let callers = named("callers", &calls.callers);
    let callees = named("callees", &calls.callees);
    let parts: Vec<String> = callers.into_iter().chain(callees).collect();
    parts.join("; ")
}

/// Text for copying and exporting.
pub fn exported(
    found: &Found,
    calls: Option<&Calls>,
    versions: &Versions<'_>,
    sides: &[Side],
) -> Vec<String> {
    let mut text = vec![figures(found, calls)];
    if sides.is_empty() {
        if let Some(version) = versions.chosen.and_then(|origin| versions.of(origin)) {
            text.push(format!("only {}", versions.label(version)));
        }
        if let Some(version) = found.machine_of.and_then(|at| found.versions.get(at)) {
            text.push(format!("machine code: of {}", versions.label(version)));
        }
    } else {
        let labels = sides.iter().map(|side| versions.label_of(side.origin));
        text.push(format!(
            "side by side: {}",
            labels.collect::<Vec<_>>().join(" | ")
        ));
    }
    let limits = limits(&found.annotation).into_iter();
    text.extend(limits.map(|limit| format!("! {limit}")));
    text.push(SKID.to_owned());
    text
}

/// The lines above the listing.
pub fn lines(found: &Found, calls: Option<&Calls>, cx: &Cx<'_>) -> Vec<Bit> {
    let columns = usize::from(cx.area.width);
    let (name, place) = name(found);
    let name = Name {
        name: &name,
        place,
        tail: String::new(),
    };
    let name = name.label(columns);
    let line = |role: Role, text: &str| (role, text::line(text, columns));
    let figures = figures(found, calls);
    let mut lines = vec![line(Role::Title, &name), line(Role::Text, &figures)];
    if found.annotation.all.samples() == 0
        && let Some(calls) = calls.filter(|calls| calls.samples > 0)
    {
        lines.push(line(Role::Text, &around(calls)));
    }
    let limits = limits(&found.annotation);
    if let Some(first) = limits
        .first()
        .filter(|_| found.annotation.all.samples() > 0)
    {
        let more = match limits.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more: y copies all)"),
        };
        lines.push(line(Role::Warning, &format!("! {first}{more}")));
    }
    lines
}
