//! Recordings of allocated objects.

use super::{PROCESS, Recording, THREAD, code};
use std::io::Cursor;
use vmscope_records::recording::Reader;
use vmscope_records::{
    AllocationSite, Birth, Births, BytecodePc, Class, ClassKey, Collection, CollectionKey,
    CollectionScope, Constituent, Fate, Fates, LifetimeCounts, MethodKey, ObjectFate, ObjectKey,
    Record, SiteKey, SurvivalBucket, TimeNs,
};
use vmscope_symbolizer::Trace;
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::read::Limits;

/// A run without collections, with the classes 1 to 3, and the sites 1 to 3: `m1`, bytecode 10, called
/// by `m9`, bytecode 5; `m1`, bytecode 20; `m2`, bytecode 10, called by `m1`, bytecode 30, and `m9`,
/// bytecode 6.
pub fn heap() -> Recording {
    let mut recording = Recording::of("embedded");
    for key in 1..=3 {
        recording.put(Record::Class(Class {
            key: ClassKey(key),
            process: PROCESS,
            name: format!("C{key}"),
        }));
    }
    recording
        .site(1, &[(1, 10), (9, 5)])
        .site(2, &[(1, 20)])
        .site(3, &[(2, 10), (1, 30), (9, 6)]);
    recording
}

/// A run of 0.4 s with 40 scavenges. Between two of them, `Reader>>next` (bytecode 10) allocates ten
/// objects that die, and `Frame>>add:` up to three of 1000 bytes that survive one scavenge. A scavenge
/// takes 1 ms, and 1 µs for each surviving byte. Samples are in `Reader>>next`.
pub fn scavenged() -> Recording {
    const MS: u64 = 1_000_000;
    const CODE: u64 = 0x1000_0000;
    let mut recording = heap();
    recording
        .method(1, "Reader", "next")
        .method(2, "Frame", "add:")
        .method(9, "Loader", "run")
        .constituent(Constituent {
            name: "Reader>>next".to_owned(),
            method: Some(MethodKey(1)),
            ..code(1, 0, CODE, CODE + 0x100)
        });
    let mut object = 0;
    let mut kept: Vec<u64> = Vec::new();
    for turn in 0..40u64 {
        let begin = 10 * turn * MS;
        let mut births = Vec::new();
        let mut dead: Vec<(u64, Fate)> = kept.drain(..).map(|one| (one, Fate::Died)).collect();
        let mut survived = Vec::new();
        let number = turn % 4;
        for nth in 0..10 + number {
            let (time, is_kept) = (begin + (1 + nth) * MS / 4, nth >= 10);
            let (class, site, bytes) = if is_kept { (2, 3, 1000) } else { (1, 1, 16) };
            births.push(Birth {
                class: ClassKey(class),
                site: Some(SiteKey(site)),
                bytes,
                ..birth(object, time)
            });
            if is_kept {
                survived.push((object, Fate::Survived));
                kept.push(object);
            } else {
                dead.push((object, Fate::Died));
            }
            object += 1;
        }
        let at = begin + 4 * MS;
        let end = at + MS + 1000 * 1000 * number;
        recording.births(births);
        recording.put(Record::Collection(Box::new(Collection {
            key: CollectionKey(turn + 1),
            process: PROCESS,
            time: TimeNs(end),
            kind: "scavenge".to_owned(),
            begin: Some(TimeNs(at)),
            end: Some(TimeNs(end)),
            scope: CollectionScope::Whole,
            survived_bytes: Some(1000 * number),
            ..Collection::default()
        })));
        recording.fates(Some(turn + 1), end, &[dead, survived].concat());
        for nth in 0..10 {
            recording.sample(begin + nth * MS, THREAD, CODE + 8);
        }
    }
    recording.end(400 * MS);
    recording
}

/// An object of 16 bytes and class 1 from site 1. Each nanosecond, 16 bytes are allocated.
pub fn birth(object: u64, time: u64) -> Birth {
    Birth {
        object: ObjectKey(object),
        time: TimeNs(time),
        class: ClassKey(1),
        site: Some(SiteKey(1)),
        bytes: 16,
        weight: 1.0,
        allocated_bytes: Some(time.wrapping_mul(16)),
    }
}

/// Objects that died or were alive after a number of scavenges and full collections.
pub fn bucket(scavenges: u32, fulls: u32, dead: u64, alive: u64) -> SurvivalBucket {
    SurvivalBucket {
        scavenges,
        fulls,
        objects: dead,
        bytes: 16 * dead,
        alive_objects: alive,
        alive_bytes: 16 * alive,
    }
}

impl Recording {
    /// An allocation site: methods with bytecodes, innermost first.
    pub fn site(&mut self, key: u64, frames: &[(u64, u32)]) -> &mut Self {
        let frame = |&(method, pc): &(u64, u32)| (MethodKey(method), BytecodePc(pc));
        self.put(Record::AllocationSite(Box::new(AllocationSite {
            key: SiteKey(key),
            process: PROCESS,
            frames: frames.iter().map(frame).collect(),
        })))
    }

    /// A collection that stops the program.
    pub fn collection(&mut self, key: u64, kind: &str, begin: u64, end: u64) -> &mut Self {
        self.put(Record::Collection(Box::new(Collection {
            key: CollectionKey(key),
            process: PROCESS,
            time: TimeNs(end),
            kind: kind.to_owned(),
            begin: Some(TimeNs(begin)),
            end: Some(TimeNs(end)),
            scope: CollectionScope::Whole,
            ..Collection::default()
        })))
    }

    pub fn births(&mut self, all: impl IntoIterator<Item = Birth>) -> &mut Self {
        let mut births = Births::new(PROCESS, None);
        all.into_iter().for_each(|birth| births.push(birth));
        self.put(Record::Births(Box::new(births)))
    }

    /// Fates at one time, observed by a collection.
    pub fn fates(
        &mut self,
        collection: Option<u64>,
        time: u64,
        fates: &[(u64, Fate)],
    ) -> &mut Self {
        let unheld = fates.iter().map(|&(object, fate)| (object, fate, None));
        self.held(collection, time, &unheld.collect::<Vec<_>>())
    }

    /// Fates of objects, each with its holder's class.
    pub fn held(
        &mut self,
        collection: Option<u64>,
        time: u64,
        fates: &[(u64, Fate, Option<u64>)],
    ) -> &mut Self {
        let mut all = Fates::new(PROCESS, collection.map(CollectionKey));
        for &(object, fate, holder) in fates {
            all.push(ObjectFate {
                object: ObjectKey(object),
                time: TimeNs(time),
                fate,
                holder: holder.map(ClassKey),
            });
        }
        self.put(Record::Fates(Box::new(all)))
    }

    /// Exact counts of objects of 16 bytes.
    pub fn counts(
        &mut self,
        time: u64,
        (class, site): (u64, Option<u64>),
        objects: u64,
        buckets: &[SurvivalBucket],
    ) -> &mut Self {
        self.put(Record::LifetimeCounts(Box::new(LifetimeCounts {
            process: PROCESS,
            time: TimeNs(time),
            class: ClassKey(class),
            site: site.map(SiteKey),
            objects,
            bytes: 16 * objects,
            buckets: buckets.to_vec(),
        })))
    }

    pub fn lifetimes(&self) -> Lifetimes {
        self.lifetimes_within(Limits::default())
    }

    pub fn lifetimes_within(&self, limits: Limits) -> Lifetimes {
        let mut reader = Reader::open(Cursor::new(self.bytes())).unwrap();
        let trace = Trace::read(&mut reader).unwrap();
        Lifetimes::read(&mut reader, &trace, limits).unwrap()
    }
}
