//! The adapter on any dump and perf map that grow, are cut and are written anew between
//! its polls, with samples that hit, and its `finish`. The files lie in memory.
#![no_main]

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use nix::sys::memfd::{MFdFlags, memfd_create};
use vmscope_jitdump::testing::Files;
use vmscope_jitdump::vm::VmKind;
use vmscope_process::testing::FakeMemory;
use vmscope_process::{Adapter, KeySource, MapEntry, ModuleFile, Poll, ProcessView};
use vmscope_records::{
    Avma, Constituent, ConstituentKey, FileOffset, MethodKey, PcMap, Pid, ProcessKey, Record,
    TimeNs,
};

/// Later than most dumps' times, so that their code counts.
const NOW: u64 = 1 << 62;

/// Polls while the files change; a dump's head may take this many.
const STEPS: usize = 8;

/// A process with memory that its VM generated code in.
static PROCESS: LazyLock<ProcessView> = LazyLock::new(|| {
    let generated = MapEntry {
        start: Avma(0x1000),
        end: Avma(0x2000),
        offset: FileOffset(0),
        device: 0,
        inode: 0,
        name: Vec::new(),
        readable: true,
        writable: true,
        executable: true,
    };
    ProcessView::fake(Pid(4711), Arc::new(FakeMemory::new()), vec![generated])
});

/// The dump and the perf map.
static FILES: LazyLock<[File; 2]> = LazyLock::new(|| {
    let file = |name: &str| memfd_create(name, MFdFlags::MFD_CLOEXEC).expect("a file in memory");
    ["dump", "map"].map(|name| File::from(file(name)))
});

/// A file's contents: a part of the input that grows and shrinks.
#[derive(Clone, Copy)]
struct Shown<'a> {
    bytes: &'a [u8],
    from: usize,
    to: usize,
}

impl Shown<'_> {
    /// One step: mostly the file grows.
    fn step(&mut self, step: u8) {
        let by = 1 << (step >> 3 & 15);
        match step % 8 {
            6 => self.to = self.from + (self.to - self.from) / 2,
            7 => {
                self.from = self.bytes.len().min(self.from + by);
                self.to = self.from;
            }
            _ => self.to = self.bytes.len().min(self.to + by),
        }
    }

    /// Writes what is new since `before`.
    fn write(&self, before: &Self, file: &File) {
        let mut length = before.to - before.from;
        if self.from != before.from || self.to < before.to {
            length = 0;
            file.set_len(0).expect("a file in memory");
        }
        let new = &self.bytes[self.from + length..self.to];
        if !new.is_empty() {
            file.write_all_at(new, length as u64)
                .expect("a file in memory");
        }
    }
}

/// All that was told.
#[derive(Default)]
struct Told {
    code: HashMap<ConstituentKey, (Box<Constituent>, bool)>,
    methods: HashSet<MethodKey>,
    records: usize,
}

impl Told {
    fn take(&mut self, records: Vec<Record>) {
        self.records += records.len();
        for record in records {
            match record {
                Record::Method(method) => assert!(self.methods.insert(method.key)),
                Record::Constituent(one) => {
                    self.check(&one);
                    let known = self.code.insert(one.key, (one, true));
                    assert!(known.is_none(), "told twice: {known:?}");
                }
                Record::ConstituentMoved(moved) => {
                    let (one, present) = self.code.get_mut(&moved.key).expect("told before");
                    assert!(*present && one.since <= moved.time && moved.last_seen <= moved.time);
                    let size = one.end.0 - one.start.0;
                    one.start = moved.to;
                    one.end = Avma(moved.to.0.checked_add(size).expect("an address"));
                }
                Record::ConstituentGone(gone) => {
                    let (one, present) = self.code.get_mut(&gone.key).expect("told before");
                    assert!(std::mem::replace(present, false), "gone twice: {one:?}");
                    assert!(one.since <= gone.time && gone.last_seen <= gone.time);
                }
                Record::Lost(lost) => assert!(lost.count > 0 && lost.from <= lost.to),
                _ => {}
            }
        }
    }

    fn check(&self, one: &Constituent) {
        assert!(one.start < one.end && !one.name.is_empty());
        assert!(one.absent_at.is_none_or(|absent| absent < one.since));
        assert!(one.method.is_none_or(|key| self.methods.contains(&key)));
        let PcMap::Covers { covers, chains } = &one.map else {
            return;
        };
        let size = one.end.0 - one.start.0;
        assert!(covers.iter().all(|cover| cover.start < cover.end));
        assert!(covers.is_sorted_by(|cover, next| cover.end <= next.start));
        assert!(covers.last().is_none_or(|last| u64::from(last.end) <= size));
        let is_known = |chain: u32| (chain as usize) < chains.len();
        assert!(covers.iter().all(|cover| is_known(cover.chain)));
        let frames = chains.iter().flatten();
        assert!(
            frames
                .into_iter()
                .all(|frame| self.methods.contains(&frame.method))
        );
    }

    /// The code that is there.
    fn present(&self) -> BTreeSet<(u64, u64, &str)> {
        let present = self.code.values().filter(|(_, present)| *present);
        present
            .map(|(one, _)| (one.start.0, one.end.0, one.name.as_str()))
            .collect()
    }

    /// An address in every other piece of code, in ascending order.
    fn samples(&self) -> Vec<Avma> {
        let present = self.present();
        let every_other = present.iter().step_by(2);
        every_other
            .map(|(start, end, _)| Avma(start + (end - start) / 2))
            .collect()
    }
}

/// Polls while the files take these steps, and then are whole; and finishes.
fn run(files: &Files, mut shown: [Shown<'_>; 2], steps: &[u8]) -> Told {
    let (keys, mut told) = (KeySource::new(), Told::default());
    let mut adapter: Box<dyn Adapter> = files.clone().adapter();
    for file in &*FILES {
        file.set_len(0).expect("a file in memory");
    }
    for number in 0..steps.len() + 2 {
        for (shown, file) in shown.iter_mut().zip(&*FILES) {
            let before = *shown;
            match steps.get(number) {
                Some(step) => shown.step(*step),
                None => shown.to = shown.bytes.len(),
            }
            shown.write(&before, file);
        }
        let time = TimeNs(NOW + number as u64);
        let poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(move || time));
        let mut poll = poll.with_touched(told.samples());
        let done = match number > steps.len() {
            false => adapter.poll(&PROCESS, &mut poll),
            true => adapter.finish(&PROCESS, &mut poll),
        };
        done.expect("files fail by limits");
        told.take(poll.finish());
    }
    told
}

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, flags, unsampled, low, high], rest)) = input.split_first_chunk() else {
        return;
    };
    let Some((steps, bytes)) = rest.split_first_chunk::<STEPS>() else {
        return;
    };
    // The map comes first: text is shorter.
    let split = usize::from(u16::from_le_bytes([low, high])).min(bytes.len());
    let (map, dump) = bytes.split_at(split);
    let file = |index: usize| {
        let file = FILES[index].try_clone().expect("a descriptor");
        Arc::new(ModuleFile::from_file(file).expect("a file in memory"))
    };
    let files = Files {
        kind: VmKind::ALL[usize::from(kind) % VmKind::ALL.len()],
        dumps: (!dump.is_empty()).then(|| file(0)).into_iter().collect(),
        map: (!map.is_empty()).then(|| file(1)),
        has_times: flags & 1 == 0,
        emit_from: TimeNs(if flags & 2 == 0 { 0 } else { NOW / 2 }),
        unsampled: (flags & 4 != 0).then_some(usize::from(unsampled)),
    };
    let shown = [dump, map].map(|bytes| Shown {
        bytes,
        from: 0,
        to: 0,
    });
    let told = run(&files, shown, steps);
    // Each poll may read the map anew, and a piece of code comes and goes once.
    assert!(told.records <= 2 * STEPS * bytes.len() + 1000);
    let present = told.present();
    let (mut end, mut last) = (0, "");
    for &(start, next, name) in &present {
        assert!(end <= start, "{last} overlaps {name}");
        (end, last) = (next, name);
    }
    // Growing files yield equal results in any pieces.
    if files.unsampled.is_none() && steps.iter().all(|step| step % 8 < 6) {
        let at_once = run(&files, shown, &[]);
        assert_eq!(at_once.present(), present);
    }
});
