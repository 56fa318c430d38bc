//! What reads the target's VMs.

use vmscope_process::{
    AdapterError, AdapterFamily, EnvironmentChange, Launch, ProcessView, Recognised, SampleNeeds,
    recognise,
};
use vmscope_records::{Pid, ProcessKey, TimeNs};

use super::adapters::{AtWork, Families, Polls, Teller, Watched};
use super::news::News;

/// What reads the target's VMs: the families to ask about each of its processes, and
/// adapters that know the first one already.
///
/// Its families are told that the recording is over when it is, also if it never
/// began because this was dropped.
#[derive(Default)]
pub struct Readers {
    view: Option<ProcessView>,
    recognised: Recognised,
    families: Families,
    /// Of a command.
    needs_of_families: SampleNeeds,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers")
            .field("recognised", &self.recognised)
            .finish_non_exhaustive()
    }
}

impl Readers {
    /// Asks `families` about a process that runs already.
    #[must_use]
    pub fn of(view: ProcessView, families: Vec<Box<dyn AdapterFamily>>) -> Self {
        let recognised = recognise(&families, &view);
        Readers {
            view: Some(view),
            recognised,
            families: Families(families),
            needs_of_families: SampleNeeds::default(),
        }
    }

    /// `families`, to be asked about a process that has yet to start.
    #[must_use]
    pub fn later(families: Vec<Box<dyn AdapterFamily>>) -> Self {
        Readers {
            families: Families(families),
            ..Readers::default()
        }
    }

    /// What each sample must carry, for the engine: what adapters need that know the
    /// process already, and what families may need of a VM that is not ready to be read,
    /// or of a command ([`Readers::launching`]).
    #[must_use]
    pub fn sample_needs(&self) -> SampleNeeds {
        let adapters = self.recognised.adapters.iter();
        let adapters = adapters.map(|(_, one)| one.sample_needs());
        let needs = adapters.fold(self.needs_of_families.clone(), |all, one| all.with(&one));
        let not_ready = self.recognised.failures.iter();
        let not_ready = not_ready.filter(|(_, why)| matches!(why, AdapterError::NotReady { .. }));
        let families = self.families.0.iter();
        let families =
            families.filter(|family| not_ready.clone().any(|(name, _)| *name == family.name()));
        families.fold(needs, |all, family| {
            all.with(&family.launch_needs(&Launch::default()))
        })
    }

    /// Takes notice of the command that is going to be started: what samples are to carry
    /// from the first one on.
    pub fn launching(&mut self, launch: &Launch) {
        let families = self.families.0.iter();
        self.needs_of_families = families.fold(SampleNeeds::default(), |all, family| {
            all.with(&family.launch_needs(launch))
        });
    }

    /// What the families want changed in the environment of a command.
    #[must_use]
    pub fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        let families = self.families.0.iter();
        families
            .flat_map(|family| family.launch_environment(launch))
            .collect()
    }

    /// Tells the families that the command has become process `pid`, which does not
    /// run yet.
    pub fn launched(&self, pid: Pid) {
        for family in &self.families.0 {
            family.launched(pid);
        }
    }

    /// Whether there is nobody to ask.
    pub(super) fn is_empty(&self) -> bool {
        self.families.0.is_empty()
    }

    /// At work, from the process on that the recording calls `key`.
    pub(super) fn at_work(
        self,
        key: ProcessKey,
        began: TimeNs,
        news: News,
        teller: Teller,
    ) -> Polls {
        let first = self.view.map(|view| {
            let place = |name| self.families.0.iter().position(|f| f.name() == name);
            let adapters = self.recognised.adapters.into_iter();
            let adapters = adapters
                .filter_map(|(name, one)| Some((place(name)?, AtWork::new(name, one))))
                .collect();
            Watched::new(news.first(key, began)).with_view(view, adapters)
        });
        let mut polls = Polls::new(self.families, news, teller);
        polls.watched.extend(first.map(|first| (key, first)));
        polls
    }
}
