//! The code cache: heaps, blobs, and debug data of nmethods.

mod blob;
mod cache;
mod heap;
mod layout;
mod nmethod;
mod scopes;

pub use blob::{Blob, BlobKind};
pub use cache::{CodeCache, DeoptimisedFrames, Found, FoundBlob, FoundNmethod, NmethodState};
pub use heap::{HeapBounds, MAX_HEAPS};
pub use layout::CodeLayout;
pub use nmethod::{Nmethod, NmethodId, PcDesc, tier};
pub use scopes::{Frame, Scope, ScopeError};
