use std::sync::Arc;

use vmscope_process::KeySource;
use vmscope_records::{ProcessKey, Record, ThreadUpdate, TimeNs};

use super::*;

fn thread(tid: u32, name: &str) -> ThreadInfo {
    ThreadInfo {
        tid: Tid(tid),
        inner_tid: Tid(tid + 100),
        name: name.to_owned(),
    }
}

fn java(tid: u32, class: u64) -> JavaThread {
    JavaThread {
        at: Avma(u64::from(tid)),
        os_thread: Avma(1),
        inner_tid: Tid(tid + 100),
        class: Avma(class),
    }
}

fn told(
    threads: &mut Threads,
    all: &[ThreadInfo],
    list: Option<&[JavaThread]>,
) -> Vec<(u32, ThreadRole)> {
    let mut poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(|| TimeNs(1)));
    threads.take(all, list, &mut |_| None, &mut poll);
    let roles = updates(poll).into_iter();
    let roles = roles.map(|update| (update.key.placeholder().unwrap().0, update.role.unwrap()));
    roles.collect()
}

fn updates(poll: Poll) -> Vec<ThreadUpdate> {
    let updates = poll.finish().into_iter().map(|record| match record {
        Record::ThreadUpdate(update) => update,
        other => panic!("{other:?}"),
    });
    updates.collect()
}

#[test]
fn a_program_that_names_its_threads_like_the_vm_is_not_taken_for_it() {
    let all = [
        thread(1, "java"),
        thread(2, "GC Thread#0"),
        thread(3, "GC Thread#0"),
        thread(4, "C2 CompilerThre"),
        thread(5, "C2 CompilerThre"),
        thread(6, "Finalizer"),
    ];
    let list = [java(3, 1), java(4, 1), java(5, 2), java(6, 1)];
    let mut threads = Threads::default();
    use ThreadRole::{Collector, Compiler, Mutator};
    assert_eq!(
        told(&mut threads, &all, Some(&list)),
        [
            (2, Collector),
            (3, Mutator),
            (4, Mutator),
            (5, Compiler),
            (6, Mutator)
        ]
    );
    let compilers: Vec<u32> = threads.compilers().iter().map(|one| one.tid.0).collect();
    assert_eq!(compilers, [5]);
    assert!(told(&mut threads, &all, Some(&list)).is_empty());
    // By name alone.
    let by_name = told(&mut Threads::default(), &all, None);
    assert_eq!(by_name.len(), 5);
    assert!(by_name.contains(&(3, Collector)));
}

#[test]
fn roles_change_with_names_and_numbers_are_used_again() {
    let mut threads = Threads::default();
    assert!(told(&mut threads, &[thread(1, "java")], None).is_empty());
    let named = [thread(1, "VM Thread")];
    assert_eq!(told(&mut threads, &named, None), [(1, ThreadRole::Vm)]);
    assert!(told(&mut threads, &[], None).is_empty());
    assert_eq!(told(&mut threads, &named, None), [(1, ThreadRole::Vm)]);
}

#[test]
fn another_thread_with_the_number_and_role_of_one_before_is_told() {
    let mut threads = Threads::default();
    let all = [thread(1, "worker")];
    let mutator = [(1, ThreadRole::Mutator)];
    let first = java(1, 1);
    let second = JavaThread {
        at: Avma(0x9000),
        ..first.clone()
    };
    let list = |one: &JavaThread| Some(vec![one.clone()]);
    assert_eq!(told(&mut threads, &all, list(&first).as_deref()), mutator);
    assert!(told(&mut threads, &all, list(&first).as_deref()).is_empty());
    assert_eq!(told(&mut threads, &all, list(&second).as_deref()), mutator);
    assert!(told(&mut threads, &all, list(&second).as_deref()).is_empty());
}

#[test]
fn names_are_told_again_after_a_change() {
    let mut threads = Threads::default();
    let mut told = |comm: &str, name: Option<&str>, now: u64| {
        let mut poll = Poll::new(
            KeySource::new(),
            ProcessKey(1),
            Arc::new(move || TimeNs(now)),
        );
        let mut reads = 0;
        let mut name_of = |_: &JavaThread| {
            reads += 1;
            name.map(str::to_owned)
        };
        let list = [java(1, 1)];
        threads.take(&[thread(1, comm)], Some(&list), &mut name_of, &mut poll);
        let names: Vec<Option<String>> = updates(poll)
            .into_iter()
            .map(|update| update.name)
            .collect();
        (names, reads)
    };
    let is = |name: &str| vec![Some(name.to_owned())];
    assert_eq!(told("java", None, 1), (vec![None], 1));
    assert_eq!(told("java", Some("main"), 2), (vec![], 0));
    let now = 2 + NAME_AGAIN;
    assert_eq!(told("java", Some("main"), now), (is("main"), 1));
    assert_eq!(told("java", Some("other"), now + 1), (vec![], 0));
    // Unreadable for once.
    let now = now + NAMES_EVERY;
    assert_eq!(told("java", None, now), (vec![], 1));
    let now = now + NAMES_EVERY;
    assert_eq!(told("java", Some("other"), now), (is("other"), 1));
    // The kernel's name came after Java's.
    assert_eq!(told("othe", Some("other"), now + 1), (is("other"), 1));
}

#[test]
fn threads_of_the_vm_are_known_by_both_forms_of_their_names() {
    use ThreadRole::{Collector, Compiler, Heartbeat, Vm};
    let cases = [
        ("C2 CompilerThre", Some(Compiler)),
        ("C2 Comp..hread0", Some(Compiler)),
        ("VM Peri..Thread", Some(Heartbeat)),
        ("Referen..andler", Some(Vm)),
        ("Signal ..atcher", Some(Vm)),
        ("G1 Refi..kers#0", Some(Collector)),
        ("StringD..Thread", Some(Collector)),
        ("Shenand..eads#0", Some(Collector)),
        ("ShenWorker#0", Some(Collector)),
        // Two dots in a name of the program.
        ("C2 Comp..", None),
        ("C2..and others", None),
        ("worker-..nd-more", None),
    ];
    for (name, role) in cases {
        assert_eq!(role_of_name(name), role, "{name}");
    }
}
