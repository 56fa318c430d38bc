//! What the compilers worked for.

use super::Page;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::shorten::{label, legible};
use anyhow::Result;
use std::io::Write;
use vmscope_symbolizer::compilers::{CompiledMethod, Compilers};
use vmscope_symbolizer::{Filter, Stop};

/// So many methods are shown.
const MAX_SHOWN: usize = 20;

/// So many compilations of one method are named by their numbers.
const MAX_NUMBERS: usize = 3;

impl Page<'_> {
    /// Methods by the samples of the compilers that worked for them, where VMs tell.
    pub(super) fn compilers(&self, filter: &Filter, out: &mut dyn Write) -> Result<()> {
        let Some(compilers) = Compilers::of(self.profile, filter, &Stop::new()) else {
            return Ok(());
        };
        writeln!(out, "\n**Compilers**")?;
        let of_them = |part: u64| percent(ratio(part, compilers.samples));
        let mut line = format!(
            "{} on {} of compilers, {} of total; {} seen",
            some(compilers.samples, "sample", "samples"),
            some(compilers.threads, "thread", "threads"),
            percent(self.summary.share(compilers.samples)),
            some(
                compilers.compilations,
                "compilation was",
                "compilations were"
            ),
        );
        if compilers.samples == 0 {
            return self.item(2, &line, out);
        }
        let parts = [
            (compilers.told, "while a method was seen to be compiled"),
            (compilers.between, "between two compilations"),
            (compilers.unseen, "while none was seen"),
            (compilers.doubtful, "while two were told for one thread"),
        ];
        let parts: Vec<String> = (parts.iter())
            .filter(|(samples, _)| *samples > 0)
            .map(|(samples, when)| format!("{} ({}) {when}", count(*samples), of_them(*samples)))
            .collect();
        line.push_str(&format!(": {}", parts.join(", ")));
        self.item(2, &line, out)?;
        if compilers.methods.is_empty() {
            return Ok(());
        }
        self.table_head("% of compilers (% of total)", out)?;
        let mut cumulative = 0;
        let all = compilers.samples;
        let shown = compilers.methods.len().min(MAX_SHOWN);
        for method in compilers.methods.iter().take(shown) {
            cumulative += method.samples;
            self.line(
                ratio(method.samples, all),
                Some(self.summary.share(method.samples)),
                &name_of(method, self.name_columns()),
                method.samples,
                ratio(cumulative, all),
                out,
            )?;
        }
        let rest = compilers.methods.iter().skip(shown);
        let (mut number, mut samples) = compilers.left_out;
        for method in rest {
            (number, samples) = (number + 1, samples + method.samples);
        }
        if number > 0 {
            let name = format!("...others... ({})", some(number, "method", "methods"));
            let (share, total) = (ratio(samples, all), self.summary.share(samples));
            let to_here = ratio(cumulative + samples, all);
            self.line(share, Some(total), &name, samples, to_here, out)?;
        }
        Ok(())
    }
}

/// A method with its tier and the numbers of its compilations: as many as leave its name
/// legible.
fn name_of(method: &CompiledMethod, columns: usize) -> String {
    let tier = match method.tier.as_str() {
        "" => String::new(),
        tier => format!(" ({tier})"),
    };
    let numbered = method.listed.iter().filter(|one| one.id > 0);
    let numbers: Vec<String> = numbered
        .take(MAX_NUMBERS)
        .map(|one| match one.osr_bci {
            Some(bci) => format!("#{} @ {bci}", one.id),
            None => format!("#{}", one.id),
        })
        .collect();
    let legible = (1..=numbers.len()).rev().find_map(|shown| {
        let numbers = numbers.get(..shown).unwrap_or_default().join(", ");
        let mut tail = format!("{tier} {numbers}");
        let more = method.compilations.saturating_sub(shown as u64);
        if more > 0 {
            tail.push_str(&format!(" and {more} more"));
        }
        legible(&method.name, &tail, columns)
    });
    legible.unwrap_or_else(|| label(&method.name, None, &tier, columns))
}
