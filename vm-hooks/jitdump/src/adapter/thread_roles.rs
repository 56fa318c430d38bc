//! Roles of a process's threads, by thread names.

use std::collections::HashMap;

use vmscope_process::{Poll, ProcessView, ThreadInfo};
use vmscope_records::{ThreadRole, Tid};

use crate::vm::VmKind;

/// Most polls between two readings of the threads, while nothing changes.
const MOST_POLLS: u32 = 16;

/// Reports roles of new and renamed threads: a thread begins with the name of its starting
/// thread.
#[derive(Debug, Default)]
pub(super) struct ThreadRoles {
    emitted: HashMap<Tid, ThreadRole>,
    /// Polls until the next reading of the threads, and the last such number.
    wait: u32,
    last_wait: u32,
}

impl ThreadRoles {
    /// Reads the threads in each of the first polls, then ever more rarely while nothing changes.
    pub fn poll(&mut self, kind: VmKind, process: &ProcessView, poll: &mut Poll) {
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        let threads = process.threads().unwrap_or_default();
        let is_news = self.take(kind, &threads, poll);
        self.last_wait = if is_news {
            0
        } else {
            (self.last_wait * 2 + 1).min(MOST_POLLS)
        };
        self.wait = self.last_wait;
    }

    /// Reports new roles among `threads`, which are all threads of the process; returns whether there are any.
    fn take(&mut self, kind: VmKind, threads: &[ThreadInfo], poll: &mut Poll) -> bool {
        let mut told = HashMap::with_capacity(self.emitted.len());
        let mut is_news = false;
        for thread in threads {
            let Some(role) = kind.role_of_thread(&thread.name) else {
                continue;
            };
            told.insert(thread.tid, role);
            if self.emitted.get(&thread.tid) != Some(&role) {
                is_news = true;
                poll.thread(thread.tid, None, Some(role));
            }
        }
        self.emitted = told;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vmscope_process::KeySource;
    use vmscope_records::{ProcessKey, Record, TimeNs};

    use super::*;

    fn told(threads: &mut ThreadRoles, names: &[(u32, &str)]) -> Vec<u32> {
        let infos: Vec<ThreadInfo> = names
            .iter()
            .map(|(tid, name)| ThreadInfo {
                tid: Tid(*tid),
                inner_tid: Tid(*tid),
                name: (*name).to_owned(),
            })
            .collect();
        let mut poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(|| TimeNs(1)));
        threads.take(VmKind::Beam, &infos, &mut poll);
        let updates = poll.finish().into_iter().map(|record| match record {
            Record::ThreadUpdate(update) => update.key.placeholder().unwrap().0,
            other => panic!("{other:?}"),
        });
        updates.collect()
    }

    #[test]
    fn threads_that_come_later_or_get_their_name_later_are_told_once() {
        let mut threads = ThreadRoles::default();
        let (name, other) = ("1_scheduler", "x");
        assert!(VmKind::Beam.role_of_thread(name).is_some());
        assert_eq!(told(&mut threads, &[(1, other), (2, name)]), [2]);
        assert_eq!(told(&mut threads, &[(1, name), (2, name)]), [1]);
        let all = [(1, name), (2, name), (3, name)];
        assert_eq!(told(&mut threads, &all), [3]);
        assert!(told(&mut threads, &all).is_empty());
        // Its number was used again.
        assert!(told(&mut threads, &all[1..]).is_empty());
        assert_eq!(told(&mut threads, &all), [1]);
    }
}
