use std::sync::Arc;

use vmscope_process::testing::Snapshot;
use vmscope_process::{KeySource, MemoryError};
use vmscope_records::{ProcessKey, Record, TimeNs};

use super::*;
use crate::bytecode::{op, original, vm_name};
use crate::pages::Pages;
use crate::snapshot_files::snapshot;
use crate::testing::walk;

/// Counters after so many unloaded classes.
fn after(classes: i64) -> Option<Unloading> {
    Some(Unloading::of_classes(classes))
}

/// Memory with some words replaced.
struct Changed<'m> {
    memory: &'m dyn Memory,
    words: Vec<(Avma, u64)>,
}

impl Memory for Changed<'_> {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let got = self.memory.read_partial(at, buffer)?;
        for (address, word) in &self.words {
            for (index, byte) in word.to_le_bytes().into_iter().enumerate() {
                let offset = (address.0 + index as u64).wrapping_sub(at.0);
                if let Some(place) = buffer.get_mut(..got).unwrap().get_mut(offset as usize) {
                    *place = byte;
                }
            }
        }
        Ok(got)
    }

    fn pointer_bytes(&self) -> usize {
        self.memory.pointer_bytes()
    }
}

/// A JVM, and its compiled methods with unique names.
struct Fixture {
    snapshot: Snapshot,
    all: Vec<Avma>,
}

impl Fixture {
    fn new() -> Self {
        let snapshot = snapshot("jdk17");
        let process = snapshot.process();
        let walked = walk(&process, process.memory()).unwrap();
        let pages = Pages::new(process.memory());
        let jvm = Jvm::open(&process, &pages).unwrap();
        let mut names = FxHashSet::default();
        let mut all: Vec<Avma> = walked
            .nmethods
            .iter()
            .map(|one| one.nmethod.method)
            .collect();
        all.retain(|method| {
            let info = jvm
                .methods
                .read(&pages, *method)
                .ok()
                .filter(|info| is_sound(info, true));
            info.is_some_and(|info| names.insert(info.full_name()))
        });
        assert!(all.len() > 20, "{}", all.len());
        Fixture { snapshot, all }
    }

    /// Runs `test` with the JVM, method addresses, and a poll.
    fn run(&self, test: impl FnOnce(&Jvm, &dyn Memory, &mut Methods, &mut Poll)) -> Vec<Record> {
        let process = self.snapshot.process();
        let pages = Pages::new(process.memory());
        let jvm = Jvm::open(&process, &pages).unwrap();
        let mut poll = poll(1);
        let mut methods = Methods::new(&jvm, None);
        test(&jvm, &pages, &mut methods, &mut poll);
        poll.finish()
    }
}

fn poll(time: u64) -> Poll {
    Poll::new(
        KeySource::new(),
        ProcessKey(1),
        Arc::new(move || TimeNs(time)),
    )
}

/// Memory where the method at `place` is a copy of the method at `other`.
fn moved<'m>(jvm: &Jvm, memory: &'m dyn Memory, place: Avma, other: Avma) -> Changed<'m> {
    let field = jvm.structs.offset("Method", "_constMethod").unwrap();
    let word = memory.read_u64(Avma(other.0 + field)).unwrap();
    Changed {
        memory,
        words: vec![(Avma(place.0 + field), word)],
    }
}

fn name(methods: &Methods, method: Avma) -> Option<String> {
    methods.info(method).map(|info| info.full_name())
}

#[test]
fn what_is_forgotten_makes_room() {
    let fixture = Fixture::new();
    fixture.run(|_, memory, methods, poll| {
        for method in &fixture.all {
            assert!(methods.meet(memory, *method, poll));
        }
        assert!(methods.bytes > 0);
        for method in &fixture.all {
            methods.forget(*method);
        }
        assert_eq!(methods.bytes, 0);
    });
}

#[test]
fn a_place_that_another_took_never_keeps_the_old_name() {
    let fixture = Fixture::new();
    let (place, other) = (fixture.all[0], fixture.all[1]);
    let records = fixture.run(|jvm, memory, methods, poll| {
        assert!(methods.meet(memory, place, poll));
        let pinned = methods.pin(place).unwrap();
        let old = name(methods, place).unwrap();
        let taken = moved(jvm, memory, place, other);
        // No room for the new method.
        methods.begin(TimeNs(1), after(0));
        methods.most_bytes = 0;
        assert!(!methods.is_current(&taken, &pinned));
        assert!(!methods.meet(&taken, place, poll));
        assert_eq!(name(methods, place), None);
        assert_eq!(methods.tell_whole(Some(&taken), place, poll), None);
        assert!(!methods.meet(&taken, other, poll));
        // Room for the new method.
        methods.begin(TimeNs(1), after(0));
        methods.most_bytes = MAX_BYTES;
        assert!(methods.meet(&taken, place, poll));
        assert_ne!(name(methods, place), Some(old));
    });
    let limits = records
        .iter()
        .filter(|record| format!("{record:?}").contains("too many methods"));
    assert_eq!(limits.count(), 1);
}

#[test]
fn a_place_that_cannot_be_read_has_no_name() {
    let fixture = Fixture::new();
    let place = fixture.all[0];
    fixture.run(|jvm, memory, methods, poll| {
        assert!(methods.meet(memory, place, poll));
        let field = jvm.structs.offset("Method", "_constMethod").unwrap();
        let gone = Changed {
            memory,
            words: vec![(Avma(place.0 + field), 8)],
        };
        methods.begin(TimeNs(1), after(0));
        assert!(!methods.meet(&gone, place, poll));
        assert_eq!(methods.tell_whole(Some(&gone), place, poll), None);
    });
}

/// First method that begins with `aload_0`, and its first word with another instruction there.
fn rewritten(jvm: &Jvm, memory: &dyn Memory, all: &[Avma], by: u8) -> (Avma, (Avma, u64)) {
    let found = all.iter().find_map(|method| {
        let info = jvm.methods.read(memory, *method).unwrap();
        let first = info.bytecodes.first();
        let is_it = first.is_some_and(|first| original(*first) == op::ALOAD_0);
        is_it.then_some((*method, info.bytecodes_at))
    });
    let (method, at) = found.unwrap();
    let word = memory.read_u64(at).unwrap();
    (method, (at, word & !0xff | u64::from(by)))
}

fn number_of(name: &str) -> u8 {
    let is_it = |number: &u8| vm_name(*number) == Some(name);
    (0..=u8::MAX).find(is_it).unwrap()
}

#[test]
fn other_code_at_the_same_places_is_another_method() {
    let fixture = Fixture::new();
    fixture.run(|jvm, memory, methods, poll| {
        let mut unloaded = 0..;
        let mut begin =
            |methods: &mut Methods| methods.begin(TimeNs(1), unloaded.next().and_then(after));
        for (name, is_same) in [
            ("aload_0", true),
            ("nofast_aload_0", true),
            ("aload_1", false),
        ] {
            let (method, word) = rewritten(jvm, memory, &fixture.all, number_of(name));
            begin(methods);
            assert!(methods.meet(memory, method, poll));
            let pinned = methods.pin(method).unwrap();
            let words = vec![word];
            let changed = Changed { memory, words };
            begin(methods);
            assert_eq!(methods.is_current(&changed, &pinned), is_same, "{name}");
            let known = &pinned.1;
            let is_other = known.is_replaced(&jvm.methods, &changed, method);
            assert_eq!(is_other, !is_same, "{name}");
            assert!(methods.meet(&changed, method, poll));
            let now = methods.pin(method).unwrap();
            assert_eq!(Arc::ptr_eq(&now.1, &pinned.1), is_same, "{name}");
        }
    });
}

#[test]
fn dead_code_is_named_by_who_was_there_when_it_lived_or_not_at_all() {
    let fixture = Fixture::new();
    let (place, other, late) = (fixture.all[0], fixture.all[1], fixture.all[2]);
    fixture.run(|jvm, memory, methods, poll| {
        methods.begin(TimeNs(1), after(0));
        assert!(methods.meet(memory, place, poll));
        let old = name(methods, place).unwrap();
        methods.begin(TimeNs(2), after(0));
        assert!(methods.meet(memory, late, poll));
        let dead =
            |methods: &Methods, at| methods.dead(at).map(|(_, known)| known.info.full_name());
        assert_eq!(dead(methods, place), None, "nothing was unloaded yet");
        // The last poll before the unloading may have read the successor.
        methods.begin(TimeNs(3), after(4));
        assert_eq!(dead(methods, place).as_ref(), Some(&old));
        assert_eq!(dead(methods, late), None);
        // Another method takes the place; both polls see the old one as dead.
        let taken = moved(jvm, memory, place, other);
        assert!(methods.meet(&taken, place, poll));
        assert_ne!(name(methods, place).as_ref(), Some(&old));
        assert_eq!(dead(methods, place).as_ref(), Some(&old));
        methods.begin(TimeNs(4), after(4));
        assert_eq!(dead(methods, place).as_ref(), Some(&old));
        methods.begin(TimeNs(5), after(4));
        // After the successor's death, the first method does not return.
        methods.begin(TimeNs(6), after(5));
        assert_ne!(dead(methods, place), Some(old.clone()));
        methods.begin(TimeNs(7), after(6));
        assert_eq!(dead(methods, place), None);
    });
}

#[test]
fn code_that_lived_between_two_unseen_unloadings_has_no_name() {
    let fixture = Fixture::new();
    let place = fixture.all[0];
    fixture.run(|_, memory, methods, poll| {
        for (full, is_named) in [(1, true), (2, false)] {
            methods.begin(TimeNs(1), after(0));
            assert!(methods.meet(memory, place, poll));
            methods.begin(TimeNs(2), after(0));
            let unloading = after(4).map(|unloading| Unloading { full, ..unloading });
            methods.begin(TimeNs(3), unloading);
            assert_eq!(methods.dead(place).is_some(), is_named, "{full}");
            methods.forget(place);
        }
    });
}

/// A method met during the collection that unloads it does not name code that died later.
#[test]
fn methods_met_while_classes_die_name_no_later_code() {
    let fixture = Fixture::new();
    let place = fixture.all[0];
    fixture.run(|_, memory, methods, poll| {
        for (is_running, is_concurrent) in [(false, false), (true, false), (false, true)] {
            methods.begin(TimeNs(1), after(0));
            let unloading = |unloading| Unloading {
                is_running,
                is_concurrent,
                ..unloading
            };
            methods.begin(TimeNs(2), after(4).map(unloading));
            assert!(methods.meet(memory, place, poll));
            methods.begin(TimeNs(3), after(4));
            methods.begin(TimeNs(4), after(4));
            methods.begin(TimeNs(5), after(8));
            let is_named = !is_running && !is_concurrent;
            assert_eq!(methods.dead(place).is_some(), is_named);
            methods.forget(place);
        }
    });
}

#[test]
fn only_what_was_pinned_names_code_that_is_gone() {
    let fixture = Fixture::new();
    let (place, other) = (fixture.all[0], fixture.all[1]);
    fixture.run(|jvm, memory, methods, poll| {
        assert!(methods.meet(memory, place, poll));
        let pinned = methods.pin(place).unwrap();
        let old = name(methods, place);
        let taken = moved(jvm, memory, place, other);
        methods.begin(TimeNs(2), after(1));
        assert!(methods.meet(&taken, place, poll) && methods.meet(&taken, other, poll));
        let new = name(methods, place);
        let before = methods.only(&[pinned]);
        assert_eq!(name(methods, place), old);
        assert_eq!(methods.tell_whole(None, other, poll), None);
        methods.put_back(before);
        assert_eq!(name(methods, place), new);
        assert!(methods.tell_whole(None, other, poll).is_some());
    });
}

/// After an unloading, the memory of an unloaded method stays unchanged until another method takes
/// the place, without a further unloading.
#[test]
fn new_code_asks_again_who_has_the_address() {
    let fixture = Fixture::new();
    let (place, other) = (fixture.all[0], fixture.all[1]);
    fixture.run(|jvm, memory, methods, poll| {
        assert!(methods.meet(memory, place, poll));
        methods.begin(TimeNs(2), after(1));
        assert!(methods.meet(memory, place, poll));
        let old = name(methods, place);
        let taken = moved(jvm, memory, place, other);
        assert!(methods.meet(&taken, place, poll));
        assert_eq!(name(methods, place), old, "compared already");
        assert!(methods.meet_anew(&taken, place, poll));
        assert_ne!(name(methods, place), old);
    });
}
