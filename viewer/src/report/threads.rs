//! Threads with their samples and CPU times.

use super::options::MIN_SHARE;
use super::page::{Others, Page};
use crate::present::names::role_name;
use crate::present::numbers::count;
use crate::present::text::fit;
use serde_json::{Value, json};

/// Columns before a thread's name.
const THREAD_COLUMNS: usize = 9 + 2 + 10 + 2 + 9 + 2 + 10 + 1;

/// Reports with at most this number of threads show small threads too.
const FEW_THREADS: usize = 20;

pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let threads = &page.summary.threads;
    if threads.is_empty() {
        return;
    }
    page.heading(out, "Threads");
    out.push_str("  samples     CPU (s)        tid  role       name\n");
    let mut others = Others::default();
    for row in threads {
        let share = page.summary.share(row.samples) * 100.0;
        if share < page.options.min_share.unwrap_or(MIN_SHARE) && threads.len() > FEW_THREADS {
            others.number += 1;
            others.samples += row.samples;
            continue;
        }
        let thread = &page.profile.trace.threads[row.thread].thread;
        let cpu = row.cpu.map(|cpu| format!("{:.3}", cpu.as_secs_f64()));
        let name = fit(&thread.name, page.width.saturating_sub(THREAD_COLUMNS));
        out.push_str(&format!(
            "{:>9}  {:>10}  {:>9}  {:<10} {}\n",
            count(row.samples),
            cpu.as_deref().unwrap_or("?"),
            thread.tid.0,
            role_name(thread.role),
            name.trim_end(),
        ));
    }
    if others.number > 0 {
        let name = others.name(["thread", "threads"]);
        out.push_str(&format!("{:>9}  {name}\n", count(others.samples)));
    }
}

/// Most samples first.
pub(super) fn json(page: &Page<'_>) -> Value {
    let trace = &page.profile.trace;
    let threads = page.summary.threads.iter().map(|row| {
        let thread = &trace.threads[row.thread].thread;
        let process = trace.processes.get(&thread.process);
        json!({
            "tid": thread.tid.0,
            "pid": process.map(|process| process.pid.0),
            "name": thread.name,
            "role": role_name(thread.role),
            "samples": row.samples,
            "cpu_ns": row.cpu.map(|cpu| cpu.0),
        })
    });
    threads.collect()
}
