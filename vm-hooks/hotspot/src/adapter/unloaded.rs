//! Nmethods found after their classes were unloaded, before the VM reused their memory. Earlier
//! readings know their methods, but until the VM counts the unloaded classes, their identity is
//! uncertain. Certainly *some* code was there, so samples there do not belong to earlier code.

use vmscope_process::Poll;
use vmscope_records::CodeChange;

use super::describe::{KnownFrom, describe};
use super::kept::Nmethods;
use super::methods::Methods;
use crate::code::NmethodId;

/// Nmethods reported without a name that may still get a name.
#[derive(Debug, Default)]
pub(super) struct Unloaded {
    waiting: Vec<NmethodId>,
}

/// The VM's count of an unloading whose dead code a reading finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedUnloading {
    /// The count is not in the poll's counters.
    NotYet,
    /// The counters have changed since the poll before, and the methods known before are those that died.
    Once,
    /// The VM unloaded classes again during the reading: the dead may be methods that no poll has met.
    Again,
}

impl Unloaded {
    /// Adds nmethods found before the VM counted the unloading. If the VM never counts,
    /// forgotten nmethods stop waiting.
    pub fn wait(&mut self, found: impl IntoIterator<Item = NmethodId>, nmethods: &Nmethods) {
        self.waiting.retain(|id| nmethods.get(id).is_some());
        self.waiting.extend(found);
    }

    /// The identity of all waiting nmethods stays uncertain.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }

    /// The VM has counted: reports names for nmethods with previously known methods. An nmethod
    /// still unknown now stays unknown.
    pub fn name(&mut self, nmethods: &mut Nmethods, methods: &mut Methods, poll: &mut Poll) {
        for id in self.waiting.drain(..) {
            let Some(kept) = nmethods.get_mut(&id) else {
                continue;
            };
            let Some(mut constituent) = kept.constituent.take() else {
                continue;
            };
            describe(kept, &mut constituent, KnownFrom::Before, methods, poll);
            if !constituent.name.is_empty() {
                poll.code(CodeChange::Seen(constituent));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use vmscope_records::Avma;

    use super::*;

    #[test]
    fn what_is_forgotten_does_not_wait() {
        let id = |compile_id| NmethodId {
            blob: Avma(0x1000),
            compile_id,
            osr: false,
        };
        let mut unloaded = Unloaded::default();
        for number in 0..1000 {
            unloaded.wait([id(number)], &Nmethods::default());
        }
        assert_eq!(unloaded.waiting, [id(999)]);
    }
}
