//! Readers of the targets' VMs.

use std::sync::Arc;

use vmscope_process::{
    AdapterError, AdapterFamily, EnvironmentChange, KeySource, Launch, Poll, ProcessView,
    Recognised, SampleNeeds, recognise,
};
use vmscope_records::{Pid, ProcessKey, TimeNs};

use super::adapters::{AdapterThread, Emitter, Families, RunningAdapter, WatchedProcess};
use super::describe::now;
use super::process_table::ProcessTable;

/// VM families to ask about each process, and the attached processes' adapters. Dropping it
/// announces the recording's end to the families, also before any start.
#[derive(Default)]
pub struct Readers {
    attached: Vec<(ProcessView, Recognised)>,
    /// What the attached processes' adapters emitted when they were opened.
    opened: Vec<Poll>,
    keys: KeySource,
    families: Families,
    /// Needs of the families of a command.
    needs_of_families: SampleNeeds,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers")
            .field("recognised", &self.recognised().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Readers {
    /// Asks `families` about running processes, given in the order of [`SessionOptions::pids`], and
    /// opens their adapters ([`Adapter::open`](vmscope_process::Adapter::open)).
    ///
    /// [`SessionOptions::pids`]: super::SessionOptions::pids
    #[must_use]
    pub fn of(views: Vec<ProcessView>, families: Vec<Box<dyn AdapterFamily>>) -> Self {
        let keys = KeySource::new();
        let mut opened = Vec::new();
        let attached = views.into_iter().enumerate().map(|(number, view)| {
            let view = view.with_key(attached_key(number));
            let mut recognised = recognise(&families, &view);
            for (_, adapter) in &mut recognised.adapters {
                let mut poll = Poll::new(keys.clone(), view.key(), Arc::new(now));
                adapter.open(&view, &mut poll);
                opened.push(poll);
            }
            (view, recognised)
        });
        Readers {
            attached: attached.collect(),
            opened,
            keys,
            families: Families(families),
            needs_of_families: SampleNeeds::default(),
        }
    }

    fn recognised(&self) -> impl Iterator<Item = &Recognised> + Clone {
        self.attached.iter().map(|(_, recognised)| recognised)
    }

    /// Keeps `families` for a process not yet started.
    #[must_use]
    pub fn later(families: Vec<Box<dyn AdapterFamily>>) -> Self {
        Readers {
            families: Families(families),
            ..Readers::default()
        }
    }

    /// Required sample contents: needs of recognised adapters, of families whose VM is not ready, and of
    /// families with a command ([`Readers::launching`]).
    #[must_use]
    pub fn sample_needs(&self) -> SampleNeeds {
        let adapters = self.recognised().flat_map(|one| &one.adapters);
        let adapters = adapters.map(|(_, one)| one.sample_needs());
        let needs = adapters.fold(self.needs_of_families.clone(), |all, one| all.with(&one));
        let not_ready = self.recognised().flat_map(|one| &one.failures);
        let not_ready = not_ready.filter(|(_, why)| matches!(why, AdapterError::NotReady { .. }));
        let families = self.families.0.iter();
        let families =
            families.filter(|family| not_ready.clone().any(|(name, _)| *name == family.name()));
        families.fold(needs, |all, family| {
            all.with(&family.launch_needs(&Launch::default()))
        })
    }

    /// Sets the sample contents required from a command's first sample on.
    pub fn launching(&mut self, launch: &Launch) {
        let families = self.families.0.iter();
        self.needs_of_families = families.fold(SampleNeeds::default(), |all, family| {
            all.with(&family.launch_needs(launch))
        });
    }

    /// Environment changes for a command.
    #[must_use]
    pub fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        let families = self.families.0.iter();
        families
            .flat_map(|family| family.launch_environment(launch))
            .collect()
    }

    /// Announces the held command's process to the families.
    pub fn launched(&self, pid: Pid) {
        for family in &self.families.0 {
            family.launched(pid);
        }
    }

    /// The source of the recording's keys.
    pub(super) fn keys(&self) -> KeySource {
        self.keys.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.families.0.is_empty()
    }

    /// Builds the adapters' thread, and emits what their opening has found.
    pub(super) fn start(
        self,
        began: TimeNs,
        process_table: ProcessTable,
        mut emitter: Emitter,
    ) -> AdapterThread {
        for poll in self.opened {
            emitter.emit_poll(poll);
        }
        let index_of = |name| {
            let mut families = self.families.0.iter();
            families.position(|family| family.name() == name)
        };
        let watched = self.attached.into_iter().enumerate();
        let watched = watched.map(|(number, (view, recognised))| {
            let key = attached_key(number);
            let adapters = recognised.adapters.into_iter();
            let adapters = adapters.filter_map(|(name, one)| {
                let number = index_of(name)?;
                Some((number, RunningAdapter::new((number, name), one).opened()))
            });
            let space = process_table.main_space(key, view.pid(), began);
            (
                key,
                WatchedProcess::new(space).with_view(view, adapters.collect()),
            )
        });
        let watched = watched.collect();
        AdapterThread {
            watched,
            ..AdapterThread::new(self.families, process_table, emitter)
        }
    }
}

/// Attached processes have the first keys, in their order.
fn attached_key(number: usize) -> ProcessKey {
    ProcessKey(u32::try_from(number).unwrap_or(u32::MAX))
}
