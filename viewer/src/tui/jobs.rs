//! Work that takes longer than a keystroke may: done off the drawing thread, the newest
//! question of each kind alone, the one before it stopped.

use super::views::ViewId;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use vmscope_symbolizer::Profile;
pub use vmscope_symbolizer::Stop;

/// Whom an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The summary, which all views show.
    Summary,
    /// A view, and which of its questions.
    View(ViewId, QuestionId),
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

/// Which of all questions: the newest one with an id replaces those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(u32);

impl QuestionId {
    /// One that nobody has.
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        QuestionId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The work: a pure function of the profile. Where it takes long, it looks at [`Stop`] each
/// millisecond or so, and gives up when that was wished. It puts its answer where the question's
/// [`Fetched`] finds it, and returns whether there is one.
pub type Work = Box<dyn FnOnce(&Profile, &Stop) -> bool + Send>;

/// A question to be worked out.
pub struct Job {
    /// Whom the answer is for.
    pub slot: Slot,
    /// The question.
    pub question: QuestionId,
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
        let is_answered = !self.stop.is_stopped() && (self.work)(profile, &self.stop);
        Done {
            slot: self.slot,
            question: self.question,
            ticket: self.ticket,
            is_answered,
            took: Duration::ZERO,
        }
    }
}

/// A finished job.
#[derive(Debug)]
pub struct Done {
    /// Whom the answer is for.
    pub slot: Slot,
    /// The question.
    pub question: QuestionId,
    /// The job's number.
    pub ticket: u64,
    /// Whether there is an answer: not where the job was stopped.
    pub is_answered: bool,
    /// How long it took; nothing where nobody measured that.
    pub took: Duration,
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
    /// Which one.
    pub id: QuestionId,
    /// What is to be done.
    pub work: Work,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.id)
    }
}

/// Something that is worked out again whenever `K` or what it was asked about changes.
/// Until the new answer is there, the old one is shown. Clones share it.
#[derive(Debug)]
pub struct Fetched<K, T> {
    id: QuestionId,
    asked: Option<(K, Stamp)>,
    /// What `value` is of.
    answered: Option<(K, Stamp)>,
    /// A question that no answer will come to: it was stopped.
    closed: Option<(K, Stamp)>,
    value: Option<Arc<T>>,
    /// Where the newest question's work puts its answer: each question has a place of its own.
    arriving: Arc<Mutex<Option<T>>>,
}

impl<K: Clone, T> Clone for Fetched<K, T> {
    fn clone(&self) -> Self {
        Fetched {
            id: self.id,
            asked: self.asked.clone(),
            answered: self.answered.clone(),
            closed: self.closed.clone(),
            value: self.value.clone(),
            arriving: Arc::clone(&self.arriving),
        }
    }
}

impl<K, T> Default for Fetched<K, T> {
    fn default() -> Self {
        Fetched {
            id: QuestionId::new(),
            asked: None,
            answered: None,
            closed: None,
            value: None,
            arriving: Arc::default(),
        }
    }
}

impl<K: PartialEq + Clone, T: Send + 'static> Fetched<K, T> {
    /// The question, unless the same was asked before.
    pub fn ask(
        &mut self,
        key: K,
        stamp: Stamp,
        work: impl FnOnce(&Profile, &Stop) -> Option<T> + Send + 'static,
    ) -> Option<Question> {
        let asked = Some((key, stamp));
        if self.asked == asked {
            return None;
        }
        self.asked = asked;
        self.arriving = Arc::default();
        let arriving = Arc::clone(&self.arriving);
        let work: Work = Box::new(move |profile, stop| {
            let answer = work(profile, stop);
            let is_answered = answer.is_some();
            *arriving.lock().unwrap_or_else(PoisonError::into_inner) = answer;
            is_answered
        });
        Some(Question { id: self.id, work })
    }

    /// Takes the answer to the newest question, where that is the one which has ended; whether
    /// there is a new answer. Where it was stopped, the answer before it stays.
    pub fn take(&mut self, ended: QuestionId) -> bool {
        if ended != self.id {
            return false;
        }
        let arrived = (self.arriving.lock())
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(value) = arrived else {
            // Stopped for a newer question, which has been asked since; or there is none.
            self.closed.clone_from(&self.asked);
            return false;
        };
        self.value = Some(Arc::new(value));
        self.answered.clone_from(&self.asked);
        true
    }

    /// Removes the newest answer, where nobody else has it.
    pub fn remove(&mut self) -> Option<T> {
        self.value.take().and_then(Arc::into_inner)
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
