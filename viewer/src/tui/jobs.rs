//! Work off the drawing thread. A new question of one kind stops the previous one.

use super::view_id::ViewId;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use vmscope_symbolizer::Profile;
pub use vmscope_symbolizer::Stop;

/// Recipient of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// Summary, shared by all views.
    Summary,
    /// A view's question.
    View(ViewId, QuestionId),
    /// Text for the clipboard.
    Copy,
    /// File export.
    Export,
}

impl Slot {
    /// Whether a screen shows the answer.
    pub fn is_of_screen(self) -> bool {
        !matches!(self, Slot::Copy | Slot::Export)
    }

    /// Whether the screen of a view shows the answer.
    pub fn is_shown_in(self, view: ViewId) -> bool {
        match self {
            Slot::Summary => true,
            Slot::View(id, _) => id == view,
            Slot::Copy | Slot::Export => false,
        }
    }

    /// Name of the work, as the start of a sentence: `counting samples`.
    pub fn words(self) -> String {
        match self {
            Slot::Summary => "counting samples".to_owned(),
            Slot::View(id, _) => format!("working out {}", id.name().to_lowercase()),
            Slot::Copy => "copying".to_owned(),
            Slot::Export => "exporting".to_owned(),
        }
    }
}

/// Identity of a question: a newer question with the same id replaces an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(u32);

impl QuestionId {
    /// Unused id.
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        QuestionId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Pure function of the profile. Long work checks [`Stop`] about once a millisecond. The answer
/// goes to the question's [`Fetched`]; the result says whether an answer exists.
pub type Work = Box<dyn FnOnce(&Profile, &Stop) -> bool + Send>;

/// Question under way.
pub struct Job {
    /// Recipient of the answer.
    pub slot: Slot,
    /// Question.
    pub question: QuestionId,
    /// Sequence number: the newest job of a slot wins.
    pub ticket: u64,
    /// Stop flag.
    pub stop: Stop,
    /// Work.
    pub work: Work,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({:?} #{})", self.slot, self.ticket)
    }
}

impl Job {
    /// Runs the work.
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

/// Finished job.
#[derive(Debug)]
pub struct Done {
    /// Recipient of the answer.
    pub slot: Slot,
    /// Question.
    pub question: QuestionId,
    /// Sequence number.
    pub ticket: u64,
    /// Whether an answer exists: `false` after a stop.
    pub is_answered: bool,
    /// Duration; zero for unmeasured work.
    pub took: Duration,
}

/// Versions of filters and profile behind a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Version of the filters.
    pub filters: u64,
    /// Version of the profile, which grows in the live view.
    pub profile: u64,
}

/// Question of a view, before it becomes a job.
pub struct Question {
    /// Identity.
    pub id: QuestionId,
    /// Work.
    pub work: Work,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.id)
    }
}

/// Answer to a question about `K`, renewed after every change of key, filters or profile. The old
/// answer stays until the new one arrives. Clones share the answer.
#[derive(Debug)]
pub struct Fetched<K, T> {
    id: QuestionId,
    asked: Option<(K, Stamp)>,
    /// Key and stamp of `value`.
    answered: Option<(K, Stamp)>,
    /// Question that was stopped: no answer will arrive.
    closed: Option<(K, Stamp)>,
    value: Option<Arc<T>>,
    /// Mailbox of the newest question; every question has its own.
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
    /// Asks a question; `None` for the question asked before.
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

    /// Receives the answer after question `ended` finished. Returns `true` for a new answer; a
    /// stopped question keeps the previous answer.
    pub fn take(&mut self, ended: QuestionId) -> bool {
        if ended != self.id {
            return false;
        }
        let arrived = (self.arriving.lock())
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(value) = arrived else {
            // Stopped by a newer question, or by the user.
            self.closed.clone_from(&self.asked);
            return false;
        };
        self.value = Some(Arc::new(value));
        self.answered.clone_from(&self.asked);
        true
    }

    /// Removes and returns the newest answer, unless a clone shares it.
    pub fn remove(&mut self) -> Option<T> {
        self.value.take().and_then(Arc::into_inner)
    }

    /// Newest answer, possibly to an older question.
    pub fn get(&self) -> Option<&T> {
        self.value.as_deref()
    }

    /// Key and stamp of the newest answer.
    pub fn answered(&self) -> Option<&(K, Stamp)> {
        self.answered.as_ref()
    }

    /// Whether an answer is due.
    pub fn is_pending(&self) -> bool {
        self.asked != self.answered && self.asked != self.closed
    }
}
