//! The code zone, as it was at a time (DESIGN.md §5, TRUTH.md §7).
//!
//! An adapter that polls knows of a constituent that it was there from one look
//! ([`Constituent::since`]) to another ([`ConstituentGone::last_seen`]); around
//! those it *may* have been there. A sample that only one constituent can claim is
//! given to it; one that two can claim is doubtful and given to nobody.
//!
//! The zone is brought forward in time, so a lookup costs the same however often
//! addresses were reused, and memory grows with the constituents alone.
//!
//! Bytecodes and objects of methods are data: they have zones of their own
//! (`Layer`), so that no pc is in them and code may lie where they do.
//!
//! [`Constituent::since`]: vmscope_records::Constituent::since
//! [`ConstituentGone::last_seen`]: vmscope_records::ConstituentGone::last_seen

mod growing;
mod history;
mod inherited;
mod now;
mod overlaps;
mod residencies;
#[cfg(test)]
mod tests;

pub(crate) use growing::Growing;
pub(crate) use history::{Code, CodeIndex, Layer, Placement, ZoneEvent};
pub(crate) use now::{Changed, Claim, Near, Zones};
pub use residencies::{Presence, Residencies, Residency, ZoneRange};
