use super::*;
use crate::testing::{ElfImage, FakeMemory, ImageSegment};
use crate::{ModuleFile, SymbolKind};
use vmscope_records::{FileOffset, ModuleState};

#[test]
fn this_very_process() {
    let view = ProcessView::open(Pid(std::process::id())).unwrap();
    let view = view.with_key(ProcessKey(4));
    assert!(view.is_live() && view.is_alive());
    assert_eq!(view.key(), ProcessKey(4));
    assert_eq!(view.memory().pointer_bytes(), 8);
    assert_eq!(view.command().len(), std::env::args().count());
    let program = std::env::current_exe().unwrap();
    assert_eq!(view.program(), program.to_str().unwrap());
    let here = Avma(own_root as *const () as u64);
    let mapping = view.mapping_at(here).unwrap();
    assert!(mapping.executable);
    assert_eq!(view.mapping_at(Avma(1)), None);
    let threads = view.threads().unwrap();
    assert!(threads.iter().any(|t| t.tid.get() == std::process::id()));
    view.refresh().unwrap();

    let file_name = program.file_name().unwrap().to_str().unwrap();
    let module = view.module(|name| name == file_name).unwrap();
    assert!(module.has_code());
    // An address read from memory through a symbol.
    let found = view.symbols(&module, &["main", "no such symbol"]).unwrap();
    let main = found[0].as_ref().unwrap();
    assert!(view.mapping_at(main.address).unwrap().executable);
    assert_eq!(main.kind, SymbolKind::Function);
    assert_eq!(found[1], None);
    let beginning = view.symbols_beginning(&module, &["main"], 50).unwrap();
    assert!(beginning.iter().any(|symbol| symbol == main));
    let libc = view.module(|name| name.starts_with("libc.so")).unwrap();
    let found = view.symbols(&libc, &["getpid"]).unwrap();
    let getpid = found[0].as_ref().unwrap();
    assert!(view.mapping_at(getpid.address).unwrap().executable);
}

/// V8 maps its builtins, a part of the program's code, once more for each isolate.
#[test]
fn copies_of_code_at_lower_addresses_do_not_count() {
    let view = ProcessView::open(Pid(std::process::id())).unwrap();
    let module = view
        .module(|name| name.starts_with("libc.so"))
        .expect("libc");
    let code = module.mappings.iter().find(|mapping| mapping.executable);
    let copy = |start: u64| MapEntry {
        start: Avma(start),
        end: Avma(start + 0x2000),
        offset: FileOffset(code.unwrap().offset.get() + 0x1000),
        ..code.unwrap().clone()
    };
    let mut other = module.clone();
    other
        .mappings
        .splice(..0, [copy(0x10_0000), copy(0x20_0000)]);
    assert_eq!(view.bias(&other).unwrap(), view.bias(&module).unwrap());
    assert_eq!(other.start(), module.start());
    let names = ["getpid"];
    let found = view.symbols(&other, &names).unwrap();
    assert_eq!(found, view.symbols(&module, &names).unwrap());
    assert!(view.exported(&other, &names)[0].is_some());
}

#[test]
fn symbols_that_were_given_come_first() {
    let line = b"1000-2000 r-xp 00000000 00:2a 7 /opt/vm/vm";
    let maps = vec![crate::parse_line(line).unwrap()];
    let view = ProcessView::fake(Pid(9), Arc::new(FakeMemory::new()), maps);
    let module = view.module(|name| name == "vm").unwrap();
    assert!(matches!(
        view.symbols(&module, &["codeBase"]),
        Err(SymbolError::NoFiles { .. })
    ));
    let given = Symbol {
        name: "codeBase".to_owned(),
        address: Avma(0x1800),
        size: 8,
        kind: SymbolKind::Object,
    };
    let view = view.with_symbols("/opt/vm/vm", vec![given.clone()]);
    let found = view.symbols(&module, &["x", "codeBase"]).unwrap();
    assert_eq!(found, [None, Some(given.clone())]);
    assert_eq!(
        view.symbols_beginning(&module, &["code"], 9).unwrap(),
        [given]
    );
    assert!(view.is_alive() && !view.is_live());
}

#[test]
fn a_process_that_ended_is_not_alive() {
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let view = ProcessView::open(Pid(child.id())).unwrap();
    assert!(view.is_alive());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!view.is_alive());
    assert!(view.refresh().is_err());
    assert!(matches!(
        view.memory().read_u8(view.mappings()[0].start),
        Err(crate::MemoryError::Gone { .. })
    ));
}

#[test]
fn a_core_file_with_symbols_from_elsewhere() {
    let mut files = Vec::new();
    for word in [1u64, 0x1000, 0x40_0000, 0x40_1000, 0] {
        files.extend_from_slice(&word.to_le_bytes());
    }
    files.extend_from_slice(b"vm\0");
    let image = ElfImage::new(goblin::elf::header::ET_CORE)
        .note(b"CORE\0", 0x4649_4c45, &files)
        .segment(ImageSegment {
            address: 0x40_0000,
            bytes: vec![5; 0x1000],
            memory_bytes: 0x1000,
            executable: true,
        })
        .build();
    let core = CoreFile::from_file(Arc::new(ModuleFile::from_image(image.clone().into()))).unwrap();
    let symbol = Symbol {
        name: "codeBase".to_owned(),
        address: Avma(0x40_0010),
        size: 8,
        kind: SymbolKind::Object,
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("vm"), image).unwrap();
    let root = Root::at(dir.path()).unwrap();
    let view = ProcessView::from_core(core, Some(root));
    let module = view.module(|name| name == "vm").unwrap();
    assert!(module.has_code());
    // The file has no build-id as proof.
    assert!(matches!(
        view.symbols(&module, &["codeBase"]),
        Err(SymbolError::NotOpened {
            state: ModuleState::Unreadable(_),
            ..
        })
    ));
    let view = view.with_symbols("vm", vec![symbol.clone()]);
    let found = view.symbols(&module, &["codeBase"]).unwrap();
    assert_eq!(found, [Some(symbol)]);
    assert_eq!(view.memory().read_u8(Avma(0x40_0010)).unwrap(), 5);
    assert!(!view.is_live() && view.threads().unwrap().is_empty());
}

#[test]
fn a_view_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<ProcessView>();
    shared::<crate::Modules>();
    sent::<crate::Poll>();
    sent::<Box<dyn crate::Adapter>>();
}

#[test]
fn dynamic_symbols_are_found_without_the_file() {
    let me = ProcessView::open(Pid(std::process::id())).unwrap();
    let maps = me.mappings().to_vec();
    let memory = Arc::new(LiveMemory::new(me.pid()));
    let without_files = ProcessView::fake(me.pid(), memory, maps);
    let libc = |view: &ProcessView| view.module(|name| name.starts_with("libc.so")).unwrap();
    let names = ["getpid", "no such symbol"];
    let found = without_files
        .symbols(&libc(&without_files), &names)
        .unwrap();
    let expected = me.symbols(&libc(&me), &names).unwrap();
    assert_eq!(
        found[0].as_ref().unwrap().address,
        expected[0].as_ref().unwrap().address
    );
    assert_eq!(found[1], None);
    // No symbol found: the unreadable file is the error.
    let error = without_files.symbols(&libc(&without_files), &["no such symbol"]);
    assert!(matches!(error, Err(SymbolError::NoFiles { .. })));
}

#[test]
fn a_process_that_is_over_has_its_names_and_no_memory() {
    let live = ProcessView::open(Pid(std::process::id())).unwrap();
    assert!(live.start_ticks().is_some());
    let (program, mappings) = (live.program().to_owned(), live.mappings());
    let here = mappings.first().unwrap().start;
    assert!(live.memory().read_u8(here).is_ok());
    let file = b"7fff00000000-7fff00001000 r-xp 00000000 00:2a 7 /tmp/jit-1.dump";
    let told = [crate::parse_line(file).unwrap(), mappings[0].clone()];
    let over = live.into_departed(told.iter().cloned());
    assert!(!over.is_alive() && !over.is_live());
    assert_eq!(over.start_ticks(), None);
    assert_eq!(over.program(), program);
    assert_eq!(over.mappings().len(), mappings.len() + 1);
    assert_eq!(over.mapping_at(told[0].start), Some(told[0].clone()));
    over.refresh().unwrap();
    assert!(matches!(
        over.memory().read_u8(here),
        Err(crate::MemoryError::Gone { .. })
    ));
    assert!(over.threads().unwrap().is_empty() && over.root().is_err());

    let told = mappings.iter().rev().cloned().collect();
    let over = ProcessView::exited(Pid(std::process::id()), told).called("vm", "/opt/vm");
    assert_eq!((over.name(), over.program()), ("vm", "/opt/vm"));
    assert_eq!(over.mapping_at(here), mappings.first().cloned());
    assert!(over.memory().read_u8(here).is_err());
}

#[test]
fn a_process_tells_when_it_was_started_with_what_and_by_whom() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .env("VMSCOPE_TEST", "a=b c")
        .spawn()
        .unwrap();
    let view = ProcessView::open(Pid(child.id())).unwrap();
    let own = ProcessView::open(Pid(std::process::id())).unwrap();
    assert!(own.started().unwrap() <= view.started().unwrap());
    let wall = crate::wall_time(view.started().unwrap()).unwrap();
    let ago = std::time::SystemTime::now().duration_since(wall).unwrap();
    assert!(ago < std::time::Duration::from_secs(60), "{ago:?}");
    assert_eq!(view.user(), Some(nix::unistd::geteuid().as_raw()));
    let given = (b"VMSCOPE_TEST".to_vec(), b"a=b c".to_vec());
    // An empty environment until exec.
    while !view.environment().unwrap().contains(&given) {
        std::thread::yield_now();
    }
    let started = view.started();
    let over = view.into_departed(std::iter::empty());
    assert_eq!((over.started(), over.user()), (started, own.user()));
    assert!(over.environment().is_err(), "it may be another process's");
    child.kill().unwrap();
    child.wait().unwrap();
    let over = ProcessView::exited(Pid(1), Vec::new()).begun(TimeNs(5));
    assert_eq!((over.started(), over.user()), (Some(TimeNs(5)), None));
}

#[test]
fn another_program_in_the_process_and_its_end_change_the_stamp() {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "read line; exec sleep 60"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let view = ProcessView::open(Pid(child.id())).unwrap();
    let before = view.stamp();
    assert!(before.is_some() && view.stamp() == before);
    drop(child.stdin.take());
    let is_other = || view.stamp().is_some_and(|now| Some(now) != before);
    let mut tries = (0..10_000).map(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    assert!(tries.any(|()| is_other()), "{before:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(view.stamp(), None);
}

/// A VM deletes its dump and writes a new one by the same name: both stay mapped.
#[test]
fn a_kept_file_serves_no_other_file_of_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jit-1.dump");
    let file = |text: &str| {
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, text).unwrap();
        Arc::new(ModuleFile::from_file(std::fs::File::open(&path).unwrap()).unwrap())
    };
    let (old, new) = (file("old"), file("new"));
    let mapped = |start: u64, numbers: (u64, u64), name: &str| MapEntry {
        start: Avma(start),
        end: Avma(start + 4096),
        offset: FileOffset(0),
        device: numbers.0,
        inode: numbers.1,
        name: name.into(),
        readable: true,
        writable: false,
        executable: true,
    };
    let (of_old, of_new) = (old.identity().unwrap(), new.identity().unwrap());
    let entries = [
        mapped(0x1000, of_old, "/none/jit-1.dump (deleted)"),
        mapped(0x3000, of_new, "/none/jit-1.dump"),
        // As overlayfs shows a file.
        mapped(0x5000, (1, 2), "/none/jit-1.dump"),
    ];
    let view = ProcessView::exited(Pid(u32::MAX >> 1), entries[..2].to_vec());
    let opened = |at: usize| {
        view.open_mapped(&entries[at])
            .map(|file| file.identity().unwrap())
    };
    view.keep(b"/none/jit-1.dump", Some(of_old), Arc::clone(&old));
    assert_eq!(opened(0).unwrap(), of_old);
    assert!(opened(1).is_err() && opened(2).is_err());
    view.keep(b"/none/jit-1.dump", Some(of_new), new);
    assert_eq!((opened(0).unwrap(), opened(1).unwrap()), (of_old, of_new));
    let shown = ProcessView::exited(Pid(u32::MAX >> 1), entries[2..].to_vec());
    shown.keep(b"/none/jit-1.dump", Some(of_old), old);
    let file = shown.open_mapped(&entries[2]).unwrap();
    assert_eq!(file.identity().unwrap(), of_old);
}
