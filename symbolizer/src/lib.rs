//! From a recording to a profile: a pure function.
#![forbid(unsafe_code)]

pub mod native;
