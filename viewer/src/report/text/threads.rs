//! The section of the threads, and what roles are called.

use super::Page;
use crate::report::options::MIN_SHARE;
use crate::report::words::{count, fit, some};
use anyhow::Result;
use std::borrow::Cow;
use std::io::Write;
use vmscope_records::{Thread, ThreadRole};

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

/// A thread's name, or its tid where it has none.
pub(crate) fn thread_name(thread: &Thread) -> Cow<'_, str> {
    if thread.name.is_empty() {
        Cow::Owned(format!("tid {}", thread.tid))
    } else {
        Cow::Borrowed(&thread.name)
    }
}

/// The same with its tid: threads may be called alike.
pub(crate) fn thread_label(thread: &Thread) -> String {
    if thread.name.is_empty() {
        thread_name(thread).into_owned()
    } else {
        format!("{} ({})", thread.name, thread.tid)
    }
}

/// A thread's role, as reports and the JSON schema name it.
pub(crate) fn role_name(role: ThreadRole) -> &'static str {
    match role {
        ThreadRole::Mutator => "mutator",
        ThreadRole::Collector => "collector",
        ThreadRole::Compiler => "compiler",
        ThreadRole::Heartbeat => "heartbeat",
        ThreadRole::Vm => "vm",
        _ => "other",
    }
}
