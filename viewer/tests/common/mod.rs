//! What the integration tests share.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod programs;
