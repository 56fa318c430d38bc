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

/// A part of the VM, and the name patterns of its functions.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Prefixes, separated by spaces.
    begins: &'static str,
    /// Substrings, separated by spaces.
    holds: &'static str,
    region: Region,
    part: &'static str,
}

/// The VM's library.
pub const MODULE: &str = "libjvm.so";

/// Rules for `libjvm.so`. The last rule matches all remaining names.
#[must_use]
pub fn rules() -> Vec<RegionRule> {
    let tables = [
        compilers::BARRIERS,
        runtime::HEAP_ACCESS,
        collectors::ROWS,
        runtime::INTERPRETER,
        compilers::ROWS,
        runtime::ROWS,
        compilers::NODES,
    ];
    let rows = tables.into_iter().flatten();
    let rules = rows.flat_map(|row| {
        let begins = row.begins.split_whitespace();
        let begins = begins.map(|word| rule(word, "", row.region, row.part));
        let holds = row.holds.split_whitespace();
        begins.chain(holds.map(|word| rule("", word, row.region, row.part)))
    });
    let rest = rule("", "", Region::Vm, "");
    rules.chain([rest]).collect()
}

fn rule(prefix: &str, contains: &str, region: Region, part: &str) -> RegionRule {
    RegionRule {
        module: MODULE.to_owned(),
        prefix: prefix.to_owned(),
        contains: contains.to_owned(),
        suffix: String::new(),
        region,
        part: part.to_owned(),
        strip: false,
    }
}

#[cfg(test)]
mod tests;
