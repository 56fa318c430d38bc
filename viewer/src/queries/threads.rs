//! Threads of a window: samples by region, CPU time, groups.

use super::by_region::{self, ByRegion, GROUPS};
use crate::present::names::{process_label, role_name};
use crate::present::numbers::ratio;
use rustc_hash::FxHashMap;
use vmscope_records::{ThreadRole, TimeNs};
use vmscope_symbolizer::summary::{Account, accounts};
use vmscope_symbolizer::time_buckets::{By, Columns};
use vmscope_symbolizer::{Filter, Id, Profile, Region, Stop, ThreadId};

/// Thread roles in sort order.
pub const ROLES: [ThreadRole; 6] = [
    ThreadRole::Mutator,
    ThreadRole::Collector,
    ThreadRole::Compiler,
    ThreadRole::Vm,
    ThreadRole::Heartbeat,
    ThreadRole::Other,
];

/// Use of a window by one thread, or by a group of threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUse {
    /// Samples.
    pub samples: u64,
    /// Samples by region.
    pub regions: ByRegion,
    /// CPU time and promised samples.
    pub account: Account,
}

impl ThreadUse {
    /// Delivered share of promised samples; `None` for less than one promised sample or an unknown
    /// number.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn delivered(&self) -> Option<f64> {
        let promised = self.account.promised.filter(|promised| *promised >= 1.0)?;
        Some(self.samples as f64 / promised)
    }

    /// Share of samples in the kernel.
    pub fn kernel_share(&self) -> f64 {
        ratio(self.regions[Region::Kernel as usize], self.samples)
    }

    fn add(&mut self, other: &ThreadUse) {
        self.samples += other.samples;
        by_region::add(&mut self.regions, &other.regions);
        if let Some(cpu) = other.account.cpu {
            let sum = self.account.cpu.get_or_insert_default();
            sum.0 = sum.0.saturating_add(cpu.0);
        }
        if let Some(promised) = other.account.promised {
            *self.account.promised.get_or_insert(0.0) += promised;
        }
    }
}

/// Threads that ran in a window.
#[derive(Debug, Default)]
pub struct Threads {
    /// Threads, ascending, with their use.
    pub all: Vec<(ThreadId, ThreadUse)>,
    /// Samples of all threads.
    pub samples: u64,
    /// Number of threads that did not run.
    pub idle: usize,
}

impl Threads {
    /// Counts samples under a filter; `None` after a stop.
    pub fn of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Self> {
        let by = By::Rows {
            of_thread: &profile.trace.threads.map(|thread, _| thread.number()),
            rows: u32::try_from(profile.trace.threads.len()).unwrap_or(u32::MAX),
        };
        let counts = Columns::total(profile, by, filter, stop)?;
        let accounts = accounts(profile, filter, stop)?;
        let rows = counts.chunks(GROUPS);
        let threads = profile.trace.threads.enumerated();
        let mut all = Threads::default();
        for (((thread, traced), counts), account) in threads.zip(rows).zip(accounts) {
            let samples = counts.iter().sum();
            if samples == 0 && account.cpu.is_none_or(|cpu| cpu.0 == 0) {
                all.idle += usize::from(!traced.is_nobody());
                continue;
            }
            let mut regions = ByRegion::default();
            by_region::add(&mut regions, counts);
            all.samples += samples;
            let used = ThreadUse {
                samples,
                regions,
                account,
            };
            all.all.push((thread, used));
        }
        Some(all)
    }
}

/// Grouping of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Role.
    Role,
    /// Name without numbers, so that a pool's threads form one group.
    Name,
    /// Process at the thread's start.
    Process,
}

/// Group of threads.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Members: indices in [`Threads::all`].
    pub members: Vec<usize>,
    /// Members: threads.
    pub threads: Vec<ThreadId>,
    /// Sum over all members.
    pub used: ThreadUse,
}

impl Group {
    /// Names the group as its threads, if all of them have the same name (`V8Worker`).
    fn keep_common_name(&mut self, profile: &Profile) {
        let name = |thread: &ThreadId| &profile.trace.threads[*thread].thread.name;
        if let [first, others @ ..] = self.threads.as_slice()
            && others.iter().all(|other| name(other) == name(first))
        {
            name(first).clone_into(&mut self.name);
        }
    }
}

impl GroupBy {
    fn name_of(self, profile: &Profile, thread: ThreadId) -> String {
        let thread = &profile.trace.threads[thread].thread;
        match self {
            GroupBy::Role => role_name(thread.role).to_owned(),
            GroupBy::Name => family(&thread.name),
            GroupBy::Process => {
                let process = profile.trace.processes.get(&thread.process);
                process.map_or_else(|| "process unknown".to_owned(), process_label)
            }
        }
    }

    /// Groups in the order of their first members.
    pub fn groups(self, profile: &Profile, threads: &Threads) -> Vec<Group> {
        let mut place: FxHashMap<String, usize> = FxHashMap::default();
        let mut groups: Vec<Group> = Vec::new();
        for (at, (thread, used)) in threads.all.iter().enumerate() {
            let name = self.name_of(profile, *thread);
            let place = *place.entry(name).or_insert_with_key(|name| {
                groups.push(Group {
                    name: name.clone(),
                    members: Vec::new(),
                    threads: Vec::new(),
                    used: ThreadUse::default(),
                });
                groups.len() - 1
            });
            let group = &mut groups[place];
            group.members.push(at);
            group.threads.push(*thread);
            group.used.add(used);
        }
        if self == GroupBy::Name {
            for group in &mut groups {
                group.keep_common_name(profile);
            }
        }
        groups
    }
}

/// Name with `#` in place of each number. The number of a first word (`C2 CompilerThread0`) names a
/// kind of thread and stays.
fn family(name: &str) -> String {
    let kind = name.find(' ').filter(|end| {
        let word = &name[..*end];
        word.starts_with(|c: char| c.is_alphabetic()) && word.chars().all(char::is_alphanumeric)
    });
    let (kind, rest) = name.split_at(kind.unwrap_or(0));
    let mut family = kind.to_owned();
    for c in rest.chars() {
        if !c.is_ascii_digit() {
            family.push(c);
        } else if !family.ends_with('#') {
            family.push('#');
        }
    }
    family
}

/// Start and end of a thread; `None` for a start before `begin`, or an end after the recording.
pub fn life(
    profile: &Profile,
    begin: TimeNs,
    thread: ThreadId,
) -> (Option<TimeNs>, Option<TimeNs>) {
    let thread = &profile.trace.threads[thread];
    let from = Some(thread.thread.time).filter(|time| *time > begin);
    let end = thread.end.as_ref().filter(|end| !end.alive);
    (from, end.map(|end| end.time))
}

/// Whether the recording includes kernel samples.
pub fn knows_kernel(profile: &Profile) -> bool {
    let session = profile.trace.session.as_ref();
    session.is_none_or(|session| session.kernel_included)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_names_without_numbers() {
        assert_eq!(family("GC Thread#12"), "GC Thread#");
        assert_eq!(family("C2 CompilerThread0"), "C2 CompilerThread#");
        assert_eq!(family("pool-1-thread-22"), "pool-#-thread-#");
    }

    #[test]
    fn sums_have_what_any_thread_has() {
        let mut sum = ThreadUse::default();
        let one = ThreadUse {
            samples: 3,
            account: Account {
                promised: Some(4.0),
                ..Account::default()
            },
            ..ThreadUse::default()
        };
        sum.add(&one);
        sum.add(&ThreadUse::default());
        assert_eq!(sum.samples, 3);
        assert_eq!(sum.delivered(), Some(0.75));
    }
}
