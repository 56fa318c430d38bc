//! The sections behind the tables: what VMs tell of themselves.

use super::Page;
use crate::present::figures::{rate, short, value_of};
use crate::present::numbers::{count, percent, some};
use crate::present::numbers::{milliseconds, number};
use crate::present::text::{fit, harmless, wrap};
use crate::queries::parts::parts_of;
use crate::queries::vm::{Collected, Collector, Figure, VmOf, Vms, Words};
use anyhow::Result;
use std::io::Write;
use unicode_width::UnicodeWidthStr;
use vmscope_records::{COLLECTIONS_SECTION, SpaceUse};
use vmscope_symbolizer::Region;

/// Wider names of figures are shortened.
const MAX_NAME_COLUMNS: usize = 32;

/// Wider words of collectors (their names, causes) are shortened …
const MAX_WORD_COLUMNS: usize = 60;

impl Page<'_> {
    /// Collections, heap, code cache and whatever else VMs tell, the main process's first.
    pub(super) fn vms(&self, out: &mut dyn Write) -> Result<()> {
        let vms = Vms::of(self.profile, self.summary);
        let several = vms.of.len() + vms.left_out > 1;
        for (index, vm) in vms.of.iter().enumerate() {
            if let Some(collected) = &vm.collected {
                self.heading(COLLECTIONS_SECTION, vm, several, out)?;
                self.collections(collected, out)?;
                if index == 0 {
                    self.collectors_samples(several, out)?;
                }
                self.spaces(collected.spaces, out)?;
                self.figures(&collected.others, out)?;
            }
            for section in &vm.sections {
                self.heading(section.name, vm, several, out)?;
                self.figures(&section.figures, out)?;
            }
            if vm.values_left_out > 0 {
                let values = some(vm.values_left_out, "value", "values");
                let line = format!("({values} of further figures are not shown)");
                writeln!(out, "\n{}", wrap(&line, self.width, 2))?;
            }
        }
        if vms.left_out > 0 {
            let more = some(vms.left_out as u64, "more process", "more processes");
            let line = format!("(what the VMs of {more} tell is not shown)");
            writeln!(out, "\n{}", wrap(&line, self.width, 2))?;
        }
        Ok(())
    }

    fn heading(&self, name: &str, vm: &VmOf, several: bool, out: &mut dyn Write) -> Result<()> {
        let mut heading = name.to_owned();
        if several && let Some(pid) = vm.pid {
            heading.push_str(&format!(" of pid {pid}"));
        }
        let heading = fit(&heading, self.width.saturating_sub(4));
        writeln!(out, "\n**{}**", heading.trim_end())?;
        Ok(())
    }

    fn figures(&self, figures: &[Figure], out: &mut dyn Write) -> Result<()> {
        let width = |figure: &Figure| harmless(figure.name).width();
        let widest = figures.iter().map(width).max();
        let columns = widest.unwrap_or(0).min(MAX_NAME_COLUMNS);
        for figure in figures {
            // A longer name has half of the line: figures are not cut.
            let most = width(figure).min(self.width / 2);
            let name = fit(figure.name, columns.max(most).min(self.width / 2));
            self.item(2, &format!("{name}  {}", value_of(figure)), out)?;
        }
        Ok(())
    }

    fn collections(&self, collected: &Collected, out: &mut dyn Write) -> Result<()> {
        for row in &collected.collectors {
            let mut told = Vec::new();
            if let Some(count) = &row.count {
                let number = number(count.change());
                let one = if number == "1" {
                    "collection"
                } else {
                    "collections"
                };
                told.push(format!("{number} {one}{}", rate(count)));
            }
            let none = row.count.is_some_and(|count| count.change() == 0.0);
            let time = row
                .time
                .as_ref()
                .filter(|time| !none || time.change() != 0.0);
            told.extend(time.map(|time| value_of(time)));
            if told.is_empty() {
                told.push("how many there were is not told".to_owned());
            }
            let label = short(&row.label, MAX_WORD_COLUMNS);
            self.item(2, &format!("{label}: {}", told.join(", ")), out)?;
            if row.seen == 0 {
                continue;
            }
            self.item(4, &seen(row), out)?;
            for (what, words) in [("kinds", &row.kinds), ("causes", &row.causes)] {
                if !words.listed.is_empty() {
                    self.item(4, &format!("{what}: {}", listed(words)), out)?;
                }
            }
        }
        if collected.left_out > 0 {
            let line = format!(
                "{} of further kinds are not shown",
                some(collected.left_out, "collection", "collections")
            );
            self.item(2, &line, out)?;
        }
        Ok(())
    }

    /// Where in collectors the samples fell.
    fn collectors_samples(&self, several: bool, out: &mut dyn Write) -> Result<()> {
        let samples = self.summary.regions[Region::Gc as usize];
        if samples == 0 {
            return Ok(());
        }
        let parts = parts_of(self.profile, self.summary);
        let parts = parts.iter().filter(|part| part.region == Region::Gc);
        let named: Vec<String> = parts
            .filter(|part| !part.name.is_empty())
            .take(16)
            .map(|part| {
                format!(
                    "{} {}",
                    short(part.name, MAX_WORD_COLUMNS),
                    count(part.samples)
                )
            })
            .collect();
        let mut line = format!(
            "{} in collectors{}, {} of total",
            some(samples, "sample", "samples"),
            if several { " of all processes" } else { "" },
            percent(self.summary.share(samples)),
        );
        if !named.is_empty() {
            line.push_str(&format!(": {}", named.join(", ")));
        }
        self.item(2, &line, out)
    }

    fn spaces(&self, spaces: &[SpaceUse], out: &mut dyn Write) -> Result<()> {
        if spaces.is_empty() {
            return Ok(());
        }
        let is_before = spaces.iter().any(|space| space.before.is_some());
        let when = if is_before { "around" } else { "after" };
        self.item(2, &format!("{when} the last one that was seen:"), out)?;
        let width = |space: &SpaceUse| harmless(&space.name).width();
        let columns = spaces.iter().map(width).max().unwrap_or(0);
        let columns = columns.min(MAX_NAME_COLUMNS);
        for space in spaces {
            let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), count);
            let before = match is_before {
                true => format!("{} -> ", bytes(space.before)),
                false => String::new(),
            };
            let line = format!(
                "    {}  {before}{} of {} bytes",
                fit(&space.name, columns),
                bytes(space.after),
                bytes(space.capacity),
            );
            writeln!(out, "{}", fit(&line, self.width).trim_end())?;
        }
        Ok(())
    }

    /// A line of a section, wrapped behind its indentation.
    pub(super) fn item(&self, indent: usize, text: &str, out: &mut dyn Write) -> Result<()> {
        let margin = " ".repeat(indent);
        let text = wrap(text, self.width.saturating_sub(indent), 2);
        for line in text.lines() {
            writeln!(out, "{margin}{line}")?;
        }
        Ok(())
    }
}

/// What looks saw of the collections of a row.
fn seen(row: &Collector) -> String {
    let mut text = format!(
        "{} seen, {} from begin to end",
        count(row.seen),
        count(row.observed)
    );
    let ms = |ns: u64| milliseconds(std::time::Duration::from_nanos(ns).as_secs_f64() * 1e9);
    match (row.median(), row.pauses.last()) {
        (Some(median), Some(&longest)) if row.pauses.len() > 1 => {
            let pauses = count(row.pauses.len() as u64);
            let (median, longest) = (ms(median), ms(longest));
            text.push_str(&format!(
                "; {pauses} pauses: median {median}, longest {longest}"
            ));
        }
        (_, Some(&only)) => text.push_str(&format!("; 1 pause: {}", ms(only))),
        _ => {}
    }
    text
}

fn listed(words: &Words) -> String {
    let mut texts: Vec<String> = (words.listed.iter())
        .map(|(word, number)| format!("{} {}", short(word, MAX_WORD_COLUMNS), count(*number)))
        .collect();
    if words.others > 0 {
        texts.push(format!("others {}", count(words.others)));
    }
    texts.join(", ")
}
