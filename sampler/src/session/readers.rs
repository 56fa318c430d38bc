//! What reads the target's VMs.

use vmscope_records::{Pid, ProcessKey, TimeNs};
use vmscope_target::{
    AdapterFamily, EnvironmentChange, Launch, ProcessView, Recognised, SampleNeeds, recognise,
};

use super::adapters::{AtWork, Families, Looks, Teller, Watched};
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
    /// process already. A VM that is recognised when it is sampled already (after a
    /// launch, in a child) has to do without.
    #[must_use]
    pub fn sample_needs(&self) -> SampleNeeds {
        let adapters = self.recognised.adapters.iter();
        adapters.fold(SampleNeeds::default(), |all, (_, one)| {
            all.with(&one.sample_needs())
        })
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
    ) -> Looks {
        let first = self.view.map(|view| {
            let place = |name| self.families.0.iter().position(|f| f.name() == name);
            let adapters = self.recognised.adapters.into_iter();
            let adapters = adapters
                .filter_map(|(name, one)| Some((place(name)?, AtWork::new(name, one))))
                .collect();
            Watched::new(news.first(key, began)).with_view(view, adapters)
        });
        let mut looks = Looks::new(self.families, news, teller);
        looks.watched.extend(first.map(|first| (key, first)));
        looks
    }
}
