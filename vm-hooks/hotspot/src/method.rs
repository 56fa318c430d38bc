//! Methods and classes in the VM: names, signatures, bytecodes, lines.

mod classes;
mod info;
mod lines;
mod lookup;
mod names;
mod read;

pub use classes::{Classes, ClassesLayout, Loader, MAX_CLASSES};
pub use info::MethodInfo;
pub use lines::line_table;
pub use names::{class_name, readable_signature};
pub(crate) use names::{primitive, push_class_name, push_signature};
pub use read::{MethodLayout, Stamp};
