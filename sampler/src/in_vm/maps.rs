//! A process's executable mappings, read repeatedly.

use std::time::Duration;

use vmscope_process::{MapEntry, read_maps};
use vmscope_records::{Avma, Pid, TimeNs};

use super::ns;
use crate::engine::{EngineEvent, RawMapping};
use crate::proc::POLL_EVERY;
use crate::sys;

/// Smallest pause between two readings.
const PAUSE: Duration = Duration::from_millis(100);

/// Minimum ratio of pause to reading time: limits readings to about 1/20 of a CPU.
const SHARE: u64 = 20;

/// Executable mappings, ascending.
#[derive(Debug, Default)]
pub(super) struct KnownMaps {
    entries: Vec<MapEntry>,
    /// A sample lay outside all known mappings.
    missed: bool,
    /// Time of the last reading.
    last: u64,
    /// Earliest time of the next reading.
    next: u64,
}

impl KnownMaps {
    /// Notes the pc of a sample.
    pub fn hit(&mut self, pc: u64) {
        if !self.missed {
            let after = self.entries.partition_point(|entry| entry.start.0 <= pc);
            let entry = after.checked_sub(1).and_then(|at| self.entries.get(at));
            self.missed = !entry.is_some_and(|entry| entry.contains(Avma(pc)));
        }
    }

    /// Reads the mappings if a reading is due. Returns new mappings, with the timestamp `time`.
    pub fn changes(&mut self, pid: u32, now: u64, time: u64) -> Vec<EngineEvent> {
        let is_old = now.saturating_sub(self.last) >= ns(POLL_EVERY);
        if now < self.next || !(is_old || self.missed) {
            return Vec::new();
        }
        let Ok(maps) = read_maps(Pid(pid)) else {
            return Vec::new();
        };
        let done = sys::monotonic_ns();
        let pause = ns(PAUSE).max(done.saturating_sub(now).saturating_mul(SHARE));
        (self.last, self.next) = (now, done.saturating_add(pause));
        self.missed = false;
        let mut entries = maps.entries;
        entries.retain(|entry| entry.executable);
        let before = std::mem::replace(&mut self.entries, entries);
        let is_new = |entry: &&MapEntry| {
            let at = before.partition_point(|known| known.start < entry.start);
            before.get(at) != Some(*entry)
        };
        let new = self.entries.iter().filter(is_new);
        new.map(|entry| mapped(pid, entry, time)).collect()
    }
}

fn mapped(pid: u32, entry: &MapEntry, time: u64) -> EngineEvent {
    EngineEvent::Mapped(Box::new(RawMapping {
        time: TimeNs(time),
        pid: Pid(pid),
        start: entry.start,
        len: entry.end.0.saturating_sub(entry.start.0),
        offset: entry.offset,
        major: (entry.device >> 32) as u32,
        minor: (entry.device & u64::from(u32::MAX)) as u32,
        inode: entry.inode,
        path: entry.name.clone(),
        executable: true,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_told_once_and_read_again_when_a_sample_misses_them() {
        let me = std::process::id();
        let mut maps = KnownMaps::default();
        let first = maps.changes(me, sys::monotonic_ns(), 5);
        assert!(!first.is_empty());
        assert!(first.iter().all(|event| event.time() == TimeNs(5)));
        let next = maps.next;
        assert!(maps.changes(me, next, 6).is_empty(), "nothing is new");
        let inside = mappings_are_told_once_and_read_again_when_a_sample_misses_them as fn();
        maps.hit(inside as usize as u64);
        assert!(!maps.missed);
        maps.hit(8);
        assert!(maps.missed);
        let (last, next) = (maps.last, maps.next);
        assert!(maps.changes(me, next - 1, 7).is_empty());
        assert_eq!(maps.last, last, "not so soon");
        maps.changes(me, next, 7);
        assert!(maps.last > last && !maps.missed, "it was read");
    }
}
