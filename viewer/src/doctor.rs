//! `vmscope doctor [PID]`: what can be sampled here, what can't, and what to do about it.
//!
//! [`gather`], [`process`] and [`vm`] look, [`verdict`] decides, [`text`] and [`json`]
//! render; all but the first three are pure.

pub mod facts;
mod gather;
mod json;
mod modules;
mod process;
mod text;
mod verdict;
mod vm;

use std::io::Write;

use anyhow::Context;
use facts::{Facts, PerfProbe};
use vmscope_process::AdapterFamily;

/// Arguments of `vmscope doctor`.
#[derive(Clone, Debug, clap::Args)]
pub struct DoctorArgs {
    /// The process that is to be attached to; without it, this machine alone
    pid: Option<i32>,
    /// Print JSON (schema: docs/doctor.md) instead of a table
    #[arg(long)]
    json: bool,
}

/// Polls, decides, writes the result to `out`; true where the default recording would
/// work. `probe` opens the default recording's events on a process, or without one on
/// vmscope itself, and says what came of it; `None` where it can't be tried. `families`
/// are those that `attach` would ask about the process.
///
/// # Errors
/// Where /proc can't be read, or `out` not written.
pub fn run(
    args: &DoctorArgs,
    probe: impl Fn(Option<i32>) -> Option<PerfProbe>,
    families: impl FnOnce() -> Vec<Box<dyn AdapterFamily>>,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let facts = Facts {
        machine: gather::machine()?,
        perf: probe(None),
        process_perf: args.pid.and_then(|pid| probe(Some(pid))),
        process: args.pid.map(|pid| process::poll(pid, families)),
    };
    let verdict = verdict::decide(&facts);
    let text = if args.json {
        json::render(&facts, &verdict).context("cannot render JSON")?
    } else {
        text::render(&facts, &verdict)
    };
    out.write_all(text.as_bytes())
        .context("cannot write the table")?;
    Ok(verdict.works)
}
