//! Predicted savings on a small generational heap. The heap runs a program, is recorded, and runs
//! the program again as the advice says: the difference is the truth.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test, with small numbers"
)]

mod recordings;

use recordings::lifetimes::heap;
use recordings::{PROCESS, Recording};
use vmscope_records::{
    Birth, ClassKey, Collection, CollectionKey, CollectionScope, Fate, ObjectKey, Record, SiteKey,
    SpaceUse, TimeNs,
};
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::advice::{Advised, Change};
use vmscope_symbolizer::lifetimes::cost::CollectorCost;
use vmscope_symbolizer::lifetimes::groups::{GroupKey, Grouping};

/// Nanoseconds of a collection, of a surviving byte and of a surviving object.
const SCAVENGE: [f64; 3] = [20_000.0, 0.5, 60.0];
const FULL: [f64; 3] = [100_000.0, 0.3, 40.0];

/// An allocation: site, size and lifetime in bytes that the program allocates later.
#[derive(Clone, Copy)]
struct Allocation {
    site: u64,
    bytes: u64,
    lifetime: u64,
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponentially distributed.
    fn lifetime(&mut self, mean: f64) -> u64 {
        (-mean * (1.0 - self.unit()).ln()) as u64
    }
}

#[derive(Clone, Copy)]
struct Parameters {
    eden: u64,
    /// Growth of old space between full collections.
    growth: f64,
    /// The site whose objects are allocated in old space.
    pretenured: Option<u64>,
}

const USUAL: Parameters = Parameters {
    eden: 1 << 18,
    growth: 0.33,
    pretenured: None,
};

/// The heap, at work.
struct Heap {
    parameters: Parameters,
    recording: Recording,
    allocated: u64,
    /// Nanoseconds of collections, and number of collections.
    cost: f64,
    collections: u64,
    /// Numbers of objects, with their deaths in allocated bytes.
    eden: Vec<Living>,
    past: Vec<Living>,
    old: Vec<Living>,
    births: Vec<Birth>,
    threshold: u64,
}

#[derive(Clone, Copy)]
struct Living {
    number: u64,
    bytes: u64,
    death: u64,
}

fn sum(objects: &[Living]) -> u64 {
    objects.iter().map(|one| one.bytes).sum()
}

impl Heap {
    fn run(program: &[Allocation], parameters: Parameters) -> Self {
        let mut this = Heap {
            parameters,
            recording: heap(),
            allocated: 0,
            cost: 0.0,
            collections: 0,
            eden: Vec::new(),
            past: Vec::new(),
            old: Vec::new(),
            births: Vec::new(),
            threshold: 1 << 19,
        };
        let mut used = 0;
        for (number, allocation) in program.iter().enumerate() {
            let Allocation { site, bytes, .. } = *allocation;
            let living = Living {
                number: number as u64 + 1,
                bytes,
                death: this.allocated + allocation.lifetime,
            };
            this.births.push(Birth {
                object: ObjectKey(living.number),
                time: TimeNs(this.now()),
                class: ClassKey(1),
                site: Some(SiteKey(site)),
                bytes,
                weight: 1.0,
                allocated_bytes: Some(this.allocated),
            });
            this.allocated += bytes;
            if parameters.pretenured == Some(site) {
                this.old.push(living);
                continue;
            }
            this.eden.push(living);
            used += bytes;
            if used >= parameters.eden {
                used = 0;
                this.scavenge();
            }
        }
        this
    }

    /// A nanosecond for each allocated byte, and the collections.
    fn now(&self) -> u64 {
        self.allocated + self.cost as u64
    }

    fn scavenge(&mut self) {
        let births = std::mem::take(&mut self.births);
        self.recording.births(births);
        let capacity = self.parameters.eden / 5;
        let tenures = sum(&self.past) * 10 > capacity * 9;
        let before = [sum(&self.eden), sum(&self.past), sum(&self.old)];
        let (mut fates, mut survived, mut tenured) = (Vec::new(), Vec::new(), 0);
        let past = std::mem::take(&mut self.past);
        let eden = std::mem::take(&mut self.eden);
        let all = past.into_iter().map(|one| (one, tenures));
        for (one, is_tenured) in all.chain(eden.into_iter().map(|one| (one, false))) {
            if one.death <= self.allocated {
                fates.push((one.number, Fate::Died));
                continue;
            }
            survived.push(one);
            if is_tenured || sum(&self.past) + one.bytes > capacity {
                fates.push((one.number, Fate::Tenured));
                tenured += one.bytes;
                self.old.push(one);
            } else {
                fates.push((one.number, Fate::Survived));
                self.past.push(one);
            }
        }
        self.collected("scavenge", SCAVENGE, &survived, (before, tenured), &fates);
        if sum(&self.old) >= self.threshold {
            self.collect_old();
        }
    }

    fn collect_old(&mut self) {
        let before = [0, sum(&self.past), sum(&self.old)];
        let now = self.allocated;
        let fate = |one: &Living| match one.death <= now {
            true => (one.number, Fate::Died),
            false => (one.number, Fate::Survived),
        };
        let fates: Vec<_> = self.old.iter().map(fate).collect();
        self.old.retain(|one| one.death > now);
        let survived = self.old.clone();
        self.collected("full", FULL, &survived, (before, 0), &fates);
        let used = sum(&self.old);
        let growth = (used as f64 * self.parameters.growth) as u64;
        self.threshold = used + growth.max(1 << 17);
    }

    fn collected(
        &mut self,
        kind: &str,
        price: [f64; 3],
        survived: &[Living],
        (before, tenured): ([u64; 3], u64),
        fates: &[(u64, Fate)],
    ) {
        let (bytes, objects) = (sum(survived), survived.len() as u64);
        let begin = self.now();
        let ns = price[0] + price[1] * bytes as f64 + price[2] * objects as f64;
        self.cost += ns;
        self.collections += 1;
        let end = TimeNs(self.now());
        let spaces = [
            ("eden", before[0], 0, self.parameters.eden),
            (
                "survivors",
                before[1],
                sum(&self.past),
                self.parameters.eden / 5,
            ),
            ("old", before[2], sum(&self.old), 1 << 30),
        ];
        let spaces = spaces.map(|(name, before, after, capacity)| SpaceUse {
            name: name.to_owned(),
            before: Some(before),
            after: Some(after),
            capacity: Some(capacity),
        });
        let key = CollectionKey(self.collections);
        self.recording.put(Record::Collection(Box::new(Collection {
            key,
            process: PROCESS,
            time: end,
            kind: kind.to_owned(),
            begin: Some(TimeNs(begin)),
            end: Some(end),
            scope: CollectionScope::Whole,
            spaces: spaces.to_vec(),
            survived_bytes: Some(bytes),
            survived_objects: Some(objects),
            tenured_bytes: Some(tenured),
            // Longer durations: other programs take the processor now and then.
            cpu_ns: Some(ns as u64),
            ..Collection::default()
        })));
        (self.recording).fates(Some(key.0), begin, fates);
    }

    fn lifetimes(mut self) -> Lifetimes {
        let births = std::mem::take(&mut self.births);
        let end = self.now();
        self.recording.births(births).end(end);
        self.recording.lifetimes()
    }
}

/// Objects of site 1 with the mean lifetime `short`, and every tenth of site 2 with `long`.
fn program(short: f64, long: f64) -> Vec<Allocation> {
    let mut random = Random(7);
    let allocation = |number: u64| {
        let is_long = number % 10 == 0;
        Allocation {
            site: if is_long { 2 } else { 1 },
            bytes: 16 * (1 + (random.unit() * 7.0) as u64),
            lifetime: random.lifetime(if is_long { long } else { short }),
        }
    };
    (1..=150_000).map(allocation).collect()
}

fn site_of(lifetimes: &Lifetimes, key: u64) -> GroupKey {
    let mut sites = lifetimes.sites.enumerated();
    let (id, _) = sites.find(|(_, site)| site.key == SiteKey(key)).unwrap();
    Grouping::Site.key(lifetimes, lifetimes.objects[0].class, Some(id))
}

#[test]
fn predicted_savings_come_true() {
    let eden = |factor| Parameters {
        eden: USUAL.eden * factor,
        ..USUAL
    };
    let growth = Parameters {
        growth: 0.66,
        ..USUAL
    };
    let pretenured = Parameters {
        pretenured: Some(2),
        ..USUAL
    };
    for (name, short, long) in [
        ("stays", 2e4, 1e9),
        ("dies slowly", 2e4, 4e5),
        ("lives in old space", 1e4, 3e6),
    ] {
        let program = program(short, long);
        let recorded = Heap::run(&program, USUAL);
        let cost = recorded.cost;
        let lifetimes = recorded.lifetimes();
        let collector = CollectorCost::of(&lifetimes, Grouping::Site);
        let advised = Advised::of(&lifetimes, Grouping::Site, &collector);
        println!("{name}: {:?}", advised.reproduction);
        for one in &advised.advice {
            let parameters = match &one.change {
                Change::Eden(from, to) => eden(to / from),
                Change::OldGrowth => growth,
                Change::Pretenure(keys) => {
                    assert_eq!(*keys, [site_of(&lifetimes, 2)]);
                    pretenured
                }
                Change::Avoid(_) => continue,
            };
            let measured = cost - Heap::run(&program, parameters).cost;
            let (saving, error) = (one.saving.value, one.saving.error);
            println!(
                "  {:?}: {:.2} ± {:.2} of {:.2} ms, measured {:.2}",
                one.change,
                saving / 1e6,
                error / 1e6,
                cost / 1e6,
                measured / 1e6
            );
        }
    }
}
