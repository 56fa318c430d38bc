//! Figures that a JVM publishes for `jstat` (`hsperfdata`): collections, heap, classes,
//! safepoints, compilations.

mod format;
mod place;

pub use format::{FormatError, Layout, Slot, Unit, Value};
pub use place::{PerfData, PerfDataError, PerfMemory, Place};
