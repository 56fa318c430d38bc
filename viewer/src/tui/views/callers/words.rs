//! Names and figures of functions and nodes.

use crate::present::functions::name_of;
pub use crate::present::functions::{full, letter, parts};
use crate::present::numbers::{count, percent, ratio};
use crate::present::shorten::bare;
use crate::present::text;
use crate::tui::theme::Role;
use crate::tui::widgets::search::Finder;
use vmscope_symbolizer::IndexVec;
use vmscope_symbolizer::calls::{CallNode, CallTree, Function, FunctionId};

pub fn role(function: &Function) -> Role {
    function.region.map_or(Role::Strong, Role::Region)
}

/// Name shortened to a width.
pub fn short(function: &Function, columns: usize) -> String {
    parts(function, false).label(columns)
}

/// Name for a narrow box: begin and tier if they fit, classes and namespaces as far as they fit before the own
/// name.
pub fn tiny(function: &Function, columns: usize) -> String {
    let parts = parts(function, false);
    let without_begin = || name_of(&function.name, None, &function.tier);
    let fits = |name: &String| text::width(name) <= columns;
    let whole = Some(parts.full()).filter(fits);
    let whole = whole.or_else(|| Some(without_begin()).filter(fits));
    whole.unwrap_or_else(|| bare(parts.name, columns))
}

/// Figures of a node: share of all samples, share of the caller, self samples.
pub fn numbers(node: CallNode, caller: Option<CallNode>, all: u64) -> String {
    let mut text = format!(
        "{} samples, {} of all",
        count(node.total),
        percent(ratio(node.total, all))
    );
    if let Some(caller) = caller {
        let share = percent(ratio(node.total, caller.total));
        text.push_str(&format!(", {share} of its caller"));
    }
    let own = percent(ratio(node.own, all));
    text.push_str(&format!("; self {} ({own})", count(node.own)));
    text
}

/// Functions with `pattern` in their names, begins or tiers, ignoring case.
pub fn fitting(tree: &CallTree, pattern: &str) -> IndexVec<FunctionId, bool> {
    let mut text = Finder::new(pattern);
    let mut has = |function: &Function| match parts(function, true).tail.trim_start() {
        "" => text.is_in(&function.name),
        tail => text.is_in_words(&[&*function.name, tail]),
    };
    let is_there = |function| tree.counts_of(function).total > 0;
    let functions = tree.functions();
    functions.map(|id, function| is_there(id) && has(function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_is_what_is_left_of_it() {
        let tiny = |name: &str, columns| {
            let function = Function {
                name: name.into(),
                begin: None,
                tier: "C2".into(),
                region: None,
                inlined: false,
                thread: None,
            };
            tiny(&function, columns)
        };
        let java = "com.acme.orders.OrderBook.match(int)";
        assert_eq!(tiny(java, 50), "com.acme.orders.OrderBook.match(int) (C2)");
        assert_eq!(tiny(java, 36), "com.acme.orders.OrderBook.match(int)");
        assert_eq!(tiny(java, 20), "OrderBook.match");
        assert_eq!(tiny(java, 8), "match");
        assert_eq!(tiny("sim::Grid::relax()", 12), "Grid::relax");
        assert_eq!(tiny("sim::Grid::relax()", 3), "relax");
        assert_eq!(
            tiny("app::(anonymous namespace)::Parser::parse_line", 20),
            "Parser::parse_line"
        );
        for name in ["", ".", "::", "(x)", "a..", "..a", "\u{6f22}::\u{5b57}()"] {
            for columns in 0..6 {
                assert!(!tiny(name, columns).is_empty());
            }
        }
    }
}
