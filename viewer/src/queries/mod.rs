//! Questions about a profile: plain functions of profile and filter, with typed answers.
//! Report, JSON, exports and terminal UI show the same answers; no query knows a
//! terminal or prints.

pub mod accuracy;
pub mod address_columns;
pub mod branches;
pub mod by_region;
pub mod code_kind;
pub mod collection;
pub mod collections;
pub mod entries;
pub mod entry_index;
pub mod inclusive;
pub mod matrix;
pub mod method;
pub mod overview;
pub mod parts;
pub mod pauses;
pub mod threads;
pub mod time_grid;
pub mod timeline;
pub mod truth;
pub mod vm;
pub mod zone_cells;
pub mod zone_samples;
