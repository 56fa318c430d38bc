//! Head of a listing: accuracy, method, samples.

use super::Page;
use crate::annotate::layout::{tier_name, tiers_title};
use crate::annotate::limits::{SKID, limits, share_of_all};
use crate::present::numbers::{count, percent, points, ratio, some};
use crate::present::text::harmless;
use crate::queries::truth::truth_of;
use crate::report::page::narrowed_to;
use vmscope_symbolizer::Filter;
use vmscope_symbolizer::annotate::Calls;

/// Maximum number of named outer methods, callers, callees.
const MAX_INTO: usize = 5;

/// `kind: first 12, second 3, 2 more`
fn listed<'a>(kind: &str, all: impl ExactSizeIterator<Item = (&'a str, u64)>) -> String {
    let more = all.len().saturating_sub(MAX_INTO);
    let names = all.take(MAX_INTO);
    let names = names.map(|(name, samples)| format!("{} {}", harmless(name), count(samples)));
    let mut names: Vec<String> = names.collect();
    if more > 0 {
        names.push(format!("{} more", count(more as u64)));
    }
    format!("{kind}: {}", names.join(", "))
}

/// Inclusive samples as a sentence.
fn inclusive(calls: &Calls) -> String {
    let samples = some(calls.samples, "sample", "samples");
    let share = percent(ratio(calls.samples, calls.total));
    let outermost = match calls.outermost {
        0 => String::new(),
        outermost => format!("; caller unknown in {}", count(outermost)),
    };
    format!("inclusive: on the stack of {samples}, {share} of all{outermost}")
}

impl Page<'_> {
    /// Before anything else in a listing.
    pub(super) fn truth(&self, out: &mut String) {
        let all = &self.annotation.all;
        let share = |part| percent(ratio(part, all.samples()));
        let mut lines = limits(self.annotation);
        let whole = truth_of(self.profile, self.summary).len() as u64;
        if whole > 0 {
            lines.push(format!(
                "{} of the whole recording: see `vmscope report`",
                some(whole, "limit", "limits")
            ));
        }
        if lines.is_empty() {
            out.push_str("Accuracy: no known limits\n");
        } else {
            out.push_str("Accuracy:\n");
        }
        for line in lines {
            self.paragraph(out, &format!("- {line}"));
        }
        if all.samples() > 0 {
            let exact = format!(
                "In this method, resolved exactly: {}, approximately: {}, to the method only: {}.",
                share(all.exact),
                share(all.approximate),
                share(all.method_only)
            );
            self.paragraph(out, &exact);
            self.paragraph(out, SKID);
        }
        out.push('\n');
    }

    pub(super) fn head(&self, filter: &Filter, out: &mut String) {
        let annotation = self.annotation;
        let mut put = |text: &str| self.paragraph(out, text);
        let place = match (annotation.file.as_str(), annotation.line) {
            ("", None) => String::new(),
            ("", Some(line)) => format!("  line {line}"),
            (file, Some(line)) => format!("  {file}:{line}"),
            (file, None) => format!("  {file}"),
        };
        put(&format!("{}{place}", annotation.name));
        let (all, own) = (annotation.all.samples(), annotation.own.samples());
        let error = annotation
            .error
            .map_or_else(String::new, |error| format!(" ±{} points", points(error)));
        let parts = if own == all {
            "all in the method itself".to_owned()
        } else {
            let inlined = count(all - own);
            format!(
                "{} in the method itself, {inlined} in methods inlined into it",
                count(own)
            )
        };
        let share = share_of_all(annotation);
        let samples = some(all, "sample", "samples");
        match all {
            0 => put("0 samples in the method itself or inlined into it"),
            _ => put(&format!("{samples}, {share}{error} of all: {parts}")),
        }
        let named = annotation.tiers.iter().any(|tier| !tier.name.is_empty());
        if named || annotation.tiers.len() > 1 {
            let tiers: Vec<String> = (annotation.tiers.iter())
                .map(|tier| format!("{} {}", harmless(tier_name(tier)), count(tier.samples)))
                .collect();
            let title = tiers_title(&annotation.tiers);
            put(&format!("{title}: {}", tiers.join(", ")));
        }
        if !annotation.into.is_empty() {
            let into: u64 = annotation.into.iter().map(|(_, samples)| samples).sum();
            let outer = annotation.into.iter();
            let names = listed(
                "inlined into",
                outer.map(|(name, samples)| (&**name, *samples)),
            );
            let own_code = count(all - into);
            put(&format!("{names}; in its own code: {own_code}"));
        }
        if let Some(calls) = self.calls {
            put(&inclusive(calls));
            for (kind, calls) in [("callers", &calls.callers), ("callees", &calls.callees)] {
                if !calls.is_empty() {
                    let named = calls.iter().map(|call| (&*call.name, call.samples));
                    put(&listed(kind, named));
                }
            }
        }
        if let Some(narrowed) = narrowed_to(self.profile, filter, self.summary) {
            put(&narrowed);
        }
    }

    /// Meanings of the listing's marks.
    pub(super) fn legend(&self, out: &mut String) {
        let all = &self.annotation.all;
        let mut marks = Vec::new();
        if all.samples() > 0 {
            marks.push("±: sampling error, 95 %, by batch means");
        }
        if all.approximate > 0 {
            marks.push("~ approximate");
        }
        if all.method_only > 0 {
            marks.push("? place unknown");
        }
        if self
            .annotation
            .rows
            .iter()
            .any(|row| !row.inlined.is_empty())
        {
            marks.push("> inlined there");
        }
        if self.annotation.rows.iter().any(|row| row.called > 0) {
            marks.push("callees: samples in code called there");
        }
        if !self.annotation.listing.is_empty() {
            marks.push("/ | \\ one range");
        }
        out.push('\n');
        self.paragraph(out, &marks.join("; "));
    }
}
