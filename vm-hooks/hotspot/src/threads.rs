//! Roles and Java names of a JVM's threads.
//!
//! VM threads have fixed names, but a Java program may give its threads any name. If the VM's
//! list of Java threads is readable, program threads are recognised by their entry in this
//! list, with the same C++ class as plain Java threads.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{Memory, Poll, ProcessView, ThreadInfo};
use vmscope_records::{Avma, ThreadRole, Tid, TimeNs};

use crate::java_threads::{JavaThread, JavaThreads};
use crate::thread_names::ThreadNames;

/// Shortest pause between thread polls, in nanoseconds. It grows while nothing changes.
const SHORTEST_PAUSE: u64 = 25_000_000;
const LONGEST_PAUSE: u64 = 1_000_000_000;

/// Pause between two readings of a thread's Java name, in nanoseconds.
const NAMES_EVERY: u64 = 10_000_000_000;

/// Likewise, without a name so far.
const NAME_AGAIN: u64 = 250_000_000;

/// Inverse of the maximum time share of thread polls: the kernel renders some files for each
/// thread.
const SHARE_OF_TIME: u64 = 500;

/// Beginnings of VM threads' names, JDK 11 to 27, all collectors; separated by bars.
const ROLES: [(ThreadRole, &str); 5] = [
    (
        ThreadRole::Vm,
        "VM Thread|Sweeper thread|Reference Handl|Signal Dispatch|Service Thread|Monitor Deflati|\
         Notification Th|Attach Listener|Safepoint Clean|RuntimeWorker#|JFR Sampler Thr|\
         JFR Sampling Th",
    ),
    (ThreadRole::Heartbeat, "VM Periodic Tas"),
    (
        ThreadRole::Compiler,
        "C1 CompilerThre|C2 CompilerThre|JVMCI CompilerT",
    ),
    // These threads run the program's finalizers and cleaners.
    (ThreadRole::Mutator, "Finalizer|Common-Cleaner"),
    // Parallel, G1, CMS; Shenandoah; ZGC (X: without generations in JDK 21).
    (
        ThreadRole::Collector,
        "GC Thread#|ParGC Thread#|G1 Main Marker|G1 Conc#|G1 Refine#|G1 Service|G1 Young RemSet|\
         G1 Parallel Mar|CMS Main Thread|CMS Thread#|StrDedup|StringDedup|Shenandoah |\
         ShenWorker#|ShenUncommit|ShenControl|ShenRegulator|\
         ZDirector|ZDriver|ZStat|ZUncommitter|ZUnmapper|ZWorker|\
         XDirector|XDriver|XStat|XUncommitter|XUnmapper|XWorker",
    ),
];

/// Role of a VM thread of this name (at most 15 characters).
#[must_use]
pub fn role_of_name(name: &str) -> Option<ThreadRole> {
    let is_it = |begins: &str| begins.split('|').any(|begin| begins_with(name, begin));
    let found = ROLES.iter().find(|(_, begins)| is_it(begins));
    found.map(|(role, _)| *role)
}

/// Whether a thread's name begins with `begin`. Up to JDK 25, the kernel has the first 15 characters of the name. JDK 26
/// gives it the first 7 and the last 6 characters of a longer name, with two dots between them (`C2 Comp..hread0`).
fn begins_with(name: &str, begin: &str) -> bool {
    let first = name.split_once("..").map(|(first, _)| first);
    let first = first.filter(|first| first.len() == 7 && name.len() == 15);
    name.starts_with(begin) || first.is_some_and(|first| begin.starts_with(first))
}

/// Reports the roles and names of new threads.
#[derive(Debug, Default)]
pub struct Threads {
    told: FxHashMap<Tid, Told>,
    compilers: Vec<CompilerThread>,
    /// Earliest next poll; current pause in nanoseconds, without the cost of a poll.
    not_before: TimeNs,
    pause: u64,
}

/// Reported data of a thread.
#[derive(Clone, Debug)]
struct Told {
    role: ThreadRole,
    /// The kernel's name.
    comm: String,
    /// Java's name.
    name: Option<String>,
    /// Time of the last reading of Java's name.
    named_at: TimeNs,
    /// Its object and its `OSThread*`, if the VM's list has the thread: another thread may have
    /// the same number by now.
    java: Option<(Avma, Avma)>,
}

/// A compiler thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerThread {
    /// Thread number in vmscope's own pid namespace.
    pub tid: Tid,
    /// The VM's structures for the thread.
    pub java: JavaThread,
}

impl Threads {
    /// Polls the threads if the time has come. `list` reads the VM's list of Java threads, and
    /// `names` their names.
    pub fn poll(
        &mut self,
        process: &ProcessView,
        memory: &dyn Memory,
        list: Option<&JavaThreads>,
        names: Option<&mut ThreadNames>,
        poll: &mut Poll,
    ) {
        let began = poll.now();
        if began < self.not_before {
            return;
        }
        let threads = process.threads().unwrap_or_default();
        // A list under modification is read again in the next poll.
        let java = list.and_then(|list| list.read(memory).ok());
        let mut names = names;
        let mut name_of = |thread: &JavaThread| names.as_mut()?.name(memory, thread.at);
        let is_news = self.take(&threads, java.as_deref(), &mut name_of, poll);
        let ended = poll.now();
        let took = ended.since(began).0;
        self.pause = if is_news {
            0
        } else {
            (self.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
        };
        let pause = self.pause.max(took.saturating_mul(SHARE_OF_TIME));
        self.not_before = TimeNs(ended.0.saturating_add(pause));
    }

    /// Compiler threads at the last poll.
    #[must_use]
    pub fn compilers(&self) -> &[CompilerThread] {
        &self.compilers
    }

    /// Reports changes among `threads` (complete); returns whether there were changes.
    fn take(
        &mut self,
        threads: &[ThreadInfo],
        java: Option<&[JavaThread]>,
        name_of: &mut dyn FnMut(&JavaThread) -> Option<String>,
        poll: &mut Poll,
    ) -> bool {
        let by_tid: FxHashMap<Tid, &JavaThread> = java
            .unwrap_or_default()
            .iter()
            .map(|thread| (thread.inner_tid, thread))
            .collect();
        // C++ class of plain Java threads.
        let plain: FxHashSet<Avma> = threads
            .iter()
            .filter(|thread| {
                let names = ["Reference Handl", "Finalizer"];
                names.iter().any(|begin| begins_with(&thread.name, begin))
            })
            .filter_map(|thread| by_tid.get(&thread.inner_tid))
            .map(|thread| thread.class)
            .collect();
        let mut told = FxHashMap::default();
        let mut compilers = Vec::new();
        let mut is_news = false;
        let now = poll.now();
        for thread in threads {
            let named = role_of_name(&thread.name);
            let in_list = by_tid.get(&thread.inner_tid).copied();
            let role = match (named, in_list) {
                // The list does not include collector threads or the VM's own native threads.
                (Some(ThreadRole::Collector | ThreadRole::Heartbeat), Some(_)) => {
                    Some(ThreadRole::Mutator)
                }
                (Some(ThreadRole::Compiler), Some(java)) if plain.contains(&java.class) => {
                    Some(ThreadRole::Mutator)
                }
                (None, Some(_)) => Some(ThreadRole::Mutator),
                (named, _) => named,
            };
            let Some(role) = role else { continue };
            if let (ThreadRole::Compiler, Some(java)) = (role, in_list) {
                compilers.push(CompilerThread {
                    tid: thread.tid,
                    java: java.clone(),
                });
            }
            let before = self.told.get(&thread.tid);
            let identity = in_list.map(|java| (java.at, java.os_thread));
            let known = before.and_then(|before| before.java);
            let is_other = known.zip(identity).is_some_and(|(was, is)| was != is);
            let java = identity.or(known);
            // A thread that renames itself gets another name from the kernel, too.
            let same = before.filter(|before| !is_other && before.comm == thread.name);
            let known = same.and_then(|before| before.name.clone());
            let (name, named_at) = match (in_list, same.map(|before| before.named_at)) {
                (Some(java), named_at) if is_due(named_at, known.is_some(), now) => {
                    (name_of(java).or_else(|| known.clone()), now)
                }
                (_, named_at) => (known.clone(), named_at.unwrap_or(now)),
            };
            if same.is_none_or(|before| before.role != role) || name != known {
                is_news = true;
                poll.thread(thread.tid, name.clone(), Some(role));
            }
            let comm = thread.name.clone();
            let now_told = Told {
                role,
                comm,
                name,
                named_at,
                java,
            };
            told.insert(thread.tid, now_told);
        }
        if java.is_some() || threads.is_empty() {
            self.compilers = compilers;
        }
        self.told = told;
        is_news
    }
}

/// Whether to read a thread's name (again).
fn is_due(named_at: Option<TimeNs>, is_known: bool, now: TimeNs) -> bool {
    let pause = if is_known { NAMES_EVERY } else { NAME_AGAIN };
    named_at.is_none_or(|named_at| now.since(named_at).0 >= pause)
}

#[cfg(test)]
mod tests;
