//! Samples of compiler threads by compilation, in handmade recordings.

use crate::recordings::{Draw, PROCESS, PROGRAM_AT, Recording, THREAD};
use vmscope_records::{Compilation, Record, ThreadKey, ThreadRole, TimeNs};
use vmscope_symbolizer::compilers::{Compilers, MAX_METHODS};
use vmscope_symbolizer::{Filter, Id, Stop, ThreadId};

const C2: ThreadKey = ThreadKey(2);
const C1: ThreadKey = ThreadKey(3);

fn seen(thread: ThreadKey, id: u64, name: &str, first: u64, last: u64) -> Compilation {
    Compilation {
        process: PROCESS,
        thread,
        id,
        name: name.to_owned(),
        tier: if thread == C1 { "C1" } else { "C2" }.to_owned(),
        osr_bci: None,
        absent_at: Some(TimeNs(first.saturating_sub(5))),
        first_seen: TimeNs(first),
        last_seen: TimeNs(last),
        gone_at: Some(TimeNs(last + 5)),
    }
}

fn recording() -> Recording {
    let mut recording = Recording::of("HotSpot");
    for (key, name) in [(C2, "C2 CompilerThre"), (C1, "C1 CompilerThre")] {
        recording.thread(key, PROCESS, 0, name, ThreadRole::Compiler);
    }
    recording
}

fn tell(recording: &mut Recording, one: Compilation) {
    recording.put(Record::Compilation(Box::new(one)));
}

fn counted(recording: &Recording, filter: &Filter) -> Compilers {
    Compilers::of(&recording.profile(), filter, &Stop::new()).unwrap()
}

#[test]
fn samples_belong_to_what_was_seen_around_them() {
    let mut recording = recording();
    // Three records of one compilation: the newest counts, in any order.
    tell(&mut recording, seen(C2, 7, "A.hot", 100, 110));
    tell(&mut recording, seen(C2, 7, "A.hot", 100, 150));
    tell(&mut recording, seen(C2, 7, "A.hot", 100, 120));
    tell(
        &mut recording,
        Compilation {
            osr_bci: Some(17),
            ..seen(C2, 8, "B.loop", 160, 180)
        },
    );
    tell(&mut recording, seen(C1, 9, "A.hot", 100, 300));
    for time in [
        90, 95, 99, // before it may have begun; in between, twice
        100, 130, 150, // seen
        151, 155, 159, // between the two
        160, 180, // the other
        181, 185, 186, // in between; gone
    ] {
        recording.sample(time, C2, PROGRAM_AT);
        recording.sample(time, THREAD, PROGRAM_AT);
    }
    recording.sample(200, C1, PROGRAM_AT);
    let compilers = counted(&recording, &Filter::default());
    assert_eq!((compilers.samples, compilers.threads), (15, 2));
    assert_eq!(
        (compilers.told, compilers.between, compilers.unseen),
        (6, 7, 2)
    );
    assert_eq!((compilers.doubtful, compilers.compilations), (0, 3));
    let methods: Vec<_> = (compilers.methods.iter())
        .map(|m| (m.name.as_str(), m.tier.as_str(), m.samples, m.compilations))
        .collect();
    assert_eq!(
        methods,
        [
            ("A.hot", "C2", 3, 1),
            ("B.loop", "C2", 2, 1),
            ("A.hot", "C1", 1, 1)
        ]
    );
    let once = compilers.methods[1].listed[0];
    assert_eq!((once.id, once.osr_bci, once.samples), (8, Some(17), 2));
}

#[test]
fn a_filter_narrows_them() {
    let mut recording = recording();
    tell(&mut recording, seen(C2, 1, "A.a", 100, 200));
    tell(&mut recording, seen(C1, 2, "B.b", 300, 400));
    for time in (100..400).step_by(10) {
        recording.sample(time, C2, PROGRAM_AT);
        recording.sample(time, C1, PROGRAM_AT);
    }
    let late = Filter {
        from: Some(TimeNs(250)),
        ..Filter::default()
    };
    let compilers = counted(&recording, &late);
    assert_eq!((compilers.told, compilers.compilations), (10, 1));
    let one = Filter {
        threads: Some([ThreadId::of(1)].into_iter().collect()),
        ..Filter::default()
    };
    let compilers = counted(&recording, &one);
    assert_eq!((compilers.samples, compilers.told), (30, 11));
    assert_eq!((compilers.threads, compilers.compilations), (1, 1));
}

#[test]
fn where_nothing_is_told_nothing_is_counted() {
    let mut recording = recording();
    recording.sample(5, C2, PROGRAM_AT);
    assert_eq!(
        Compilers::of(&recording.profile(), &Filter::default(), &Stop::new()),
        None
    );
}

#[test]
fn what_is_told_twice_at_a_time_is_nobodys() {
    let mut recording = recording();
    tell(&mut recording, seen(C2, 1, "A.a", 100, 500));
    tell(&mut recording, seen(C2, 2, "A.b", 200, 300));
    for time in [150, 250, 400] {
        recording.sample(time, C2, PROGRAM_AT);
    }
    let compilers = counted(&recording, &Filter::default());
    assert_eq!((compilers.told, compilers.doubtful), (1, 2));
}

#[test]
fn more_methods_than_are_listed_are_counted() {
    let mut recording = recording();
    for id in 0..1200u64 {
        let name = format!("M{id:04}.m");
        tell(&mut recording, seen(C2, id, &name, id * 100, id * 100 + 50));
    }
    for id in 0..1200u64 {
        recording.sample(id * 100 + 20, C2, PROGRAM_AT);
        if id < 1000 {
            recording.sample(id * 100 + 30, C2, PROGRAM_AT);
        }
    }
    let compilers = counted(&recording, &Filter::default());
    assert_eq!(compilers.methods.len(), MAX_METHODS);
    assert_eq!(compilers.left_out, (200, 200));
    assert_eq!(compilers.told, 2200);
}

/// Compares random compilations with a naive scan per sample.
#[test]
fn it_is_as_asking_each_compilation_about_each_sample() {
    for seed in 0..300 {
        let mut draw = Draw(seed);
        let mut recording = recording();
        let mut all = Vec::new();
        for id in 0..draw.below(8) + 1 {
            let first = draw.below(200);
            let last = first + draw.below(40);
            let mut one = seen(C2, id, &format!("m{id}"), first, last);
            one.absent_at = (draw.below(3) > 0).then(|| TimeNs(first - draw.below(first + 1)));
            one.gone_at = (draw.below(3) > 0).then(|| TimeNs(last + draw.below(30)));
            all.push(one.clone());
            tell(&mut recording, one);
        }
        let (mut told, mut between, mut doubtful, mut unseen) = (0, 0, 0, 0);
        for time in (0..300).map(TimeNs) {
            recording.sample(time.0, C2, PROGRAM_AT);
            let is_seen = |one: &&Compilation| (one.first_seen..=one.last_seen).contains(&time);
            let may_be = |one: &Compilation| {
                let from = one.absent_at.unwrap_or(one.first_seen);
                (from..=one.gone_at.unwrap_or(one.last_seen)).contains(&time)
            };
            match all.iter().filter(is_seen).count() {
                1 => told += 1,
                0 if all.iter().any(may_be) => between += 1,
                0 => unseen += 1,
                _ => doubtful += 1,
            }
        }
        let compilers = counted(&recording, &Filter::default());
        let found = (compilers.told, compilers.between, compilers.unseen);
        // Allows extra doubt for a compilation observed around a finished one.
        assert!(compilers.doubtful >= doubtful, "seed {seed}");
        let moved = compilers.doubtful - doubtful;
        assert_eq!(found, (told - moved, between, unseen), "seed {seed}");
        assert_eq!(
            compilers.methods.iter().map(|m| m.samples).sum::<u64>(),
            compilers.told
        );
    }
}

#[test]
fn counting_can_be_stopped() {
    let mut recording = recording();
    tell(&mut recording, seen(C2, 1, "A.a", 100, 500));
    recording.sample(200, C2, PROGRAM_AT);
    let profile = recording.profile();
    let stop = Stop::new();
    let filter = Filter::default();
    assert!(Compilers::of(&profile, &filter, &stop).is_some());
    stop.stop();
    assert!(Compilers::of(&profile, &filter, &stop).is_none());
}

#[test]
fn a_thread_that_runs_the_program_compiles_only_while_it_compiles() {
    let mut recording = Recording::of("VM with one thread");
    recording.thread(C2, PROCESS, 0, "interpreter", ThreadRole::Mutator);
    tell(&mut recording, seen(C2, 7, "A.hot", 100, 150));
    for time in [90, 98, 100, 130, 150, 152, 160, 170] {
        recording.sample(time, C2, PROGRAM_AT);
    }
    let compilers = counted(&recording, &Filter::default());
    assert_eq!(
        (compilers.samples, compilers.told, compilers.unseen),
        (3, 3, 0)
    );
}
