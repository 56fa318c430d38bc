//! Work that takes longer than a keystroke may: asked, answered, told of and stopped.

use super::App;
use crate::queries::truth::truth_of;
use crate::tui::event::Effect;
use crate::tui::jobs::{Done, Job, Question, QuestionId, Slot, Stop};
use std::sync::Arc;
use vmscope_symbolizer::{Profile, Summary};

/// What goes on for so many ticks, a tenth of a second each, is told of.
const SLOW_TICKS: u32 = 4;

/// The summary of what is shown, and how many things limit its truth.
#[derive(Debug)]
pub(super) struct Summed {
    /// The summary.
    pub summary: Arc<Summary>,
    /// The limits: counting them takes long, too.
    pub limits: usize,
}

/// A job that goes on.
#[derive(Debug)]
pub(super) struct Running {
    ticket: u64,
    /// Ends it.
    pub stop: Stop,
    /// For how many ticks it has gone on.
    ticks: u32,
}

/// Work that takes long, as its user is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// What is worked out.
    pub slot: Slot,
    /// How far it is: so much of so much; 0 of 0 where that is not known.
    pub told: (u64, u64),
}

impl App {
    /// What is shown that takes long: the one that has gone on for longest.
    pub fn slow(&self) -> Option<Slow> {
        let slow = self.running.iter().filter(|(slot, running)| {
            let is_awaited = slot.is_shown_in(self.current) || !slot.is_of_screen();
            is_awaited && running.ticks >= SLOW_TICKS && !running.stop.is_stopped()
        });
        let (slot, running) = slow.min_by_key(|(_, running)| running.ticket)?;
        Some(Slow {
            slot: *slot,
            told: running.stop.told(),
        })
    }

    /// Whether something that is shown was stopped before it was worked out anew.
    pub fn is_older(&self) -> bool {
        self.older.iter().any(|slot| slot.is_shown_in(self.current))
    }

    /// Time passed.
    pub(super) fn tick(&mut self) {
        self.running.values_mut().for_each(|one| one.ticks += 1);
    }

    /// Stops all that goes on; what is to be said of that, if anything did.
    pub(super) fn stop_all(&mut self) -> &'static str {
        self.running.values().for_each(|one| one.stop.stop());
        if self.running.keys().any(|slot| slot.is_of_screen()) {
            "stopped: what is shown is older, ^L asks again"
        } else if self.running.contains_key(&Slot::Export) {
            "stopped: nothing is exported"
        } else if self.running.contains_key(&Slot::Copy) {
            "stopped: nothing is copied"
        } else {
            ""
        }
    }

    /// Asks anew for what was stopped.
    pub(super) fn ask_again(&mut self) {
        if !self.older.is_empty() {
            self.older.clear();
            self.generation += 1;
        }
    }

    /// A job is finished.
    pub(super) fn done(
        &mut self,
        profile: Option<&Profile>,
        done: Done,
        effects: &mut Vec<Effect>,
    ) {
        self.owe(done.took);
        let running = self.running.get(&done.slot);
        let Some(running) = running.filter(|running| running.ticket == done.ticket) else {
            return;
        };
        let is_answered = done.is_answered;
        if is_answered {
            self.older.remove(&done.slot);
        } else if running.stop.is_stopped() && done.slot.is_of_screen() {
            self.older.insert(done.slot);
        }
        let is_given_up = running.stop.is_stopped() && !done.slot.is_of_screen();
        self.running.remove(&done.slot);
        // That nothing is written was said already.
        if !is_given_up {
            self.answered(profile, done.slot, done.question, effects);
        }
        if !is_answered {
            // Asked again, there may be no answer either: it must not hold up others.
            self.grow(profile);
        }
    }

    /// Asks what is not known yet.
    pub(super) fn ask(&mut self, profile: &Profile, effects: &mut Vec<Effect>) {
        let (stamp, filter) = (self.stamp(), self.filters.filter().clone());
        let summary = self.summary.ask((), stamp, move |profile, stop| {
            let summary = Arc::new(Summary::of_stoppable(profile, &filter, stop)?);
            let limits = truth_of(profile, &summary).len();
            Some(Summed { summary, limits })
        });
        if let Some(question) = summary {
            self.start(Slot::Summary, question, effects);
        }
        let current = self.current;
        let questions = self.with_view(profile, |view, cx| view.questions(cx));
        for question in questions.into_iter().flatten() {
            self.start(Slot::View(current, question.id), question, effects);
        }
        let wanted = self.with_view(profile, |view, cx| view.effects(cx));
        effects.extend(wanted.into_iter().flatten());
    }

    /// Starts a job; the older one of the same kind is not wanted any more.
    pub(super) fn start(&mut self, slot: Slot, question: Question, effects: &mut Vec<Effect>) {
        self.tickets += 1;
        let stop = Stop::default();
        let ticket = self.tickets;
        let running = Running {
            ticket,
            stop: stop.clone(),
            ticks: 0,
        };
        if let Some(older) = self.running.insert(slot, running) {
            older.stop.stop();
            if slot == Slot::Export {
                self.message = "the export before was stopped".to_owned();
            }
        }
        effects.push(Effect::Work(Job {
            slot,
            question: question.id,
            ticket,
            stop,
            work: question.work,
        }));
    }

    fn answered(
        &mut self,
        profile: Option<&Profile>,
        slot: Slot,
        question: QuestionId,
        effects: &mut Vec<Effect>,
    ) {
        match slot {
            Slot::Summary => {
                self.summary.take(question);
            }
            Slot::Copy | Slot::Export => self.made(question, effects),
            Slot::View(id, _) => {
                if let Some(profile) = profile {
                    self.with_view_of(id, profile, |view, cx| view.answer(question, cx));
                }
            }
        }
    }
}
