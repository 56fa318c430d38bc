//! The head: what limits the truth of this listing, then which method it is.

use super::Page;
use crate::annotate::layout::tier_name;
use crate::annotate::limits::{SKID, limits};
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::{harmless, wrap};
use crate::queries::truth::truth_of;
use anyhow::Result;
use std::io::Write;
use vmscope_symbolizer::Filter;

/// So many methods are named that this one was inlined into.
const MAX_INTO: usize = 5;

impl Page<'_> {
    /// What limits the truth of this listing: before anything else.
    pub(super) fn truth(&self, out: &mut dyn Write) -> Result<()> {
        let all = &self.annotation.all;
        let share = |part| percent(ratio(part, all.samples()));
        let mut lines = limits(self.annotation);
        let whole = truth_of(self.profile, self.summary).len() as u64;
        if whole > 0 {
            lines.push(format!(
                "the whole recording has its limits too: the head of `vmscope report` has {}",
                some(whole, "line", "lines")
            ));
        }
        if lines.is_empty() {
            writeln!(out, "Nothing is known to limit the truth of this listing.")?;
        } else {
            writeln!(out, "What limits the truth of this listing:")?;
        }
        for line in lines {
            writeln!(out, "{}", wrap(&format!("- {line}"), self.width, 2))?;
        }
        let exact = format!(
            "In this method, resolved exactly: {}, approximately: {}, to the method only: {}.",
            share(all.exact),
            share(all.approximate),
            share(all.method_only)
        );
        writeln!(out, "{}", wrap(&exact, self.width, 2))?;
        writeln!(out, "{}", wrap(SKID, self.width, 2))?;
        writeln!(out)?;
        Ok(())
    }

    /// Which method, its samples, where it ran, and what the listing was narrowed to.
    pub(super) fn head(&self, filter: &Filter, out: &mut dyn Write) -> Result<()> {
        let annotation = self.annotation;
        let mut put = |text: &str| writeln!(out, "{}", wrap(text, self.width, 2));
        let place = match (annotation.file.as_str(), annotation.line) {
            ("", None) => String::new(),
            ("", Some(line)) => format!("  line {line}"),
            (file, Some(line)) => format!("  {file}:{line}"),
            (file, None) => format!("  {file}"),
        };
        put(&format!("{}{place}", annotation.name))?;
        let (all, own) = (annotation.all.samples(), annotation.own.samples());
        let error = annotation.error.map_or_else(String::new, |error| {
            format!(" ±{:.2} points", error * 100.0)
        });
        let parts = if own == all {
            "all in the method itself".to_owned()
        } else {
            let inlined = count(all - own);
            format!(
                "{} in the method itself, {inlined} in what was inlined into it",
                count(own)
            )
        };
        let share = percent(ratio(all, annotation.total));
        let samples = some(all, "sample", "samples");
        put(&format!("{samples}, {share}{error} of all: {parts}"))?;
        let named = annotation.tiers.iter().any(|tier| !tier.name.is_empty());
        if named || annotation.tiers.len() > 1 {
            let tiers: Vec<String> = (annotation.tiers.iter())
                .map(|tier| format!("{} {}", harmless(tier_name(tier)), count(tier.samples)))
                .collect();
            put(&format!("ran as: {}", tiers.join(", ")))?;
        }
        if !annotation.into.is_empty() {
            let into: u64 = annotation.into.iter().map(|(_, samples)| samples).sum();
            let mut names: Vec<String> = (annotation.into.iter().take(MAX_INTO))
                .map(|(name, samples)| format!("{} {}", harmless(name), count(*samples)))
                .collect();
            let more = annotation.into.len().saturating_sub(MAX_INTO);
            if more > 0 {
                names.push(format!("{} more", count(more as u64)));
            }
            let names = names.join(", ");
            let own_code = count(all - into);
            put(&format!(
                "inlined into: {names}; in code of its own {own_code}"
            ))?;
        }
        if filter.threads.is_some() || filter.from.is_some() || filter.to.is_some() {
            let begin = self
                .profile
                .trace
                .session
                .as_ref()
                .map(|session| session.time);
            let begin = begin.unwrap_or_default();
            let (from, to) = self.summary.window;
            let threads = filter.threads.as_ref().map_or_else(
                || "all threads".to_owned(),
                |threads| some(threads.len() as u64, "thread", "threads"),
            );
            put(&format!(
                "only {threads}, {:.3} s to {:.3} s",
                from.since(begin).as_secs_f64(),
                to.since(begin).as_secs_f64()
            ))?;
        }
        Ok(())
    }

    /// What the marks mean that a listing uses.
    pub(super) fn legend(&self, out: &mut dyn Write) -> Result<()> {
        let all = &self.annotation.all;
        let mut marks = vec!["±: 95 %, by batch means"];
        if all.approximate > 0 {
            marks.push("~ approximate");
        }
        if all.method_only > 0 {
            marks.push("? place not known");
        }
        if self
            .annotation
            .rows
            .iter()
            .any(|row| !row.inlined.is_empty())
        {
            marks.push("> inlined there");
        }
        if !self.annotation.listing.is_empty() {
            marks.push("/ | \\ one range");
        }
        writeln!(out)?;
        writeln!(out, "{}", wrap(&marks.join("; "), self.width, 2))?;
        Ok(())
    }
}
