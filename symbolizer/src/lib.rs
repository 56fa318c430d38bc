//! Makes a profile from a recording.
//!
//! A profile is a pure function of a recording: this crate looks at no live process and opens no
//! file. Where the recording lacks symbols, the driver supplies bytes of binaries
//! ([`native::Binaries`]).
//!
//! | step | modules |
//! |---|---|
//! | place each sample in the address space and the code zone of its time | [`trace`], [`zone`] |
//! | name the places | [`symbols`], [`native`] |
//! | result | [`profile`]; [`methods`] groups entries of one method |
//! | sum samples by time | [`time_buckets`] |
//! | count under a filter | [`summary`] |
//! | count callers | [`stacks`], [`calls`], [`paths`] |
//! | count by beneficiary and category | [`attribution`], [`matrix`], [`compilers`] |
//! | count by interpreter routine | [`handlers`] |
//! | show a method's bytecodes or lines | [`annotate`] |
//! | show addresses | [`addresses`] |
//! | count allocated objects and their lifetimes | [`lifetimes`] |
//! | grow during recording, with a window of samples | [`live`], [`bounds`] |

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "tests may fail by panicking"
    )
)]

pub mod addresses;
pub mod annotate;
pub mod attribution;
pub mod bounds;
mod build;
pub mod calls;
pub mod compilers;
pub mod handlers;
pub mod ids;
pub mod lifetimes;
pub mod live;
pub mod matrix;
pub mod methods;
pub mod native;
pub mod paths;
pub mod profile;
mod space;
pub mod stacks;
pub mod summary;
pub mod symbols;
pub mod time_buckets;
pub mod trace;
pub mod zone;

pub use bounds::{Bounds, Omitted};
pub use build::code::{full_name, separator_between, separator_of};
pub use build::{Making, profile_of, profile_of_telling};
pub use ids::{
    AllocationSiteId, ChainId, ClassId, CodeId, CollectionId, EntryId, Id, IndexVec, PlaceId,
    SiteId, StackId, ThreadId,
};
pub use live::Live;
pub use profile::{Entry, Profile, Region, Site};
pub use summary::{Filter, Only, Summary};
pub use time_buckets::Stop;
pub use trace::{Trace, TraceError};
