//! The section of the threads, and what roles are called.

use super::Page;
use crate::present::names::role_name;
use crate::present::numbers::{count, some};
use crate::present::text::fit;
use crate::report::options::MIN_SHARE;
use anyhow::Result;
use std::io::Write;

/// Columns of a thread's line before its name.
const THREAD_COLUMNS: usize = 9 + 2 + 10 + 2 + 9 + 2 + 10 + 1;

/// So many threads are all shown, small or not.
const FEW_THREADS: usize = 20;

impl Page<'_> {
    pub(super) fn threads(&self, out: &mut dyn Write) -> Result<()> {
        if self.summary.threads.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n**Threads**")?;
        let header = format!(
            "{:>9}  {:>10}  {:>9}  {:<10} name",
            "samples", "CPU (s)", "tid", "role"
        );
        writeln!(out, "{header}")?;
        let mut others = (0u64, 0u64);
        for row in &self.summary.threads {
            let Some(thread) = self.profile.trace.threads.get(row.thread as usize) else {
                continue;
            };
            let small = self.summary.share(row.samples) * 100.0
                < self.options.min_share.unwrap_or(MIN_SHARE);
            if small && self.summary.threads.len() > FEW_THREADS {
                others = (others.0 + 1, others.1 + row.samples);
                continue;
            }
            let cpu = row
                .cpu
                .map_or_else(|| "?".to_owned(), |cpu| format!("{:.3}", cpu.as_secs_f64()));
            writeln!(
                out,
                "{:>9}  {cpu:>10}  {:>9}  {:<10} {}",
                count(row.samples),
                thread.thread.tid.0,
                role_name(thread.thread.role),
                fit(
                    &thread.thread.name,
                    self.width.saturating_sub(THREAD_COLUMNS)
                )
                .trim_end(),
            )?;
        }
        if others.0 > 0 {
            writeln!(
                out,
                "{:>9}  ...others... ({})",
                count(others.1),
                some(others.0, "thread", "threads")
            )?;
        }
        Ok(())
    }
}
