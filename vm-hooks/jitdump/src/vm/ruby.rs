//! Ruby. Distributions strip its library: only exported functions have names.

use vmscope_process::region_table::{NamePattern::*, RegionEntry};
use vmscope_records::Region;

pub(super) const REGIONS: &[RegionEntry] = &[
    (Begins("rb_gc_"), Region::Gc, ""),
    (Begins("rb_vm_exec"), Region::Interpreter, ""),
    (Any, Region::Vm, ""),
];
