//! Presentation of answers: vocabulary, numbers, names; documents for text, CSV, JSON, SVG and the
//! terminal UI.

pub mod collections;
pub mod document;
pub mod encode;
pub mod entries;
pub mod figures;
pub mod functions;
pub mod json;
pub mod names;
pub mod numbers;
pub mod shorten;
pub mod text;
