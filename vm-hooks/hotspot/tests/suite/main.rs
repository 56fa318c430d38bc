//! The reader against real JVMs of all releases, against snapshots and core files, and with damaged memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that fails is to panic, and it says what it saw"
)]

mod against_jvm;
#[path = "../common/mod.rs"]
mod common;
mod cores;
mod javap;
mod listings;
mod outside;
mod programs;
mod regions;
mod robust;
#[path = "../common/snapshot_files.rs"]
mod snapshot_files;
mod snapshots;
mod vm_data;
