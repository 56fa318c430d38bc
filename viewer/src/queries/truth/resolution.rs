//! Limits of resolution.

use super::{About, Concerns, TruthLine};
use crate::present::numbers::{percent, ratio, some};
use vmscope_records::{Exactness, Limit, LimitKind, Stream};
use vmscope_symbolizer::profile::{Entry, EntryKind};
use vmscope_symbolizer::summary::Quality;
use vmscope_symbolizer::{Profile, Region, Summary};

/// Limits of native code.
const FUNCTION: [&str; 2] = ["line approximate", "function known, line unknown"];

/// Samples in anonymous executable memory unknown to all adapters.
pub fn unnamed_generated(profile: &Profile, summary: &Summary) -> u64 {
    let of_entry = profile.entries.iter().zip(&summary.entries);
    of_entry
        .filter(|(entry, _)| entry.kind == EntryKind::Unnamed && entry.region == Region::Generated)
        .map(|(_, samples)| samples)
        .sum()
}

/// The VM's reason for samples of its JIT code without a name.
pub(super) fn reason_for_no_names<'p>(
    profile: &'p Profile,
    summary: &Summary,
) -> Option<&'p Limit> {
    let mut limits = profile.trace.limits.iter();
    let limit = limits.find(|limit| limit.kind == LimitKind::NoNames)?;
    (unnamed_generated(profile, summary) > 0).then_some(limit)
}

pub(super) fn tell(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    let quality = &summary.quality;
    let is = |count: u64| if count == 1 { "is" } else { "are" };
    let of_total = |part| percent(ratio(part, summary.total));
    let generated = unnamed_generated(profile, summary);
    if generated > 0 {
        let lost = profile.trace.lost.iter();
        let lost = lost.filter(|lost| lost.stream == Stream::Adapter);
        let lost = lost.fold(0, |sum: u64, lost| sum.saturating_add(lost.count));
        let reason = reason_for_no_names(profile, summary);
        let why = match (reason, lost) {
            (Some(reason), _) => reason.text.clone(),
            (None, 0) if profile.is_native() => "vmscope does not read this JIT yet".to_owned(),
            (None, 0) => {
                "the VM reported no name, or removed the code before vmscope read it".to_owned()
            }
            (None, lost) => {
                let events = some(lost, "VM code event was", "VM code events were");
                format!(
                    "the VM reported no name, or vmscope read it too late or lost it ({events} lost)"
                )
            }
        };
        let text = format!(
            "({}) in JIT code without a name: {why}",
            of_total(generated)
        );
        let remedy = reason.map_or("", |reason| reason.remedy.as_str());
        let line = TruthLine::new(Some(generated), text, remedy);
        lines.push(line.concerning(Concerns::UnnamedGenerated));
    }
    let without_name = quality.unresolved.saturating_sub(quality.without_method);
    let unresolved = without_name.saturating_sub(generated);
    if unresolved > 0 {
        let has = if unresolved == 1 { "has" } else { "have" };
        let text = format!("({}) {has} no name", of_total(unresolved));
        let native = profile.entries.iter().zip(&summary.entries);
        let is_native = |(entry, samples): (&Entry, &u64)| {
            let is_unnamed = entry.kind == EntryKind::Unnamed && !entry.module.is_empty();
            *samples > 0 && is_unnamed && entry.region != Region::Kernel
        };
        let remedy = match native.into_iter().any(is_native) {
            true => "unstripped binaries, or their debug packages",
            false => "",
        };
        let line = TruthLine::new(Some(unresolved), text, remedy);
        lines.push(line.concerning(Concerns::Unnamed));
    }
    if quality.doubtful > 0 {
        let text = format!(
            "({}) {} doubtful: the code changed between two readings of the VM",
            of_total(quality.doubtful),
            is(quality.doubtful)
        );
        let line = TruthLine::new(Some(quality.doubtful), text, "").about(About::Changes);
        lines.push(line.concerning(Concerns::Doubtful));
    }
    if quality.without_method > 0 {
        let of_interpreter = quality.interpreted.saturating_add(quality.without_method);
        let text = format!(
            "({} of interpreter samples) without a known method",
            percent(ratio(quality.without_method, of_interpreter))
        );
        let line = TruthLine::new(Some(quality.without_method), text, "");
        lines.push(line.concerning(Concerns::Interpreter));
    }
    let counted = profile.sites.iter().zip(&summary.sites);
    let cut = counted
        .filter(|(site, _)| site.is_cut())
        .map(|(_, samples)| samples);
    let cut: u64 = cut.sum();
    if cut > 0 {
        let text = "are inlined very deep: the middle of their inlined calls is left out";
        lines.push(TruthLine::new(Some(cut), text, ""));
    }
    let mut inexact =
        |quality: &Quality, of_code: Option<bool>, of: &str, limits: [&str; 2], remedy: &str| {
            let [approximate, method_only] = limits;
            let (exactness, only) = (Exactness::Approximate, Exactness::MethodOnly);
            for (exactness, samples, limit, remedy) in [
                (exactness, quality.approximate, approximate, ""),
                (only, quality.method_only, method_only, remedy),
            ] {
                if samples > 0 {
                    let text = format!("({}){of}: {limit}", of_total(samples));
                    let line = TruthLine::new(Some(samples), text, remedy);
                    lines.push(line.concerning(Concerns::Worth(exactness, of_code)));
                }
            }
        };
    if profile.is_native() {
        inexact(quality, None, "", FUNCTION, "debug information");
        return;
    }
    let code = match quality.interpreted {
        0 => " in JIT code",
        _ => " in JIT and interpreted code",
    };
    let method = [
        "bytecode and line approximate",
        "method known, place unknown",
    ];
    inexact(&summary.of_code, Some(true), code, method, "");
    let (native, remedy) = (native_of(summary), "debug information, for lines");
    inexact(&native, Some(false), " in native code", FUNCTION, remedy);
}

/// Quality of native code: all but a VM's code.
pub fn native_of(summary: &Summary) -> Quality {
    let (all, code) = (&summary.quality, &summary.of_code);
    Quality {
        exact: all.exact.saturating_sub(code.exact),
        approximate: all.approximate.saturating_sub(code.approximate),
        method_only: all.method_only.saturating_sub(code.method_only),
        unresolved: all.unresolved.saturating_sub(code.unresolved),
        doubtful: all.doubtful.saturating_sub(code.doubtful),
        ..Quality::default()
    }
}
