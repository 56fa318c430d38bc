//! Pieces that several views are drawn with.

pub mod list;
pub mod table;
pub mod text;
