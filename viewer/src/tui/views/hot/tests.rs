//! The hot list and its matrix, driven by keys.

use crate::recordings::screens;
use crate::tui::testing::{Driven, SIZES};

fn java(size: (u16, u16)) -> Driven {
    let mut driven = Driven::open(screens::java(), size);
    driven.keys("2");
    driven
}

/// A golden of each size.
fn goldens(what: &str, keys: &str) {
    for size in SIZES {
        let name = format!("hot-{what}-{}x{}", size.0, size.1);
        java(size).keys(keys).golden(&name);
    }
}

#[test]
fn the_list_looks_like_this() {
    goldens("list", "");
    goldens("expanded", "<Right>");
    goldens("methods", "b<Space>");
}

#[test]
fn the_matrix_looks_like_this() {
    goldens("matrix", "m");
    goldens("matrix-turned", "mb");
    goldens("matrix-threads", "mm");
}
