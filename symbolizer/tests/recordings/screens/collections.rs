//! Collections of the fictitious JVM.

use super::super::PROCESS;
use super::{BEGIN, MS, ms};
use vmscope_records::{
    Collection, CollectionKey, CollectionScope, Phase, Record, SpaceUse, ThreadKey, TimeNs,
};

/// Collector threads.
pub const COLLECTORS: [ThreadKey; 2] = [ThreadKey(7), ThreadKey(8)];

const MB: u64 = 1 << 20;
/// Heap capacity.
pub const HEAP: u64 = 512 * MB;

/// Begin (ms), duration (µs), kind, observed ends (begin, end), heap used before and after (MB),
/// cause.
const TABLE: &str = "
  350   6200 young      be  24   6 Metadata GC Threshold
  900   9400 young      be  60  14 G1 Evacuation Pause
 1900   8100 young      be  90  22 G1 Evacuation Pause
 2800  11300 young      be 110  31 G1 Evacuation Pause
 4300   9900 young      be 140  40 G1 Evacuation Pause
 5900   8700 young      -e 150  48 G1 Evacuation Pause
 7400  10200 young      be 160  57 G1 Evacuation Pause
 8900   9700 young      be 170  66 G1 Evacuation Pause
10050  16100 young      be 230 120 G1 Evacuation Pause
10230  17400 young      be 280 190 G1 Evacuation Pause
10400  19800 young      be 330 260 G1 Humongous Allocation
10425 725000 concurrent be 262 300 G1 Humongous Allocation
10600  21300 young      be 360 300 G1 Evacuation Pause
10780  22600 young      be 400 350 G1 Evacuation Pause
11200  31500 mixed      be 440 390 G1 Evacuation Pause
11320  28700 mixed      be 450 410 G1 Evacuation Pause
11440  27900 mixed      be 470 440 G1 Evacuation Pause
11560  26400 mixed      be 490 470 G1 Evacuation Pause
11640 187000 full       be 505  70 G1 Compaction Pause
11880  12200 young      be 130  72 G1 Evacuation Pause
13100   9300 young      be 170  75 G1 Evacuation Pause
14600   9900 young      be 170  78 G1 Evacuation Pause
16400   8800 young      be 170  80 G1 Evacuation Pause
17700   9100 young      -e 170  83 G1 Evacuation Pause
18900   9500 young      b- 170  86 System.gc()
";

/// Pauses of the concurrent cycle: name, begin (ms), duration (µs).
const CYCLE_PAUSES: [(&str, u64, u64); 2] = [("remark", 10_950, 4_100), ("cleanup", 11_100, 1_200)];

const YOUNG_PHASES: &[(&str, u64)] = &[
    ("pre evacuate", 4),
    ("merge heap roots", 14),
    ("evacuate collection set", 66),
    ("post evacuate", 16),
];
const FULL_PHASES: &[(&str, u64)] = &[
    ("mark live objects", 40),
    ("prepare compaction", 12),
    ("adjust pointers", 20),
    ("compact heap", 28),
];

/// A true collection, observed or not. Times in ns.
#[derive(Clone, Debug)]
pub struct Happened {
    pub kind: &'static str,
    pub cause: &'static str,
    pub begin: u64,
    pub end: u64,
    pub observed: (bool, bool),
    pub before: u64,
    pub after: u64,
}

/// All collections by begin.
pub fn all() -> Vec<Happened> {
    let row = |row: &'static str| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let begin = ms(number(0));
        let (_, cause) = row.split_at(row.find(words[6]).unwrap());
        Happened {
            kind: words[2],
            cause,
            begin,
            end: begin + number(1) * 1_000,
            observed: (words[3].contains('b'), words[3].contains('e')),
            before: number(4) * MB,
            after: number(5) * MB,
        }
    };
    TABLE.trim().lines().map(row).collect()
}

/// The pause at a time: kind, and elapsed percentage.
pub fn pause_at(all: &[Happened], time: u64) -> Option<(&'static str, u64)> {
    let within = |begin: u64, end: u64| {
        let inside = begin <= time && time < end;
        inside.then(|| (time - begin) * 100 / (end - begin))
    };
    // No two stops overlap.
    let begun = &all[..all.partition_point(|one| one.begin <= time)];
    let last = begun.iter().rfind(|one| one.kind != "concurrent");
    let of_one = |one: &Happened| Some((one.kind, within(one.begin, one.end)?));
    let of_cycle = |&(name, begin, length): &(&'static str, u64, u64)| {
        Some((name, within(ms(begin), ms(begin) + length * 1_000)?))
    };
    let found = last.and_then(of_one);
    found.or_else(|| CYCLE_PAUSES.iter().find_map(of_cycle))
}

/// Whether the concurrent cycle is marking.
pub fn is_marking(all: &[Happened], time: u64) -> bool {
    let mut cycles = all.iter().filter(|one| one.kind == "concurrent");
    cycles.any(|one| one.begin <= time && time < one.end)
}

/// Used heap in bytes.
pub fn used_at(all: &[Happened], time: u64) -> u64 {
    let mut stops = all.iter().filter(|one| one.kind != "concurrent");
    let next = stops.clone().find(|one| one.begin > time);
    let last = stops.rfind(|one| one.end <= time);
    let (from, at) = last.map_or((2 * MB, BEGIN), |one| (one.after, one.end));
    let (to, until) = next.map_or((120 * MB, ms(20_000)), |one| (one.before, one.begin));
    from + to.saturating_sub(from) * time.saturating_sub(at).min(until - at) / (until - at)
}

impl Happened {
    pub fn record(&self, number: u64) -> Record {
        let stop_the_world = self.kind != "concurrent";
        let observed = |is: bool, time| is.then_some(TimeNs(time));
        let phases = match self.kind {
            "concurrent" => (CYCLE_PAUSES.iter())
                .map(|&(name, begin, length)| Phase {
                    name: name.into(),
                    begin: Some(TimeNs(ms(begin))),
                    end: Some(TimeNs(ms(begin) + length * 1_000)),
                    stop_the_world: true,
                    ..Phase::default()
                })
                .collect(),
            // Without an observed begin and end, phases are unobserved too.
            _ if self.observed != (true, true) => Vec::new(),
            "full" => self.phases(FULL_PHASES),
            _ => self.phases(YOUNG_PHASES),
        };
        Record::Collection(Box::new(Collection {
            key: CollectionKey(number),
            process: PROCESS,
            time: TimeNs(self.end + 5 * MS),
            collector: "G1".into(),
            kind: self.kind.into(),
            cause: self.cause.into(),
            number,
            begin: observed(self.observed.0, self.begin),
            end: observed(self.observed.1, self.end),
            scope: match stop_the_world {
                true => CollectionScope::Whole,
                false => CollectionScope::Cycle,
            },
            missed: 0,
            missed_ns: None,
            phases,
            spaces: if stop_the_world {
                self.spaces()
            } else {
                Vec::new()
            },
            survived_bytes: stop_the_world.then_some(self.after / 8),
            tenured_bytes: (self.kind == "young").then_some(self.after / 50),
            survived_objects: None,
            cpu_ns: None,
        }))
    }

    /// Consecutive phases; the longest has parts by thread.
    fn phases(&self, parts: &[(&str, u64)]) -> Vec<Phase> {
        let at = |percent: u64| TimeNs(self.begin + (self.end - self.begin) * percent / 100);
        let phase = |name: &str, (from, to): (u64, u64)| Phase {
            name: name.into(),
            begin: Some(at(from)),
            end: Some(at(to)),
            stop_the_world: true,
            ..Phase::default()
        };
        let mut phases = Vec::new();
        let mut from = 0;
        for &(name, percent) in parts {
            phases.push(phase(name, (from, from + percent)));
            from += percent;
        }
        let (longest, begin, end) = match self.kind {
            "full" => (0, 0, 40),
            _ => (2, 18, 84),
        };
        for (thread, early) in COLLECTORS.into_iter().zip([2, 5]) {
            phases.push(Phase {
                within: Some(longest),
                thread: Some(thread),
                ..phase("work of a thread", (begin + 1, end - early))
            });
        }
        phases
    }

    /// Eden is empty afterwards; survivors are in the other two spaces.
    fn spaces(&self) -> Vec<SpaceUse> {
        let space = |name: &str, before: u64, after: u64, capacity| SpaceUse {
            name: name.into(),
            before: Some(before),
            after: Some(after),
            capacity,
        };
        let eden = (self.before / 2).min(96 * MB);
        let (survivor, survived) = (eden / 16, self.after / 16);
        vec![
            space("eden", eden, 0, Some(128 * MB)),
            space("survivor", survivor, survived, None),
            space(
                "old",
                self.before - eden - survivor,
                self.after - survived,
                Some(HEAP - 160 * MB),
            ),
        ]
    }
}
