//! The interpreter report: samples by interpreter routine.

use super::page::Page;
use serde_json::{Value, json};
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::handlers::{Handler, handlers};

/// Nothing without a sample in a known routine.
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let handlers = of(page);
    let all: u64 = handlers.iter().map(|handler| handler.samples).sum();
    if all == 0 {
        return;
    }
    let mut table = page.table(out, "interpreter, by handler", all);
    let (shown, others) = page.split_small(handlers, all, |handler| handler.samples);
    for Handler { name, samples } in shown {
        table.row(out, name, samples);
    }
    table.others(out, others, ["handler", "handlers"]);
}

pub(super) fn json(page: &Page<'_>) -> Value {
    let handlers = of(page).into_iter();
    let handlers =
        handlers.map(|Handler { name, samples }| json!({ "name": name, "samples": samples }));
    handlers.collect()
}

fn of<'a>(page: &Page<'a>) -> Vec<Handler<'a>> {
    handlers(page.profile, page.filter, &Stop::new()).unwrap_or_default()
}
