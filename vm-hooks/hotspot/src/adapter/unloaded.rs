//! Compiled methods that were found when their classes were unloaded already, and their places
//! not used again yet. What they were is known from before; until the VM has counted which
//! classes it has unloaded that is not certain. That *some* code was there is: samples there
//! are not of what was there earlier.

use vmscope_process::Poll;
use vmscope_records::CodeChange;

use super::describe::{KnownFrom, describe};
use super::kept::Nmethods;
use super::methods::Methods;
use crate::code::NmethodId;

/// Those that were told without a name, and may have one yet.
#[derive(Debug, Default)]
pub(super) struct Unloaded {
    waiting: Vec<NmethodId>,
}

impl Unloaded {
    /// These were found while the VM had not counted what it unloads. Where it never does, those
    /// that are forgotten do not wait any more.
    pub fn wait(&mut self, found: impl IntoIterator<Item = NmethodId>, nmethods: &Nmethods) {
        self.waiting.retain(|id| nmethods.get(id).is_some());
        self.waiting.extend(found);
    }

    /// It has now: tells the names of those whose methods are known from before. What is not
    /// known now is not known later either.
    pub fn name(&mut self, nmethods: &mut Nmethods, methods: &mut Methods, poll: &mut Poll) {
        for id in self.waiting.drain(..) {
            let Some(kept) = nmethods.get_mut(&id) else {
                continue;
            };
            let Some(constituent) = &mut kept.constituent else {
                continue;
            };
            (kept.methods, kept.are_all) =
                describe(&kept.nmethod, constituent, KnownFrom::Before, methods, poll);
            if !constituent.name.is_empty() {
                poll.code(CodeChange::Seen(constituent.clone()));
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
