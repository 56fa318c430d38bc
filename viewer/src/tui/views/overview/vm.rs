//! What the VM's own parts cost: collector, compilers, and its figures.

use crate::present::numbers::{brief, count, percent, ratio, some};
use crate::present::shorten::label;
use crate::present::text;
use crate::queries::overview::Overview as Digest;
use crate::tui::theme::Role;
use crate::tui::views::collector::pauses::figures;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::compilers::Compilers;

/// The collector in a sentence for each line.
pub fn collector_lines(digest: &Digest) -> Vec<String> {
    let told = &digest.collections;
    // Where names are missing, the collector's samples are not known as such.
    let share = match told.in_collector {
        0 => "no sample is known to be in it".to_owned(),
        samples => format!("{} of samples", percent(ratio(samples, told.total))),
    };
    let mut lines = vec![share];
    if !told.tells {
        lines.push("single collections are not told by this VM".to_owned());
        return lines;
    }
    let counted = match told.counted {
        Some(counted) if (counted - 1.0).abs() < 0.5 => "1 collection".to_owned(),
        Some(counted) => format!("{counted:.0} collections"),
        None => format!("{} collections observed", count(told.observed)),
    };
    let took = told
        .took
        .map_or_else(String::new, |ns| format!(" in {:.0} ms", ns / 1e6));
    let of = if told.narrowed {
        " of the whole process"
    } else {
        ""
    };
    lines.push(format!("{counted}{of}{took}"));
    if !told.pauses.is_empty() {
        lines.push(format!("pauses: {}", figures(&told.pauses)));
    }
    let causes = told.causes.iter().take(4);
    let causes: Vec<String> = causes
        .map(|(cause, n)| format!("{cause} {}", count(*n)))
        .collect();
    if !causes.is_empty() {
        lines.push(format!("causes: {}", causes.join(", ")));
    }
    lines
}

/// Draws the collector: in one line, or one for each fact.
pub fn collector(digest: &Digest, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let lines = collector_lines(digest);
    let title = (Role::Region(Region::Gc), " GC ".to_owned());
    if pane.rows() == 1 {
        // Of the pauses one figure, where there is little room.
        let longest = digest.collections.pauses.last();
        let mut short: Vec<String> = lines
            .into_iter()
            .filter(|l| !l.starts_with("pauses"))
            .collect();
        if let Some(&longest) = longest {
            short.insert(
                2.min(short.len()),
                format!("longest pause {}", brief(longest)),
            );
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

/// Draws the compilers' busiest methods.
pub fn compilers(told: Option<&Compilers>, dropped: u64, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let one_line = pane.rows() == 1;
    let Some(told) = told else {
        let text = "what compilers work for is not told by this VM".to_owned();
        if one_line {
            let title = (Role::Region(Region::Compiler), " JIT ".to_owned());
            return pane.line(frame, 0, &[title, (Role::Dim, text)]);
        }
        pane.heading(frame, " Compilers", "");
        return pane.line(frame, 1, &[(Role::Dim, format!(" {text}"))]);
    };
    // Older ones tell nothing of what was compiled.
    let kept = if dropped > 0 { " of those kept" } else { "" };
    let seen = format!(
        "{}{kept}, {} while a method was seen",
        some(told.samples, "sample", "samples"),
        percent(ratio(told.told, told.samples))
    );
    let name = |name: &str, tier: &str, columns: usize| {
        let tier = if tier.is_empty() {
            String::new()
        } else {
            format!(" ({tier})")
        };
        label(name, None, &tier, columns)
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
    pane.heading(frame, " Heap, code cache, compilations", "as the VM tells");
    if digest.figures.is_empty() {
        let text = " this VM tells no figures".to_owned();
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
