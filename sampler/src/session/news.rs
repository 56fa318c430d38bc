//! What the writer lets the adapters' thread know of address spaces: a table that it
//! brings up to date, not a queue, so that a target that forks, maps and unmaps for
//! ever fills nothing and makes nobody wait.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vmscope_process::{MapEntry, ModuleFile};
use vmscope_records::{Pid, ProcessKey, TimeNs};

use super::mapped::{Budget, Mapped, MappedCode, Taken};
use super::touched::Touched;

/// So many address spaces are known at once, those included that are over and were not
/// looked at yet. Beyond that they are counted and not looked at.
const MAX_SPACES: usize = 4096;

/// An address space that lived for so long is looked at when it is over even if nothing
/// was mapped into it: it is the fork of a program, which works there.
const LONG_ENOUGH_NS: u64 = 100_000_000;

/// What is known of an address space.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub key: ProcessKey,
    pub pid: Pid,
    /// Whether it is the process that was launched or attached to, or what that became
    /// by an exec.
    pub main: bool,
    /// When it began, or was first heard of.
    pub began: TimeNs,
    /// The name of its program; empty where it is its parent's.
    pub name: String,
    /// What is mapped, its parent's included.
    pub code: Arc<MappedCode>,
    /// Whether anything was mapped into it since it began: not so between a fork and
    /// its exec.
    pub has_own: bool,
    /// Whether it has executable memory without a file: a JIT is at work.
    pub has_anonymous: bool,
    /// Grows with what is known of it.
    pub version: u64,
    /// When the process ended or began another program.
    pub over: Option<TimeNs>,
}

impl Space {
    /// An address space of which nothing is known.
    fn of(key: ProcessKey, pid: Pid, began: TimeNs, code: Arc<MappedCode>) -> Self {
        Space {
            key,
            pid,
            main: false,
            began,
            name: String::new(),
            code,
            has_own: false,
            has_anonymous: false,
            version: 0,
            over: None,
        }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether it may have run something of its own: not what was only there between
    /// a fork and its exec.
    pub fn is_worth_asking(&self) -> bool {
        let lived = self.over.map_or(u64::MAX, |over| over.since(self.began).0);
        self.has_own || lived >= LONG_ENOUGH_NS
    }
}

/// What could not be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missed {
    /// Address spaces that there was no room for.
    pub spaces: u64,
    /// Mappings that there was no room for.
    pub mappings: u64,
}

/// The news, between the two threads.
#[derive(Clone, Debug)]
pub(super) struct News(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The process that was launched or attached to.
    main: Pid,
    table: Mutex<Table>,
    touched: Touched,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<ProcessKey, Entry>,
    /// What changed since the last [`News::take`], each once.
    changed: Vec<ProcessKey>,
    budget: Budget,
    missed: Missed,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    space: Space,
    is_changed: bool,
    /// Whether the adapters' thread knows of it.
    is_known: bool,
    /// Whether the adapters' thread reads it.
    is_claimed: bool,
}

impl News {
    /// No news yet of process `main` and what it starts.
    pub fn of(main: Pid) -> Self {
        News(Arc::new(Shared {
            main,
            table: Mutex::default(),
            touched: Touched::default(),
            closed: Condvar::new(),
        }))
    }

    /// What samples touched.
    pub fn touched(&self) -> &Touched {
        &self.0.touched
    }

    /// The address space that the recording begins with, before it is told of.
    pub fn first(&self, key: ProcessKey, began: TimeNs) -> Space {
        let code = Arc::new(MappedCode::new(self.table().budget.clone()));
        Space {
            main: true,
            ..Space::of(key, self.0.main, began, code)
        }
    }

    /// An address space began: by a fork of `parent`, by an exec, or it was there.
    pub fn began(
        &self,
        key: ProcessKey,
        pid: Pid,
        parent: Option<ProcessKey>,
        name: &str,
        time: TimeNs,
    ) {
        let mut table = self.table();
        if table.entries.len() >= MAX_SPACES {
            table.missed.spaces += 1;
            return;
        }
        let parent = parent.and_then(|parent| table.entries.get(&parent));
        // An exec takes nothing of the old program along.
        let forked = parent.filter(|parent| parent.space.pid != pid);
        let (code, has_anonymous) = forked.map_or_else(
            || (Arc::new(MappedCode::new(table.budget.clone())), false),
            |parent| (Arc::clone(&parent.space.code), parent.space.has_anonymous),
        );
        let space = Space {
            main: pid == self.0.main,
            name: name.to_owned(),
            has_anonymous,
            ..Space::of(key, pid, time, code)
        };
        let entry = Entry {
            space,
            is_changed: false,
            is_known: false,
            is_claimed: false,
        };
        table.entries.insert(key, entry);
        table.changed(key);
    }

    /// An address space that nobody has used yet became another program's.
    pub fn began_anew(&self, key: ProcessKey, name: &str) {
        let mut table = self.table();
        let code = Arc::new(MappedCode::new(table.budget.clone()));
        if let Some(entry) = table.entries.get_mut(&key) {
            let space = &mut entry.space;
            name.clone_into(&mut space.name);
            (space.code, space.has_own, space.has_anonymous) = (code, false, false);
            space.version += 1;
            table.changed(key);
        }
    }

    /// Executable memory appeared.
    pub fn mapped(&self, key: ProcessKey, entry: MapEntry, file: Option<Arc<ModuleFile>>) {
        if entry.is_vdso() {
            return;
        }
        let mut table = self.table();
        let has_room = table.budget.has_room();
        let Some(known) = table.entries.get_mut(&key) else {
            return;
        };
        let space = &mut known.space;
        let is_file = entry.path().is_some();
        let mut news = !space.has_own || (!is_file && !space.has_anonymous);
        space.has_own = true;
        space.has_anonymous |= !is_file;
        // A list that is shared with a parent is copied here.
        let taken = if has_room {
            Arc::make_mut(&mut space.code).take(Mapped { entry, file })
        } else {
            Taken::NoRoom
        };
        news |= is_file && taken == Taken::New;
        space.version += u64::from(news);
        table.missed.mappings += u64::from(taken == Taken::NoRoom);
        if news {
            table.changed(key);
        }
    }

    /// The process ended, or began another program.
    pub fn over(&self, key: ProcessKey, time: TimeNs) {
        let mut table = self.table();
        let Some(entry) = table.entries.get_mut(&key) else {
            return;
        };
        entry.space.over = Some(time);
        if entry.is_known || entry.space.is_worth_asking() {
            table.changed(key);
        } else {
            table.entries.remove(&key);
            self.0.touched.forget(key);
            if let Some(at) = table.changed.iter().rposition(|other| *other == key) {
                table.changed.swap_remove(at);
            }
        }
    }

    /// Whether the adapters' thread reads this address space, or is about to.
    pub fn is_claimed(&self, key: ProcessKey) -> bool {
        let table = self.table();
        table
            .entries
            .get(&key)
            .is_some_and(|entry| entry.is_claimed)
    }

    /// There will be no more.
    pub fn close(&self) {
        self.table().closed = true;
        self.0.closed.notify_all();
    }

    /// What changed since the last time, and whether there will be more. What is over
    /// is told once and forgotten.
    pub fn take(&self) -> (Vec<Space>, bool) {
        let mut table = self.table();
        let mut changed = std::mem::take(&mut table.changed);
        // A parent before its children, an exec after what it replaced.
        changed.sort_unstable();
        let mut spaces = Vec::with_capacity(changed.len());
        for key in changed {
            let Some(entry) = table.entries.get_mut(&key) else {
                continue;
            };
            entry.is_changed = false;
            entry.is_known = true;
            if entry.space.is_over() {
                spaces.extend(table.entries.remove(&key).map(|entry| entry.space));
            } else {
                spaces.push(entry.space.clone());
            }
        }
        (spaces, !table.closed)
    }

    /// Says that `key` is going to be read, unless it is over: from now on an exec of
    /// its process gets a key of its own. What is known of it now.
    pub fn claim(&self, key: ProcessKey) -> Option<Space> {
        let mut table = self.table();
        let entry = table.entries.get_mut(&key)?;
        entry.is_claimed = true;
        (!entry.space.is_over()).then(|| entry.space.clone())
    }

    /// Waits for so long, or until there will be no more news.
    pub fn wait(&self, time: Duration) {
        let table = self.table();
        let waited = (self.0.closed).wait_timeout_while(table, time, |table| !table.closed);
        drop(waited);
    }

    /// What could not be told, so far.
    pub fn missed(&self) -> Missed {
        self.table().missed
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn changed(&mut self, key: ProcessKey) {
        if let Some(entry) = self.entries.get_mut(&key)
            && !std::mem::replace(&mut entry.is_changed, true)
        {
            self.changed.push(key);
        }
    }
}

#[cfg(test)]
mod tests;
