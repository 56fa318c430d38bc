//! The method's view, driven by keys.

use crate::recordings::screens;
use crate::tui::event::{Effect, Event};
use crate::tui::testing::{Driven, SIZES};

/// Every size of a screen, after some keys.
fn at_all_sizes(name: &str, bytes: &[u8], keys: &str) {
    for (columns, rows) in SIZES {
        let mut driven = Driven::open(bytes.to_vec(), (columns, rows));
        driven.keys(keys);
        driven.golden(&format!("method-{name}-{columns}x{rows}"));
    }
}

#[test]
fn a_java_method_with_bytecodes() {
    at_all_sizes("java", &screens::java(), "3");
    at_all_sizes("java-callers", &screens::java(), "3b");
}

#[test]
fn a_method_of_cog() {
    at_all_sizes("cog", &screens::cog(), "3");
}

#[test]
fn a_function_of_node_by_lines() {
    at_all_sizes("node", &screens::node(), "3");
}

#[test]
fn a_native_function() {
    at_all_sizes("native", &screens::native(), "3b");
}

#[test]
fn nothing_is_said_to_be_nothing() {
    at_all_sizes("nothing", &screens::nothing(), "3");
}

#[test]
fn the_worst_of_names_disturb_nothing() {
    at_all_sizes("nasty", &screens::nasty(), "3b");
}
