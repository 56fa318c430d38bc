//! Which methods the compilers of a JVM are compiling.
//!
//! A compiler's thread leads to its environment, that to its task. All three may be gone
//! between two reads: a task counts if what it holds can be, and the way to it is the
//! same afterwards.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, CompilationNews, Memory, Poll};
use vmscope_records::{Avma, Tid, TimeNs};

use crate::code::tier;
use crate::java_threads::JavaThreads;
use crate::layout::{Scalar, VmStructs};
use crate::method::MethodLayout;
use crate::threads::CompilerThread;

/// A task is not larger: 120 bytes in JDK 11 to 25.
const MAX_TASK: u64 = 1024;

/// Levels of compilation: 1 to 3 are C1's, 4 is C2's.
const LEVELS: std::ops::RangeInclusive<i64> = 1..=4;

/// A method has no more bytecodes than this.
const MAX_BCI: i64 = 65_535;

/// While a compilation goes on it is told again so often.
const TELL_AGAIN: u64 = 200_000_000;

/// What is wanted of a thread is not further apart: 832 bytes in JDK 17.
const MAX_APART: usize = 1 << 16;

const WHAT: &str = "compiler's task";

/// Reads what compilers do.
#[derive(Debug)]
pub struct Compiling {
    threads: JavaThreads,
    env: u64,
    task: Scalar,
    places: Task<Scalar>,
    /// How much of a task is read.
    task_bytes: u64,
    methods: MethodLayout,
    /// What each thread was seen to compile, and when it was last looked at.
    seen: FxHashMap<Tid, Seen>,
    unreadable: u64,
}

/// A task's fields, or where they are.
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
    news: CompilationNews,
    told_at: TimeNs,
}

impl Compiling {
    /// Polls up where things are.
    ///
    /// # Errors
    ///
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

    /// Tells what `compilers` are seen to compile, and what they do not compile any more.
    ///
    /// # Errors
    ///
    /// [`AdapterError`] only where nothing can be read any more.
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
                // It is just ending, or the thread is.
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
                let gone = CompilationNews {
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
            // Its name was read after its task was: it must be the same still.
            if self.task_of(memory, thread).ok() != Some(Some(task)) {
                continue;
            }
            let news = CompilationNews {
                tid: thread.tid,
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

    /// Whether a compiler was at work when they were last looked at.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.seen.values().any(|seen| seen.task.is_some())
    }

    /// Tells of what was going on when the VM was looked at last, at the end.
    pub fn finish(&mut self, poll: &mut Poll) {
        self.forget(&[], poll);
    }

    /// How often a compiler's task, or the name of its method, could not be read.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Threads that are not there any more.
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

    /// What a thread compiles, if it does.
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

    /// Where a thread's task is.
    fn way(
        &self,
        memory: &dyn Memory,
        thread: &CompilerThread,
    ) -> Result<Option<Avma>, AdapterError> {
        // Its memory may be another thread's by now, or nobody's.
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

    /// A thread's part that is the system's, and its environment: at one go, for they are
    /// asked of each compiler at each poll.
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

    fn news_of(&self, memory: &dyn Memory, task: Task<i64>) -> Option<CompilationNews> {
        let method = Avma(task.method.cast_unsigned());
        let info = self.methods.read(memory, method).ok()?;
        Some(CompilationNews {
            id: task.id.cast_unsigned(),
            name: info.full_name(),
            tier: tier(task.level).to_owned(),
            osr_bci: u32::try_from(task.osr_bci).ok(),
            ..CompilationNews::default()
        })
    }
}
