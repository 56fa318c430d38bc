//! Which part of HotSpot a native function of `libjvm.so` belongs to, by its demangled
//! name.
//!
//! Names are as `cpp_demangle` writes them, with parameters, and instances of function
//! templates with their return type in front. So most rules ask what a name holds. The
//! first that fits counts: what names two parts (`G1BarrierSetC2`) is decided by the
//! order of the tables. Written from the symbol tables, and compared with samples, of
//! JDK 11, 17, 21 and 25.
//!
//! A library without a symbol table has none of these names: there the roles of threads
//! tell what is known.

mod collectors;
mod compilers;
mod runtime;

use vmscope_records::{Region, RegionRule};

/// A part of the VM, and by what names its functions are known.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// What they begin with, separated by spaces.
    begins: &'static str,
    /// What they hold somewhere, separated by spaces.
    holds: &'static str,
    region: Region,
    part: &'static str,
}

/// The VM's library.
pub const MODULE: &str = "libjvm.so";

/// The rules for `libjvm.so`. The last one takes whatever no other did.
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
