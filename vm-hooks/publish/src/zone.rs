//! A reader's books of the constituents that exist, from a stream that it joined late.
//!
//! Between `SnapshotBegin` and `SnapshotEnd` the VM describes existing constituents while its other
//! threads go on publishing. The describing thread may look at a constituent before another thread
//! removes or moves it, and describe it afterwards. So within a snapshot:
//!
//! - a removed constituent stays removed even if a later description shows it, because ids are
//!   never reused;
//! - the place and cases of the newest change stay, whatever a later description says;
//! - a constituent neither described nor new no longer exists.
//!
//! These rules are exact if the VM makes each change in its own tables first, and publishes the
//! change afterwards. Changes published before `SnapshotBegin` are in the VM's tables when the
//! description begins, so the description shows them. (The ring orders the two: its head is changed
//! with acquire and release.) Later changes are published later, so the stream shows them after
//! `SnapshotBegin`.
//!
//! After a loss the books may be wrong until the next snapshot ends.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::event::{Cases, Constituent, Event, PicCase};

/// Maximum number of constituents in the books: further constituents get [`Complaint::TooMany`].
pub const MOST_CONSTITUENTS: usize = 1 << 22;

/// Maximum number of PIC cases kept for later descriptions.
const MOST_CASES: usize = 1 << 20;

/// The constituents that exist.
#[derive(Debug, Default)]
pub struct Zone {
    living: HashMap<u64, Place>,
    window: Option<Window>,
    synced: bool,
}

/// Where a constituent lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First address.
    pub start: u64,
    /// First address after the code.
    pub end: u64,
}

/// What has happened since a snapshot began.
#[derive(Debug, Default)]
struct Window {
    number: u64,
    found: HashSet<u64>,
    gone: HashSet<u64>,
    moved: HashMap<u64, u64>,
    cases: HashMap<u64, Cow<'static, [PicCase<'static>]>>,
    kept_cases: usize,
}

/// What an event means for the constituents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The event is about something else.
    None,
    /// A constituent, new or with later data. The event holds its newest place and cases.
    Seen {
        /// Whether the books lacked the constituent.
        new: bool,
    },
    /// An outdated description of a removed constituent: leave it out.
    Outdated,
    /// A constituent was removed.
    Gone,
    /// A constituent lies elsewhere.
    Moved,
    /// A constituent has other cases.
    Cases,
    /// A change of an unknown constituent: leave it out. A later description may show the
    /// constituent. Or a thread published this older change only after the constituent's removal,
    /// and a snapshot left the constituent out.
    Unknown,
    /// A snapshot ended, and the books are right. The missing constituents are gone: the stream
    /// lost their removal.
    Complete {
        /// Their ids.
        missing: Vec<u64>,
    },
    /// The event makes no sense: leave it out.
    Complaint(Complaint),
}

/// Nonsense that a VM published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Complaint {
    /// A constituent with an empty, reversed or overflowing address range.
    EmptyRange,
    /// A new constituent reuses the id of a removed constituent.
    ReusedId,
    /// There are too many constituents.
    TooMany,
}

impl Zone {
    /// Whether the books are right: a snapshot ended, and nothing was lost since.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Number of constituents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.living.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.living.is_empty()
    }

    /// Where a constituent lies, if it exists.
    #[must_use]
    pub fn place(&self, id: u64) -> Option<Place> {
        self.living.get(&id).copied()
    }

    /// All constituents, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Place)> {
        self.living.iter().map(|(&id, &place)| (id, place))
    }

    /// Notes that events were lost. Ask the VM for a snapshot.
    pub fn lost(&mut self) {
        self.synced = false;
        self.window = None;
    }

    /// Notes an event, and returns its meaning. Puts the newest place and cases into a description.
    pub fn apply(&mut self, event: &mut Event<'static>) -> Change {
        match event {
            Event::SnapshotBegin(snapshot) => {
                self.window = Some(Window {
                    number: snapshot.number,
                    ..Window::default()
                });
                Change::None
            }
            Event::SnapshotEnd(snapshot) => self.end(snapshot.number),
            Event::Constituent(constituent) => self.constituent(constituent),
            Event::Described(constituent) => self.described(constituent),
            Event::Gone(gone) => self.gone(gone.id),
            Event::Moved(moved) => self.moved(moved.id, moved.to),
            Event::Cases(cases) => self.cases(cases),
            _ => Change::None,
        }
    }

    fn end(&mut self, number: u64) -> Change {
        let Some(window) = self.window.take_if(|window| window.number == number) else {
            return Change::None;
        };
        let mut missing = Vec::new();
        self.living.retain(|&id, _| {
            let found = window.found.contains(&id);
            if !found {
                missing.push(id);
            }
            found
        });
        self.synced = true;
        Change::Complete { missing }
    }

    fn constituent(&mut self, constituent: &Constituent<'_>) -> Change {
        let id = constituent.id;
        if let Some(window) = &mut self.window {
            if window.gone.contains(&id) {
                return Change::Complaint(Complaint::ReusedId);
            }
            // A description later in this snapshot is older.
            window.moved.insert(id, constituent.start);
        }
        self.see(constituent)
    }

    fn described(&mut self, constituent: &mut Constituent<'static>) -> Change {
        let id = constituent.id;
        if let Some(window) = &self.window {
            if window.gone.contains(&id) {
                return Change::Outdated;
            }
            if let Some(&start) = window.moved.get(&id) {
                let bytes = constituent.end.wrapping_sub(constituent.start);
                constituent.start = start;
                constituent.end = start.wrapping_add(bytes);
            }
            if let Some(cases) = window.cases.get(&id) {
                constituent.cases = cases.clone();
            }
        }
        self.see(constituent)
    }

    fn see(&mut self, constituent: &Constituent<'_>) -> Change {
        let &Constituent { id, start, end, .. } = constituent;
        if end <= start {
            return Change::Complaint(Complaint::EmptyRange);
        }
        let full = self.living.len() >= MOST_CONSTITUENTS;
        let place = Place { start, end };
        let new = match self.living.entry(id) {
            Entry::Occupied(mut known) => {
                known.insert(place);
                false
            }
            Entry::Vacant(_) if full => return Change::Complaint(Complaint::TooMany),
            Entry::Vacant(free) => {
                free.insert(place);
                true
            }
        };
        if let Some(window) = &mut self.window {
            window.found.insert(id);
        }
        Change::Seen { new }
    }

    fn gone(&mut self, id: u64) -> Change {
        if let Some(window) = &mut self.window {
            window.found.remove(&id);
            window.moved.remove(&id);
            window.cases.remove(&id);
            window.gone.insert(id);
            if window.gone.len() > MOST_CONSTITUENTS {
                self.lost();
            }
        }
        match self.living.remove(&id) {
            Some(_) => Change::Gone,
            None => Change::Unknown,
        }
    }

    fn moved(&mut self, id: u64, to: u64) -> Change {
        let known = self.living.get_mut(&id);
        let change = match known {
            Some(place) => match to.checked_add(place.end - place.start) {
                Some(end) => {
                    *place = Place { start: to, end };
                    Change::Moved
                }
                None => return Change::Complaint(Complaint::EmptyRange),
            },
            None => Change::Unknown,
        };
        if let Some(window) = &mut self.window {
            window.moved.insert(id, to);
            if change == Change::Moved {
                window.found.insert(id);
            }
            if window.moved.len() > MOST_CONSTITUENTS {
                self.lost();
            }
        }
        change
    }

    fn cases(&mut self, cases: &Cases<'static>) -> Change {
        if let Some(window) = &mut self.window {
            window.kept_cases += cases.cases.len() + 1;
            window.cases.insert(cases.id, cases.cases.clone());
            if window.kept_cases > MOST_CASES {
                self.lost();
            }
        }
        if self.living.contains_key(&cases.id) {
            if let Some(window) = &mut self.window {
                window.found.insert(cases.id);
            }
            return Change::Cases;
        }
        Change::Unknown
    }
}

#[cfg(test)]
mod tests;
