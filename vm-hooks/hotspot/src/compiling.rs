//! Methods under compilation by a JVM's compilers.
//!
//! A compiler thread points to its environment, which points to its task. All three may
//! disappear between two reads. A task counts if its fields are plausible and the pointers to
//! it are unchanged afterwards.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory, Poll};
use vmscope_records::{Avma, Compilation, ThreadKey, Tid, TimeNs};

use crate::code::tier;
use crate::java_threads::JavaThreads;
use crate::layout::{Scalar, VmStructs};
use crate::method::MethodLayout;
use crate::threads::CompilerThread;

/// Maximum size of a task in bytes; JDK 11 to 25 have 120.
const MAX_TASK: u64 = 1024;

/// Compilation levels: C1 has 1 to 3, C2 has 4.
const LEVELS: std::ops::RangeInclusive<i64> = 1..=4;

/// Maximum bytecode index of a method.
const MAX_BCI: i64 = 65_535;

/// Interval of repeated reports during a compilation, in nanoseconds.
const TELL_AGAIN: u64 = 200_000_000;

/// Maximum distance of the thread's fields in bytes; JDK 17 has 832.
const MAX_APART: usize = 1 << 16;

const WHAT: &str = "compiler's task";

/// Reader of compilation tasks.
#[derive(Debug)]
pub struct Compiling {
    threads: JavaThreads,
    env: u64,
    task: Scalar,
    places: Task<Scalar>,
    /// Bytes to read of a task.
    task_bytes: u64,
    methods: MethodLayout,
    /// Compilation per thread, and time of the last poll.
    seen: FxHashMap<Tid, Seen>,
    unreadable: u64,
}

/// Fields of a task, or their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Task<T> {
    method: T,
    id: T,
    level: T,
    osr_bci: T,
}

#[derive(Debug, Default)]
struct Seen {
    looked_at: Option<TimeNs>,
    task: Option<Task<i64>>,
    news: Compilation,
    told_at: TimeNs,
}

impl Compiling {
    /// Finds the offsets of all fields.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`].
    pub fn find(
        structs: &VmStructs,
        threads: JavaThreads,
        methods: MethodLayout,
    ) -> Result<Self, AdapterError> {
        let field = |name| structs.scalar("CompileTask", name);
        let places = Task {
            method: field("_method")?,
            id: field("_compile_id")?,
            level: field("_comp_level")?,
            osr_bci: field("_osr_bci")?,
        };
        let ends = [places.method, places.id, places.level, places.osr_bci]
            .map(|field| field.offset.saturating_add(8));
        Ok(Self {
            threads,
            env: structs.offset("CompilerThread", "_env")?,
            task: structs.scalar("ciEnv", "_task")?,
            places,
            task_bytes: ends.into_iter().max().unwrap_or_default().min(MAX_TASK),
            methods,
            seen: FxHashMap::default(),
            unreadable: 0,
        })
    }

    /// Reports begins and ends of compilations of `compilers`.
    ///
    /// # Errors
    /// [`AdapterError`] only if all memory is unreadable.
    pub fn poll(
        &mut self,
        memory: &dyn Memory,
        compilers: &[CompilerThread],
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        for thread in compilers {
            let from = poll.now();
            let found = match self.task_of(memory, thread) {
                Ok(found) => found,
                Err(error) if error.is_final() => return Err(error),
                // The compilation or the thread is just ending.
                Err(_) => {
                    self.unreadable += 1;
                    continue;
                }
            };
            let seen = self.seen.entry(thread.tid).or_default();
            let absent_at = seen.looked_at.replace(from);
            let now = poll.now();
            if seen.task.is_some() && seen.task == found {
                seen.news.last_seen = from;
                if now.since(seen.told_at).0 >= TELL_AGAIN {
                    seen.told_at = now;
                    poll.compilation(seen.news.clone());
                }
                continue;
            }
            if seen.task.take().is_some() {
                let gone = Compilation {
                    gone_at: Some(now),
                    ..std::mem::take(&mut seen.news)
                };
                poll.compilation(gone);
            }
            let Some(task) = found else { continue };
            let Some(news) = self.news_of(memory, task) else {
                self.unreadable += 1;
                continue;
            };
            // The method name was read after the task: the task must be unchanged.
            if self.task_of(memory, thread).ok() != Some(Some(task)) {
                continue;
            }
            let news = Compilation {
                thread: ThreadKey::of_tid(thread.tid),
                absent_at,
                first_seen: from,
                last_seen: from,
                ..news
            };
            poll.compilation(news.clone());
            let told_at = poll.now();
            let seen = self.seen.entry(thread.tid).or_default();
            seen.news = news;
            seen.task = Some(task);
            seen.told_at = told_at;
        }
        self.forget(compilers, poll);
        Ok(())
    }

    /// Whether the last poll found any compiler active.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.seen.values().any(|seen| seen.task.is_some())
    }

    /// At the end, reports compilations that were open at the last poll.
    pub fn finish(&mut self, poll: &mut Poll) {
        self.forget(&[], poll);
    }

    /// Number of unreadable tasks and method names.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Ends the compilations of threads that are gone.
    fn forget(&mut self, compilers: &[CompilerThread], poll: &mut Poll) {
        if self.seen.len() <= compilers.len() {
            return;
        }
        self.seen.retain(|tid, seen| {
            let stays = compilers.iter().any(|thread| thread.tid == *tid);
            if !stays && seen.task.is_some() {
                poll.compilation(std::mem::take(&mut seen.news));
            }
            stays
        });
    }

    /// The thread's current task, if any.
    fn task_of(
        &self,
        memory: &dyn Memory,
        thread: &CompilerThread,
    ) -> Result<Option<Task<i64>>, AdapterError> {
        let way = self.way(memory, thread)?;
        let Some(at) = way else { return Ok(None) };
        let cap = usize::try_from(MAX_TASK).unwrap_or_default();
        let bytes = memory.read_vec(at, self.task_bytes, cap);
        let bytes = bytes.map_err(AdapterError::reading(WHAT))?;
        let value = |field: Scalar| field.of(&bytes).unwrap_or_default();
        let task = Task {
            method: value(self.places.method),
            id: value(self.places.id),
            level: value(self.places.level),
            osr_bci: value(self.places.osr_bci),
        };
        let is_plausible = LEVELS.contains(&task.level)
            && (1..=i64::from(i32::MAX)).contains(&task.id)
            && (-1..=MAX_BCI).contains(&task.osr_bci)
            && task.method > 0
            && task.method % 8 == 0;
        if !is_plausible || self.way(memory, thread)? != Some(at) {
            return Err(AdapterError::Busy { what: WHAT });
        }
        Ok(Some(task))
    }

    /// Pointers from a thread to its task.
    fn way(
        &self,
        memory: &dyn Memory,
        thread: &CompilerThread,
    ) -> Result<Option<Avma>, AdapterError> {
        // Meanwhile another thread may own the memory, or the VM may have freed it.
        let [os_thread, env] = self.of_thread(memory, thread.java.at)?;
        if os_thread != thread.java.os_thread {
            return Err(AdapterError::Busy { what: WHAT });
        }
        if env.0 == 0 {
            return Ok(None);
        }
        let task = self.task.read_address(memory, env, WHAT)?;
        Ok((task.0 != 0).then_some(task))
    }

    /// A thread's `OSThread*` and environment, in one read: every poll asks for every compiler.
    fn of_thread(&self, memory: &dyn Memory, at: Avma) -> Result<[Avma; 2], AdapterError> {
        let wanted = [self.threads.os_thread_offset(), self.env];
        let first = wanted[0].min(wanted[1]);
        let width = u8::try_from(memory.pointer_bytes()).unwrap_or(8);
        let bytes = (wanted[0].abs_diff(wanted[1])).saturating_add(u64::from(width));
        let begin = Avma(at.0.wrapping_add(first));
        let bytes = memory.read_vec(begin, bytes, MAX_APART);
        let bytes = bytes.map_err(AdapterError::reading(WHAT))?;
        Ok(wanted.map(|offset| {
            let pointer = Scalar {
                offset: offset - first,
                width,
                signed: false,
            };
            Avma(pointer.unsigned_of(&bytes).unwrap_or_default())
        }))
    }

    fn news_of(&self, memory: &dyn Memory, task: Task<i64>) -> Option<Compilation> {
        let method = Avma(task.method.cast_unsigned());
        let info = self.methods.read(memory, method).ok()?;
        Some(Compilation {
            id: task.id.cast_unsigned(),
            name: info.full_name(),
            tier: tier(task.level).to_owned(),
            osr_bci: u32::try_from(task.osr_bci).ok(),
            ..Compilation::default()
        })
    }
}
