//! Places of samples, with the address spaces and files of the sample's time.

use crate::recordings::{
    self, PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code, function, names, read,
};
use std::io::Cursor;
use vmscope_records::recording::{ReadError, Reader};
use vmscope_records::{
    Avma, CallChain, ChainEnd, Constituent, CpuMode, FileOffset, ModuleKey, ProcessKey, Record,
    Sample, SampleDetail, SymbolOwner, Symbols, ThreadKey, ThreadRole, ThreadUpdate, TimeNs,
};
use vmscope_symbolizer::symbols::Hits;
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::{
    Filter, Id, Profile, Region, SiteId, Summary, ThreadId, Trace, TraceError,
};

fn regions(profile: &Profile) -> Vec<(Region, u64)> {
    let summary = Summary::with_errors(profile, &Filter::default());
    let all = Region::ALL.into_iter().zip(summary.regions);
    all.filter(|(_, samples)| *samples > 0).collect()
}

#[test]
fn a_library_loaded_where_another_was_gets_its_own_samples_only() {
    let (first, second) = (ModuleKey(2), ModuleKey(3));
    let mut recording = Recording::of("native");
    recording
        .module(first, "/lib/first.so", false)
        .module(second, "/lib/second.so", false)
        .symbols(first, &[(0x10, 0x100, "one")])
        .symbols(second, &[(0x1010, 0x100, "two")])
        .map(PROCESS, 100, 0x7000, 0x8000, 0, Some(first))
        .unmap(PROCESS, 200, 0x7000, 0x8000)
        .map(PROCESS, 300, 0x7000, 0x8000, 0x1000, Some(second));
    for time in [50, 100, 150, 200, 250, 300, 350] {
        recording.sample(time, THREAD, 0x7020);
    }
    let profile = recording.end(400).profile();
    let nowhere = "(not mapped)";
    assert_eq!(
        names(&profile),
        [nowhere, "one", "one", nowhere, nowhere, "two", "two"]
    );
}

/// During execve, samples still show the pc of the earlier program, which is no longer mapped.
#[test]
fn a_sample_during_execve_has_no_caller_in_the_earlier_program() {
    let kernel = 0xffff_ffff_8100_0000;
    let mut recording = Recording::of("native");
    for (time, user) in [
        (10, vec![Avma(0x7020)]),
        (20, vec![Avma(0x7020), Avma(0x7040)]),
    ] {
        let chain = CallChain {
            kernel: vec![Avma(kernel + 0x100)],
            user,
            end: ChainEnd::Stack,
            ..CallChain::default()
        };
        recording.put(Record::Sample(Sample {
            time: TimeNs(time),
            thread: THREAD,
            pc: Avma(kernel),
            mode: CpuMode::Kernel,
            detail: Some(Box::new(SampleDetail {
                chain: Some(chain),
                ..SampleDetail::default()
            })),
        }));
    }
    let trace = recording.end(30).profile().trace;
    let callers = trace.samples.chains.iter().map(|innermost| {
        let mut node = *innermost;
        let callers = std::iter::from_fn(|| {
            let caller = &trace.chains.nodes()[node?];
            node = caller.parent;
            Some(trace.places[caller.label])
        });
        callers.collect()
    });
    let callers: Vec<Vec<Place>> = callers.collect();
    let call = Place::Kernel(Avma(kernel + 0xff));
    assert_eq!(callers[0], [call]);
    assert_eq!(
        callers[1],
        [call, Place::Generated, Place::Generated],
        "a program"
    );
}

#[test]
fn records_that_come_late_count_from_their_own_time() {
    let library = ModuleKey(2);
    let mut recording = Recording::of("native");
    recording
        .sample(100, THREAD, 0x7020)
        .sample(300, THREAD, 0x7020)
        .module(library, "/lib/x.so", false)
        .map(PROCESS, 200, 0x7000, 0x8000, 0, Some(library))
        .symbols(library, &[(0, 0x1000, "late")]);
    assert_eq!(names(&recording.profile()), ["(not mapped)", "late"]);
}

/// Two files take turns at one address, more often than changes are read ahead of the samples.
#[test]
fn a_storm_of_mappings_has_the_places_of_each_time() {
    let files = [ModuleKey(2), ModuleKey(3)];
    let mut recording = Recording::of("native");
    for file in files {
        recording.module(file, "/lib/x.so", false);
    }
    for turn in 0..80_000_u64 {
        let file = files[turn as usize % 2];
        recording.map(PROCESS, 10 * turn, 0x7000, 0x8000, 0, Some(file));
        if turn % 1000 < 2 {
            recording.sample(10 * turn + 5, THREAD, 0x7000 + turn / 1000);
        }
    }
    let bytes = recording.bytes();
    let open = || Reader::open(Cursor::new(&bytes)).unwrap();
    let places = Trace::read_places(&mut open(), u64::MAX).unwrap();
    let whole = Trace::read(&mut open()).unwrap();
    assert_eq!(places.places, whole.places);
    let modules = whole.places.iter().filter_map(|place| match place {
        Place::Native(module, offset, _) => Some((*module, offset.0)),
        _ => None,
    });
    let expected = (0..80).flat_map(|offset| files.map(|file| (file, offset)));
    assert_eq!(modules.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert!(places.samples.times.is_empty());
}

#[test]
fn a_fork_has_its_parents_mappings_and_an_exec_has_not() {
    let (child, image) = (ProcessKey(2), ProcessKey(3));
    let thread = ThreadKey(2);
    let mut recording = Recording::of("native");
    recording
        .symbols(PROGRAM, &[(0, 0x1000, "old")])
        .process(child, 100, 200, Some(PROCESS))
        .thread(thread, child, 100, "child", ThreadRole::Other)
        .process(image, 200, 200, Some(child))
        .put(Record::ThreadUpdate(ThreadUpdate {
            key: thread,
            time: TimeNs(200),
            name: None,
            role: None,
            process: Some(image),
        }))
        .module(ModuleKey(2), "/bin/new", true)
        .map(
            image,
            210,
            PROGRAM_AT,
            PROGRAM_AT + 0x1000,
            0,
            Some(ModuleKey(2)),
        )
        .symbols(ModuleKey(2), &[(0, 0x1000, "new")]);
    for time in [150, 205, 220] {
        recording.sample(time, thread, PROGRAM_AT + 8);
        recording.sample(time, THREAD, PROGRAM_AT + 8);
    }
    assert_eq!(
        names(&recording.profile()),
        ["old", "old", "(not mapped)", "old", "new", "old"]
    );
}

#[test]
fn a_fork_has_the_code_that_its_parent_had_then_and_what_it_makes_itself() {
    let (child, image) = (ProcessKey(2), ProcessKey(3));
    let thread = ThreadKey(2);
    let mut recording = Recording::of("PHP");
    recording
        .constituent(code(1, 50, 0x9000, 0x9100))
        .constituent(code(2, 100, 0xa000, 0xa100))
        .process(child, 100, 200, Some(PROCESS))
        .thread(thread, child, 100, "child", ThreadRole::Other)
        .constituent(code(3, 120, 0x9000, 0x9100))
        .constituent(Constituent {
            process: child,
            ..code(4, 160, 0xa080, 0xa100)
        })
        .process(image, 200, 200, Some(child))
        .put(Record::ThreadUpdate(ThreadUpdate {
            key: thread,
            time: TimeNs(200),
            name: None,
            role: None,
            process: Some(image),
        }));
    for (time, pc) in [(110, 0x9010), (150, 0x9010), (150, 0xa090), (170, 0xa090)] {
        recording.sample(time, thread, pc);
        recording.sample(time, THREAD, pc);
    }
    recording.sample(210, thread, 0x9010);
    assert_eq!(
        names(&recording.profile()),
        [
            "m1",
            "m1",
            "m1",
            "m3",
            "m2",
            "m2",
            "m4",
            "m2",
            "(not mapped)"
        ],
        "child and parent by turns"
    );
}

#[test]
fn a_child_that_replaces_its_program_at_once_keeps_its_key_and_nothing_else() {
    let (child, thread) = (ProcessKey(2), ThreadKey(2));
    let mut recording = Recording::of("PHP");
    recording
        .symbols(PROGRAM, &[(0, 0x1000, "old")])
        .constituent(code(1, 50, 0x9000, 0x9100))
        .process(child, 100, 200, Some(PROCESS))
        .thread(thread, child, 100, "child", ThreadRole::Other)
        .process(child, 200, 200, None)
        .module(ModuleKey(2), "/bin/new", true)
        .map(child, 210, 0x9000, 0xa000, 0, Some(ModuleKey(2)))
        .symbols(ModuleKey(2), &[(0, 0x1000, "new")]);
    for (time, pc) in [
        (150, 0x9010),
        (150, PROGRAM_AT),
        (205, 0x9010),
        (205, PROGRAM_AT),
        (220, 0x9010),
    ] {
        recording.sample(time, thread, pc);
    }
    assert_eq!(
        names(&recording.profile()),
        ["m1", "old", "(not mapped)", "(not mapped)", "new"]
    );
}

#[test]
fn a_child_that_is_told_again_does_not_inherit_again() {
    let (child, thread) = (ProcessKey(2), ThreadKey(2));
    let mut recording = Recording::of("PHP");
    recording
        .process(child, 100, 200, Some(PROCESS))
        .thread(thread, child, 100, "child", ThreadRole::Other)
        .constituent(code(1, 150, PROGRAM_AT, PROGRAM_AT + 8))
        .process(child, 200, 200, Some(PROCESS))
        .symbols(PROGRAM, &[(0, 0x1000, "main")])
        .sample(250, thread, PROGRAM_AT);
    assert_eq!(names(&recording.profile()), ["main"]);
}

#[test]
fn inherited_code_is_doubtful_where_own_code_may_have_come() {
    // As in a perf map's first poll.
    let (child, thread) = (ProcessKey(2), ThreadKey(2));
    let mut recording = Recording::of("PHP");
    recording
        .constituent(code(1, 50, 0x9000, 0x9100))
        .process(child, 100, 200, Some(PROCESS))
        .thread(thread, child, 100, "child", ThreadRole::Other)
        .constituent(Constituent {
            process: child,
            absent_at: Some(TimeNs(0)),
            ..code(2, 300, 0x9080, 0x9180)
        });
    for (time, pc) in [
        (200, 0x9010),
        (200, 0x9090),
        (200, 0x9110),
        (300, 0x9010),
        (300, 0x9090),
    ] {
        recording.sample(time, thread, pc);
    }
    let doubtful = "(doubtful: code changed)";
    assert_eq!(
        names(&recording.profile()),
        ["m1", doubtful, "m2", "(not mapped)", "m2"]
    );
}

#[test]
fn a_library_that_is_mapped_where_code_was_gets_its_own_samples() {
    let (library, memory) = (ModuleKey(2), ModuleKey(3));
    let mut recording = Recording::of("V8");
    recording
        .module(library, "/lib/x.so", false)
        .module(memory, "/memfd:doublemapper", false)
        .symbols(library, &[(0, 0x10000, "library")])
        .symbols(PROGRAM, &[(0, 0x1000, "program")])
        .constituent(code(1, 10, 0x8f80, 0x9080))
        .constituent(code(2, 10, 0x9100, 0x9200))
        .constituent(code(3, 10, 0xb000, 0xb100))
        // Builtins: a protection change repeats their mapping.
        .constituent(code(4, 10, PROGRAM_AT, PROGRAM_AT + 0x100))
        .map(
            PROCESS,
            50,
            PROGRAM_AT,
            PROGRAM_AT + 0x800,
            0,
            Some(PROGRAM),
        )
        // Code memory, anonymous or shared.
        .map(PROCESS, 50, 0x8000, 0xa000, 0, None)
        .map(PROCESS, 50, 0xb000, 0xc000, 0, Some(memory))
        .map(PROCESS, 100, 0x9000, 0xa000, 0, Some(library))
        // Precompiled code of the library.
        .constituent(code(5, 150, 0x9800, 0x9900));
    let all = [0x8f90, 0x9010, 0x9110, 0xb010, PROGRAM_AT + 8, 0x9810];
    for (time, pc) in [60, 200]
        .into_iter()
        .flat_map(|time| all.map(|pc| (time, pc)))
    {
        recording.sample(time, THREAD, pc);
    }
    let nobody = "(generated code, unnamed)";
    assert_eq!(
        names(&recording.profile()),
        [
            "m1", "m1", "m2", "m3", "m4", nobody, //
            nobody, "library", "library", "m3", "m4", "m5",
        ]
    );
}

#[test]
fn code_in_files_that_were_mapped_when_the_recording_began_stays() {
    // The recording begins at 100, but the dump has code since 10.
    let mut recording = Recording::empty();
    recording
        .put(Record::Session(Box::new(recordings::session("V8"))))
        .process(PROCESS, 100, 100, None)
        .thread(THREAD, PROCESS, 100, "main", ThreadRole::Mutator)
        .module(PROGRAM, "/bin/node", true)
        .map(PROCESS, 100, 0x7000, 0x8000, 0, Some(PROGRAM))
        .constituent(code(1, 10, 0x7100, 0x7200))
        .sample(150, THREAD, 0x7110);
    assert_eq!(names(&recording.profile()), ["m1"]);
}

#[test]
fn shared_memory_with_code_is_generated_code() {
    let (memory, library) = (ModuleKey(2), ModuleKey(3));
    let mut recording = Recording::of(".NET");
    recording
        .module(memory, "/memfd:doublemapper", false)
        .module(library, "/lib/x.so", false)
        .map(PROCESS, 10, 0x7000, 0x8000, 0, Some(memory))
        .map(PROCESS, 10, 0x9000, 0xa000, 0, Some(library))
        .constituent(code(1, 20, 0x7100, 0x7200))
        .sample(30, THREAD, 0x7010)
        .sample(30, THREAD, 0x7110)
        .sample(30, THREAD, 0x9010);
    assert_eq!(
        regions(&recording.profile()),
        [(Region::Generated, 2), (Region::Library, 1)]
    );
}

#[test]
fn a_fork_told_before_its_parent_has_its_mappings_all_the_same() {
    // The order of a recording limited to the newest data.
    let (child, thread) = (ProcessKey(2), ThreadKey(2));
    let mut recording = Recording::empty();
    recording
        .put(Record::Session(Box::new(recordings::session("native"))))
        .process(child, 100, 200, Some(PROCESS))
        .process(PROCESS, 0, 100, None)
        .thread(thread, child, 100, "child", ThreadRole::Other)
        .module(PROGRAM, "/bin/program", true)
        .map(
            PROCESS,
            0,
            PROGRAM_AT,
            PROGRAM_AT + 0x1000,
            0,
            Some(PROGRAM),
        )
        .symbols(PROGRAM, &[(0, 0x1000, "shared")])
        .sample(150, thread, PROGRAM_AT + 8);
    assert_eq!(names(&recording.profile()), ["shared"]);
}

#[test]
fn a_process_that_is_told_again_keeps_its_mappings() {
    let mut recording = Recording::of("native");
    recording
        .symbols(PROGRAM, &[(0, 0x1000, "main")])
        .process(PROCESS, 50, 100, None)
        .sample(100, THREAD, PROGRAM_AT);
    assert_eq!(names(&recording.profile()), ["main"]);
}

#[test]
fn the_newest_name_of_a_thread_is_shown_in_whatever_order_it_was_told() {
    let update = |time, name: &str| {
        Record::ThreadUpdate(ThreadUpdate {
            key: THREAD,
            time: TimeNs(time),
            name: Some(name.into()),
            role: None,
            process: None,
        })
    };
    let mut recording = Recording::empty();
    recording
        .put(Record::Session(Box::new(recordings::session("native"))))
        .put(update(200, "newest"))
        .put(update(100, "older"))
        .thread(THREAD, PROCESS, 0, "oldest", ThreadRole::Mutator);
    let trace = recording.read().unwrap();
    assert_eq!(trace.threads[ThreadId::of(0)].thread.name, "newest");
    assert_eq!(
        trace.threads[ThreadId::of(0)].thread.role,
        ThreadRole::Mutator
    );
}

#[test]
fn every_kind_of_place_has_its_region() {
    let library = ModuleKey(2);
    let mut recording = Recording::of("VM");
    recording
        .module(library, "/lib/libx.so.1", false)
        .map(PROCESS, 0, 0x7000, 0x9000, 0, Some(library))
        .map(PROCESS, 0, 0x9000, 0xa000, 0, None)
        .map(PROCESS, 0, 0xb000, 0xc000, 0, Some(ModuleKey(99)))
        .constituent(code(1, 0, 0x9000, 0x9100))
        .sample(1, THREAD, PROGRAM_AT)
        .sample(2, THREAD, 0x7000)
        .sample(3, THREAD, 0x9010)
        .sample(4, THREAD, 0x9800)
        .sample_in(5, THREAD, 0xffff_8000_0000_0000, CpuMode::Kernel)
        .sample_in(6, THREAD, PROGRAM_AT, CpuMode::Idle)
        .sample(7, THREAD, 0x10)
        .sample(8, THREAD, 0xb000)
        .sample(9, THREAD, 0x7fff)
        .sample(10, THREAD, 0x8000);
    let profile = recording.profile();
    assert_eq!(
        names(&profile),
        [
            "(no symbol) vm 0x0-0xfff",
            "(no symbol) libx.so.1 0x0-0xfff",
            "m1",
            "(generated code, unnamed)",
            "(no symbol) [kernel]",
            "(not running)",
            "(not mapped)",
            // An unrecorded module.
            "(no symbol)",
            // Unnamed code is told apart by pages.
            "(no symbol) libx.so.1 0x0-0xfff",
            "(no symbol) libx.so.1 0x1000-0x1fff",
        ]
    );
    assert_eq!(
        regions(&profile),
        [
            (Region::Generated, 2),
            (Region::Vm, 1),
            (Region::Library, 3),
            (Region::Kernel, 1),
            (Region::Idle, 1),
            (Region::Unknown, 2),
        ]
    );
    let quality = Summary::with_errors(&profile, &Filter::default()).quality;
    assert_eq!(quality.unresolved, 8, "{quality:?}");
}

#[test]
fn a_thread_that_was_never_told_of_is_counted() {
    let mut recording = Recording::of("native");
    recording.sample(1, ThreadKey(77), PROGRAM_AT);
    let profile = recording.profile();
    assert_eq!(names(&profile), ["(not mapped)"]);
    let summary = Summary::with_errors(&profile, &Filter::default());
    assert_eq!((summary.total, summary.threads[0].samples), (1, 1));
}

#[test]
fn only_what_the_recording_does_not_name_is_asked_of_the_machine() {
    let (known, nameless) = (ModuleKey(2), ModuleKey(3));
    let mut recording = Recording::of("native");
    recording
        .module(known, "/lib/known.so", false)
        .module(nameless, "/lib/nameless.so", false)
        .map(PROCESS, 0, 0x7000, 0x8000, 0, Some(known))
        .map(PROCESS, 0, 0x9000, 0xa000, 0, Some(nameless))
        .symbols(known, &[(0, 0x1000, "f")])
        // Files unreadable at recording time may be readable here.
        .symbols(nameless, &[])
        .sample(1, THREAD, 0x7010)
        .sample(2, THREAD, 0x9020)
        .sample(3, THREAD, 0x9010)
        .sample(4, THREAD, 0x9010)
        .sample(5, THREAD, PROGRAM_AT + 4)
        .sample_in(6, THREAD, 0xffff_8000_0000_0000, CpuMode::Kernel);
    let hits = Hits::missing_in(&recording.read().unwrap());
    let asked: Vec<_> = hits
        .modules
        .iter()
        .map(|(module, offsets)| (module.key, offsets.clone()))
        .collect();
    assert_eq!(
        asked,
        [
            (PROGRAM, vec![FileOffset(4)]),
            (nameless, vec![FileOffset(0x10), FileOffset(0x20)])
        ]
    );
    assert_eq!(hits.kernel, [Avma(0xffff_8000_0000_0000)]);
}

#[test]
fn symbols_told_twice_name_a_function_once() {
    let mut with_lines = function(0, 0x100, "f");
    with_lines.lines = vec![vmscope_records::NativeLines {
        start: FileOffset(0),
        end: FileOffset(0x100),
        frames: vec![vmscope_records::NativeFrame {
            function: "f".into(),
            file: "f.c".into(),
            line: 7,
        }],
        exactness: vmscope_records::Exactness::Exact,
    }];
    let mut recording = Recording::of("native");
    recording
        .put(Record::Symbols(Symbols {
            owner: SymbolOwner::Module(PROGRAM),
            functions: vec![with_lines],
            note: String::new(),
        }))
        .symbols(PROGRAM, &[(0, 0x100, "f")])
        .sample(1, THREAD, PROGRAM_AT + 4);
    let profile = recording.profile();
    assert_eq!(names(&profile), ["f"]);
    assert_eq!(
        profile.sites[SiteId::of(0)].frame.line,
        Some(7),
        "the better one wins"
    );
}

#[test]
fn without_a_session_there_is_nothing_to_report_on() {
    let mut recording = Recording::empty();
    recording.sample(1, THREAD, 1);
    assert!(matches!(recording.read(), Err(TraceError::NoSession)));
    let nothing = Recording::empty().read();
    assert!(matches!(nothing, Err(TraceError::NoSession)));
    assert!(matches!(read(&[]), Err(TraceError::Read(ReadError::Empty))));
}

#[test]
fn a_recording_without_samples_or_end_is_a_profile_of_nothing() {
    let profile = Recording::of("native").profile();
    assert!(profile.trace.end.is_none() && profile.entries.is_empty());
    let summary = Summary::with_errors(&profile, &Filter::default());
    assert_eq!((summary.total, summary.vm), (0, 0));
    assert!(summary.errors.is_empty() && summary.threads.is_empty());
    assert_eq!(summary.share(0), 0.0);
}

#[test]
fn damage_outside_the_samples_is_told_too() {
    let mut recording = Recording::of("native");
    recording.sample(1, THREAD, PROGRAM_AT);
    let mut bytes = recording.bytes();
    recording.method(1, "C", "m");
    // Another state chunk with a flipped payload byte, hence undecodable.
    let whole = Recording::of("native").bytes();
    let chunk = &whole[16..];
    let at = bytes.len();
    bytes.extend_from_slice(chunk);
    bytes[at + 50] ^= 0xff;
    let trace = read(&bytes).unwrap();
    assert_eq!(trace.samples.times.len(), 1);
    assert_eq!(trace.ending.damage_count, 1, "{:?}", trace.ending);
    assert_eq!(trace.ending.damages[0].offset, at as u64);
    assert!(trace.ending.damages[0].at_end);
}

#[test]
fn damage_that_both_passes_meet_is_told_once() {
    let mut recording = Recording::of("native");
    recording.sample(1, THREAD, PROGRAM_AT);
    let mut bytes = recording.bytes();
    bytes.extend_from_slice(b"VMSCtorn");
    let trace = read(&bytes).unwrap();
    assert_eq!(trace.ending.damage_count, 1, "{:?}", trace.ending);
    assert_eq!(trace.ending.damaged_bytes, 8);
}

#[test]
fn samples_out_of_order_are_counted() {
    let mut recording = Recording::of("native");
    for time in [5, 3, 4, 9] {
        recording.sample(time, THREAD, PROGRAM_AT);
    }
    let trace = recording.read().unwrap();
    assert_eq!(trace.disordered_samples, 2);
    assert_eq!(
        *trace.places,
        [Place::Native(PROGRAM, FileOffset(0), ThreadRole::Other)]
    );
}

#[test]
fn reading_for_places_alone_finds_the_same_places_and_keeps_no_sample() {
    let mut recording = Recording::of("native");
    for time in 1..=1000 {
        recording.sample(time, THREAD, PROGRAM_AT + time % 7);
    }
    let bytes = recording.end(1001).bytes();
    let whole = read(&bytes).unwrap();
    let mut reader = Reader::open(Cursor::new(&bytes)).unwrap();
    let places = Trace::read_places(&mut reader, u64::MAX).unwrap();
    assert_eq!(places.places, whole.places);
    assert_eq!(places.places.len(), 7);
    assert_eq!(whole.samples.times.len(), 1000);
    assert!(places.samples.times.is_empty());
    let hits = |trace| Hits::missing_in(trace).modules.len();
    assert_eq!(hits(&places), hits(&whole));
}
