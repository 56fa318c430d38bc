//! The input becomes a session: loads, moves and ends of code, forks, samples. One recording holds
//! the whole session, another its newest part (`--keep-last`). Both name the kept samples alike.
#![no_main]

#[path = "../../tests/recordings/mod.rs"]
mod recordings;

use libfuzzer_sys::fuzz_target;
use recordings::live::rows;
use recordings::{PROCESS, Recording, THREAD, code, read};
use vmscope_records::recording::KeepLast;
use vmscope_records::{
    Constituent, DurationNs, EndReason, ProcessKey, RecordingEnd, ThreadKey, ThreadRole, TimeNs,
};
use vmscope_symbolizer::profile_of;

const ZONE: u64 = 0x10_0000;
const OTHER: ProcessKey = ProcessKey(2);
const CHILD: ProcessKey = ProcessKey(3);

/// A piece of code.
struct Piece {
    process: ProcessKey,
    start: u64,
    size: u64,
    since: u64,
    /// Whether the recording has its end.
    gone: bool,
    replaced: bool,
}

/// A polled VM, and its recording.
struct Session {
    recording: Recording,
    time: u64,
    last_poll: u64,
    has_child: bool,
    pieces: Vec<Piece>,
}

impl Session {
    fn new() -> Self {
        let mut recording = Recording::of("V8");
        let (thread, role) = (ThreadKey(2), ThreadRole::Mutator);
        recording
            .process(OTHER, 0, 200, None)
            .thread(thread, OTHER, 0, "other", role);
        Session {
            recording,
            time: 1,
            last_poll: 0,
            has_child: false,
            pieces: Vec::new(),
        }
    }

    /// One event: what, how much later, and two numbers.
    fn step(&mut self, [what, later, place, size]: [u8; 4]) {
        // Of two pieces of one time at one place, nobody could tell which the VM goes on to move.
        self.time += u64::from(later % 16) + u64::from(what % 8 < 6);
        let (time, is_exact) = (self.time, what & 8 == 0);
        let start = ZONE + u64::from(place % 64) * 0x20;
        match what % 8 {
            0 | 1 => {
                let process = [PROCESS, OTHER][usize::from(what >> 4 & 1)];
                self.load(process, start, 0x10 + u64::from(size % 8) * 0x10, is_exact);
            }
            2 | 3 => {
                let index = usize::from(place) % self.pieces.len().max(1);
                let Some(piece) = self.pieces.get_mut(index).filter(|piece| !piece.gone) else {
                    return;
                };
                let last_seen = match is_exact {
                    true => time,
                    false => self.last_poll.max(piece.since),
                };
                let key = index as u64 + 1;
                if what % 8 == 2 {
                    piece.gone = true;
                    self.recording.gone(key, last_seen, time);
                } else if !piece.replaced {
                    // No VM moves code that it replaced.
                    let to = ZONE + u64::from(size % 64) * 0x20;
                    self.recording.moved(key, last_seen, time, to);
                    (piece.start, piece.since) = (to, time);
                    self.replace(index);
                }
            }
            4 => self.last_poll = time,
            5 if !std::mem::replace(&mut self.has_child, true) => {
                let (thread, role) = (ThreadKey(3), ThreadRole::Mutator);
                self.recording
                    .process(CHILD, time, 300, Some(PROCESS))
                    .thread(thread, CHILD, time, "child", role);
            }
            _ => {
                let threads = if self.has_child { 3 } else { 2 };
                let thread = ThreadKey(THREAD.0 + u32::from(what >> 4) % threads);
                self.recording
                    .sample(time, thread, start + u64::from(size % 0x80));
            }
        }
    }

    fn load(&mut self, process: ProcessKey, start: u64, size: u64, is_exact: bool) {
        let key = self.pieces.len() as u64 + 1;
        let absent_at = (!is_exact && self.last_poll < self.time).then_some(TimeNs(self.last_poll));
        self.recording.constituent(Constituent {
            process,
            absent_at,
            ..code(key, self.time, start, start + size)
        });
        self.pieces.push(Piece {
            process,
            start,
            size,
            since: self.time,
            gone: false,
            replaced: false,
        });
        self.replace(self.pieces.len() - 1);
    }

    /// What the piece at `index` lies over is gone.
    fn replace(&mut self, index: usize) {
        let new = &self.pieces[index];
        let (process, start, end) = (new.process, new.start, new.start + new.size);
        for (other, piece) in self.pieces.iter_mut().enumerate() {
            let overlaps = piece.start < end && start < piece.start + piece.size;
            piece.replaced |= other != index && piece.process == process && overlaps;
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&[window, flush], events)) = input.split_first_chunk() else {
        return;
    };
    let mut session = Session::new();
    for event in events.as_chunks().0.iter().take(500) {
        session.step(*event);
    }
    let mut kept = KeepLast::new(DurationNs(1 + u64::from(window)), usize::MAX);
    for part in session.recording.records().chunks(8 + usize::from(flush)) {
        part.iter().for_each(|record| kept.put(record.clone()));
        kept.flush().expect("memory takes everything");
    }
    let end = RecordingEnd {
        time: TimeNs(session.time),
        reason: EndReason::Saved,
        detail: String::new(),
        samples: 0,
        recorder_cpu_ns: 0,
    };
    let (kept, _) = kept.save(Vec::new(), end).expect("memory takes everything");
    let whole = rows(&session.recording.profile());
    let kept = rows(&profile_of(
        read(&kept).expect("a recording"),
        Vec::new(),
        true,
    ));
    let from = session.time.saturating_sub(1 + u64::from(window));
    let dropped = whole
        .len()
        .checked_sub(kept.len())
        .expect("no more than all");
    assert!(whole[..dropped].iter().all(|(time, ..)| time.0 < from));
    assert_eq!(kept, whole[dropped..]);
});
