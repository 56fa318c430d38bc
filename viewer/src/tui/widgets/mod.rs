//! Pieces that several views are drawn with.

pub mod chart;
pub mod data_table;
pub mod list;
pub mod pane;
pub mod search;
