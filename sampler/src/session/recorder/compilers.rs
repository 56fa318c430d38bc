//! Compilations from adapters, which know threads by tid: adds the recording's keys.

use vmscope_process::CompilationNews;
use vmscope_records::{
    DurationNs, LossReason, Lost, ProcessKey, Record, Stream, ThreadKey, Tid, TimeNs,
};

/// Compilations without a thread key.
const MAX_WAITING: usize = 4096;

/// Longest wait for the key; the engine reports a thread some tenths of a second after its start.
const WAIT_FOR: DurationNs = DurationNs(5_000_000_000);

/// Compilations of threads unknown to the engine so far.
#[derive(Debug, Default)]
pub(super) struct Compilers {
    waiting: Vec<(ProcessKey, CompilationNews)>,
}

impl Compilers {
    /// Converts new and waiting compilations to records; counts dropped compilations (too old, too
    /// many).
    pub fn take(
        &mut self,
        process: ProcessKey,
        news: Vec<CompilationNews>,
        key_of: impl Fn(ProcessKey, Tid) -> Option<ThreadKey>,
        out: &mut Vec<Record>,
    ) {
        let newest = news.iter().map(told_at).max().unwrap_or_default();
        let waited = std::mem::take(&mut self.waiting);
        // Oldest first: the newest state of a compilation replaces older ones.
        let all = (waited.into_iter()).chain(news.into_iter().map(|one| (process, one)));
        let mut lost = Vec::new();
        for (process, one) in all {
            let at = told_at(&one);
            if let Some(thread) = key_of(process, one.tid) {
                out.push(Record::Compilation(Box::new(one.of(process, thread))));
            } else if newest.since(at) > WAIT_FOR {
                lost.push(one);
            } else if let Some(known) = self.waiting.iter_mut().find(|known| is_same(known, &one)) {
                known.1 = one;
            } else if self.waiting.len() < MAX_WAITING {
                self.waiting.push((process, one));
            } else {
                lost.push(one);
            }
        }
        count(&lost, out);
    }

    /// Counts the waiting compilations as lost.
    pub fn finish(&mut self, out: &mut Vec<Record>) {
        let waiting = std::mem::take(&mut self.waiting);
        let lost: Vec<_> = waiting.into_iter().map(|(_, one)| one).collect();
        count(&lost, out);
    }
}

fn told_at(news: &CompilationNews) -> TimeNs {
    news.gone_at.unwrap_or(news.last_seen)
}

fn is_same(known: &(ProcessKey, CompilationNews), other: &CompilationNews) -> bool {
    let of = |news: &CompilationNews| (news.tid, news.id, news.first_seen);
    of(&known.1) == of(other)
}

fn count(lost: &[CompilationNews], out: &mut Vec<Record>) {
    let from = lost.iter().map(|news| news.first_seen).min();
    let to = lost.iter().map(told_at).max();
    if let (Some(from), Some(to)) = (from, to) {
        out.push(Record::Lost(Lost {
            stream: Stream::Adapter,
            reason: LossReason::Other,
            count: lost.len() as u64,
            from,
            to,
            thread: None,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn seen(tid: u32, id: u64, first: u64, last: u64) -> CompilationNews {
        CompilationNews {
            tid: Tid(tid),
            id,
            first_seen: TimeNs(first),
            last_seen: TimeNs(last),
            ..CompilationNews::default()
        }
    }

    fn told(records: Vec<Record>) -> (Vec<(u32, u64, u64)>, u64) {
        let (mut told, mut lost) = (Vec::new(), 0);
        for record in records {
            match record {
                Record::Compilation(one) => told.push((one.thread.0, one.id, one.last_seen.0)),
                Record::Lost(one) => lost += one.count,
                other => panic!("{other:?}"),
            }
        }
        (told, lost)
    }

    #[test]
    fn a_compilation_waits_for_its_thread_and_not_for_ever() {
        let mut compilers = Compilers::default();
        let process = ProcessKey(1);
        let (nobody, all) = (|_, _| None, |_, tid: Tid| Some(ThreadKey(tid.0 + 100)));
        let mut out = Vec::new();
        compilers.take(process, vec![seen(7, 1, 10, 20)], nobody, &mut out);
        compilers.take(process, vec![seen(7, 1, 10, 30)], nobody, &mut out);
        assert!(out.is_empty(), "{out:?}");
        compilers.take(process, vec![seen(8, 2, 40, 40)], all, &mut out);
        assert_eq!(told(out), (vec![(107, 1, 30), (108, 2, 40)], 0));

        let mut out = Vec::new();
        compilers.take(process, vec![seen(7, 3, 50, 60)], nobody, &mut out);
        let later = seen(9, 4, 9 * SECOND, 9 * SECOND);
        compilers.take(process, vec![later], nobody, &mut out);
        assert_eq!(told(std::mem::take(&mut out)), (vec![], 1));
        compilers.finish(&mut out);
        assert_eq!(told(out), (vec![], 1), "the one that still waited");
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let mut compilers = Compilers::default();
        let all = (0..5000).map(|id| seen(7, id, id, id)).collect();
        let mut out = Vec::new();
        compilers.take(ProcessKey(1), all, |_, _| None, &mut out);
        assert_eq!(told(out), (vec![], 5000 - MAX_WAITING as u64));
    }

    #[test]
    fn what_is_told_in_a_wrong_order_is_put_right() {
        let mut news = seen(1, 1, 50, 40);
        (news.absent_at, news.gone_at) = (Some(TimeNs(60)), Some(TimeNs(45)));
        let one = news.of(ProcessKey(1), ThreadKey(1));
        let times = (one.absent_at, one.first_seen, one.last_seen, one.gone_at);
        let at = TimeNs(50);
        assert_eq!(times, (Some(at), at, at, Some(at)));
    }
}
