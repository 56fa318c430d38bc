//! The tables of entries, with their ranges.

use super::Page;
use crate::present::entries::{range_label, range_name};
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::fit;
use crate::report::options::{MIN_SHARE, RangeDetail, SortBy};
use anyhow::Result;
use std::io::Write;
use vmscope_symbolizer::profile::{EntryKind, Site};
use vmscope_symbolizer::{EntryId, Region};

/// Columns of everything but the name: both percentages, samples, cumulative.
const FIXED_COLUMNS: usize = 2 * 10 + 11 + 12 + 5;

impl Page<'_> {
    /// A table: `% of group (% of total) name (samples) (cumulative)`.
    pub(super) fn group(
        &self,
        heading: &str,
        regions: &[Region],
        out: &mut dyn Write,
    ) -> Result<()> {
        let all: Vec<EntryId> = (0..)
            .zip(&self.profile.entries)
            .filter(|(_, entry)| regions.contains(&entry.region))
            .map(|(id, _)| id)
            .filter(|&id| self.samples_of(id) > 0)
            .collect();
        let total: u64 = all.iter().map(|&id| self.samples_of(id)).sum();
        if total == 0 {
            return Ok(());
        }
        let mut entries = all;
        // Names break ties, so that a report of the same recording is the same text.
        entries.sort_by_cached_key(|&id| {
            let samples = match self.options.sort {
                SortBy::Samples => self.samples_of(id),
                SortBy::Name => 0,
            };
            (std::cmp::Reverse(samples), self.name_of(id))
        });
        self.table_head(&format!("% of {heading} (% of total)"), out)?;
        let (mut cumulative, mut others, mut other_count) = (0, 0, 0u64);
        let counts: Vec<u64> = entries.iter().map(|&id| self.samples_of(id)).collect();
        let is_small = self.is_small(&counts, total);
        for id in entries {
            let samples = self.samples_of(id);
            if is_small(samples) {
                others += samples;
                other_count += 1;
                continue;
            }
            cumulative += samples;
            self.line(
                ratio(samples, total),
                Some(self.summary.share(samples)),
                &self.label_of(id, self.name_columns()),
                samples,
                ratio(cumulative, total),
                out,
            )?;
            self.ranges(id, samples, out)?;
        }
        if others > 0 {
            let name = format!("...others... ({})", some(other_count, "entry", "entries"));
            let share = ratio(others, total);
            let all = ratio(cumulative + others, total);
            self.line(
                share,
                Some(self.summary.share(others)),
                &name,
                others,
                all,
                out,
            )?;
        }
        Ok(())
    }

    /// The columns for a name in a table.
    pub(super) fn name_columns(&self) -> usize {
        self.width.saturating_sub(FIXED_COLUMNS)
    }

    /// Whether a part of a group goes to ...others...: by its share of that. Where nobody
    /// asked for a share, a single sample does as well: it says nothing, and a group of few
    /// samples would have a line for each of them. `counts` are those of the whole group:
    /// one part alone is not called others then.
    pub(super) fn is_small<'a>(
        &'a self,
        counts: &'a [u64],
        group: u64,
    ) -> impl Fn(u64) -> bool + 'a {
        let asked = self.options.min_share;
        let is_small = move |samples: u64| {
            let share = ratio(samples, group) * 100.0;
            let of_all = self.summary.share(samples) * 100.0;
            share < asked.unwrap_or(MIN_SHARE)
                || (asked.is_none() && samples == 1 && of_all < MIN_SHARE)
        };
        let small = counts.iter().filter(|samples| is_small(**samples)).count();
        move |samples| (asked.is_some() || small > 1) && is_small(samples)
    }

    pub(super) fn table_head(&self, title: &str, out: &mut dyn Write) -> Result<()> {
        // As wide as both percentages and the name.
        let left = self.width.saturating_sub(FIXED_COLUMNS) + 23;
        writeln!(out)?;
        writeln!(
            out,
            "{title:<left$}{:>11}  {:>12}",
            "(samples)", "(cumulative)"
        )?;
        Ok(())
    }

    pub(super) fn line(
        &self,
        of_group: f64,
        of_total: Option<f64>,
        name: &str,
        samples: u64,
        cumulative: f64,
        out: &mut dyn Write,
    ) -> Result<()> {
        // Ranges have no share of the total: their column is the indentation.
        let (first, second) = match of_total {
            Some(of_total) => (percent(of_group), format!("({})", percent(of_total))),
            None => (String::new(), percent(of_group)),
        };
        let text = format!(
            "{first:>8}  {second:>10}{}{} {:>11}  {:>12}",
            "  ",
            fit(name, self.name_columns()),
            format!("({})", count(samples)),
            format!("({})", percent(cumulative)),
        );
        writeln!(out, "{}", text.trim_end())?;
        Ok(())
    }

    /// The ranges of an entry, in code order, with their shares of it.
    fn ranges(&self, id: EntryId, total: u64, out: &mut dyn Write) -> Result<()> {
        let entry = self.profile.entries.get(id as usize);
        let split = match self.options.ranges {
            RangeDetail::None => false,
            RangeDetail::All => true,
            RangeDetail::Auto => {
                entry.is_some_and(|entry| matches!(entry.kind, EntryKind::Code(_)))
            }
        };
        if !split {
            return Ok(());
        }
        let mut rows: Vec<(&Site, u64)> = (self.sites_of.get(id as usize).into_iter().flatten())
            .filter_map(|&site| {
                let samples = *self.summary.sites.get(site)?;
                Some((self.profile.sites.get(site)?, samples))
            })
            .collect();
        if rows.iter().all(|(site, _)| range_name(site).is_none()) {
            return Ok(());
        }
        rows.sort_by(|(a, _), (b, _)| {
            let place =
                |site: &Site| (site.from, site.to, site.frame.file.clone(), site.frame.line);
            place(a)
                .cmp(&place(b))
                .then_with(|| range_name(a).cmp(&range_name(b)))
        });
        let (mut cumulative, mut others, mut other_count) = (0, 0, 0u64);
        let counts: Vec<u64> = rows.iter().map(|(_, samples)| *samples).collect();
        let is_small = self.is_small(&counts, total);
        for (site, samples) in rows {
            if is_small(samples) {
                others += samples;
                other_count += 1;
                continue;
            }
            cumulative += samples;
            let name = range_label(site, self.name_columns().saturating_sub(2));
            let name = name.unwrap_or_else(|| "(place not known)".to_owned());
            let name = format!("  {name}");
            self.line(
                ratio(samples, total),
                None,
                &name,
                samples,
                ratio(cumulative, total),
                out,
            )?;
        }
        if others > 0 {
            let name = format!("  ...others... ({})", some(other_count, "range", "ranges"));
            let all = ratio(cumulative + others, total);
            self.line(ratio(others, total), None, &name, others, all, out)?;
        }
        Ok(())
    }
}
