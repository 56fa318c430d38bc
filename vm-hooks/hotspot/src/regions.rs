//! Part of HotSpot for a native function of `libjvm.so`, by its demangled name.
//!
//! Names are in the form of `cpp_demangle`, with parameters; instances of function templates
//! begin with their return type. So most rules test for a substring. The first match wins: for
//! names with two parts (`G1BarrierSetC2`) the order of the tables decides. The rules come from
//! the symbol tables of JDK 11, 17, 21 and 25, and were compared with samples.
//!
//! A library without a symbol table has no such names; there thread roles must do.

mod collectors;
mod compilers;
mod runtime;

use vmscope_records::{Region, RegionRule};

/// The VM's library.
pub const MODULE: &str = "libjvm.so";

/// Tables in the order of their precedence. A line names a part of the VM; the indented lines
/// below have the patterns of its functions' names: `^` before a prefix, otherwise substrings.
const TABLES: [(Region, &str); 7] = [
    (Region::Compiler, compilers::BARRIERS),
    (Region::Vm, runtime::HEAP_ACCESS),
    (Region::Gc, collectors::ROWS),
    (Region::Interpreter, runtime::INTERPRETER),
    (Region::Compiler, compilers::ROWS),
    (Region::Vm, runtime::ROWS),
    (Region::Compiler, compilers::NODES),
];

/// Rules for `libjvm.so`. The last rule matches all remaining names.
#[must_use]
pub fn rules() -> Vec<RegionRule> {
    let mut rules = Vec::new();
    for (region, table) in TABLES {
        let mut part = "";
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix(' ') {
                None => part = line,
                Some(patterns) => {
                    let patterns = patterns.split_whitespace();
                    rules.extend(patterns.map(|pattern| rule(pattern, region, part)));
                }
            }
        }
    }
    rules.push(rule("", Region::Vm, ""));
    rules
}

fn rule(pattern: &str, region: Region, part: &str) -> RegionRule {
    let prefix = pattern.strip_prefix('^');
    RegionRule {
        module: MODULE.to_owned(),
        prefix: prefix.unwrap_or_default().to_owned(),
        contains: prefix.map_or(pattern, |_| "").to_owned(),
        suffix: String::new(),
        region,
        part: part.to_owned(),
        strip: false,
    }
}

#[cfg(test)]
mod tests;
