//! Names of address ranges, zones and entries.

use crate::tui::views::Cx;
use vmscope_records::ProcessKey;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::addresses::{Owner, Stretch};
use vmscope_symbolizer::profile::last_component;
use vmscope_symbolizer::zone::Residencies;

/// First address of x86-64 kernel modules.
const KERNEL_MODULES: u64 = 0xffff_ffff_a000_0000;

pub fn of_stretch(stretch: &Stretch, residencies: &Residencies, cx: &Cx<'_>) -> String {
    match stretch.owner {
        Owner::Module(module) => {
            let module = cx.profile.trace.modules.get(&module);
            let path = module.map_or("", |module| module.path.as_str());
            last_component(path).to_owned()
        }
        Owner::Kernel(start) if start >= KERNEL_MODULES => "[kernel: modules]".to_owned(),
        Owner::Kernel(_) => "[kernel]".to_owned(),
        Owner::Zone(process, start) => of_zone(process, start, residencies, cx),
    }
}

/// Short name, for narrow pieces.
pub fn short(name: &str) -> &str {
    let name = name.strip_prefix("code ").unwrap_or(name);
    let library = name.find(".so").filter(|at| *at > 0);
    library.and_then(|at| name.get(..at)).unwrap_or(name)
}

/// Name of a code zone: with a number among several zones, with a pid among several processes.
pub fn of_zone(process: ProcessKey, start: u64, residencies: &Residencies, cx: &Cx<'_>) -> String {
    let mut name = "code zone".to_owned();
    let of_process = || {
        residencies
            .zones()
            .iter()
            .filter(|zone| zone.process == process)
    };
    if of_process().count() > 1 {
        let before = of_process().filter(|zone| zone.start < start).count();
        name.push_str(&format!(" {}", before + 1));
    }
    if residencies
        .zones()
        .iter()
        .any(|zone| zone.process != process)
        && let Some(process) = cx.profile.trace.processes.get(&process)
    {
        name.push_str(&format!(" of {}", process.pid));
    }
    name
}

/// Short name of an entry: class without package, no parameters.
pub fn of_entry(entry: EntryId, cx: &Cx<'_>) -> String {
    let entry = &cx.profile.entries[entry];
    // Regular expressions may contain parentheses, too.
    let has_parameters = entry.name.ends_with(')');
    let name = entry.name.split('(').next();
    let name = name.filter(|name| has_parameters && !name.is_empty());
    let name = name.unwrap_or(&entry.name);
    let class = entry.module.as_str();
    let package = class.rfind('.').map_or(0, |dot| dot + 1);
    match name.strip_prefix(class).filter(|_| !class.is_empty()) {
        Some(rest) => format!("{}{rest}", class.get(package..).unwrap_or(class)),
        None => name.to_owned(),
    }
}
