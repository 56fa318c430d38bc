//! Work that takes longer than a keystroke may: done off the drawing thread, the newest
//! question of each kind alone, the one before it stopped.

use super::views::ViewId;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use vmscope_symbolizer::Profile;
pub use vmscope_symbolizer::Stop;

/// Whom an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The summary, which all views show.
    Summary,
    /// A view, and which of its questions.
    View(ViewId, u8),
    /// What is shown, as text to be copied.
    Copy,
    /// What is shown, for a file.
    Export,
}

impl Slot {
    /// Whether it is something that a screen shows.
    pub fn is_of_screen(self) -> bool {
        !matches!(self, Slot::Copy | Slot::Export)
    }

    /// Whether it is something that is on the screen while that view is.
    pub fn is_shown_in(self, view: ViewId) -> bool {
        match self {
            Slot::Summary => true,
            Slot::View(id, _) => id == view,
            Slot::Copy | Slot::Export => false,
        }
    }

    /// What is worked out, in words that something may follow: `counting samples`.
    pub fn words(self) -> String {
        match self {
            Slot::Summary => "counting samples".to_owned(),
            Slot::View(id, _) => format!("working out {}", id.name().to_lowercase()),
            Slot::Copy => "copying".to_owned(),
            Slot::Export => "exporting".to_owned(),
        }
    }
}

/// An answer, of the type that the question's [`Fetched`] expects.
pub type Answer = Box<dyn Any + Send>;

/// The work: a pure function of the profile. Where it takes long, it looks at [`Stop`] each
/// millisecond or so, and answers `None` when that was wished.
pub type Work = Box<dyn FnOnce(&Profile, &Stop) -> Option<Answer> + Send>;

/// A question to be worked out.
pub struct Job {
    /// Whom the answer is for.
    pub slot: Slot,
    /// Its number: the newest of a slot counts.
    pub ticket: u64,
    /// Ends it early.
    pub stop: Stop,
    /// What is to be done.
    pub work: Work,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({:?} #{})", self.slot, self.ticket)
    }
}

impl Job {
    /// Works it out.
    pub fn run(self, profile: &Profile) -> Done {
        let answer = if self.stop.is_stopped() {
            None
        } else {
            (self.work)(profile, &self.stop)
        };
        Done {
            slot: self.slot,
            ticket: self.ticket,
            answer,
            took: Duration::ZERO,
        }
    }
}

/// A finished job.
pub struct Done {
    /// Whom the answer is for.
    pub slot: Slot,
    /// The job's number.
    pub ticket: u64,
    /// The answer; `None` where the job was stopped.
    pub answer: Option<Answer>,
    /// How long it took; nothing where nobody measured that.
    pub took: Duration,
}

impl std::fmt::Debug for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Done({:?} #{})", self.slot, self.ticket)
    }
}

/// What a question was asked about: the version of the filters and of the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Of the filters.
    pub filters: u64,
    /// Of the profile: it grows in the live view.
    pub profile: u64,
}

/// A question that a view has, not yet a job.
pub struct Question {
    /// Which of the view's questions.
    pub number: u8,
    /// What is to be done.
    pub work: Work,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Question({})", self.number)
    }
}

/// Something that is worked out again whenever `K` or what it was asked about changes.
/// Until the new answer is there, the old one is shown. Clones share it.
#[derive(Debug)]
pub struct Fetched<K, T> {
    asked: Option<(K, Stamp)>,
    /// What `value` is of.
    answered: Option<(K, Stamp)>,
    /// A question that no answer will come to: it was stopped.
    closed: Option<(K, Stamp)>,
    value: Option<Arc<T>>,
}

impl<K: Clone, T> Clone for Fetched<K, T> {
    fn clone(&self) -> Self {
        Fetched {
            asked: self.asked.clone(),
            answered: self.answered.clone(),
            closed: self.closed.clone(),
            value: self.value.clone(),
        }
    }
}

impl<K, T> Default for Fetched<K, T> {
    fn default() -> Self {
        Fetched {
            asked: None,
            answered: None,
            closed: None,
            value: None,
        }
    }
}

impl<K: PartialEq + Clone, T: Send + 'static> Fetched<K, T> {
    /// The question, unless the same was asked before.
    pub fn ask(
        &mut self,
        number: u8,
        key: K,
        stamp: Stamp,
        work: impl FnOnce(&Profile, &Stop) -> Option<T> + Send + 'static,
    ) -> Option<Question> {
        let asked = Some((key, stamp));
        if self.asked == asked {
            return None;
        }
        self.asked = asked;
        let work: Work = Box::new(move |profile, stop| {
            let answer = work(profile, stop)?;
            Some(Box::new(answer) as Answer)
        });
        Some(Question { number, work })
    }

    /// Takes the answer to the newest question; `None` that there is none: what was answered
    /// last stays.
    pub fn take(&mut self, answer: Option<Answer>) {
        let Some(answer) = answer else {
            // Stopped for a newer question, which has been asked since; or there is none.
            self.closed.clone_from(&self.asked);
            return;
        };
        // Another type can't come: the slot is this question's own.
        if let Ok(value) = answer.downcast::<T>() {
            self.value = Some(Arc::from(value));
            self.answered.clone_from(&self.asked);
        }
    }

    /// The newest answer, which may be to an older question.
    pub fn get(&self) -> Option<&T> {
        self.value.as_deref()
    }

    /// What the newest answer was asked about.
    pub fn answered(&self) -> Option<&(K, Stamp)> {
        self.answered.as_ref()
    }

    /// Whether an answer is being waited for.
    pub fn is_pending(&self) -> bool {
        self.asked != self.answered && self.asked != self.closed
    }
}
