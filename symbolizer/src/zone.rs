//! The code zone at the time of a sample (DESIGN.md §5, docs/truth.md §7).
//!
//! An adapter that polls sees a constituent from one poll ([`Constituent::since`]) to another
//! ([`ConstituentGone::last_seen`]);shortly before and after, presence is
//! *possible*. If only one constituent can claim a sample, it gets the sample. If two can, the
//! sample is doubtful and counts for neither.
//!
//! The zone moves forward in time: a lookup costs the same however often addresses were
//! reused, and memory grows with the constituents alone.
//!
//! Bytecodes and method objects are data. Separate layers (`Layer`) hold them: a pc never
//! hits data, and code may have the same addresses.
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
pub(crate) use history::{Code, CodeId, Layer, Placement, ZoneEvent};
pub(crate) use now::{Changed, Claim, Near, Zones};
pub use residencies::{Presence, Residencies, Residency, ZoneRange};
