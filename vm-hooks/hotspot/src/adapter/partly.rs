//! A JVM with unreadable structures: reading its memory is forbidden, or its tables lack
//! essential fields. Threads, library and perf data are still available.

use vmscope_process::{AdapterError, Poll, ProcessView};

use crate::jvm::library_of;
use crate::vm_data::{Known, VmData};

/// Reports the missing features and the remedy, once; VM data report the rest.
pub(super) fn begin(process: &ProcessView, error: &AdapterError, poll: &mut Poll) -> VmData {
    poll.limit(
        format!(
            "JIT code and interpreted methods have no names: {}",
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

/// Reports that the JVM ended before the first successful read.
pub(super) fn missed(poll: &mut Poll) {
    poll.limit(
        "a JVM ended before vmscope could read it: its Java code has no names".to_owned(),
        "",
    );
}
