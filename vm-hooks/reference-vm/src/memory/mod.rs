//! Objects, their spaces, and the collectors.

pub mod classes;
pub mod header;
pub mod oop;

pub use header::{Format, Header};
pub use oop::Oop;
