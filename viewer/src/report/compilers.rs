//! Compiler samples by compiled method.

use super::page::{Others, Page};
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::shorten::{label, legible};
use serde_json::{Value, json};
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::compilers::{CompiledMethod, CompiledOnce, Compilers};

/// Maximum number of methods in the text.
const MAX_SHOWN: usize = 20;

/// Maximum number of compilation numbers per method in the text.
const MAX_NUMBERS: usize = 3;

/// Nothing without reports of compilations.
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let Some(compilers) = Compilers::of(page.profile, page.filter, &Stop::new()) else {
        return;
    };
    page.heading(out, "Compilers");
    let all = compilers.samples;
    let mut line = format!(
        "{} on {}, {} of total; {} observed",
        some(all, "sample", "samples"),
        some(compilers.threads, "compiler thread", "compiler threads"),
        percent(page.summary.share(all)),
        some(compilers.compilations, "compilation", "compilations"),
    );
    let parts = [
        (compilers.told, "during an observed compilation"),
        (compilers.between, "between two compilations"),
        (compilers.unseen, "without an observed compilation"),
        (
            compilers.doubtful,
            "with two compilations reported on one thread",
        ),
    ];
    let parts: Vec<String> = (parts.into_iter())
        .filter(|(samples, _)| *samples > 0)
        .map(|(samples, when)| {
            format!(
                "{} ({}) {when}",
                count(samples),
                percent(ratio(samples, all))
            )
        })
        .collect();
    if !parts.is_empty() {
        line.push_str(&format!(": {}", parts.join(", ")));
    }
    page.item(out, 2, &line);
    if all == 0 || compilers.methods.is_empty() {
        return;
    }
    let mut table = page.table(out, "compilers", all);
    let shown = compilers.methods.len().min(MAX_SHOWN);
    let (shown, rest) = compilers.methods.split_at(shown);
    for method in shown {
        table.row(out, &name_of(method, page.name_columns()), method.samples);
    }
    let mut others = Others::of(rest.iter().map(|method| method.samples));
    others.number += compilers.left_out.0;
    others.samples += compilers.left_out.1;
    table.others(out, others, ["method", "methods"]);
}

/// Method with tier and compilation numbers: as many as leave its name legible.
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
    legible.unwrap_or_else(|| label(&method.name, &tier, columns))
}

/// `null` without reports of compilations.
pub(super) fn json(page: &Page<'_>) -> Value {
    let Some(compilers) = Compilers::of(page.profile, page.filter, &Stop::new()) else {
        return Value::Null;
    };
    let trace = &page.profile.trace;
    let begin = trace.session.as_ref().map(|session| session.time);
    let begin = begin.unwrap_or_default();
    let compilation = |one: &CompiledOnce| {
        let thread = &trace.threads[one.thread].thread;
        json!({
            "id": one.id,
            "osr_bytecode": one.osr_bci,
            "tid": thread.tid.get(),
            "first_seen_seconds": one.first_seen.since(begin).as_secs_f64(),
            "last_seen_seconds": one.last_seen.since(begin).as_secs_f64(),
            "samples": one.samples,
        })
    };
    let method = |method: &CompiledMethod| {
        json!({
            "name": method.name,
            "tier": method.tier,
            "samples": method.samples,
            "compilations": method.compilations,
            "listed": method.listed.iter().map(compilation).collect::<Vec<_>>(),
        })
    };
    json!({
        "samples": compilers.samples,
        "threads": compilers.threads,
        "told": compilers.told,
        "between": compilers.between,
        "unseen": compilers.unseen,
        "doubtful": compilers.doubtful,
        "compilations": compilers.compilations,
        "methods": compilers.methods.iter().map(method).collect::<Vec<_>>(),
        "methods_left_out": compilers.left_out.0,
        "samples_left_out": compilers.left_out.1,
    })
}
