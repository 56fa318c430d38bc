//! `vmscope doctor [PID]`: checks whether this machine allows sampling; names remedies.
//!
//! [`gather`], [`process`] and [`vm`] collect facts; the pure modules [`verdict`], [`text`] and
//! [`json`] judge and render them.

pub mod facts;
mod gather;
mod json;
mod modules;
mod process;
mod text;
mod verdict;
mod vm;

use crate::print::Printer;
use anyhow::Context;
use facts::{Facts, PerfProbe};
use vmscope_process::AdapterFamily;

#[derive(Clone, Debug, clap::Args)]
pub struct DoctorArgs {
    /// Also check attaching to this process (default: check this machine only)
    pid: Option<i32>,
    /// Print JSON (schema: docs/doctor.md) instead of a table
    #[arg(long)]
    json: bool,
}

/// Writes the table to `out`; true if the default recording would work. `probe` tries the default
/// recording's events on a process or on vmscope itself; `None` if untried. `families` are the VM
/// families of `attach`.
///
/// # Errors
/// Unreadable /proc, or a failed write.
pub fn run(
    args: &DoctorArgs,
    probe: impl Fn(Option<i32>) -> Option<PerfProbe>,
    families: impl FnOnce() -> Vec<Box<dyn AdapterFamily>>,
    out: &mut Printer<'_>,
) -> anyhow::Result<bool> {
    let facts = Facts {
        machine: gather::machine()?,
        perf: probe(None),
        process_perf: args.pid.and_then(|pid| probe(Some(pid))),
        process: args.pid.map(|pid| process::poll(pid, families)),
    };
    let verdict = verdict::decide(&facts);
    match args.json {
        true => out.json(&json::document(&facts, &verdict))?,
        false => out
            .text(&text::render(&facts, &verdict))
            .context("cannot write the table")?,
    }
    Ok(verdict.works)
}
