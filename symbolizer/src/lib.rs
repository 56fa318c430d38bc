//! From a recording to a profile.
//!
//! A profile is a pure function of a recording: nothing here looks at a live
//! process or opens a file. Where symbols are not in the recording, the bytes of
//! binaries are asked of the driver ([`native::Binaries`]).
//!
//! The way of a sample: [`trace`] puts it into the address space and the code zone
//! *as they were at its time* and keeps the place; [`symbols`] names the places;
//! [`profile`] is what comes of it; [`summary`] counts it under a filter, by means of
//! [`time_buckets`]; [`live`] does the same while the recording is made, with a window of samples
//! ([`bounds`]); [`stacks`] with its callers, [`calls`] as a tree of them, [`compilers`] by what a compiler worked for,
//! [`handlers`] by interpreter routine,
//! [`attribution`] by the method that each is for, [`matrix`] by that and by category; [`methods`] tells which entries are one method;
//! [`annotate`] puts a method's samples beside its bytecodes or lines; [`addresses`] puts them
//! where they fell, and [`zone`] tells what lay there. [`lifetimes`] counts allocated objects, and
//! how long they lived.

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
