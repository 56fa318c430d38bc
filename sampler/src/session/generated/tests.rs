use super::*;
use vmscope_records::{
    Arch, CallChain, FileOffset, InterpreterValue, ModuleKey, Pid, ProcessKey, Registers,
    SamplePlace, StackBytes, Tid, TimeNs,
};

const BP: u32 = 6;

fn entry(start: u64, end: u64, name: &str) -> MapEntry {
    MapEntry {
        start: Avma(start),
        end: Avma(end),
        offset: FileOffset(0),
        device: 1,
        inode: u64::from(name.starts_with('/') && !name.starts_with("//")),
        name: name.as_bytes().to_vec(),
        readable: true,
        writable: false,
        executable: true,
    }
}

/// What [`Generated::mapped`] says of a mapping.
fn map(space: &mut Generated, entry: &MapEntry) -> bool {
    let mapping = Mapping {
        process: ProcessKey(0),
        time: TimeNs(0),
        start: entry.start,
        end: entry.end,
        offset: entry.offset,
        module: entry.path().map(|_| ModuleKey(0)),
        name: String::new(),
        executable: true,
    };
    space.mapped(entry, &mapping)
}

fn source(place: SamplePlace) -> InterpreterSource {
    let holds = InterpreterValue::Bytecode;
    InterpreterSource { place, holds }
}

/// A register, and a word of the frame.
fn sources() -> Vec<InterpreterSource> {
    let (base, offset) = (BP, -8);
    vec![
        source(SamplePlace::Register(1)),
        source(SamplePlace::Stack { base, offset }),
    ]
}

/// Registers 0, 1, 6 and 7, and 16 bytes of stack.
fn sample(pc: u64, mode: CpuMode) -> RawSample {
    let detail = SampleDetail {
        registers: Some(Registers {
            arch: Arch::of_this_machine(),
            mask: 0b1100_0011,
            values: vec![0, 0xb1, 0x7010, 0x7008],
        }),
        stack: Some(StackBytes {
            sp: Avma(0x7008),
            bytes: [0xaa; 8].into_iter().chain([0xbb; 8]).collect(),
        }),
        ..SampleDetail::default()
    };
    RawSample {
        time: TimeNs(1),
        pid: Pid(1),
        tid: Tid(1),
        pc: Avma(pc),
        mode,
        detail: Some(Box::new(detail)),
    }
}

fn rules(vm: &str, start: u64, end: u64) -> InterpreterRules {
    InterpreterRules {
        process: ProcessKey(0),
        time: TimeNs(0),
        vm: vm.to_owned(),
        ranges: vec![(Avma(start), Avma(end))],
        sources: sources(),
    }
}

/// What is recorded of a sample: how many registers and words; and what it touched.
fn kept(space: &mut Generated, pc: u64, mode: CpuMode) -> ((usize, usize), Vec<u64>) {
    let mut sample = sample(pc, mode);
    space.sampled(&mut sample, &sources(), &mut NativeHits::default());
    let mut touched: Vec<u64> = space.take_touched().map(|at| at.0).collect();
    touched.sort_unstable();
    let Some(detail) = sample.detail else {
        return ((0, 0), touched);
    };
    assert_eq!(detail.stack, None, "its words instead");
    for source in sources() {
        let whole = super::tests::sample(pc, mode).detail.unwrap();
        assert_eq!(source.place.value(&detail), source.place.value(&whole));
    }
    let registers = detail.registers.map_or(0, |all| all.values.len());
    ((registers, detail.words.len()), touched)
}

// vmscope would otherwise search a file for its unwind rules.
#[test]
fn code_in_shared_memory_is_no_file() {
    let mut space = Generated::default();
    map(&mut space, &entry(0x1000, 0x2000, "/usr/bin/vm"));
    map(&mut space, &entry(0x2000, 0x3000, "/dev/zero (deleted)"));
    map(&mut space, &entry(0x3000, 0x4000, "/memfd:doublemapper"));
    let file = |at| space.code_at(at).map(|code| code.file.is_some());
    assert_eq!(
        [0x1800, 0x2800, 0x3800].map(file),
        [Some(true), Some(false), Some(false)]
    );
    assert_eq!(file(0x4000), None);
}

#[test]
fn registers_are_kept_where_an_interpreter_may_be() {
    let (user, word) = (CpuMode::User, 0xaaaa_aaaa_aaaa_aaaa);
    let mut space = Generated::default();
    map(&mut space, &entry(0x1000, 0x2000, "/usr/bin/vm"));
    map(&mut space, &entry(0x2000, 0x3000, "[vdso]"));
    map(&mut space, &entry(0x3000, 0x4000, "//anon"));
    map(&mut space, &entry(0x4000, 0x5000, "/memfd:doublemapper"));
    for file in [0x1fff, 0x2000] {
        assert_eq!(kept(&mut space, file, user), ((0, 0), vec![]));
    }
    let kernel = CpuMode::Kernel;
    assert_eq!(kept(&mut space, 0x3000, kernel), ((0, 0), vec![]));
    for generated in [0x3000, 0x4000, 0x9000] {
        let touched = vec![0xb1, generated, word];
        assert_eq!(kept(&mut space, generated, user), ((2, 1), touched));
    }

    let mut other = space.forked();
    other.reads(Vec::new());
    let none = ((0, 0), vec![0x3000]);
    assert_eq!(
        kept(&mut other, 0x3000, user),
        none,
        "there is no interpreter"
    );

    space.reads(sources());
    assert_eq!(
        kept(&mut space, 0x3000, user).0,
        (2, 1),
        "it is not told yet"
    );
    space.rules(&rules("one", 0x3100, 0x3200));
    space.rules(&rules("other", 0x3300, 0x3400));
    space.rules(&rules("other", 0x1500, 0x1600));
    space.reads(Vec::new());
    assert_eq!(kept(&mut space, 0x3000, user), ((0, 0), vec![0x3000]));
    assert_eq!(kept(&mut space, 0x3300, user), ((0, 0), vec![0x3300]));
    assert_eq!(kept(&mut space, 0x3100, user).0, (2, 1));
    let in_file = ((2, 1), vec![0xb1, word]);
    assert_eq!(
        kept(&mut space, 0x1500, user),
        in_file,
        "an interpreter in C"
    );
    assert_eq!(kept(&mut space.forked(), 0x1500, user), in_file);
}

#[test]
fn no_interpreter_is_expected_once_there_is_code() {
    let user = CpuMode::User;
    let mut space = Generated::default();
    map(&mut space, &entry(0x1000, 0x2000, "/usr/bin/vm"));
    space.reads(sources());
    assert_eq!(kept(&mut space, 0x1000, user).0, (2, 1));
    space.has_code();
    assert_eq!(kept(&mut space, 0x1000, user), ((0, 0), vec![]));
    assert_eq!(kept(&mut space, 0x3000, user), ((0, 0), vec![0x3000]));
    space.reads(sources());
    assert_eq!(kept(&mut space, 0x1000, user).0, (0, 0), "another adapter");
    space.rules(&rules("late", 0x1500, 0x1600));
    space.has_code();
    assert_eq!(kept(&mut space, 0x1500, user).0, (2, 1));
}

#[test]
fn callers_in_generated_code_are_touched_too() {
    let mut space = Generated::default();
    map(&mut space, &entry(0x1000, 0x2000, "/usr/bin/vm"));
    let chain = CallChain {
        user: vec![Avma(0x1800), Avma(0x3456)],
        ..CallChain::default()
    };
    let mut sample = sample(0x1000, CpuMode::User);
    let detail = SampleDetail {
        chain: Some(chain),
        ..SampleDetail::default()
    };
    sample.detail = Some(Box::new(detail.clone()));
    space.sampled(&mut sample, &[], &mut NativeHits::default());
    assert_eq!(sample.detail.as_deref(), Some(&detail), "chains are kept");
    let touched: Vec<Avma> = space.take_touched().collect();
    assert_eq!(touched, [Avma(0x3456)]);
}

#[test]
fn native_places_are_collected_with_the_calls_of_callers() {
    let mut space = Generated::default();
    map(&mut space, &entry(0x1000, 0x2000, "/usr/bin/vm"));
    let chain = CallChain {
        user: [0x1800, 0x1900, 0x3456].map(Avma).to_vec(),
        kernel: vec![Avma(0xffff_0010)],
        ..CallChain::default()
    };
    let mut hits = NativeHits::default();
    let mut take = |mode, pc: u64| {
        let mut sample = super::tests::sample(pc, mode);
        sample.detail = Some(Box::new(SampleDetail {
            chain: Some(chain.clone()),
            ..SampleDetail::default()
        }));
        space.sampled(&mut sample, &[], &mut hits);
        let modules = hits.modules().map(|(_, places)| places).next();
        let modules: Vec<u64> = modules.iter().flatten().map(|at| at.0).collect();
        (modules, hits.kernel_places())
    };
    // The innermost user address of a kernel sample is a pc.
    let kernel = take(CpuMode::Kernel, 0xffff_0100);
    let places = vec![Avma(0xffff_000f), Avma(0xffff_0100)];
    assert_eq!(kernel, (vec![0x800, 0x8ff], places.clone()));
    let idle = take(CpuMode::Idle, 0x1234);
    assert_eq!(idle, (vec![0x7ff, 0x800, 0x8ff], places.clone()));
    let user = take(CpuMode::User, 0x1234);
    assert_eq!(user, (vec![0x234, 0x7ff, 0x800, 0x8ff], places));
    // Another file takes the place of the second caller.
    map(&mut space, &entry(0x1880, 0x2000, "/usr/lib/other"));
    let mut sample = sample(0x1234, CpuMode::User);
    sample.detail = Some(Box::new(SampleDetail {
        chain: Some(chain),
        ..SampleDetail::default()
    }));
    let mut hits = NativeHits::default();
    space.sampled(&mut sample, &[], &mut hits);
    let places: Vec<_> = hits.modules().flat_map(|(_, places)| places).collect();
    assert_eq!(places, [0x7f, 0x234, 0x7ff].map(FileOffset));
}

#[test]
fn a_repeated_mapping_changes_nothing() {
    let mut space = Generated::default();
    assert!(map(&mut space, &entry(0x1000, 0x3000, "//anon")));
    for _ in 0..1000 {
        assert!(!map(&mut space, &entry(0x1000, 0x2000, "//anon")));
        assert!(!map(&mut space.forked(), &entry(0x2000, 0x3000, "//anon")));
    }
    assert!(map(&mut space, &entry(0x2000, 0x4000, "//anon")), "more");
    assert!(map(&mut space, &entry(0x2000, 0x3000, "/usr/bin/vm")));
    assert!(!map(&mut space, &entry(0x2000, 0x3000, "/usr/bin/vm")));
    assert!(
        map(&mut space, &entry(0x2800, 0x3000, "/usr/bin/vm")),
        "another place of the file"
    );
    assert!(map(&mut space, &entry(0x1000, 0x3000, "//anon")));
    assert_eq!(space.mappings.len(), 2);
}

#[test]
fn an_endless_storm_of_mappings_takes_no_endless_memory() {
    let mut space = Generated::default();
    for at in 0..100_000 {
        map(&mut space, &entry(at << 13, (at << 13) + 1, "//anon"));
    }
    assert_eq!(space.mappings.len(), MAX_PIECES);
}
