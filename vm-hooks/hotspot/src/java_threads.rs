//! The VM's list of its Java threads, including compiler threads and some VM threads.

use vmscope_process::{AdapterError, Memory};
use vmscope_records::{Avma, Tid};

use crate::layout::VmStructs;

/// Maximum plausible number of Java threads.
const MAX_THREADS: u64 = 1 << 17;

/// A thread in the VM's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaThread {
    /// Address of the VM's thread object.
    pub at: Avma,
    /// Address of its `OSThread`.
    pub os_thread: Avma,
    /// Thread number in the process's own pid namespace.
    pub inner_tid: Tid,
    /// C++ class, by its vtable's address: compiler threads have one class, threads with Java
    /// code another.
    pub class: Avma,
}

/// Address of the list.
#[derive(Clone, Copy, Debug)]
pub struct JavaThreads {
    list: List,
    os_thread: u64,
    thread_id: u64,
}

#[derive(Clone, Copy, Debug)]
enum List {
    /// `ThreadsSMRSupport`: an array, replaced at each begin or end of a thread.
    Array {
        list: Avma,
        length: u64,
        threads: u64,
    },
    /// JDK 11: a linked list.
    Chain { first: Avma, next: u64 },
}

impl JavaThreads {
    /// Address of the list from `structs`.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`].
    pub fn find(structs: &VmStructs) -> Result<Self, AdapterError> {
        let os_thread = structs
            .optional_offset("JavaThread", "_osthread")
            .map_or_else(|| structs.offset("Thread", "_osthread"), Ok)?;
        let list = match structs.optional_static("ThreadsSMRSupport", "_java_thread_list") {
            Some(list) => List::Array {
                list,
                length: structs.offset("ThreadsList", "_length")?,
                threads: structs.offset("ThreadsList", "_threads")?,
            },
            None => List::Chain {
                first: structs.static_at("Threads", "_thread_list")?,
                next: structs.offset("JavaThread", "_next")?,
            },
        };
        Ok(Self {
            list,
            os_thread,
            thread_id: structs.offset("OSThread", "_thread_id")?,
        })
    }

    /// Offset of the `OSThread*` in a thread.
    pub(crate) fn os_thread_offset(&self) -> u64 {
        self.os_thread
    }

    /// Reads the list. Threads that end during the read are left out.
    ///
    /// # Errors
    /// [`AdapterError`], also if the VM replaces the list during the read.
    pub fn read(&self, memory: &dyn Memory) -> Result<Vec<JavaThread>, AdapterError> {
        let all = self.addresses(memory)?;
        let one = |at: &Avma| self.one(memory, *at);
        Ok(all.iter().filter_map(one).collect())
    }

    /// Addresses of all threads.
    pub(crate) fn addresses(&self, memory: &dyn Memory) -> Result<Vec<Avma>, AdapterError> {
        let reading = || AdapterError::reading("list of threads");
        let too_many = AdapterError::TooMany {
            what: "threads",
            cap: MAX_THREADS,
        };
        match self.list {
            List::Array {
                list,
                length,
                threads,
            } => {
                let first = memory.read_pointer(list).map_err(reading())?;
                if first.0 == 0 {
                    return Err(AdapterError::NotReady {
                        what: "list of threads",
                    });
                }
                let at = |by: u64| first.checked_add(by).unwrap_or_default();
                let count = memory.read_u32(at(length)).map_err(reading())?;
                if u64::from(count) > MAX_THREADS {
                    return Err(too_many);
                }
                let array = memory.read_pointer(at(threads)).map_err(reading())?;
                let cap = usize::try_from(MAX_THREADS).unwrap_or_default();
                let all = memory.read_u64s(array, u64::from(count), cap);
                let all = all.map_err(reading())?;
                if memory.read_pointer(list).map_err(reading())? != first {
                    return Err(AdapterError::Busy {
                        what: "list of threads",
                    });
                }
                Ok(all.into_iter().map(Avma).collect())
            }
            List::Chain { first, next } => {
                let mut all = Vec::new();
                let mut at = memory.read_pointer(first).map_err(reading())?;
                while at.0 != 0 {
                    if all.len() as u64 >= MAX_THREADS {
                        return Err(too_many);
                    }
                    all.push(at);
                    let link = at.checked_add(next).unwrap_or_default();
                    at = memory.read_pointer(link).map_err(reading())?;
                }
                Ok(all)
            }
        }
    }

    fn one(&self, memory: &dyn Memory, at: Avma) -> Option<JavaThread> {
        let class = memory.read_pointer(at).ok()?;
        let os_thread = at.checked_add(self.os_thread)?;
        let os_thread = memory.read_pointer(os_thread).ok()?;
        // Unstarted and ended threads have no `OSThread`.
        let id = os_thread.checked_add(self.thread_id)?;
        let id = memory.read_u32(id).ok().filter(|id| *id != 0)?;
        Some(JavaThread {
            at,
            os_thread,
            inner_tid: Tid(id),
            class,
        })
    }
}
