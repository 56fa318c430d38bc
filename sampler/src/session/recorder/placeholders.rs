//! Records of adapters, which know threads by tid: puts the recording's keys in.

use std::collections::HashMap;

use vmscope_records::{
    DurationNs, LossReason, Lost, ProcessKey, Record, Stream, ThreadKey, Tid, TimeNs,
};

/// Maximum number of waiting records: more than any process has threads.
const MAX_WAITING: usize = 1 << 16;

/// Longest wait of a compilation; the engine reports a thread some tenths of a second after its start.
const WAIT_FOR: DurationNs = DurationNs(5_000_000_000);

/// Names, roles and compilations of threads unknown to the engine so far.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    waiting: HashMap<(ProcessKey, Tid), Vec<Record>>,
    count: usize,
    /// Time of the last removal of compilations that waited too long.
    swept_at: TimeNs,
    /// Number of compilations that waited too long or had no room, and their earliest and latest time.
    lost: Option<(u64, TimeNs, TimeNs)>,
}

impl Placeholders {
    /// Replaces the placeholders in `record`, of an adapter of `process`, by keys. Returns the record
    /// unless it waits for its thread. A phase or births of an unknown thread lose it.
    pub fn resolve(
        &mut self,
        process: ProcessKey,
        mut record: Record,
        key_of: impl Fn(Tid) -> Option<ThreadKey>,
    ) -> Option<Record> {
        let known = |key: ThreadKey| key.placeholder().map_or(Some(key), &key_of);
        let key = match &mut record {
            Record::Collection(collection) => {
                for phase in &mut collection.phases {
                    phase.thread = phase.thread.and_then(known);
                }
                return Some(record);
            }
            Record::Births(births) => {
                births.thread = births.thread.and_then(known);
                return Some(record);
            }
            Record::Compilation(compilation) => &mut compilation.thread,
            Record::ThreadUpdate(update) => &mut update.key,
            _ => return Some(record),
        };
        if let Some(found) = known(*key) {
            *key = found;
            return Some(record);
        }
        let placeholder = key.placeholder();
        self.sweep(&record);
        match placeholder {
            Some(tid) if self.count < MAX_WAITING => {
                self.count += 1;
                let waiting = self.waiting.entry((process, tid)).or_default();
                waiting.push(record);
            }
            _ => self.lose(&record),
        }
        None
    }

    /// Takes the records that wait for a thread which starts at `now`. Older compilations are of an
    /// earlier thread with the same id, and count as lost.
    pub fn take(&mut self, process: ProcessKey, tid: Tid, now: TimeNs) -> Vec<Record> {
        let waited = self.waiting.remove(&(process, tid)).unwrap_or_default();
        self.count -= waited.len();
        let (late, mut waited): (Vec<_>, Vec<_>) =
            waited.into_iter().partition(|record| is_late(record, now));
        late.iter().for_each(|record| self.lose(record));
        for record in &mut waited {
            // A change follows the thread's start.
            if let Record::ThreadUpdate(update) = record {
                update.time = update.time.max(now);
            }
        }
        waited
    }

    /// Removes late compilations, at most once per [`WAIT_FOR`]: threads that the engine never reports
    /// must not fill the room of others.
    fn sweep(&mut self, newest: &Record) {
        let Some(now) = newest
            .time()
            .filter(|now| now.since(self.swept_at) > WAIT_FOR)
        else {
            return;
        };
        self.swept_at = now;
        let mut late = Vec::new();
        for waiting in self.waiting.values_mut() {
            late.extend(waiting.extract_if(.., |record| is_late(record, now)));
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        self.count -= late.len();
        late.iter().for_each(|record| self.lose(record));
    }

    fn lose(&mut self, record: &Record) {
        if let Record::Compilation(one) = record {
            let (from, to) = (one.first_seen, one.emitted_at());
            let lost = self.lost.unwrap_or((0, from, to));
            self.lost = Some((lost.0 + 1, lost.1.min(from), lost.2.max(to)));
        }
    }

    /// Counts the compilations without a thread as lost.
    pub fn finish(&mut self, out: &mut Vec<Record>) {
        let waiting = std::mem::take(&mut self.waiting);
        let waiting = waiting.into_values().flatten();
        waiting.for_each(|record| self.lose(&record));
        self.count = 0;
        out.extend(self.lost.take().map(|(count, from, to)| {
            Record::Lost(Lost {
                stream: Stream::Adapter,
                reason: LossReason::Other,
                count,
                from,
                to,
                thread: None,
            })
        }));
    }
}

/// Whether a compilation has waited too long at `now`.
fn is_late(record: &Record, now: TimeNs) -> bool {
    match record {
        Record::Compilation(one) => now.since(one.emitted_at()) > WAIT_FOR,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::{Births, Collection, Compilation, Phase, ThreadUpdate};

    const PROCESS: ProcessKey = ProcessKey(1);
    const TID: Tid = Tid(7);

    fn compilation(id: u64, at: u64) -> Record {
        Record::Compilation(Box::new(Compilation {
            process: PROCESS,
            thread: ThreadKey::of_tid(TID),
            id,
            first_seen: TimeNs(at),
            last_seen: TimeNs(at),
            ..Compilation::default()
        }))
    }

    fn nobody(_: Tid) -> Option<ThreadKey> {
        None
    }

    fn key(tid: Tid) -> Option<ThreadKey> {
        Some(ThreadKey(tid.0 + 100))
    }

    #[test]
    fn known_threads_get_their_keys() {
        let mut placeholders = Placeholders::default();
        let thread = Some(ThreadKey::of_tid(TID));
        let phase = Phase {
            thread,
            ..Phase::default()
        };
        let records = [
            Record::Births(Box::new(Births::new(PROCESS, thread))),
            Record::Collection(Box::new(Collection {
                phases: vec![phase],
                ..Collection::default()
            })),
            compilation(1, 10),
        ];
        let keys = records.map(|record| match placeholders.resolve(PROCESS, record, key) {
            Some(Record::Births(births)) => births.thread,
            Some(Record::Collection(one)) => one.phases[0].thread,
            Some(Record::Compilation(one)) => Some(one.thread),
            other => panic!("{other:?}"),
        });
        assert_eq!(keys, [Some(ThreadKey(107)); 3]);
    }

    #[test]
    fn names_wait_and_compilations_do_so_for_a_while() {
        let mut placeholders = Placeholders::default();
        let name = Record::ThreadUpdate(ThreadUpdate {
            key: ThreadKey::of_tid(TID),
            time: TimeNs(0),
            name: Some("C2".into()),
            role: None,
            process: None,
        });
        let now = 9_000_000_000;
        for record in [name, compilation(1, 10), compilation(2, now)] {
            assert_eq!(placeholders.resolve(PROCESS, record, nobody), None);
        }
        // Another process has a thread of this number.
        assert!(
            placeholders
                .take(ProcessKey(2), TID, TimeNs(now))
                .is_empty()
        );
        let mut lost = Vec::new();
        let waited = placeholders.take(PROCESS, TID, TimeNs(now));
        assert!(matches!(
            &waited[..],
            [Record::ThreadUpdate(_), Record::Compilation(one)] if one.id == 2
        ));
        for id in 0..MAX_WAITING as u64 + 5 {
            placeholders.resolve(PROCESS, compilation(id, now), nobody);
        }
        placeholders.finish(&mut lost);
        let [Record::Lost(lost)] = &lost[..] else {
            panic!("{lost:?}")
        };
        assert_eq!(lost.count, 1 + 5 + MAX_WAITING as u64);
    }

    #[test]
    fn compilations_of_unknown_threads_make_room() {
        let mut placeholders = Placeholders::default();
        for id in 0..MAX_WAITING as u64 {
            placeholders.resolve(PROCESS, compilation(id, 1), nobody);
        }
        let later = 10_000_000_000;
        placeholders.resolve(PROCESS, compilation(0, later), nobody);
        let waited = placeholders.take(PROCESS, TID, TimeNs(later));
        assert_eq!(waited.len(), 1);
        let mut lost = Vec::new();
        placeholders.finish(&mut lost);
        assert!(matches!(&lost[..], [Record::Lost(lost)] if lost.count == MAX_WAITING as u64));
    }
}
