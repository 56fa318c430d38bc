//! A JVM whose structures can't be read: reading its memory is forbidden, or its tables
//! lack what nothing can be found without. Its threads, its library and its perf data
//! still say much.

use vmscope_process::{AdapterError, Poll, ProcessView};

use crate::jvm::library_of;
use crate::vm_data::{Known, VmData};

/// Says what can't be done and what helps, once; what is left is told by the data.
pub(super) fn begin(process: &ProcessView, error: &AdapterError, poll: &mut Poll) -> VmData {
    poll.limit(
        format!(
            "generated and interpreted Java code has no names: {}",
            error.in_full()
        ),
        error.remedy(),
    );
    let library = library_of(process);
    let known = Known {
        structs: None,
        libjvm: library.as_ref(),
        methods: None,
    };
    VmData::new(process, known)
}

/// Says that the JVM was over before anything was read.
pub(super) fn missed(poll: &mut Poll) {
    poll.limit(
        "a JVM was over before it could be read: the Java code that it ran has no names".to_owned(),
        "",
    );
}
