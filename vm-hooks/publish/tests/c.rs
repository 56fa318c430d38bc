//! A VM in C, linked with the static library, and its reader.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use vmscope_publish::event::{Boundary, Event, GoneReason, PcMap};
use vmscope_publish::reader::{Attached, Next, find};

/// The built library.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let places = [deps, deps.parent().unwrap()].map(|dir| dir.join("libvmscope_publish.a"));
    let library = places.iter().find(|path| path.exists());
    library
        .expect("the static library is built with the tests")
        .clone()
}

struct Vm {
    process: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Vm {
    /// Compiles it for the test `name` and starts it with an argument.
    fn start(name: &str, argument: &str) -> Self {
        let here = env!("CARGO_MANIFEST_DIR");
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let compiled = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"])
            .args(["-Wno-missing-field-initializers", "-I"])
            .arg(format!("{here}/include"))
            .arg(format!("{here}/tests/vm.c"))
            .arg(library())
            .args(["-lpthread", "-ldl", "-lm", "-o"])
            .arg(&program)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{errors}");
        let mut process = Command::new(program)
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        let mut vm = Self {
            process,
            input,
            output,
        };
        let mut ready = [0; 6];
        vm.output.read_exact(&mut ready).unwrap();
        vm
    }

    fn attach(&self) -> Attached {
        // As a profiler finds it.
        let [memory] = &mut *find(self.process.id()).unwrap() else {
            panic!("one memory");
        };
        let memory = memory.try_clone().unwrap();
        Attached::new(memory, Some(self.process.id().into())).unwrap()
    }

    /// Lets it poll once more.
    fn poll(&mut self) {
        self.input.as_ref().unwrap().write_all(b"x").unwrap();
    }
}

/// Reads until an event of this kind came.
fn until(attached: &mut Attached, kind: u8) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    loop {
        match attached.read() {
            Next::Event { event, .. } => {
                let last = event.kind() == kind;
                events.push(event);
                if last {
                    return events;
                }
            }
            Next::Empty => std::thread::yield_now(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_vm_in_c_is_read() {
    let mut vm = Vm::start("vm-that-is-read", "");
    let mut attached = vm.attach();
    assert_eq!(attached.identity().name, "toy");
    attached.request_snapshot();
    vm.poll();
    let events = until(&mut attached, 2);
    let [
        Event::SnapshotBegin(_),
        Event::Method(method),
        Event::Described(code),
        Event::SnapshotEnd(_),
    ] = &*events
    else {
        panic!("{events:?}");
    };
    assert_eq!(method.name.to_str(), "at:");
    let listing: Vec<_> = method.listing_lines().collect();
    assert_eq!(listing, [(0, "push".into()), (1, "ret".into())]);
    assert_eq!((code.id, code.start, code.end), (11, 0x1000, 0x1040));
    assert_eq!((code.since, code.method, code.cases.len()), (None, 5, 2));
    assert_eq!(code.cases[0].class.to_str(), "Integer");
    assert!(code.cases[1].target.is_empty());
    let PcMap::Boundary { entries, .. } = &code.map else {
        panic!("{:?}", code.map);
    };
    let last = Boundary {
        offset: 9,
        bytecode: 3,
    };
    assert_eq!((entries.len(), entries[1]), (2, last));

    let request = attached.request_collection();
    vm.poll();
    let events = until(&mut attached, 7);
    assert_eq!(attached.collections_done(), request);
    let [
        Event::Births(births),
        Event::CollectionEnd(end),
        Event::Moved(moved),
        Event::Gone(gone),
    ] = &*events
    else {
        panic!("{events:?}");
    };
    assert_eq!((births.tid, births.births[0].bytes), (77, 24));
    assert_eq!(
        (end.spaces[0].used, end.spaces[0].capacity),
        (Some(100), None)
    );
    assert_eq!((end.survived_bytes, end.tenured_bytes), (Some(50), None));
    assert_eq!((end.survived_objects, end.cpu_ns), (Some(3), Some(1000)));
    assert_eq!((moved.to, gone.reason), (0x2000, GoneReason::Flushed));

    vm.input = None;
    assert!(vm.process.wait().unwrap().success());
}

/// A killed VM leaves no files. Its reader keeps the VM's last events.
#[test]
fn a_vm_that_is_killed_leaves_its_last_words_to_its_reader() {
    let mut vm = Vm::start("vm-that-is-killed", "");
    let mut attached = vm.attach();
    attached.request_snapshot();
    vm.poll();
    while attached.snapshots().1 == 0 {
        std::thread::yield_now();
    }
    vm.process.kill().unwrap();
    vm.process.wait().unwrap();
    let mut events = 0;
    while let Next::Event { .. } = attached.read_of_dead() {
        events += 1;
    }
    assert_eq!(events, 4);
    assert!(std::fs::read_dir(format!("/proc/{}/fd", vm.process.id())).is_err());
}

/// Killed while two of its threads write as fast as they can: all that is whole is read, and reading
/// ends.
#[test]
fn a_vm_that_is_killed_while_it_writes() {
    let mut vm = Vm::start("vm-that-writes", "busy");
    let mut attached = vm.attach();
    // By then the VM has overwritten each word of the ring.
    while attached.backlog() < 1 << 18 {
        std::thread::yield_now();
    }
    vm.process.kill().unwrap();
    vm.process.wait().unwrap();
    let (mut events, mut calls) = (0, 0);
    loop {
        match attached.read_of_dead() {
            Next::Event { event, .. } => {
                let Event::Moved(moved) = event else {
                    panic!("{event:?}");
                };
                assert_eq!(moved.to, moved.id * 3);
                events += 1;
            }
            Next::Empty => break,
            Next::Overrun { .. } | Next::Torn { .. } => {}
            other => panic!("{other:?}"),
        }
        calls += 1;
    }
    // Half a ring of records of five words, and hardly anything else.
    assert!(
        events > (1 << 17) / 2 / 5 - 100 && calls < events + 10,
        "{events} of {calls}"
    );
}
