//! What is known of each thread in the window, and in which order they are shown.

use crate::report::text::role_name;
use crate::tui::jobs::Stop;
use crate::tui::views::by_region::{self, ByRegion, GROUPS};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::sync::Arc;
use vmscope_records::{ThreadRole, TimeNs};
use vmscope_symbolizer::summary::{Account, accounts};
use vmscope_symbolizer::time_buckets::{By as Counted, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Profile, Region};

/// The roles, in the order in which they are sorted and chosen.
pub const ROLES: [ThreadRole; 6] = [
    ThreadRole::Mutator,
    ThreadRole::Collector,
    ThreadRole::Compiler,
    ThreadRole::Vm,
    ThreadRole::Heartbeat,
    ThreadRole::Other,
];

/// A thread's part of the window.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Index in the trace.
    pub thread: u32,
    /// Its samples.
    pub samples: u64,
    /// By region.
    pub regions: ByRegion,
    /// Its CPU time.
    pub account: Account,
}

/// All threads that ran in the window, included or not.
#[derive(Debug, Default)]
pub struct Facts {
    /// One of each.
    pub all: Vec<Fact>,
    /// The samples of all of them.
    pub samples: u64,
    /// How many threads did not run.
    pub idle: usize,
}

impl Facts {
    /// Counts, whichever threads the filter includes.
    pub fn of(profile: &Profile, everybody: &Filter, stop: &Stop) -> Option<Arc<Self>> {
        let count = u32::try_from(profile.trace.threads.len()).unwrap_or(u32::MAX);
        let of_thread: Vec<u32> = (0..count).collect();
        let what = ColumnsOf {
            window: (TimeNs(0), TimeNs(u64::MAX)),
            columns: 1,
            by: Counted::Rows {
                of_thread: &of_thread,
                rows: count,
            },
        };
        let columns = Columns::of(profile, &what, everybody, stop)?;
        let accounts = accounts(profile, everybody, stop)?;
        let rows = columns.column(0).chunks(GROUPS);
        let mut facts = Facts::default();
        for ((thread, counts), account) in of_thread.into_iter().zip(rows).zip(accounts) {
            let mut regions = ByRegion::default();
            by_region::add(&mut regions, counts);
            let samples = counts.iter().sum();
            if samples == 0 && account.cpu.is_none_or(|cpu| cpu.0 == 0) {
                let one = profile.trace.threads.get(thread as usize);
                facts.idle += usize::from(one.is_some_and(|one| !one.is_nobody()));
                continue;
            }
            facts.samples += samples;
            facts.all.push(Fact {
                thread,
                samples,
                regions,
                account,
            });
        }
        Some(Arc::new(facts))
    }
}

/// What threads are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Most first.
    #[default]
    Samples,
    /// Most first.
    Cpu,
    /// The greatest share first.
    Kernel,
    /// By letter.
    Name,
    /// By number.
    Tid,
    /// As [`ROLES`] orders them.
    Role,
    /// The oldest first.
    Start,
}

impl By {
    /// All, in the order of the key's presses.
    pub const ALL: [By; 7] = [
        By::Samples,
        By::Cpu,
        By::Kernel,
        By::Name,
        By::Tid,
        By::Role,
        By::Start,
    ];

    /// As the palette names it.
    pub const fn name(self) -> &'static str {
        match self {
            By::Samples => "samples",
            By::Cpu => "CPU time",
            By::Kernel => "kernel share",
            By::Name => "name",
            By::Tid => "tid",
            By::Role => "role",
            By::Start => "start",
        }
    }
}

/// What threads are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// Nothing.
    #[default]
    None,
    /// What they do.
    Role,
    /// Their names without numbers: those of a pool are one group.
    Name,
    /// The process that they began in.
    Process,
}

impl Group {
    /// All, in the order of the key's presses.
    pub const ALL: [Group; 4] = [Group::None, Group::Role, Group::Name, Group::Process];

    /// For the breadcrumb.
    pub const fn name(self) -> &'static str {
        match self {
            Group::None => "",
            Group::Role => "by role",
            Group::Name => "by name",
            Group::Process => "by process",
        }
    }

    /// The group of a thread.
    fn of(self, profile: &Profile, thread: u32) -> String {
        let Some(thread) = profile.trace.threads.get(thread as usize) else {
            return String::new();
        };
        match self {
            Group::None => String::new(),
            Group::Role => role_name(thread.thread.role).to_owned(),
            Group::Name => family(&thread.thread.name),
            Group::Process => {
                let process = profile.trace.processes.get(&thread.thread.process);
                process.map_or_else(
                    || "process not known".to_owned(),
                    |process| format!("process {} {}", process.pid, process.name),
                )
            }
        }
    }
}

/// A name with each number as one `#`.
pub fn family(name: &str) -> String {
    let mut family = String::with_capacity(name.len());
    for c in name.chars() {
        if !c.is_ascii_digit() {
            family.push(c);
        } else if !family.ends_with('#') {
            family.push('#');
        }
    }
    family
}

/// How the rows are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What they are sorted by.
    pub by: By,
    /// The other way round.
    pub reverse: bool,
    /// What they are grouped by.
    pub group: Group,
    /// Groups whose threads are not shown, ascending.
    pub closed: Vec<String>,
}

/// What a row is of: it stays selected by this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A thread, by its index in the trace.
    Thread(u32),
    /// A group.
    Group(String),
}

/// A row: a thread, or a group before its threads.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is of.
    pub key: Key,
    /// Its threads: indices in the trace.
    pub threads: Arc<[u32]>,
    /// Its sums, or the thread's own part.
    pub fact: Fact,
    /// Whether its threads follow.
    pub open: bool,
}

/// The rows in their order.
#[derive(Debug, Default)]
pub struct Rows {
    /// What is shown.
    pub shown: Vec<Row>,
    /// All threads in that order, those of closed groups too: indices in [`Facts::all`].
    pub sorted: Vec<usize>,
}

impl Rows {
    /// Sorts and groups.
    pub fn of(profile: &Profile, facts: &Facts, wanted: &Wanted, stop: &Stop) -> Option<Self> {
        let mut sorted: Vec<usize> = (0..facts.all.len()).collect();
        sorted.sort_by(|&a, &b| {
            let (Some(a), Some(b)) = (facts.all.get(a), facts.all.get(b)) else {
                return Ordering::Equal;
            };
            let order = compare(profile, wanted.by, a, b);
            let order = if wanted.reverse {
                order.reverse()
            } else {
                order
            };
            order.then(a.thread.cmp(&b.thread))
        });
        if stop.is_stopped() {
            return None;
        }
        let single = |at: usize| -> Option<Row> {
            let fact = *facts.all.get(at)?;
            Some(Row {
                key: Key::Thread(fact.thread),
                threads: Arc::new([fact.thread]),
                fact,
                open: false,
            })
        };
        if wanted.group == Group::None {
            let shown = sorted.iter().filter_map(|&at| single(at)).collect();
            return Some(Rows { shown, sorted });
        }
        let mut place: FxHashMap<String, usize> = FxHashMap::default();
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for &at in &sorted {
            let Some(fact) = facts.all.get(at) else {
                continue;
            };
            let name = wanted.group.of(profile, fact.thread);
            let next = groups.len();
            let slot = *place.entry(name.clone()).or_insert(next);
            match groups.get_mut(slot) {
                Some((_, members)) => members.push(at),
                None => groups.push((name, vec![at])),
            }
        }
        let mut rows = Rows::default();
        let closed: FxHashSet<&str> = wanted.closed.iter().map(String::as_str).collect();
        let mut heads: Vec<(Row, Vec<usize>)> = Vec::new();
        for (name, members) in groups {
            let of_members = members.iter().filter_map(|&at| facts.all.get(at));
            let fact = sum(of_members.clone());
            let threads = of_members.map(|fact| fact.thread).collect();
            let open = !closed.contains(name.as_str());
            let key = Key::Group(name);
            heads.push((
                Row {
                    key,
                    threads,
                    fact,
                    open,
                },
                members,
            ));
        }
        if matches!(wanted.by, By::Samples | By::Cpu | By::Kernel) {
            heads.sort_by(|(a, _), (b, _)| {
                let order = compare(profile, wanted.by, &a.fact, &b.fact);
                if wanted.reverse {
                    order.reverse()
                } else {
                    order
                }
            });
        }
        for (head, members) in heads {
            let open = head.open;
            rows.shown.push(head);
            if open {
                rows.shown
                    .extend(members.iter().filter_map(|&at| single(at)));
            }
            rows.sorted.extend(members);
        }
        Some(rows)
    }
}

fn sum<'a>(facts: impl Iterator<Item = &'a Fact>) -> Fact {
    let mut all = Fact {
        thread: u32::MAX,
        samples: 0,
        regions: ByRegion::default(),
        account: Account::default(),
    };
    for fact in facts {
        all.samples += fact.samples;
        by_region::add(&mut all.regions, &fact.regions);
        if let Some(cpu) = fact.account.cpu {
            let sum = all.account.cpu.get_or_insert_default();
            sum.0 = sum.0.saturating_add(cpu.0);
        }
        if let Some(promised) = fact.account.promised {
            *all.account.promised.get_or_insert(0.0) += promised;
        }
    }
    all
}

/// The share of a thread's samples that fell in the kernel.
pub fn kernel_share(fact: &Fact) -> f64 {
    let kernel = fact.regions.get(Region::Kernel as usize).copied();
    crate::report::words::ratio(kernel.unwrap_or(0), fact.samples)
}

fn compare(profile: &Profile, by: By, a: &Fact, b: &Fact) -> Ordering {
    let threads = &profile.trace.threads;
    let thread = |fact: &Fact| threads.get(fact.thread as usize).map(|one| &one.thread);
    let (one, other) = (thread(a), thread(b));
    match by {
        By::Samples => b.samples.cmp(&a.samples),
        By::Cpu => b.account.cpu.cmp(&a.account.cpu),
        By::Kernel => kernel_share(b).total_cmp(&kernel_share(a)),
        By::Name => one.map(|t| &t.name).cmp(&other.map(|t| &t.name)),
        By::Tid => one.map(|t| t.tid.0).cmp(&other.map(|t| t.tid.0)),
        By::Role => {
            let place = |role: ThreadRole| ROLES.iter().position(|one| *one == role);
            one.map(|t| place(t.role))
                .cmp(&other.map(|t| place(t.role)))
        }
        By::Start => one.map(|t| t.time).cmp(&other.map(|t| t.time)),
    }
}
