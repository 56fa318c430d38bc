//! Table of address spaces, shared by the writer and the adapters' thread. A table instead of a
//! queue: a target that forks, maps and unmaps for ever fills no memory and blocks no thread.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vmscope_process::{MapEntry, ModuleFile};
use vmscope_records::{Pid, ProcessKey, TimeNs};

use super::mapped::{Budget, Mapped, MappedCode, Taken};
use super::touched::TouchedAddresses;

/// Address spaces in the table at a time, exited ones not yet taken included. Further ones are
/// counted only.
const MAX_SPACES: usize = 4096;

/// An exited address space of this age is examined even without mappings of its own: a fork that
/// runs its parent's program.
const LONG_ENOUGH_NS: u64 = 100_000_000;

/// An address space of the target.
#[derive(Clone, Debug)]
pub(super) struct AddressSpace {
    pub key: ProcessKey,
    pub pid: Pid,
    /// The launched process, or an attached process; also after an exec.
    pub main: bool,
    /// Start, or first sighting.
    pub began: TimeNs,
    /// Program name; empty if inherited from the parent.
    pub name: String,
    /// Executable mappings, the parent's included.
    pub code: Arc<MappedCode>,
    /// A mapping was added since the start, which no fork has before its exec.
    pub has_own: bool,
    /// Executable memory without a file exists: a JIT.
    pub has_anonymous: bool,
    /// Grows with each relevant change.
    pub version: u64,
    /// Exit, or exec of another program.
    pub ended: Option<TimeNs>,
}

impl AddressSpace {
    fn of(key: ProcessKey, pid: Pid, began: TimeNs, code: Arc<MappedCode>) -> Self {
        AddressSpace {
            key,
            pid,
            main: false,
            began,
            name: String::new(),
            code,
            has_own: false,
            has_anonymous: false,
            version: 0,
            ended: None,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// `false` for address spaces that existed only between a fork and its exec.
    pub fn may_run_code(&self) -> bool {
        let lived = self
            .ended
            .map_or(u64::MAX, |ended| ended.since(self.began).0);
        self.has_own || lived >= LONG_ENOUGH_NS
    }
}

/// Counts of dropped entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missed {
    pub spaces: u64,
    pub mappings: u64,
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct ProcessTable(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The launched process, or the attached ones.
    main: Vec<Pid>,
    table: Mutex<State>,
    touched: TouchedAddresses,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<ProcessKey, Entry>,
    /// Keys changed since the last [`ProcessTable::take_changes`], without duplicates.
    changed: Vec<ProcessKey>,
    budget: Budget,
    missed: Missed,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    space: AddressSpace,
    is_changed: bool,
    /// The adapters' thread has taken it.
    is_known: bool,
    /// The adapters' thread reads it.
    is_claimed: bool,
}

impl ProcessTable {
    pub fn new(main: &[Pid]) -> Self {
        ProcessTable(Arc::new(Shared {
            main: main.to_vec(),
            table: Mutex::default(),
            touched: TouchedAddresses::default(),
            closed: Condvar::new(),
        }))
    }

    pub fn touched(&self) -> &TouchedAddresses {
        &self.0.touched
    }

    /// The address space of an attached process, before its [`ProcessTable::add`].
    pub fn main_space(&self, key: ProcessKey, pid: Pid, began: TimeNs) -> AddressSpace {
        let code = Arc::new(MappedCode::new(self.table().budget.clone()));
        AddressSpace {
            main: true,
            ..AddressSpace::of(key, pid, began, code)
        }
    }

    /// Adds an address space: a fork of `parent`, an exec, or a process found at the start.
    pub fn add(
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
        // An exec inherits no mappings.
        let forked = parent.filter(|parent| parent.space.pid != pid);
        let (code, has_anonymous) = forked.map_or_else(
            || (Arc::new(MappedCode::new(table.budget.clone())), false),
            |parent| (Arc::clone(&parent.space.code), parent.space.has_anonymous),
        );
        let space = AddressSpace {
            main: self.0.main.contains(&pid),
            name: name.to_owned(),
            has_anonymous,
            ..AddressSpace::of(key, pid, time, code)
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

    /// Resets an unused address space after an exec.
    pub fn replace_program(&self, key: ProcessKey, name: &str) {
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

    /// Adds an executable mapping.
    pub fn add_mapping(&self, key: ProcessKey, entry: MapEntry, file: Option<Arc<ModuleFile>>) {
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
        // Copies a list shared with a parent.
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

    /// Ends an address space: exit or exec.
    pub fn end(&self, key: ProcessKey, time: TimeNs) {
        let mut table = self.table();
        let Some(entry) = table.entries.get_mut(&key) else {
            return;
        };
        entry.space.ended = Some(time);
        if entry.is_known || entry.space.may_run_code() {
            table.changed(key);
        } else {
            table.entries.remove(&key);
            self.0.touched.forget(key);
            if let Some(at) = table.changed.iter().rposition(|other| *other == key) {
                table.changed.swap_remove(at);
            }
        }
    }

    /// Whether the adapters' thread has claimed the address space.
    pub fn is_claimed(&self, key: ProcessKey) -> bool {
        let table = self.table();
        table
            .entries
            .get(&key)
            .is_some_and(|entry| entry.is_claimed)
    }

    /// No further changes follow.
    pub fn close(&self) {
        self.table().closed = true;
        self.0.closed.notify_all();
    }

    /// Changes since the last call, and `false` after [`ProcessTable::close`]. Ended entries leave
    /// the table.
    pub fn take_changes(&self) -> (Vec<AddressSpace>, bool) {
        let mut table = self.table();
        let mut changed = std::mem::take(&mut table.changed);
        // Parents before children, an exec after its predecessor.
        changed.sort_unstable();
        let mut spaces = Vec::with_capacity(changed.len());
        for key in changed {
            let Some(entry) = table.entries.get_mut(&key) else {
                continue;
            };
            entry.is_changed = false;
            entry.is_known = true;
            if entry.space.has_ended() {
                spaces.extend(table.entries.remove(&key).map(|entry| entry.space));
            } else {
                spaces.push(entry.space.clone());
            }
        }
        (spaces, !table.closed)
    }

    /// Claims `key` for reading and returns its current state, `None` after its end. An exec of a
    /// claimed process gets a new key.
    pub fn claim(&self, key: ProcessKey) -> Option<AddressSpace> {
        let mut table = self.table();
        let entry = table.entries.get_mut(&key)?;
        entry.is_claimed = true;
        (!entry.space.has_ended()).then(|| entry.space.clone())
    }

    /// Waits for `time`, or until [`ProcessTable::close`].
    pub fn wait(&self, time: Duration) {
        let table = self.table();
        let waited = (self.0.closed).wait_timeout_while(table, time, |table| !table.closed);
        drop(waited);
    }

    pub fn missed(&self) -> Missed {
        self.table().missed
    }

    fn table(&self) -> MutexGuard<'_, State> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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
