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

/// How a name is asked.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// It begins with this.
    Begins(&'static str),
    /// It holds this somewhere.
    Holds(&'static str),
}

/// Some names of one part: how they are asked, the region, the part.
type Row = (&'static [Asked], Region, &'static str);

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
    let rules = rows.flat_map(|(asked, region, part)| {
        asked.iter().map(move |asked| rule(*asked, *region, part))
    });
    let rest = rule(Asked::Begins(""), Region::Vm, "");
    rules.chain([rest]).collect()
}

fn rule(asked: Asked, region: Region, part: &str) -> RegionRule {
    let (prefix, contains) = match asked {
        Asked::Begins(prefix) => (prefix, ""),
        Asked::Holds(contains) => ("", contains),
    };
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
