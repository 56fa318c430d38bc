//! How answers are presented: one vocabulary, one way to write numbers and names, and documents
//! that text, CSV, JSON, SVG and the terminal UI render.

pub mod document;
pub mod encode;
pub mod entries;
pub mod figures;
pub mod names;
pub mod numbers;
pub mod shorten;
pub mod text;
