//! What functions and nodes are called, and what is said of them.

use crate::export::frames::{NAMELESS, name_of};
use crate::report::text::shorten::label;
use crate::report::words::{count, percent, ratio};
use crate::tui::theme::{Role, region_letter};
use vmscope_symbolizer::calls::{CallNode, Function};

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

/// The numbers of a node: of all samples, of what called it, its own.
pub fn numbers(node: &CallNode, caller: Option<&CallNode>, all: u64) -> String {
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

/// The names that have `pattern` in them, in any letter case, by function.
pub fn fitting(functions: &[Function], pattern: &str) -> Vec<bool> {
    let pattern = pattern.to_lowercase();
    let has = |function: &Function| {
        function.name.to_lowercase().contains(&pattern)
            || (!function.tier.is_empty() && full(function).to_lowercase().contains(&pattern))
    };
    functions.iter().map(has).collect()
}
