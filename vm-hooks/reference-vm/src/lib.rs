//! A small Smalltalk VM in the manner of Cog and Spur. `DESIGN.md` describes it.

pub mod compiler;
pub mod memory;
pub mod syntax;
