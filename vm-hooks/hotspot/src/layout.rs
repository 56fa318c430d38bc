//! Where things lie in a JVM's structures.

mod vm_structs;

pub use vm_structs::{Field, MARK, Type, VmStructs};
