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
    /// [`Methods::unloadings`] at the readings that found these nmethods.
    unloadings: u64,
}

/// The VM's count of the unloading whose dead code a reading finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedUnloading {
    /// The last two readings saw equal counts.
    NotYet,
    /// The count has changed once since the last reading: the methods known before have died.
    Once,
    /// The VM may have unloaded classes several times: perhaps no poll has met the dead methods.
    Again,
}

impl CountedUnloading {
    /// `changes`: changes of the count since the last reading. `may_be_others`: whether code may have died in
    /// unloadings without a change.
    pub fn of(changes: u64, may_be_others: bool) -> Self {
        match (changes, may_be_others) {
            (0, false) => CountedUnloading::NotYet,
            (1, false) => CountedUnloading::Once,
            _ => CountedUnloading::Again,
        }
    }
}

impl Unloaded {
    /// Adds nmethods found after so many unloadings, before the VM counted the next. If the VM never counts,
    /// forgotten nmethods stop waiting.
    pub fn wait(
        &mut self,
        found: impl IntoIterator<Item = NmethodId>,
        unloadings: u64,
        nmethods: &Nmethods,
    ) {
        self.waiting.retain(|id| nmethods.get(id).is_some());
        self.waiting.extend(found);
        self.unloadings = unloadings;
    }

    /// Once the VM has counted, reports names for nmethods with previously known methods. An nmethod
    /// still unknown then stays unknown.
    pub fn name(&mut self, nmethods: &mut Nmethods, methods: &mut Methods, poll: &mut Poll) {
        let since = methods.unloadings() - self.unloadings;
        if since == 0 {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        for id in waiting.into_iter().filter(|_| since == 1) {
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
            unloaded.wait([id(number)], 0, &Nmethods::default());
        }
        assert_eq!(unloaded.waiting, [id(999)]);
    }
}
