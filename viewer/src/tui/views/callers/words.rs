//! What functions and nodes are called, and what is said of them.

use crate::export::frames::{NAMELESS, name_of};
use crate::present::names::region_letter;
use crate::present::numbers::{count, percent, ratio};
use crate::present::shorten::label;
use crate::present::text;
use crate::tui::theme::Role;
use crate::tui::widgets::search::Finder;
use vmscope_symbolizer::calls::{CallNode, CallTree, Function};

/// What stands for a thread.
const THREAD: char = 'T';

/// One letter for where a function belongs; a small one where it was inlined.
pub fn letter(function: &Function) -> char {
    let letter = function.region.map_or(THREAD, region_letter);
    if function.inlined {
        letter.to_ascii_lowercase()
    } else {
        letter
    }
}

/// How its letter is drawn.
pub fn role(function: &Function) -> Role {
    function.region.map_or(Role::Strong, Role::Region)
}

/// Its name in full.
pub fn full(function: &Function) -> String {
    name_of(&function.name, &function.tier)
}

/// Its name in at most so many columns, what tells least left out first.
pub fn short(function: &Function, columns: usize) -> String {
    let name = match function.name.trim() {
        "" => NAMELESS,
        _ => &function.name,
    };
    let tail = match &*function.tier {
        "" => String::new(),
        tier => format!(" ({tier})"),
    };
    label(name, None, &tail, columns)
}

/// Its name in the little room of a box: what tells it apart from its neighbours is at its
/// end, before the parameters.
pub fn tiny(function: &Function, columns: usize) -> String {
    let whole = short(function, columns);
    let fits = |text: &str| text::width(text) <= columns;
    if whole.starts_with(function.name.trim()) && fits(&whole) {
        return whole;
    }
    let name = match function.name.trim() {
        "" => NAMELESS,
        name => name,
    };
    let bare = name.find('(').filter(|&at| at > 0);
    let bare = bare.map_or(name, |at| &name[..at]);
    // Behind the package or the namespace, then behind the class.
    let mut ends = [bare; 2];
    for (keep, end) in [2, 1].into_iter().zip(&mut ends) {
        let mut from = bare.len();
        for _ in 0..keep {
            let before = bare.get(..from).unwrap_or_default();
            let before = before.trim_end_matches(['.', ':']);
            from = before.rfind(['.', ':']).map_or(0, |at| at + 1);
        }
        *end = bare
            .get(from..)
            .filter(|end| !end.is_empty())
            .unwrap_or(bare);
    }
    let [class, method] = ends;
    let found = [name, bare, class].into_iter().find(|text| fits(text));
    found.unwrap_or(method).to_owned()
}

/// The numbers of a node: of all samples, of what called it, its own.
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

/// Which functions of a tree have `pattern` in their names, in any letter case.
pub fn fitting(tree: &CallTree, pattern: &str) -> Vec<bool> {
    let mut text = Finder::new(pattern);
    let mut tier = String::new();
    let mut has = |function: &Function| {
        if function.tier.is_empty() {
            return text.is_in(&function.name);
        }
        tier.clear();
        tier.extend(["(", &function.tier, ")"]);
        text.is_in_words(&[&*function.name, &tier])
    };
    let functions = (0..).zip(tree.functions());
    let is_there = |function| tree.counts_of(function).total > 0;
    let fits = functions.map(|(id, function)| is_there(id) && has(function));
    fits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_is_what_is_left_of_it() {
        let tiny = |name: &str, columns| {
            let function = Function {
                name: name.into(),
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
        for name in ["", ".", "::", "(x)", "a..", "..a", "\u{6f22}::\u{5b57}()"] {
            for columns in 0..6 {
                assert!(!tiny(name, columns).is_empty());
            }
        }
    }
}
