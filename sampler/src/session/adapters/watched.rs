//! One address space of the recording: when its VM is asked for, through which view,
//! and who reads it.

use std::time::{Duration, Instant};

use vmscope_process::{AdapterError, AdapterFamily, MapEntry, ProcessView, ProgramStamp};
use vmscope_records::TimeNs;

use super::at_work::{AtWork, Teller};
use crate::session::news::{News, Space};

/// How soon a process is asked again that may become a VM (its library is not mapped
/// yet), or that says so …
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// … and for how long that is tried.
const ASK_FOR: Duration = Duration::from_secs(20);

/// How soon the fork of a program is asked: most begin another one at once.
const FORK_SETTLES: Duration = Duration::from_millis(300);

/// How long news of mappings waits at least after the last time a process was asked;
/// doubled each time …
const FIRST_PAUSE: Duration = Duration::from_millis(40);

/// … up to this.
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// For how long mappings that were read count as those of now, while nothing is heard of
/// new ones and the process runs the same program.
const MAPPINGS_LAST: Duration = Duration::from_secs(2);

/// The kernel tells the start of a process in clock ticks of 10 ms.
const START_TOLERANCE_NS: u64 = 50_000_000;

/// An address space, and who reads it.
pub(in crate::session) struct Watched {
    pub space: Space,
    view: Option<ProcessView>,
    /// When its mappings were read, and of which program.
    seen: Option<(Instant, ProgramStamp)>,
    pub adapters: Vec<AtWork>,
    /// The families that have recognised it, by their places.
    recognised: Vec<usize>,
    /// When the families are to be asked.
    ask_at: Option<Instant>,
    last_asked: Option<Instant>,
    /// What was known when they were asked and had an answer.
    answered: Option<u64>,
    pause: Duration,
    since: Instant,
}

/// All families, by their places.
pub(super) type Families<'a> = &'a [Box<dyn AdapterFamily>];

impl Watched {
    /// An address space that was just told of.
    pub fn new(space: Space) -> Self {
        let mut watched = Watched {
            space,
            view: None,
            seen: None,
            adapters: Vec::new(),
            recognised: Vec::new(),
            ask_at: None,
            last_asked: None,
            answered: None,
            pause: FIRST_PAUSE,
            since: Instant::now(),
        };
        watched.schedule();
        watched
    }

    /// An address space that was looked at before the recording began: who recognised
    /// it then, with the places of the families.
    pub fn with_view(mut self, view: ProcessView, adapters: Vec<(usize, AtWork)>) -> Self {
        self.view = Some(view.with_key(self.space.key));
        for (family, adapter) in adapters {
            self.recognised.push(family);
            self.adapters.push(adapter);
        }
        self.schedule();
        self
    }

    /// Takes news of it.
    pub fn update(&mut self, space: Space) {
        self.seen = None;
        self.space = space;
        if let Some(view) = &self.view {
            self.space.code.keep_in(view);
        }
        self.schedule();
    }

    /// Takes the news that it is over.
    pub fn over(mut self, space: Space) -> Self {
        self.space = space;
        self
    }

    /// When there is something to do.
    pub fn due(&self) -> Option<Instant> {
        let adapters = self.adapters.iter().filter_map(AtWork::due);
        adapters.chain(self.ask_at).min()
    }

    /// Whether the families are to be asked now.
    pub fn is_to_be_asked(&self) -> bool {
        self.ask_at.is_some_and(|at| at <= Instant::now())
    }

    /// Whether it was to be asked and was not yet.
    pub fn is_unanswered(&self) -> bool {
        self.ask_at.is_some()
    }

    /// Asks the families that have not recognised it, through a view of the process as
    /// it is now.
    pub fn ask(&mut self, families: Families<'_>, news: &News, teller: &mut Teller) {
        self.ask_at = None;
        self.last_asked = Some(Instant::now());
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        // Of one that is over its end is told soon.
        let Some(space) = news.claim(self.space.key) else {
            return;
        };
        self.space = space;
        if !self.look_at_process() {
            if self.space.main {
                self.ask_again();
            }
            return;
        }
        if self.ask_through_view(families, teller) {
            self.answered = Some(self.space.version);
        } else {
            self.ask_again();
        }
        if self.adapters.is_empty() && self.space.main {
            self.ask_again();
        }
    }

    /// The turns of its adapters that want one.
    pub fn turns(&mut self, teller: &mut Teller) {
        let now = Instant::now();
        let is_due = |adapter: &AtWork| adapter.due().is_some_and(|due| due <= now);
        if !self.adapters.iter().any(is_due) {
            return;
        }
        let can_poll = self.look_at_process();
        self.touch(teller);
        let mut is_told = false;
        for adapter in &mut self.adapters {
            if is_due(adapter) {
                match self.view.as_ref().filter(|_| can_poll && !is_told) {
                    Some(view) => adapter.turn(view, teller),
                    // Its end, or its next program, is told soon; or another tells all.
                    None => adapter.wait(ASK_AGAIN),
                }
            }
            is_told |= adapter.tells_all_code();
        }
    }

    /// The process is over, or runs another program: whoever was not asked with what is
    /// known now is. What is left to do is [`Watched::finish`].
    pub fn depart(&mut self, families: Families<'_>, teller: &mut Teller) {
        let told = || self.space.code.iter().map(|mapped| mapped.entry.clone());
        let (pid, key) = (self.space.pid, self.space.key);
        let view = match self.view.take() {
            Some(view) => view.into_departed(told()),
            None => {
                // The kernel maps a program before its loader and its libraries.
                let files = told().filter(|entry| entry.path().is_some());
                let program = files.map(|file| file.display_name()).next();
                ProcessView::exited(pid, told().collect())
                    .with_key(key)
                    .begun(self.space.began)
                    .called(&self.space.name, &program.unwrap_or_default())
            }
        };
        self.space.code.keep_in(&view);
        self.view = Some(view);
        self.ask_at = None;
        if self.answered != Some(self.space.version) && self.space.is_worth_asking() {
            self.ask_through_view(families, teller);
        }
    }

    /// Gives up asking: there are too many adapters.
    pub fn give_up(&mut self) {
        self.ask_at = None;
        self.answered = Some(self.space.version);
    }

    /// The process or the recording is over: every adapter has its last poll.
    pub fn finish(&mut self, teller: &mut Teller) {
        // Where the process can't be looked at any more, adapters tell what they can.
        let _ = self.look_at_process();
        self.touch(teller);
        if let Some(view) = &self.view {
            for adapter in self.adapters.drain(..) {
                let is_told = adapter.tells_all_code();
                adapter.finish(view, teller);
                if is_told {
                    break;
                }
            }
        }
    }

    /// Until when all code of it has been told; `None` if nobody reads it.
    pub fn told_until(&self) -> Option<TimeNs> {
        let mut told: Option<TimeNs> = None;
        for adapter in &self.adapters {
            told = Some(told.map_or(adapter.told_until(), |t| t.min(adapter.told_until())));
            // Those after it have no turns.
            if adapter.tells_all_code() {
                break;
            }
        }
        told
    }

    /// Says that somebody reads it, and where samples show what its interpreters execute.
    pub fn tell_reads(&self, teller: &Teller) {
        if !self.adapters.is_empty() {
            let sources = self.adapters.iter().flat_map(AtWork::sources).collect();
            teller.reads(self.space.key, sources);
        }
    }

    /// Hands what samples touched to all adapters.
    fn touch(&mut self, teller: &Teller) {
        let until = teller.touched_until();
        let touched = teller.take_touched(self.space.key);
        for adapter in &mut self.adapters {
            adapter.touch(&touched, until, teller);
        }
    }

    /// Brings the view up to date; whether it shows the program that it is to show.
    fn look_at_process(&mut self) -> bool {
        let code = &self.space.code;
        let is_it = |maps: &[MapEntry]| code.is_seen_in(maps);
        if let Some(view) = &self.view {
            let Some(stamp) = view.stamp() else {
                return false;
            };
            // Reading the mappings takes long, and keeps the process from mapping.
            let is_known = |(at, known): (Instant, ProgramStamp)| {
                known == stamp && at.elapsed() < MAPPINGS_LAST
            };
            if self.seen.is_some_and(is_known) {
                return true;
            }
            let is_it = view.refresh_if(is_it).is_ok_and(|is_it| is_it);
            self.seen = is_it.then(|| (Instant::now(), stamp));
            return is_it;
        }
        let Ok(view) = ProcessView::open(self.space.pid) else {
            return false;
        };
        if !is_it(&view.mappings()) || !may_have_begun(&view, self.space.began) {
            return false;
        }
        let view = view.with_key(self.space.key);
        code.keep_in(&view);
        self.view = Some(view);
        true
    }

    /// Asks whoever has not recognised it; whether all had an answer.
    fn ask_through_view(&mut self, families: Families<'_>, teller: &mut Teller) -> bool {
        let Some(view) = &self.view else {
            return false;
        };
        let mut have_answered = true;
        let before = self.adapters.len();
        for (place, family) in families.iter().enumerate() {
            if self.recognised.contains(&place) {
                continue;
            }
            match family.recognise(view) {
                Ok(Some(adapter)) => {
                    // In the order of their families, whenever they were recognised.
                    let at = self.recognised.partition_point(|known| *known < place);
                    let at = at.min(self.adapters.len());
                    self.recognised.insert(at, place);
                    self.adapters
                        .insert(at, AtWork::new(family.name(), adapter));
                }
                Ok(None) => {}
                Err(error @ AdapterError::NotReady { .. }) => {
                    have_answered = false;
                    if self.since.elapsed() + ASK_AGAIN >= ASK_FOR {
                        teller.trouble(family.name(), &error);
                    }
                }
                Err(error) => teller.trouble(family.name(), &error),
            }
        }
        if self.adapters.len() > before {
            self.tell_reads(teller);
        }
        have_answered
    }

    fn ask_again(&mut self) {
        if self.since.elapsed() < ASK_FOR {
            let at = Instant::now() + ASK_AGAIN;
            self.ask_at = Some(self.ask_at.map_or(at, |other| other.min(at)));
        }
    }

    /// Sees to it that the families are asked when that is worth it.
    fn schedule(&mut self) {
        if self.answered == Some(self.space.version) {
            return;
        }
        let now = Instant::now();
        let soon = match self.last_asked {
            Some(last) => (last + self.pause).max(now),
            None if self.space.has_own => now,
            // Nothing is known of it but its parent's program.
            None if self.space.code.is_empty() => return,
            None => now + FORK_SETTLES,
        };
        // News may come before it would be asked again without any.
        self.ask_at = Some(self.ask_at.map_or(soon, |at| at.min(soon)));
    }
}

/// Whether the process that `view` shows may be the one that was there at `began`:
/// else its number was used again.
fn may_have_begun(view: &ProcessView, began: TimeNs) -> bool {
    let latest = began.0.saturating_add(START_TOLERANCE_NS);
    view.started().is_none_or(|started| started.0 <= latest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::Pid;

    #[test]
    fn a_number_that_was_used_again_is_told_apart() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let view = ProcessView::open(Pid(child.id())).unwrap();
        let now = crate::session::now();
        assert!(may_have_begun(&view, now));
        let before = TimeNs(now.0.saturating_sub(60_000_000_000));
        assert!(!may_have_begun(&view, before), "a minute before it started");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
