//! What V8 itself tells of its code, for `perf`: a perf map, or a jitdump with times.

use std::path::Path;

use vmscope_jitdump::vm::{CodeName, VmKind};
use vmscope_jitdump::{dump, perf_map};

/// A piece of code.
#[derive(Debug)]
pub struct Told {
    pub start: u64,
    pub size: u64,
    /// `CLOCK_MONOTONIC`; 0 in a perf map.
    pub since: u64,
    /// Function, tier, start line.
    pub name: CodeName,
}

impl Told {
    fn new(start: u64, size: u64, since: u64, name: &str) -> Option<Self> {
        Some(Told {
            start,
            size,
            since,
            name: VmKind::V8.split(name),
        })
        .filter(|told| told.size > 0)
    }

    fn holds(&self, pc: u64) -> bool {
        (self.start..self.start + self.size).contains(&pc)
    }
}

/// V8's pieces of code, in V8's order.
pub struct Telling(pub Vec<Told>);

impl Telling {
    /// Takes the map of an ended process, and removes the file.
    pub fn of_map(pid: u32) -> Self {
        let path = format!("/tmp/perf-{pid}.map");
        let text = std::fs::read(&path).expect("V8's perf map");
        std::fs::remove_file(&path).expect("V8's perf map");
        let mut decoder = perf_map::Decoder::new();
        let mut all = Vec::new();
        while let Some(entry) = decoder.step(&text[offset(decoder.offset())..]) {
            all.extend(Told::new(entry.start.0, entry.size, 0, &entry.name));
        }
        Telling(all)
    }

    /// Takes the dump of an ended process, which worked in `place`.
    pub fn of_dump(pid: u32, place: &Path) -> Self {
        let bytes = std::fs::read(place.join(format!("jit-{pid}.dump"))).expect("V8's dump");
        let mut decoder = dump::Decoder::new();
        let mut all = Vec::new();
        loop {
            let window = &bytes[offset(decoder.offset())..];
            match decoder.step(window, bytes.len() as u64) {
                Ok(dump::Step::Event(dump::Event::Load(load))) => {
                    all.extend(Told::new(load.address.0, load.size, load.time, &load.name));
                }
                Ok(dump::Step::Event(_)) => {}
                end => {
                    assert_eq!(end, Ok(dump::Step::NotYet), "V8's dump");
                    return Telling(all);
                }
            }
        }
    }

    /// Names of the code at `pc`, each once. Times leave the last at `time`; without times, code that
    /// used the address one after another has several.
    pub fn at(&self, pc: u64, time: u64) -> Vec<&CodeName> {
        let mut names = Vec::new();
        let mut since = 0;
        for told in &self.0 {
            if !told.holds(pc) || told.since > time || told.since < since {
                continue;
            }
            if told.since > since {
                since = told.since;
                names.clear();
            }
            if !names.contains(&&told.name) {
                names.push(&told.name);
            }
        }
        names
    }
}

fn offset(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset")
}
