use std::fs::File;
use std::io::{Seek as _, Write as _};

use vmscope_process::testing::FakeMemory;
use vmscope_process::{KeySource, ModuleFile, parse_line};
use vmscope_records::{Arch, Avma, Pid, ProcessKey, Record};

use super::testing::Files;
use super::*;
use crate::dump::Load;
use crate::dump::tests::encode::Encoder;

fn view() -> ProcessView {
    ProcessView::fake(Pid(4711), Arc::new(FakeMemory::new()), Vec::new())
}

fn poll() -> Poll {
    Poll::new(KeySource::new(), ProcessKey(1), Arc::new(now))
}

fn adapter(map: Option<Arc<ModuleFile>>, dumps: &[&[u8]]) -> FileAdapter {
    let image = |bytes: &&[u8]| Arc::new(ModuleFile::from_image((*bytes).into()));
    let files = Files {
        dumps: dumps.iter().map(image).collect(),
        map,
        ..Files::default()
    };
    files.file_adapter()
}

fn image(text: &str) -> Arc<ModuleFile> {
    Arc::new(ModuleFile::from_image(text.as_bytes().into()))
}

/// What a poll told: `+name`, `-name`; limits; how much was lost.
fn told(poll: Poll) -> (Vec<String>, Vec<String>, u64) {
    let (mut code, mut limits, mut lost) = (Vec::new(), Vec::new(), 0);
    let records = poll.finish();
    for record in records {
        match record {
            Record::Constituent(one) => code.push(format!("+{}", one.name)),
            Record::ConstituentGone(gone) => code.push(format!("-{}", gone.time > gone.last_seen)),
            Record::Limit(limit) => limits.push(limit.text),
            Record::Lost(one) => lost += one.count,
            _ => {}
        }
    }
    (code, limits, lost)
}

fn dump(machine: u8) -> Vec<u8> {
    let mut dump = Encoder::new(false, 0);
    dump.bytes[12] = machine;
    dump.load(&Load {
        time: 1,
        address: Avma(0x1000),
        size: 16,
        index: 1,
        name: "of the dump".to_owned(),
        lines: Vec::new(),
    });
    dump.bytes
}

#[test]
fn the_end_does_not_wait_for_a_file_without_an_end() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"1000 10 f\n").unwrap();
    file.set_len(1 << 40).unwrap();
    let file = Arc::new(ModuleFile::from_file(file).unwrap());
    let mut adapter = adapter(Some(file), &[]);
    let mut poll = poll();
    adapter.finish(&view(), &mut poll).unwrap();
    assert!(adapter.bytes_read() < MAX_BYTES_AT_END + (8 << 20));
    let (code, limits, lost) = told(poll);
    // The zeros are an invalid line.
    assert_eq!((code, lost), (vec!["+f".to_owned()], 2));
    assert!(
        limits
            .iter()
            .any(|text| text.contains("the end of a VM's jitdump"))
    );
}

#[test]
fn the_map_is_read_where_no_dump_can_be() {
    let here = u8::try_from(Arch::of_this_machine().elf_machine()).unwrap();
    for (machine, expected) in [(here, "+of the dump"), (here ^ 1, "+of the map")] {
        let bytes = dump(machine);
        let mut adapter = adapter(Some(image("1000 10 of the map\n")), &[&bytes]);
        let mut poll = poll();
        adapter.poll(&view(), &mut poll).unwrap();
        assert_eq!(told(poll).0, [expected]);
    }
    // Two dumps: one stays without a header, the other holds text.
    let mut adapter = adapter(
        Some(image("1000 10 of the map\n")),
        &[&[], b"no dump at all"],
    );
    let mut all = Vec::new();
    for _ in 0..=POLLS_FOR_HEADER {
        let mut poll = poll();
        adapter.poll(&view(), &mut poll).unwrap();
        all.push(told(poll).0.len());
    }
    assert_eq!(all[0], 0, "it may yet come");
    assert_eq!(all.iter().sum::<usize>(), 1);
}

#[test]
fn what_a_map_that_is_written_anew_lacks_ends_once_it_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    let mut writer = File::create(&path).unwrap();
    writer.write_all(b"1000 10 a\n2000 10 b\n").unwrap();
    let file = Arc::new(ModuleFile::from_file(File::open(&path).unwrap()).unwrap());
    let mut adapter = adapter(Some(file), &[]);
    let mut next = || {
        let mut poll = poll();
        adapter.poll(&view(), &mut poll).unwrap();
        told(poll).0
    };
    assert_eq!(next(), ["+a", "+b"]);
    writer.set_len(0).unwrap();
    writer.rewind().unwrap();
    writer.write_all(b"2000 10 b\n3000 10 longer\n").unwrap();
    assert!(next().is_empty(), "written anew");
    assert_eq!(next(), ["+longer"]);
    assert_eq!(next(), ["-true"], "a, at some time since");
    assert!(next().is_empty());
}

#[test]
fn a_map_of_any_size_is_told_as_far_as_samples_hit_it() {
    const LINES: u64 = 600_000;
    let at = |line: u64| 0x1_0000_0000 + line * 64;
    let mut text = String::new();
    for line in 0..LINES {
        text.push_str(&format!("{:x} 40 piece.{line}\n", at(line)));
    }
    let mut adapter = adapter(Some(image(&text)), &[]);
    let touched = [LINES - 1, LINES / 2];
    let mut touched: Vec<Avma> = touched.iter().map(|line| Avma(at(*line) + 7)).collect();
    touched.sort_unstable();
    let mut poll = poll().with_touched(touched);
    adapter.finish(&view(), &mut poll).unwrap();
    assert!(poll.len() < 140_000, "{} records", poll.len());
    let (code, limits, lost) = told(poll);
    assert_eq!(lost, 0);
    for line in [0, LINES / 2, LINES - 1] {
        assert!(code.contains(&format!("+piece.{line}")), "{line}");
    }
    assert!(!code.contains(&format!("+piece.{}", LINES - 2)));
    assert!(limits.iter().any(|text| text.contains("very many entries")));
}

#[test]
fn what_is_wrong_is_said_in_words_once() {
    let here = u8::try_from(Arch::of_this_machine().elf_machine()).unwrap();
    let mut bytes = dump(here);
    let mut more = Encoder::new(false, 0);
    let begin = more.bytes.len();
    more.record(77, 1, 0, |_| {});
    bytes.extend_from_slice(&more.bytes[begin..]);
    bytes.extend_from_slice(b"torn");
    let mut adapter = adapter(None, &[&bytes]);
    let mut first = poll();
    adapter.finish(&view(), &mut first).unwrap();
    let (_, limits, lost) = told(first);
    assert_eq!(lost, 1, "what was torn off");
    for word in ["of unknown kinds", "an incomplete last record"] {
        let said = limits.iter().filter(|text| text.contains(word)).count();
        assert_eq!(said, 1, "{word}: {limits:?}");
    }
    let cut = format!("1000 10 {}\n", "n".repeat(5000));
    let mut adapter = self::adapter(Some(image(&cut)), &[]);
    let mut poll = poll();
    adapter.finish(&view(), &mut poll).unwrap();
    let (code, limits, lost) = told(poll);
    assert_eq!((code.len(), lost), (1, 0));
    assert!(limits.iter().any(|text| text.contains("cut off")));
}

#[test]
fn a_mono_without_frame_pointers_has_no_unwinder_and_says_so() {
    for omits in [false, true] {
        let files = Files {
            kind: VmKind::Mono,
            ..Files::default()
        };
        let mut adapter = files.file_adapter();
        adapter.origin.omits_frame_pointers = omits;
        assert_eq!(adapter.unwinder(&view()).is_none(), omits);
        let mut poll = poll();
        adapter.poll(&view(), &mut poll).unwrap();
        let (_, limits, _) = told(poll);
        let is_said = limits.iter().any(|text| text.contains("no frame pointers"));
        assert_eq!(is_said, omits);
    }
}

#[test]
fn a_v8_that_ends_within_moments_has_no_hint_at_its_files() {
    let generated = parse_line(b"1000-2000 r-xp 00000000 00:00 0 ").unwrap();
    let maps = || vec![generated.clone()];
    let running = ProcessView::fake(Pid(4711), Arc::new(FakeMemory::new()), maps());
    let ended = ProcessView::exited(Pid(4711), maps());
    for (kind, polls, view, has_hint) in [
        (VmKind::V8, 1, &ended, false),
        (VmKind::V8, 1, &running, true),
        (VmKind::V8, POLLS_BEFORE_HINT, &ended, true),
        (VmKind::Php, 1, &ended, true),
    ] {
        let files = Files {
            kind,
            ..Files::default()
        };
        let mut adapter = files.file_adapter();
        let mut poll = poll();
        for _ in 1..polls {
            adapter.poll(view, &mut poll).unwrap();
        }
        adapter.finish(view, &mut poll).unwrap();
        let (_, limits, _) = told(poll);
        let is_hint = |text: &String| text.contains("reports no names");
        assert_eq!(limits.iter().any(is_hint), has_hint, "{kind:?} {limits:?}");
    }
}

#[test]
fn erlang_keeps_frame_pointers_if_told_to_report() {
    let told = |command: &str| {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        reports_erlang(&words)
    };
    assert!(told("beam.smp -JPperf true -- -root /usr") && told("beam.smp +JPperf dump"));
    assert!(!told("beam.smp -- -noshell") && !told("beam.smp -JPperf false") && !told("JPperf"));
}

#[test]
fn a_line_that_mono_has_not_finished_is_no_loss() {
    let files = Files {
        kind: VmKind::Mono,
        map: Some(image("1000 10 Program:Main ()\n2000 10")),
        ..Files::default()
    };
    let mut poll = poll();
    files.file_adapter().finish(&view(), &mut poll).unwrap();
    let (code, limits, lost) = told(poll);
    assert_eq!((code.len(), lost), (1, 0));
    assert!(
        limits
            .iter()
            .any(|text| text.contains("buffers its perf map"))
    );
}

/// .NET maps its compiler after its runtime: the rules come again with the compiler's, once.
#[test]
fn a_module_that_is_mapped_later_has_its_rules() {
    let files = Files {
        kind: VmKind::DotNet,
        ..Files::default()
    };
    let mut adapter = files.file_adapter();
    let line = |at: u64, path: &str| {
        let line = format!("{at:x}000-{at:x}fff r-xp 00000000 08:01 {at} {path}");
        parse_line(line.as_bytes()).unwrap()
    };
    let mapped = line(0x1000, "/net/libcoreclr.so");
    let view = |maps| ProcessView::fake(Pid(4711), Arc::new(FakeMemory::new()), maps);
    let early = view(vec![mapped.clone()]);
    let late = view(vec![mapped, line(0x2000, "/net/libclrjit.so")]);
    let mut modules = |view: &ProcessView| {
        let mut poll = poll();
        adapter.poll(view, &mut poll).unwrap();
        let emitted = poll.finish().into_iter().filter_map(|record| match record {
            Record::RegionRules(rules) => Some(rules.rules),
            _ => None,
        });
        let modules = emitted.map(|rules| rules.into_iter().map(|rule| rule.module).collect());
        modules.collect::<Vec<Vec<String>>>()
    };
    // The first two are of threads with a role.
    let runtime = "libcoreclr.so";
    assert_eq!(modules(&early), [[runtime; 3]]);
    assert_eq!(
        modules(&late),
        [[runtime, runtime, "libclrjit.so", runtime]]
    );
    assert!(modules(&late).is_empty());
    // Mappings vanish when the process ends.
    assert!(modules(&early).is_empty());
}
