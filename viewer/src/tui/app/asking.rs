//! Jobs: questions, answers, progress, stopping.

use super::App;
use crate::queries::truth::truth_of;
use crate::tui::event::Effect;
use crate::tui::jobs::{Done, Job, Question, QuestionId, Slot, Stop};
use std::sync::Arc;
use vmscope_symbolizer::{Profile, Summary};

/// Ticks (0.1 s each) before progress is shown.
const SLOW_TICKS: u32 = 4;

/// Summary under the filters, with its number of limits.
#[derive(Debug)]
pub(super) struct Summed {
    /// Summary.
    pub summary: Arc<Summary>,
    /// Number of limits: counting takes long, too.
    pub limits: usize,
}

/// Job under way.
#[derive(Debug)]
pub(super) struct Running {
    ticket: u64,
    /// Stop flag.
    pub stop: Stop,
    /// Age in ticks.
    ticks: u32,
}

/// Progress of long work, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Recipient of the answer.
    pub slot: Slot,
    /// Done and total; 0 of 0 for unknown progress.
    pub told: (u64, u64),
}

impl App {
    /// Progress of the oldest long job on the screen.
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

    /// Whether the screen shows an answer whose renewal was stopped.
    pub fn is_older(&self) -> bool {
        self.older.iter().any(|slot| slot.is_shown_in(self.current))
    }

    /// Handles a tick.
    pub(super) fn tick(&mut self) {
        self.running.values_mut().for_each(|one| one.ticks += 1);
    }

    /// Stops all jobs; returns a message, or an empty one without jobs.
    pub(super) fn stop_all(&mut self) -> &'static str {
        self.running.values().for_each(|one| one.stop.stop());
        if self.running.keys().any(|slot| slot.is_of_screen()) {
            "stopped: the screen is out of date; ^L updates it"
        } else if self.running.contains_key(&Slot::Export) {
            "export stopped"
        } else if self.running.contains_key(&Slot::Copy) {
            "copy stopped"
        } else {
            ""
        }
    }

    /// Renews stopped questions.
    pub(super) fn ask_again(&mut self) {
        if !self.older.is_empty() {
            self.older.clear();
            self.generation += 1;
        }
    }

    /// Handles a finished job.
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
        // The stop message already says that nothing is written.
        if !is_given_up {
            self.answered(profile, done.slot, done.question, effects);
        }
        if !is_answered {
            // A repeated question may fail again: it must not hold up others.
            self.grow(profile);
        }
    }

    /// Asks for missing answers.
    pub(super) fn ask(&mut self, profile: &Profile, effects: &mut Vec<Effect>) {
        let (stamp, filter) = (self.stamp(), self.filters.filter().clone());
        let summary = self.summary.ask((), stamp, move |profile, stop| {
            let summary = Arc::new(Summary::of(profile, &filter, stop)?);
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

    /// Starts a job and stops its predecessor in the slot.
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
                self.message = "the previous export was stopped".to_owned();
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
