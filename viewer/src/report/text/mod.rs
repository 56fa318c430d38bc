//! The report as text, in the form of VMProfiler's (the paper's Figure 7).

mod compilers;
pub(crate) mod head;
mod matrix;
pub(crate) mod names;
mod parts;
mod tables;
mod threads;
mod totals;
pub(crate) mod vm;

use super::options::ReportOptions;
use anyhow::Result;
use ratatui::crossterm::terminal::window_size;
use rustc_hash::FxHashSet;
use std::io::Write;
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, Summary};

/// Narrower than this, names could not be told apart.
const MIN_WIDTH: usize = 60;

/// Groups of entries, in the order of the report: heading, regions.
const NATIVE_GROUPS: [(&str, &[Region]); 5] = [
    (
        "program code",
        &[
            Region::Vm,
            Region::Interpreter,
            Region::Gc,
            Region::Compiler,
        ],
    ),
    ("generated code", &[Region::Generated]),
    ("library code", &[Region::Library]),
    ("kernel code", &[Region::Kernel]),
    ("the rest", &[Region::Idle, Region::Unknown]),
];
const VM_GROUPS: [(&str, &[Region]); 5] = [
    ("generated vm code", &[Region::Generated]),
    (
        "vanilla vm code",
        &[
            Region::Vm,
            Region::Interpreter,
            Region::Gc,
            Region::Compiler,
        ],
    ),
    ("library code", &[Region::Library]),
    ("kernel code", &[Region::Kernel]),
    ("the rest", &[Region::Idle, Region::Unknown]),
];

/// The same where an interpreter shows which methods it executes: they are not listed
/// among the VM's own functions.
const INTERPRETED_GROUPS: [(&str, &[Region]); 6] = [
    ("generated vm code", &[Region::Generated]),
    ("interpreted code", &[Region::Interpreter]),
    (
        "the rest of vanilla vm code",
        &[Region::Vm, Region::Gc, Region::Compiler],
    ),
    ("library code", &[Region::Library]),
    ("kernel code", &[Region::Kernel]),
    ("the rest", &[Region::Idle, Region::Unknown]),
];

/// Writes the whole report.
pub(super) fn write(
    profile: &Profile,
    summary: &Summary,
    filter: &Filter,
    options: &ReportOptions,
    out: &mut dyn Write,
) -> Result<()> {
    let page = Page {
        profile,
        summary,
        options,
        width: width(options.width),
        sites_of: sites_of(profile, summary),
        namesakes: crate::present::entries::namesakes(profile, summary),
    };
    page.truth(out)?;
    page.head(filter, out)?;
    page.totals(out)?;
    page.parts(out)?;
    let groups: &[(&str, &[Region])] = if profile.is_native() {
        &NATIVE_GROUPS
    } else if summary.quality.interpreted > 0 {
        &INTERPRETED_GROUPS
    } else {
        &VM_GROUPS
    };
    for &(heading, regions) in groups {
        page.group(heading, regions, out)?;
    }
    page.vms(out)?;
    page.compilers(filter, out)?;
    page.matrix(filter, out)?;
    page.threads(out)?;
    Ok(())
}

/// The columns of a page: those asked for, else the terminal's, else 100.
pub(crate) fn width(asked: Option<u16>) -> usize {
    // `crossterm::terminal::size` would run `tput` where there is no terminal.
    let terminal = || window_size().ok().map(|size| size.columns);
    let terminal = || terminal().filter(|columns| *columns > 0);
    usize::from(asked.or_else(terminal).unwrap_or(100)).max(MIN_WIDTH)
}

struct Page<'a> {
    profile: &'a Profile,
    summary: &'a Summary,
    options: &'a ReportOptions,
    width: usize,
    /// The sites of each entry that have samples.
    sites_of: Vec<Vec<usize>>,
    /// Entries that only their files' whole paths tell apart.
    namesakes: FxHashSet<EntryId>,
}

fn sites_of(profile: &Profile, summary: &Summary) -> Vec<Vec<usize>> {
    let mut sites_of = vec![Vec::new(); profile.entries.len()];
    let counted = profile.sites.iter().zip(&summary.sites).enumerate();
    for (index, (site, _)) in counted.filter(|(_, (_, samples))| **samples > 0) {
        if let Some(list) = sites_of.get_mut(site.entry as usize) {
            list.push(index);
        }
    }
    sites_of
}
