//! Cost of the VM's own parts: collector, compilers; the VM's figures.

use crate::present::collections::collector_lines;
use crate::present::numbers::{brief, count, percent, ratio, some};
use crate::present::shorten::label;
use crate::present::text;
use crate::queries::overview::Overview as Digest;
use crate::tui::theme::Role;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::compilers::Compilers;

/// Draws facts about the collector, in a single line on small screens.
pub fn collector(digest: &Digest, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let lines = collector_lines(&digest.collections);
    let title = (Role::Region(Region::Gc), " GC ".to_owned());
    if pane.rows() == 1 {
        // Small screens show the longest pause alone.
        let mut short = lines;
        if let Some(&longest) = digest.collections.pauses.last() {
            let all = digest.collections.longest_at_most;
            let what = match all.is_some_and(|most| most <= longest) {
                true => "longest pause",
                false => "longest observed pause",
            };
            if let Some(line) = short.iter_mut().find(|line| line.contains("pauses: ")) {
                *line = format!("{what} {}", brief(longest));
            }
        }
        let text = short.join(", ");
        return pane.line(frame, 0, &[title, (Role::Text, text)]);
    }
    pane.heading(frame, " Collector", "6 shows collections");
    let columns = pane.columns().saturating_sub(2);
    let mut row = 1;
    for line in lines {
        for piece in crate::present::text::wrap(&line, columns.max(20), 2).lines() {
            pane.line(frame, row, &[(Role::Text, format!(" {piece}"))]);
            row += 1;
        }
    }
}

/// Draws methods with most compiler samples.
pub fn compilers(told: Option<&Compilers>, dropped: u64, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let one_line = pane.rows() == 1;
    let Some(told) = told else {
        let text = "no JIT compilations observed".to_owned();
        if one_line {
            let title = (Role::Region(Region::Compiler), " JIT ".to_owned());
            return pane.line(frame, 0, &[title, (Role::Dim, text)]);
        }
        pane.heading(frame, " Compilers", "");
        return pane.line(frame, 1, &[(Role::Dim, format!(" {text}"))]);
    };
    // Dropped samples have no compiled method.
    let kept = if dropped > 0 {
        " of the stored samples"
    } else {
        ""
    };
    let seen = format!(
        "{}{kept}, {} during an observed compilation",
        some(told.samples, "sample", "samples"),
        percent(ratio(told.told, told.samples))
    );
    let name = |name: &str, tier: &str, columns: usize| {
        let tier = if tier.is_empty() {
            String::new()
        } else {
            format!(" ({tier})")
        };
        label(name, &tier, columns)
    };
    if one_line {
        let busiest = told.methods.iter().take(3).map(|one| {
            let share = ratio(one.samples, told.samples) * 100.0;
            format!("{} {share:.0}%", name(&one.name, &one.tier, 26))
        });
        let text = format!(
            "{}: {}",
            count(told.samples),
            busiest.collect::<Vec<_>>().join(", ")
        );
        let title = (Role::Region(Region::Compiler), " JIT ".to_owned());
        return pane.line(frame, 0, &[title, (Role::Text, text)]);
    }
    pane.heading(frame, " Compilers", &seen);
    for (index, one) in told.methods.iter().take(pane.rows() - 1).enumerate() {
        let share = ratio(one.samples, told.samples);
        let columns = pane.columns().saturating_sub(18);
        let bits: [Bit; 3] = [
            (
                Role::Heat(share),
                text::right(&format!("{:.1}%", share * 100.0), 7),
            ),
            (Role::Dim, text::right(&count(one.samples), 8)),
            (
                Role::Text,
                format!("  {}", name(&one.name, &one.tier, columns)),
            ),
        ];
        pane.line(frame, index + 1, &bits);
    }
}

/// Draws the VM's figures.
pub fn vm_figures(digest: &Digest, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    pane.heading(
        frame,
        " Heap, code cache, compilations",
        "reported by the VM",
    );
    if digest.figures.is_empty() {
        let text = " this VM reports no figures".to_owned();
        return pane.line(frame, 1, &[(Role::Dim, text)]);
    }
    for (index, (section, name, value)) in digest.figures.iter().enumerate() {
        let label = format!("{section}: {name}");
        let columns = (pane.columns() / 2).min(32);
        let bits: [Bit; 2] = [
            (Role::Dim, format!(" {} ", text::name(&label, columns))),
            (Role::Text, value.clone()),
        ];
        pane.line(frame, index + 1, &bits);
    }
}
