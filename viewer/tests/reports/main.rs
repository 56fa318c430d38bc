//! Reports and exports of recordings made by hand, against the files of `tests/golden`:
//! `BLESS=1 cargo test -p vmscope --test reports` writes them anew.

#![allow(clippy::disallowed_methods, reason = "tests print themselves")]
#![allow(clippy::panic, reason = "tests fail by it")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/golden.rs"]
mod golden_file;
#[path = "../../../symbolizer/tests/recordings/mod.rs"]
mod recordings;

mod annotate;
mod cog_vm;
mod export;
mod lifetimes;
mod parts;
mod report;
mod vm;
