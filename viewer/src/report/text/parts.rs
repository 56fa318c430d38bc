//! The table of the VM's parts: its regions, and what they are divided into.

use super::Page;
use crate::present::names::region_part;
use crate::present::numbers::{ratio, some};
use crate::queries::parts::{Part, parts_of};
use anyhow::Result;
use std::io::Write;
use vmscope_symbolizer::Region;

impl Page<'_> {
    /// The regions of a VM with their parts, where its adapter tells any.
    pub(super) fn parts(&self, out: &mut dyn Write) -> Result<()> {
        let hit = self.profile.entries.iter().zip(&self.summary.entries);
        let tells = |region: Region, tier: &str| region.is_vm() && !tier.is_empty();
        let mut hit = hit.filter(|(_, samples)| **samples > 0);
        if self.profile.is_native() || !hit.any(|(entry, _)| tells(entry.region, &entry.tier)) {
            return Ok(());
        }
        let parts = parts_of(self.profile, self.summary);
        let vm = self.summary.vm;
        self.table_head("% of entire vm (% of total)", out)?;
        let mut cumulative = 0;
        for region in Region::ALL.into_iter().filter(|region| region.is_vm()) {
            let samples = self.summary.regions[region as usize];
            if samples == 0 {
                continue;
            }
            cumulative += samples;
            self.line(
                ratio(samples, vm),
                Some(self.summary.share(samples)),
                region_part(region),
                samples,
                ratio(cumulative, vm),
                out,
            )?;
            let of_region: Vec<Part> = (parts.iter().copied())
                .filter(|part| part.region == region)
                .collect();
            self.parts_of_region(&of_region, samples, out)?;
        }
        Ok(())
    }

    fn parts_of_region(&self, parts: &[Part], total: u64, out: &mut dyn Write) -> Result<()> {
        if let [Part { name: "", .. }] = parts {
            return Ok(());
        }
        let (mut cumulative, mut others, mut other_count) = (0, 0, 0u64);
        let counts: Vec<u64> = parts.iter().map(|part| part.samples).collect();
        let is_small = self.is_small(&counts, total);
        for part in parts {
            if is_small(part.samples) {
                others += part.samples;
                other_count += 1;
                continue;
            }
            cumulative += part.samples;
            let name = if part.name.is_empty() {
                "(not divided)"
            } else {
                part.name
            };
            let name = format!("  {name}");
            let (share, all) = (ratio(part.samples, total), ratio(cumulative, total));
            self.line(share, None, &name, part.samples, all, out)?;
        }
        if others > 0 {
            let name = format!("  ...others... ({})", some(other_count, "part", "parts"));
            let all = ratio(cumulative + others, total);
            self.line(ratio(others, total), None, &name, others, all, out)?;
        }
        Ok(())
    }
}
