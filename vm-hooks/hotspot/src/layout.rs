//! Field offsets of a JVM's structures, and encodings.

pub mod encodings;
mod missing;
mod scalar;
mod vm_structs;

pub use encodings::Encodings;
pub use missing::Missing;
pub(crate) use missing::Wanted;
pub use scalar::Scalar;
pub use vm_structs::{Field, MARK, Type, VmStructs};
