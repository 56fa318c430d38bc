use super::*;
use vmscope_records::{Avma, FileOffset};

const MAIN: Pid = Pid(100);

fn code(start: u64, inode: u64, name: &str) -> MapEntry {
    MapEntry {
        start: Avma(start),
        end: Avma(start + 0x1000),
        offset: FileOffset(0),
        device: 1,
        inode,
        name: name.as_bytes().to_vec(),
        readable: true,
        writable: false,
        executable: true,
    }
}

fn keys(table: &ProcessTable) -> Vec<u32> {
    let (spaces, _) = table.take_changes();
    spaces.iter().map(|space| space.key.0).collect()
}

fn names(space: &AddressSpace) -> Vec<String> {
    let code = space.code.iter();
    code.map(|mapped| mapped.entry.display_name()).collect()
}

#[test]
fn a_fork_has_its_parents_code_and_an_exec_nothing() {
    let table = ProcessTable::new(&[MAIN]);
    table.add(ProcessKey(0), MAIN, None, "vm", TimeNs(1));
    table.add_mapping(ProcessKey(0), code(0x1000, 1, "/bin/vm"), None);
    table.add(ProcessKey(1), Pid(7), Some(ProcessKey(0)), "", TimeNs(2));
    table.add_mapping(ProcessKey(1), code(0x8000, 2, "/tmp/jit-7.dump"), None);
    table.end(ProcessKey(0), TimeNs(3));
    table.add(ProcessKey(2), MAIN, Some(ProcessKey(0)), "sh", TimeNs(3));
    let (spaces, goes_on) = table.take_changes();
    assert!(goes_on);
    let [old, child, new] = &spaces[..] else {
        panic!("{spaces:?}")
    };
    assert!(old.has_ended() && old.main && names(old) == ["/bin/vm"]);
    assert_eq!(names(child), ["/bin/vm", "/tmp/jit-7.dump"]);
    assert!(!child.main && child.has_own && !child.has_anonymous);
    assert!(new.main && new.code.is_empty() && !new.has_own);
    assert!(keys(&table).is_empty(), "told once");
    table.close();
    assert!(!table.take_changes().1);
}

#[test]
fn what_is_only_between_a_fork_and_an_exec_is_not_told() {
    let table = ProcessTable::new(&[MAIN]);
    table.add(ProcessKey(0), MAIN, None, "sh", TimeNs(1));
    table.add_mapping(ProcessKey(0), code(0x1000, 1, "/bin/sh"), None);
    assert_eq!(keys(&table), [0]);
    for child in 1..=100_000 {
        table.add(
            ProcessKey(child),
            Pid(7),
            Some(ProcessKey(0)),
            "",
            TimeNs(2),
        );
        table.end(ProcessKey(child), TimeNs(3));
    }
    assert_eq!(keys(&table), [0; 0]);
    assert_eq!(table.missed(), Missed::default());

    // The same key goes on in another program if nobody reads it.
    let (fork, soon) = (ProcessKey(200_000), TimeNs(5));
    table.add(fork, Pid(7), Some(ProcessKey(0)), "", TimeNs(4));
    assert!(!table.is_claimed(fork));
    table.replace_program(fork, "true");
    table.add_mapping(fork, code(0x3000, 3, "/bin/true"), None);
    table.end(fork, soon);
    let (spaces, _) = table.take_changes();
    assert_eq!(
        (names(&spaces[0]), spaces[0].ended),
        (vec!["/bin/true".to_owned()], Some(soon))
    );
    assert!(table.claim(fork).is_none(), "it is forgotten");

    table.add(
        ProcessKey(300_000),
        Pid(9),
        Some(ProcessKey(0)),
        "",
        TimeNs(6),
    );
    assert!(table.claim(ProcessKey(300_000)).is_some());
    assert!(table.is_claimed(ProcessKey(300_000)));
    table.end(ProcessKey(300_000), TimeNs(7));
    assert!(table.claim(ProcessKey(300_000)).is_none(), "it is over");

    // A worker that was forked and lives for long runs what its parent has mapped.
    table.add(
        ProcessKey(300_001),
        Pid(9),
        Some(ProcessKey(0)),
        "",
        TimeNs(6),
    );
    keys(&table);
    table.add(
        ProcessKey(300_002),
        Pid(9),
        Some(ProcessKey(0)),
        "",
        TimeNs(6),
    );
    table.end(ProcessKey(300_002), TimeNs(6 + LONG_ENOUGH_NS));
    assert_eq!(keys(&table), [300_002]);
}

#[test]
fn mapping_for_ever_is_told_once_and_more_processes_than_fit_are_counted() {
    let table = ProcessTable::new(&[MAIN]);
    table.add(ProcessKey(0), MAIN, None, "vm", TimeNs(1));
    table.add_mapping(ProcessKey(0), code(0x1000, 1, "/bin/vm"), None);
    table.add_mapping(ProcessKey(0), code(0x7000, 0, "[vdso]"), None);
    assert_eq!(keys(&table), [0]);
    table.add_mapping(ProcessKey(0), code(0x9000, 0, "//anon"), None);
    let (spaces, _) = table.take_changes();
    assert!(spaces[0].has_anonymous);
    for again in 0..100_000 {
        table.add_mapping(ProcessKey(0), code(0x1000, 1, "/bin/vm"), None);
        table.add_mapping(ProcessKey(0), code(0x9000, 0, "//anon"), None);
        table.add_mapping(ProcessKey(0), code(again << 20, 0, ""), None);
        if again % 1000 == 100 {
            assert_eq!(keys(&table), [0; 0], "after {again}");
        }
    }
    // The number of files is limited, and so are the bytes of their names.
    let long = "x".repeat(4000);
    for file in 0..100_000 {
        table.add_mapping(ProcessKey(0), code(0, 2 + file, &format!("/{long}")), None);
    }
    let missed = table.missed().mappings;
    assert!((98_000..100_000).contains(&missed), "{missed}");
    assert_eq!(keys(&table), [0]);

    for child in 1..10_000 {
        table.add(
            ProcessKey(child),
            Pid(200),
            Some(ProcessKey(0)),
            "",
            TimeNs(2),
        );
        table.add_mapping(ProcessKey(child), code(0x2000, 9, "/lib/own.so"), None);
        table.end(ProcessKey(child), TimeNs(3));
    }
    assert_eq!(table.missed().spaces, 9_999 - (MAX_SPACES as u64 - 1));
    let (spaces, _) = table.take_changes();
    assert_eq!(spaces.len(), MAX_SPACES - 1);
    drop(spaces);
    // What was taken makes room.
    table.add(
        ProcessKey(20_000),
        Pid(200),
        Some(ProcessKey(0)),
        "",
        TimeNs(4),
    );
    assert_eq!(keys(&table), [20_000]);
}
