//! The adapters' thread: asks which VM runs in each address space of the recording,
//! and its adapters what is new in its code zone, at the pace that they want.
//!
//! What it knows of processes comes from the writer ([`super::news`]), which hears of
//! them from the engine, some tenths of a second late. So a process may have begun
//! another program, or be over, when it is asked: what is read of a live process is
//! compared with what the kernel told of it, and of one that is over there are the
//! files that were opened when they were mapped.

mod at_work;
mod pace;
mod watched;

pub(super) use at_work::{AtWork, Teller};
pub(super) use pace::Pace;
pub(super) use watched::Watched;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use vmscope_process::AdapterFamily;
use vmscope_records::{ProcessKey, TimeNs, VmIdentity};

use super::news::{News, Space};

/// How soon this thread notices news; adapters have their turns when they want them.
const NAP: Duration = Duration::from_millis(50);

/// More adapters than this are not at work at once.
const MAX_ADAPTERS: usize = 1024;

/// How long processes that are over are asked about after the recording has ended.
const END_FOR: Duration = Duration::from_secs(10);

/// The VM families of a recording; told when it is over, however it ends.
#[derive(Default)]
pub(super) struct Families(pub Vec<Box<dyn AdapterFamily>>);

impl Drop for Families {
    fn drop(&mut self) {
        for family in &self.0 {
            family.recording_over();
        }
    }
}

/// Which VM the recording is said to be of.
pub(super) struct Greeted {
    space: ProcessKey,
    /// Whether that is the main process.
    main: bool,
    identity: VmIdentity,
}

/// The thread.
pub(super) struct Polls {
    pub families: Families,
    pub news: News,
    pub teller: Teller,
    /// Address spaces that are known and not over.
    pub watched: HashMap<ProcessKey, Watched>,
    /// Whether the recording's VM was told, and is that of the main process.
    pub greeted: Option<Greeted>,
    /// When adapters last had their turns.
    pub last_turns: Instant,
    /// Until when all code was last said to be told.
    pub told_until: TimeNs,
    /// Address spaces that nobody could be asked about.
    pub not_asked: u64,
}

impl Polls {
    pub fn new(families: Families, news: News, teller: Teller) -> Self {
        Polls {
            families,
            news,
            teller,
            watched: HashMap::new(),
            greeted: None,
            last_turns: Instant::now(),
            told_until: TimeNs(0),
            not_asked: 0,
        }
    }

    /// Runs until there is no more news.
    pub fn run(mut self) {
        for watched in self.watched.values() {
            greet(&mut self.greeted, watched, &self.teller);
            watched.tell_reads(&self.teller);
        }
        loop {
            let (batch, goes_on) = self.news.take();
            let began = Instant::now();
            for space in batch {
                let in_time = goes_on || began.elapsed() < END_FOR;
                self.take(space, in_time);
                if goes_on && self.last_turns.elapsed() > NAP {
                    self.turns();
                }
            }
            if !goes_on {
                break;
            }
            self.turns();
            let next = self.watched.values().filter_map(Watched::due).min();
            let pause = next.map_or(NAP, |due| due.saturating_duration_since(Instant::now()));
            self.news.wait(pause.min(NAP));
        }
        self.end();
    }

    /// Takes news of an address space; one that is over is looked at for the last time,
    /// by those who read it in any case.
    fn take(&mut self, space: Space, in_time: bool) {
        let key = space.key;
        if !space.is_over() {
            match self.watched.get_mut(&key) {
                Some(watched) => watched.update(space),
                None => {
                    self.watched.insert(key, Watched::new(space));
                }
            }
            return;
        }
        let mut watched = match self.watched.remove(&key) {
            Some(watched) => watched.over(space),
            None => Watched::new(space),
        };
        let families = if in_time { &self.families.0[..] } else { &[] };
        self.not_asked += u64::from(!in_time);
        watched.depart(families, &mut self.teller);
        greet(&mut self.greeted, &watched, &self.teller);
        watched.finish(&mut self.teller);
    }

    /// Whoever is due has a turn.
    fn turns(&mut self) {
        let mut at_work: usize = self.watched.values().map(|one| one.adapters.len()).sum();
        for watched in self.watched.values_mut() {
            if watched.is_to_be_asked() {
                let before = watched.adapters.len();
                if at_work < MAX_ADAPTERS {
                    watched.ask(&self.families.0, &self.news, &mut self.teller);
                } else {
                    watched.give_up();
                    self.not_asked += 1;
                }
                at_work += watched.adapters.len() - before;
                greet(&mut self.greeted, watched, &self.teller);
            }
            watched.turns(&mut self.teller);
            greet(&mut self.greeted, watched, &self.teller);
        }
        self.last_turns = Instant::now();
        self.tell_until();
    }

    /// Says how far the story is told. What is not read by anybody is told by the engine;
    /// a program that is new may become a VM's, which is not waited for.
    fn tell_until(&mut self) {
        let told = self.watched.values().filter_map(Watched::told_until).min();
        let told = told.unwrap_or(TimeNs(u64::MAX));
        if told != self.told_until {
            self.told_until = told;
            self.teller.told(told);
        }
    }

    /// The recording is over: those who live on are looked at for the last time, and
    /// what could not be looked at is told.
    fn end(mut self) {
        let began = Instant::now();
        for watched in self.watched.values_mut() {
            if watched.is_unanswered() && began.elapsed() < END_FOR {
                watched.ask(&self.families.0, &self.news, &mut self.teller);
                greet(&mut self.greeted, watched, &self.teller);
            }
            watched.finish(&mut self.teller);
        }
        let missed = self.news.missed();
        let not_asked = missed.spaces + self.not_asked;
        if not_asked > 0 {
            let text = format!(
                "{not_asked} programs were not asked for their VM, because there were too many: \
                 generated code of theirs has no names"
            );
            self.teller.limit(text, "");
        }
        let missed_touched = self.teller.missed_touched();
        if missed_touched > 0 {
            let text = format!(
                "{missed_touched} addresses in generated code that samples fell on were too many \
                 at a time to be looked at: some of it may be resolved to its method only"
            );
            self.teller.limit(text, "");
        }
        if missed.mappings > 0 {
            let text = format!(
                "{} mappings of processes with too many files were not noted: what they hold of \
                 generated code may have no names",
                missed.mappings
            );
            self.teller.limit(text, "");
        }
    }
}

/// Says which VM the recording is of: the main process's first one, else that of
/// whatever process was the first to have one.
fn greet(greeted: &mut Option<Greeted>, watched: &Watched, teller: &Teller) {
    let (space, main) = (watched.space.key, watched.space.main);
    let told = greeted.as_ref();
    let is_same = told.is_some_and(|told| told.space == space);
    let is_better = told.is_none_or(|told| main && !told.main);
    let Some(first) = watched.adapters.first().filter(|_| is_same || is_better) else {
        return;
    };
    let identity = first.identity();
    // It may know its version only when it has looked.
    if is_same && told.is_some_and(|told| told.identity == identity) {
        return;
    }
    teller.vm(identity.clone());
    *greeted = Some(Greeted {
        space,
        main,
        identity,
    });
}
