//! Tests of the symbolizer. One program compiles the test recordings once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests may fail by panicking"
)]

#[path = "../native_support/mod.rs"]
mod native_support;
#[path = "../recordings/mod.rs"]
mod recordings;
#[path = "../screens_support/mod.rs"]
mod screens_support;

mod addresses;
mod advice;
mod annotate;
mod calls;
mod calls_model;
mod collector_cost;
mod compilers;
mod delivery;
mod fuzz_seeds;
mod holders;
mod hostile;
mod lifetime_estimates;
mod lifetime_views;
mod lifetimes;
mod live;
mod matrix;
mod native_altlink;
mod native_hostile;
mod native_lines;
mod native_symbols;
mod native_synthetic;
mod over_time;
mod owners;
mod screens;
mod slices;
mod spans;
mod stacks;
mod summary;
mod trace_churn;
mod trace_code;
mod trace_forks;
mod trace_interpreted;
mod trace_model;
mod trace_places;
mod trace_regions;
