//! Part of HotSpot for a native function of `libjvm.so`, by its demangled name and the thread's
//! role.
//!
//! Rules name whole classes and functions, or their common beginnings. The first match wins: for
//! names with two parts (`G1BarrierSetC2`) the order of the tables decides. The rules come from the
//! symbol tables of JDK 11, 17, 21 and 25, and were compared with samples.
//!
//! Helper functions belong to the part that calls them, which the role tells: a compiler thread
//! compiles, and a collector thread collects, whatever they call. On the program's threads the
//! collector's code is barriers and stalls. A library without a symbol table has roles only.

mod collectors;
mod compilers;
mod runtime;

use vmscope_records::{Region, RegionRule, ThreadRole};

/// The VM's library.
pub const MODULE: &str = "libjvm.so";

/// The collector's code on the program's threads.
const BARRIERS: &str = "barriers and stalls of program threads";

/// A table of patterns for threads of one role, or for all threads. A line of the text names a part of
/// the VM; the indented lines below have its patterns: `^` precedes a prefix of the whole name, `@`
/// a substring; others are [`RegionRule::identifiers`].
struct Table {
    region: Region,
    role: Option<ThreadRole>,
    text: &'static str,
    /// Replaces the parts of the text.
    part: Option<&'static str>,
}

/// A table for threads of any role.
const fn table(region: Region, text: &'static str) -> Table {
    Table {
        region,
        role: None,
        text,
        part: None,
    }
}

/// A table for threads of one role.
const fn of_role(role: ThreadRole, table: Table, part: Option<&'static str>) -> Table {
    Table {
        role: Some(role),
        part,
        ..table
    }
}

/// A table with a pattern for all functions.
const ALL: &str = "\n  *";

/// Tables in the order of their precedence. The last matches all remaining names.
const TABLES: [Table; 12] = [
    table(Region::Compiler, compilers::ROWS),
    of_role(
        ThreadRole::Compiler,
        table(Region::Compiler, compilers::NODES),
        None,
    ),
    of_role(
        ThreadRole::Compiler,
        table(Region::Compiler, ALL),
        Some("other work of compiler threads"),
    ),
    table(Region::Vm, runtime::HEAP_ACCESS),
    table(Region::Gc, collectors::ALLOCATION),
    of_role(
        ThreadRole::Mutator,
        table(Region::Gc, collectors::ROWS),
        Some(BARRIERS),
    ),
    table(Region::Gc, collectors::ROWS),
    of_role(
        ThreadRole::Collector,
        table(Region::Gc, ALL),
        Some("other work of collector threads"),
    ),
    table(Region::Interpreter, runtime::INTERPRETER),
    table(Region::Vm, runtime::ROWS),
    table(Region::Compiler, compilers::NODES),
    table(Region::Vm, ALL),
];

/// Rules for `libjvm.so`.
#[must_use]
pub fn rules() -> Vec<RegionRule> {
    let mut rules = Vec::new();
    for table in &TABLES {
        let mut part = "";
        for line in table.text.lines().filter(|line| !line.starts_with('#')) {
            let Some(patterns) = line.strip_prefix(' ') else {
                part = line;
                continue;
            };
            rules.extend(patterns.split_whitespace().map(|pattern| RegionRule {
                module: MODULE.to_owned(),
                role: table.role,
                region: table.region,
                part: table.part.unwrap_or(part).to_owned(),
                ..matching(pattern)
            }));
        }
    }
    rules
}

fn matching(pattern: &str) -> RegionRule {
    let mut rule = RegionRule::default();
    match pattern.split_at_checked(1) {
        Some(("^", prefix)) => rule.prefix = prefix.to_owned(),
        Some(("@", _)) => rule.contains = pattern.to_owned(),
        _ => rule.identifiers = pattern.to_owned(),
    }
    rule
}

#[cfg(test)]
mod tests;
