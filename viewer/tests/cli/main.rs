//! `vmscope` as users type it: all commands, with good and bad input, in a shell and in a real terminal. Reports of
//! handmade recordings are in the suite `reports`, profiles of VMs in suites of their own.

#![allow(clippy::panic, reason = "tests fail by it")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../symbolizer/tests/recordings/mod.rs"]
mod recordings;

mod annotate;
mod binaries;
mod constituents;
mod demo;
mod doctor;
mod dump;
mod ends;
mod export_readers;
mod follow;
mod hostile;
mod import;
mod input;
mod lifetimes;
mod limits;
mod output;
mod programs;
mod recorded;
mod report;
mod tui;
