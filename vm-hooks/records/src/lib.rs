//! Record types of vmscope and their file format.
//!
//! A *recording* is a stream of [`Record`]s. Sampler and adapters write the stream; from it alone, the
//! symbolizer makes a profile. DESIGN.md §2 lists the
//! kinds. All times are `CLOCK_MONOTONIC` in nanoseconds ([`TimeNs`]).
//!
//! Types here carry no serialization: [`recording`] handles bytes, described in `FORMAT.md`.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test says what failed by panicking"
    )
)]

mod code;
mod collection;
mod compilation;
mod counter;
mod ids;
mod interpreter;
mod lifetime;
mod loss;
mod native;
mod pcmap;
mod process;
mod ranges;
mod record;
pub mod recording;
mod region;
mod sample;
mod session;
mod wire;

pub use code::*;
pub use collection::*;
pub use compilation::Compilation;
pub use counter::*;
pub use ids::*;
pub use interpreter::*;
pub use lifetime::*;
pub use loss::*;
pub use native::*;
pub use pcmap::*;
pub use process::*;
pub use ranges::Ranges;
pub use record::{Content, Record};
pub use region::*;
pub use sample::*;
pub use session::*;
pub use wire::WireError;
