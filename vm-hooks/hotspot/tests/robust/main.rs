//! JVMs that are not as they should be: of an unknown version, without some of the fields
//! that are read, whose memory can't be read or is damaged, and not HotSpot's at all. And
//! JVMs with flags that change how things lie.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails is to panic"
)]

#[path = "../common/mod.rs"]
mod common;

mod damaged;
mod fields;
mod flags;
mod readings;
mod refused;
mod versions;
