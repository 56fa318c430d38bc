//! Failing and late polls, on snapshots of JVMs with missing or modified memory.

use std::sync::{Arc, Mutex};

use vmscope_process::{KeySource, Memory, MemoryError};
use vmscope_records::{Constituent, ConstituentKind, PcMap, ProcessKey, Record, TimeNs};

use super::kept::PAUSE;
use super::*;
use crate::code::{Blob, CodeCache, Found, Nmethod, NmethodId, NmethodState};
use crate::snapshot_files::snapshot;
use crate::testing::walk;

/// A JVM's memory; a part can be removed, and bytes replaced.
struct Holed {
    whole: ProcessView,
    hole: Mutex<Option<Avma>>,
    patch: Mutex<Option<(Avma, Vec<u8>)>>,
}

impl Memory for Holed {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let hole = *self.hole.lock().unwrap();
        let before = hole.and_then(|hole| hole.0.checked_sub(at.0));
        let length = before.map_or(buffer.len(), |before| {
            buffer.len().min(usize::try_from(before).unwrap())
        });
        let got = self
            .whole
            .memory()
            .read_partial(at, &mut buffer[..length])?;
        if let Some((patched, bytes)) = &*self.patch.lock().unwrap() {
            for (address, new) in (patched.0..).zip(bytes) {
                let within = usize::try_from(address.wrapping_sub(at.0)).unwrap();
                if let Some(byte) = buffer[..got].get_mut(within) {
                    *byte = *new;
                }
            }
        }
        Ok(got)
    }
}

struct Scene {
    process: ProcessView,
    memory: Arc<Holed>,
    adapter: HotSpotAdapter,
}

fn poll_with(touched: &[Avma]) -> Poll {
    let poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(|| TimeNs(7)));
    poll.with_touched(touched.to_vec())
}

impl Scene {
    fn new(name: &str) -> Self {
        let snapshot = snapshot(name);
        let memory = Arc::new(Holed {
            whole: snapshot.process(),
            hole: Mutex::new(None),
            patch: Mutex::new(None),
        });
        Scene {
            process: snapshot.process_with(memory.clone()),
            memory,
            adapter: HotSpotAdapter::new(),
        }
    }

    /// Replaces exactly the bytes at `at`.
    fn patch(&self, at: Avma, bytes: &[u8]) {
        *self.memory.patch.lock().unwrap() = Some((at, bytes.to_vec()));
    }

    fn without(&self, hole: Option<Avma>) {
        *self.memory.hole.lock().unwrap() = hole;
    }

    /// A poll, and its reported compiled methods.
    fn poll(&mut self, touched: &[Avma]) -> (Result<(), AdapterError>, Vec<Constituent>) {
        let mut poll = poll_with(touched);
        let result = self.adapter.poll(&self.process, &mut poll);
        let compiled = poll.finish().into_iter().filter_map(|record| match record {
            Record::Constituent(one) if one.kind == ConstituentKind::Method => Some(*one),
            _ => None,
        });
        (result, compiled.collect())
    }

    fn opened(&mut self) -> &mut Opened {
        self.adapter.opened.as_mut().unwrap()
    }

    /// Code address of a compiled method.
    fn code(name: &str) -> Avma {
        let (result, compiled) = Scene::new(name).poll(&[]);
        result.unwrap();
        compiled.iter().map(|one| one.start).max().unwrap()
    }
}

#[test]
fn the_code_cache_is_not_read_again_at_once_where_it_can_t_be() {
    for name in ["jdk17", "jdk25"] {
        let mut scene = Scene::new(name);
        scene.without(Some(Scene::code(name)));
        let began = Instant::now();
        let (result, _) = scene.poll(&[]);
        assert!(result.is_err_and(|error| !error.is_final()));
        let signs = Signs {
            compilations: 1,
            collections: Some(1),
            unloadings: Some(1),
            are_deaths: false,
        };
        let zone = &mut scene.opened().zone;
        assert!(!zone.is_due(&[], Some(signs), began));
        let later = Instant::now() + Duration::from_secs(3600);
        assert!(zone.is_due(&[], Some(signs), later));
    }
}

#[test]
fn classes_are_not_gone_through_again_at_once_where_they_can_t_be() {
    let mut scene = Scene::new("jdk17");
    scene.poll(&[]).0.unwrap();
    let structs = &scene.opened().jvm.structs;
    let head = structs.static_at("ClassLoaderDataGraph", "_head").unwrap();
    scene.without(Some(head));
    let memory = scene.memory.clone();
    let (pages, mut poll) = (Pages::new(&*memory), poll_with(&[]));
    let opened = scene.opened();
    let mut interpreted = Interpreted::new(&opened.jvm, &mut poll);
    let counts = Some(ClassCounts {
        loaded: 1,
        unloaded: 0,
    });
    let began = Instant::now();
    let (from, methods) = ((&opened.jvm, &pages), &mut opened.methods);
    let values = (std::iter::empty(), false);
    let result = interpreted.poll(values, (counts, || counts), from, methods, &mut poll);
    assert!(result.is_err_and(|error| !error.is_final()));
    assert!(interpreted.not_before(counts, false) > began);
}

/// Samples hit code while the code cache is unreadable: its map follows later.
#[test]
fn what_samples_touched_is_kept_until_the_code_cache_was_read() {
    for name in ["jdk17", "jdk25"] {
        let mut scene = Scene::new(name);
        let code = Scene::code(name);
        scene.without(Some(code));
        assert!(scene.poll(&[code]).0.is_err());
        scene.without(None);
        let is_mapped = |told: &[Constituent]| {
            let mut told = told.iter();
            told.any(|one| one.start == code && one.map != PcMap::None)
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let (result, told) = scene.poll(&[]);
            result.unwrap();
            if is_mapped(&told) {
                break;
            }
            assert!(Instant::now() < deadline, "{name}: never told");
            std::thread::yield_now();
        }
        assert!(scene.adapter.touched.all().is_empty());
    }
}

/// Samples hit code created after the last reading.
#[test]
fn what_is_hit_between_two_readings_is_looked_up_after_the_next() {
    let mut touched = Touched::default();
    let (first, second, other) = (Avma(0x1000), Avma(0x2000), Avma(0x9000));
    let is_code = |at: Avma| at.0 < 0x8000;
    touched.take(&mut poll_with(&[first, other]));
    assert_eq!(touched.fresh(), [first, other]);
    touched.looked_up(false, Vec::new(), is_code);
    touched.take(&mut poll_with(&[second]));
    assert_eq!(touched.fresh(), [second]);
    assert_eq!(touched.all(), [first, second]);
    touched.looked_up(false, vec![first], is_code);
    assert_eq!(
        (touched.fresh(), touched.all()),
        (&[first][..], vec![first, second])
    );
    touched.looked_up(true, vec![first], is_code);
    assert_eq!(
        (touched.fresh(), touched.all()),
        (&[first][..], vec![first])
    );
    touched.looked_up(true, Vec::new(), is_code);
    assert!(touched.all().is_empty() && touched.fresh().is_empty());
}

/// Samples hit code behind the memory that the code cache had at its last reading.
#[test]
fn what_is_hit_in_a_code_cache_that_grew_is_looked_up_after_the_next_reading() {
    for name in ["jdk17", "jdk25"] {
        let mut scene = Scene::new(name);
        scene.poll(&[]).0.unwrap();
        let memory = scene.memory.clone();
        let opened = scene.opened();
        opened.zone.put_off();
        let heaps = CodeCache::new(opened.jvm.code.clone()).heaps(&*memory);
        let heaps = heaps.unwrap();
        let mut ends = heaps.iter().map(|heap| (heap.high, heap.reserved_end));
        let (grown, _) = ends.find(|(high, end)| high < end).unwrap();
        scene.poll(&[grown]).0.unwrap();
        assert_eq!(scene.adapter.touched.all(), [grown], "{name}");
        let opened = scene.opened();
        assert!(opened.zone.is_awaited() && !opened.interpreted.is_waiting());
    }
}

/// Every address in the block of an nmethod leads to it.
#[test]
fn an_nmethod_is_found_by_its_addresses() {
    for name in ["jdk17", "jdk25"] {
        let mut scene = Scene::new(name);
        scene.poll(&[]).0.unwrap();
        let memory = scene.memory.clone();
        let pages = Pages::new(&*memory);
        let layout = scene.opened().jvm.code.clone();
        let mut cache = CodeCache::new(layout.clone());
        let mut all = Vec::new();
        let heaps = cache.read(&pages, |found| {
            if let Found::Nmethod { id, blob, .. } = found {
                all.push((id, blob));
            }
        });
        let heaps = heaps.unwrap();
        assert!(all.len() > 10);
        for (id, blob) in all {
            let heap = heaps
                .iter()
                .find(|heap| heap.low <= blob.at && blob.at < heap.high);
            let last = Avma(blob.code_end.0 - 1);
            for at in [blob.at, blob.code_begin, last] {
                let found = cache.nmethod_at(heap.unwrap(), at, &pages).unwrap();
                let found = found.map(|found| (found.id, found.blob));
                assert_eq!(found, Some((id, blob)), "{name}");
            }
            let other = NmethodId {
                compile_id: id.compile_id + 1,
                ..id
            };
            let elsewhere = Blob {
                at: Avma(8),
                ..blob
            };
            let asked = [(id, blob), (other, blob), (id, elsewhere)];
            let states = cache.states_of(&asked, &*memory).unwrap();
            assert!(matches!(
                states[..],
                [
                    NmethodState::Present(_),
                    NmethodState::Gone,
                    NmethodState::Unreadable
                ]
            ));
        }
    }
}

/// A sample hits code that the last reading could not find yet.
#[test]
fn sampled_code_is_found_before_the_next_reading() {
    for name in ["jdk17", "jdk25"] {
        let code = Scene::code(name);
        let mut scene = Scene::new(name);
        let mut poll = poll_with(&[]);
        scene.adapter.open_jvm(&scene.process, &mut poll).unwrap();
        let memory = scene.memory.clone();
        let pages = Pages::new(&*memory);
        let mut cache = CodeCache::new(scene.opened().jvm.code.clone());
        let heaps = cache.heaps(&*memory).unwrap();
        let heap = heaps
            .iter()
            .find(|heap| heap.low <= code && code < heap.high);
        let found = cache.nmethod_at(heap.unwrap(), code, &pages).unwrap();
        // The second half of the block's header has the mark of a used block.
        scene.patch(Avma(found.unwrap().blob.at.0 - 8), &[0; 8]);
        let (result, before) = scene.poll(&[]);
        result.unwrap();
        assert!(!before.iter().any(|one| one.start == code), "{name}");
        scene.opened().zone.put_off();
        let told = |scene: &mut Scene| {
            let (result, told) = scene.poll(&[code]);
            result.unwrap();
            told.into_iter().find(|one| one.start == code)
        };
        assert_eq!(told(&mut scene), None);
        scene.patch(Avma(0), &[]);
        let found = told(&mut scene).unwrap();
        assert!(!found.name.is_empty() && found.absent_at == Some(TimeNs(7)));
    }
}

/// Nmethod data exceed the limit of one reading: several readings report them.
#[test]
fn what_there_is_no_budget_for_is_read_the_next_time() {
    let all = Scene::new("jdk25").poll(&[]).1.len();
    let mut scene = Scene::new("jdk25");
    let mut poll = poll_with(&[]);
    scene.adapter.open_jvm(&scene.process, &mut poll).unwrap();
    let memory = scene.memory.clone();
    let opened = scene.adapter.opened.as_mut().unwrap();
    let mut found = Vec::new();
    for _ in 0..all {
        let (pages, mut poll) = (Pages::new(&*memory), poll_with(&[]));
        opened.zone.with_budget(60_000);
        let what = (true, None, || None);
        (opened.zone)
            .poll(&pages, &mut opened.methods, what, &mut poll)
            .unwrap();
        let records = poll.finish();
        let lost = records.iter().find_map(|record| match record {
            Record::Lost(lost) => Some(lost.count),
            _ => None,
        });
        let new = records.iter().filter(|record| {
            matches!(record, Record::Constituent(one) if one.kind == ConstituentKind::Method)
        });
        found.push((new.count(), lost));
        if lost.is_none() {
            break;
        }
    }
    assert!(found.len() > 1, "{found:?}");
    assert_eq!(found.iter().map(|(new, _)| new).sum::<usize>(), all);
    assert_eq!(found.last().unwrap().1, None);
}

/// A reading of the whole code cache; returns its reports of code that begins at `at`.
fn read_at(scene: &mut Scene, at: Avma) -> Vec<Constituent> {
    let memory = scene.memory.clone();
    let (pages, mut poll) = (Pages::new(&*memory), poll_with(&[]));
    let opened = scene.adapter.opened.as_mut().unwrap();
    opened.zone.name_unloaded(&mut opened.methods, &mut poll);
    let unloading = opened.methods.unloading();
    let what = (true, None, || unloading);
    let read = (opened.zone).poll(&pages, &mut opened.methods, what, &mut poll);
    read.unwrap();
    let told = poll.finish().into_iter().filter_map(|record| match record {
        Record::Constituent(one) if one.start == at => Some(*one),
        _ => None,
    });
    told.collect()
}

/// A class is unloaded before any reading of its code: the code is reported, and gets its name
/// after the VM's count, if the method was known before and no later unloading has passed.
#[test]
fn code_of_unloaded_classes_is_told_before_its_name_is_certain() {
    for (name, was_known, unloadings) in [
        ("jdk17", true, 1),
        ("jdk17", true, 2),
        ("jdk17", false, 1),
        ("jdk25", true, 1),
    ] {
        let mut scene = Scene::new(name);
        let mut poll = poll_with(&[]);
        scene.adapter.open_jvm(&scene.process, &mut poll).unwrap();
        let compiled = walk(&scene.process, scene.process.memory()).unwrap();
        let compiled: Vec<Nmethod> = (compiled.nmethods.into_iter())
            .map(|one| one.nmethod)
            .collect();
        let memory = scene.memory.clone();
        let pages = Pages::new(&*memory);
        let opened = scene.opened();
        let has_name = |one: &&Nmethod| {
            let own = super::describe::outermost(one);
            let of_method = compiled.iter().filter(|other| other.method == one.method);
            own == Some(one.method)
                && of_method.count() == 1
                && opened.jvm.methods.read(&pages, one.method).is_ok()
        };
        let code = compiled.iter().find(has_name).unwrap();
        let at = code.blob.code_begin;
        let structs = &opened.jvm.structs;
        let of = |name| structs.offset(name, "_method");
        let field = of("nmethod").or_else(|_| of("CompiledMethod")).unwrap();
        let begin = |scene: &mut Scene, time, classes| {
            let counted = Some(Unloading::of_classes(classes));
            scene.opened().methods.begin(TimeNs(time), counted);
        };
        begin(&mut scene, 1, 5);
        if was_known {
            assert!(scene.opened().methods.meet(&pages, code.method, &mut poll));
        }
        // The first reading does not find the code: its block looks unused.
        scene.patch(Avma(code.blob.at.0 - 8), &[0; 8]);
        assert_eq!(read_at(&mut scene, at), []);
        begin(&mut scene, 2, 5);
        scene.patch(Avma(code.blob.at.0 + field), &[0; 8]);
        let [nameless] = read_at(&mut scene, at).try_into().unwrap();
        assert_eq!((nameless.name.as_str(), nameless.method), ("", None));
        for number in 1..=unloadings {
            begin(&mut scene, 2 + number, 5 + i64::try_from(number).unwrap());
        }
        let told = read_at(&mut scene, at);
        if was_known && unloadings == 1 {
            let [named] = told.try_into().unwrap();
            assert_eq!((named.key, named.since), (nameless.key, nameless.since));
            assert!(
                named.method.is_some() && named.name.contains('('),
                "{named:?}"
            );
        } else {
            assert_eq!(told, []);
        }
        assert_eq!(read_at(&mut scene, at), []);
    }
}

/// The VM keeps memory of unused code for a while. Such code ends as soon as a reading, or a
/// comparison before the next reading, finds its state.
#[test]
fn code_that_no_thread_runs_is_gone() {
    const UNLOADED: u8 = 4;
    for is_compared in [false, true] {
        let mut scene = Scene::new("jdk17");
        let told = scene.poll(&[]).1;
        let hit = told.iter().max_by_key(|one| one.start).unwrap();
        let opened = scene.opened();
        let [id] = opened.zone.nmethods_at(hit.start).try_into().unwrap();
        let of = |name| opened.jvm.structs.offset(name, "_state");
        let field = of("nmethod").or_else(|_| of("CompiledMethod")).unwrap();
        let state = Avma(id.blob.0 + field);
        let read = |scene: &mut Scene, is_compared: bool| {
            let memory = scene.memory.clone();
            let (pages, mut poll) = (Pages::new(&*memory), poll_with(&[]));
            let opened = scene.opened();
            if is_compared {
                opened.zone.read_not_entrant(&pages, &mut poll).unwrap();
            } else {
                let what = (false, None, || None);
                let read = (opened.zone).poll(&pages, &mut opened.methods, what, &mut poll);
                read.unwrap();
            }
            let records = poll.finish();
            let here = records.iter().filter_map(|record| match record {
                Record::ConstituentGone(gone) => Some((gone.key == hit.key, "gone")),
                Record::Constituent(one) => Some((one.start == hit.start, "told")),
                _ => None,
            });
            here.filter(|(is_it, _)| *is_it)
                .map(|(_, what)| what)
                .collect::<Vec<_>>()
        };
        if is_compared {
            scene.patch(state, &[u8::try_from(super::zone::NOT_ENTRANT).unwrap()]);
            assert_eq!(read(&mut scene, false), [""; 0]);
            assert_eq!(read(&mut scene, true), [""; 0]);
            scene.opened().zone.compare_now();
        }
        scene.patch(state, &[UNLOADED]);
        assert_eq!(read(&mut scene, is_compared), ["gone"]);
        for _ in 0..2 {
            assert_eq!(read(&mut scene, false), [""; 0]);
        }
    }
}

/// No time left: one map is made anyway, the others later.
#[test]
fn maps_that_there_is_no_time_for_are_made_later() {
    for name in ["jdk17", "jdk25"] {
        let mut scene = Scene::new(name);
        let compiled = scene.poll(&[]).1;
        // The map of large code waits for more samples.
        let small = compiled.iter().filter(|one| one.end.0 - one.start.0 < 700);
        let mut hit: Vec<Avma> = small.map(|one| one.start).take(5).collect();
        hit.sort_unstable();
        let memory = scene.memory.clone();
        let opened = scene.opened();
        let (maps, methods) = (&opened.maps, &mut opened.methods);
        let mut left = Vec::new();
        for _ in 0..6 {
            let (pages, mut poll) = (Pages::new(&*memory), poll_with(&[]));
            let zone = &mut opened.zone;
            let until = (Instant::now(), true);
            let waits = zone.tell_hits(&hit, maps, Some(&pages), methods, until, &mut poll);
            assert!(waits.is_sorted() && waits.iter().all(|at| hit.contains(at)));
            left.push(waits.len());
            let told = poll.finish().into_iter().filter(
                |record| matches!(record, Record::Constituent(one) if one.map != PcMap::None),
            );
            assert_eq!(told.count(), usize::from(left.len() <= 5));
        }
        assert_eq!(left, [4, 3, 2, 1, 0, 0]);
    }
}

/// The map of large code waits for more samples, unless there are many at once: its program may end before.
#[test]
fn hot_large_code_has_a_map_at_once() {
    for name in ["jdk17", "jdk25"] {
        let mut scene = Scene::new(name);
        let compiled = scene.poll(&[]).1;
        let large = compiled.iter().max_by_key(|one| one.end.0 - one.start.0);
        let large = large.unwrap();
        let hits: Vec<Avma> = (2..12)
            .map(|number| Avma(large.start.0 + 32 * number))
            .collect();
        let memory = scene.memory.clone();
        let opened = scene.opened();
        let (maps, methods) = (&opened.maps, &mut opened.methods);
        let mut maps_at = |time, hits: &[Avma]| {
            let pages = Pages::new(&*memory);
            let mut poll = Poll::new(
                KeySource::new(),
                ProcessKey(1),
                Arc::new(move || TimeNs(time)),
            );
            let until = (Instant::now() + MAPS_TIME, true);
            (opened.zone).tell_hits(hits, maps, Some(&pages), methods, until, &mut poll);
            let is_map = |record: &&Record| matches!(record, Record::Constituent(one) if one.map != PcMap::None);
            poll.finish().iter().filter(is_map).count()
        };
        assert_eq!(maps_at(10, &hits[..7]), 0, "{name}");
        assert_eq!(maps_at(20, &hits[..7]), 0, "{name}: the same samples");
        assert_eq!(maps_at(30, &hits), 1, "{name}");
        let far = [Avma(large.end.0 - 64)];
        assert_eq!(maps_at(40, &far), 0, "{name}: later samples wait");
        assert_eq!(maps_at(10 + PAUSE, &far), 1, "{name}");
    }
}

/// Adapters exceed their share: code gets its name, bytecodes wait.
#[test]
fn maps_wait_until_there_is_time_to_spare() {
    let code = Scene::code("jdk17");
    let mut scene = Scene::new("jdk17");
    let mut mapped = |touched: &[Avma], spare: Duration| {
        let mut poll = poll_with(touched).with_spare(spare);
        scene.adapter.poll(&scene.process, &mut poll).unwrap();
        let has_spent = poll.spent() > Duration::ZERO;
        let is_it = |record: &Record| matches!(record, Record::Constituent(one) if one.start == code && one.map != PcMap::None);
        let (told, waits) = (poll.finish(), &scene.adapter.touched);
        let is_mapped = told.iter().any(is_it);
        assert_eq!(has_spent, is_mapped);
        (is_mapped, waits.fresh().to_vec())
    };
    assert_eq!(mapped(&[code], Duration::ZERO), (false, vec![code]));
    assert_eq!(mapped(&[], WORTHWHILE / 2), (false, vec![code]));
    assert_eq!(mapped(&[], MAPS_TIME), (true, Vec::new()));
}

/// Code unreadable for a long time: other adapters may then report code from files.
#[test]
fn a_jvm_that_stays_unreadable_tells_no_code() {
    let name = "jdk17";
    let mut scene = Scene::new(name);
    let began = Instant::now();
    assert!(scene.adapter.tells_code_at(began + PATIENCE));
    scene.without(Some(Scene::code(name)));
    assert!(scene.poll(&[]).0.is_err());
    assert!(scene.adapter.tells_code_at(began));
    let later = Instant::now() + PATIENCE;
    assert!(!scene.adapter.tells_code_at(later));
    scene.without(None);
    let memory = scene.memory.clone();
    let (pages, mut poll) = (Pages::new(&*memory), poll_with(&[]));
    let opened = scene.adapter.opened.as_mut().unwrap();
    // Simulates the end of the pause.
    opened.zone = Zone::new(&scene.process, &opened.jvm, &pages, &mut poll).unwrap();
    scene.poll(&[]).0.unwrap();
    assert!(scene.adapter.tells_code_at(later));
}

/// Without VM counters, no events are known.
#[test]
fn pauses_are_short_where_the_vm_does_not_say_what_happens() {
    let mut scene = Scene::new("jdk17");
    for _ in 0..4 * QUIET_POLLS {
        scene.poll(&[]).0.unwrap();
        assert_eq!(scene.adapter.next_poll(), TICK);
    }
    let opened = scene.opened();
    let mut pause = |quiet: u32| {
        opened.quiet = quiet * QUIET_POLLS;
        opened.pause()
    };
    assert_eq!(
        [pause(0), pause(1), pause(2), pause(9)],
        [1, 2, 4, 4].map(|times| TICK * times)
    );
}

/// The second reading reports code created since the first, with the first reading's time.
#[test]
fn looks_that_do_not_read_the_code_cache_tell_no_code_until_then() {
    for name in ["jdk17", "jdk25"] {
        let mut scene = Scene::new(name);
        for time in 7..30 {
            let clock = Arc::new(move || TimeNs(time));
            let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock);
            scene.adapter.poll(&scene.process, &mut poll).unwrap();
            assert_eq!(poll.told_until(), TimeNs(7), "{name}, look {time}");
            scene.opened().zone.put_off();
        }
    }
}
