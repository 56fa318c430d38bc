//! Exports of a recording made by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::pprof::{self, Profile};
use crate::common::vmscope::{Folder, Run, command, report, run};
use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code, function, session};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use vmscope_records::{
    Avma, BuildId, CallChain, ChainFrame, Constituent, ConstituentKind, Cover, CpuMode, DurationNs,
    Exactness, FileOffset, Method, MethodKey, Module, ModuleKey, ModuleState, NativeFrame,
    NativeLines, PcMap, Pid, Position, Process, Record, Sample, SampleDetail, Session, SymbolOwner,
    SymbolSource, Symbols, ThreadKey, ThreadRole, TimeNs, VmIdentity,
};

const SECOND: u64 = 1_000_000_000;
const ZONE: u64 = 0x1000_0000;
const LIBC_AT: u64 = 0x7000_0000;
const KERNEL_AT: u64 = 0xffff_8000_0000_1000;
const WORKER: ThreadKey = ThreadKey(2);

/// What no format may stumble over.
const EVIL: &str = "evil;name\n\u{1b}[2J\u{202e}<script>alert(\"&'\")</script>]]> 42";

/// A VM with methods of two tiers, one of them with another inlined, a stub, native code
/// with an inlined function, a library, the kernel; and two threads.
fn a_vm() -> Recording {
    let mut recording = Recording::of("V8");
    recording.put(Record::Session(Box::new(Session {
        time: TimeNs(SECOND),
        vm: VmIdentity {
            kind: "V8".into(),
            version: "11.3".into(),
        },
        command: vec!["/usr/bin/node".into(), "bench.js".into()],
        period: DurationNs(713_927),
        ..session("V8")
    })));
    recording.put(Record::Process(Process {
        key: PROCESS,
        time: TimeNs(SECOND),
        pid: Pid(100),
        parent: None,
        name: "node".into(),
    }));
    recording.thread(WORKER, PROCESS, SECOND, "V8 worker;1", ThreadRole::Other);
    native_code(&mut recording);
    methods(&mut recording);
    recording
}

fn native_code(recording: &mut Recording) {
    let libc = ModuleKey(2);
    recording.put(Record::Module(Module {
        key: libc,
        time: TimeNs(0),
        path: "/lib/x86_64-linux-gnu/libc.so.6".into(),
        build_id: BuildId::new(&[0xab; 20]),
        device: 0,
        inode: 0,
        size: 0,
        main: false,
        state: ModuleState::Opened,
    }));
    recording
        .map(PROCESS, 0, LIBC_AT, LIBC_AT + 0x1000, 0, Some(libc))
        .symbols(libc, &[(0, 0x100, "memmove")]);
    let frame = |function: &str, file: &str, line| NativeFrame {
        function: function.into(),
        file: file.into(),
        line,
    };
    let mut scavenge = function(0x100, 0x100, "v8::internal::Scavenger::Process()");
    scavenge.lines = vec![NativeLines {
        start: FileOffset(0x140),
        end: FileOffset(0x180),
        frames: vec![
            frame("v8::internal::Object::Size() const", "/src/object.h", 12),
            frame("Process", "/src/scavenger.cc", 34),
        ],
        exactness: Exactness::Exact,
    }];
    recording.put(Record::Symbols(Symbols {
        owner: SymbolOwner::Module(PROGRAM),
        functions: vec![function(0, 0x100, "main"), scavenge],
        note: String::new(),
    }));
    let mut read = function(KERNEL_AT, 0x100, "vfs_read");
    read.source = SymbolSource::Kallsyms;
    recording.put(Record::Symbols(Symbols {
        owner: SymbolOwner::Kernel,
        functions: vec![read],
        note: String::new(),
    }));
}

fn methods(recording: &mut Recording) {
    for (key, name) in [(1, "fib"), (2, "add")] {
        recording.put(Record::Method(Box::new(Method {
            key: MethodKey(key),
            name: name.into(),
            file: "/srv/bench.js".into(),
            ..Method::default()
        })));
    }
    let at = |method, line| ChainFrame {
        method: MethodKey(method),
        position: Position::Line(line),
    };
    let cover = |start, end, chain| Cover {
        start,
        end,
        chain,
        exactness: Exactness::Exact,
        method_error: 0,
    };
    let optimised = PcMap::Covers {
        covers: vec![cover(0, 0x40, 0), cover(0x40, 0x80, 1)],
        chains: vec![vec![at(1, 2)], vec![at(2, 7), at(1, 3)]],
    };
    let method = |key, start: u64, tier: &str, name: &str| Constituent {
        tier: tier.into(),
        name: name.into(),
        ..code(key, SECOND, ZONE + start, ZONE + start + 0x100)
    };
    recording
        .constituent(Constituent {
            method: Some(MethodKey(1)),
            map: optimised,
            ..method(1, 0, "TurboFan", "fib")
        })
        .constituent(Constituent {
            method: Some(MethodKey(1)),
            ..method(2, 0x100, "Sparkplug", "fib")
        })
        .constituent(Constituent {
            kind: ConstituentKind::Stub,
            ..method(3, 0x200, "", "JSEntry")
        })
        .constituent(method(4, 0x300, "TurboFan", EVIL));
}

/// Samples with their chains, innermost caller first: for a kernel sample the pc in user
/// space is the first.
fn sample(recording: &mut Recording, time: u64, thread: ThreadKey, pc: u64, callers: &[u64]) {
    let mode = if pc >= KERNEL_AT {
        CpuMode::Kernel
    } else {
        CpuMode::User
    };
    let chain = CallChain {
        kernel: Vec::new(),
        user: callers.iter().copied().map(Avma).collect(),
        ..CallChain::default()
    };
    recording.put(Record::Sample(Sample {
        time: TimeNs(SECOND + time),
        thread,
        pc: Avma(pc),
        mode,
        detail: Some(Box::new(SampleDetail {
            chain: Some(chain),
            ..SampleDetail::default()
        })),
    }));
}

/// 20 samples of it.
fn bytes() -> Vec<u8> {
    let mut recording = a_vm();
    let main = PROGRAM_AT + 0x11;
    let (fast, slow, stub, evil) = (ZONE, ZONE + 0x100, ZONE + 0x200, ZONE + 0x300);
    let stacks: [(ThreadKey, u64, &[u64], u64); 9] = [
        (
            THREAD,
            fast + 0x10,
            &[fast + 0x21, slow + 5, stub + 9, main],
            5,
        ),
        // Inlined, and called from where something is inlined.
        (THREAD, fast + 0x48, &[slow + 5, stub + 9, main], 4),
        (THREAD, slow + 0x10, &[fast + 0x51, stub + 9, main], 2),
        (THREAD, evil + 1, &[main], 2),
        // Equal functions, other call sites.
        (THREAD, evil + 8, &[main + 4], 1),
        (THREAD, KERNEL_AT + 5, &[LIBC_AT + 9, stub + 20, main], 2),
        (THREAD, ZONE + 0x4000, &[], 1),
        (WORKER, PROGRAM_AT + 0x150, &[main], 2),
        (WORKER, PROGRAM_AT + 0x110, &[], 1),
    ];
    let mut time = 0;
    for (thread, pc, callers, count) in stacks {
        for _ in 0..count {
            time += 1_000_000;
            sample(&mut recording, time, thread, pc, callers);
        }
    }
    recording.end(2 * SECOND).bytes()
}

/// The same program without chains.
fn bytes_without_chains() -> Vec<u8> {
    let mut recording = a_vm();
    for (time, pc) in (1..).zip([ZONE + 0x10, ZONE + 0x48, ZONE + 0x48, PROGRAM_AT + 0x150]) {
        recording.sample(SECOND + time * 1_000_000, THREAD, pc);
    }
    recording.end(2 * SECOND).bytes()
}

fn recording(folder: &Folder, bytes: &[u8]) -> PathBuf {
    let path = folder.file("x.vmscope");
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn export(path: &Path, options: &[&str]) -> Run {
    let mut command = command(["export"]);
    command.arg(path).args(options);
    run(command)
}

/// Exported bytes of a file name, and the run.
fn exported(folder: &Folder, path: &Path, name: &str, options: &[&str]) -> (Vec<u8>, Run) {
    let output = folder.file(name);
    let mut command = command(["export", "--output"]);
    command.arg(&output).arg(path).args(options);
    let run = run(command).code(0);
    (std::fs::read(&output).expect("the export"), run)
}

#[track_caller]
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/export")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a golden file");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == wanted, "{name} is not:\n{text}");
}

#[test]
fn collapsed_stacks() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    for (name, options) in [
        ("plain.collapsed", &[][..]),
        ("by-thread.collapsed", &["--by-thread"]),
        ("no-inline.collapsed", &["--no-inline"]),
        (
            "part.collapsed",
            &["--threads=main", "--from=0.002", "--until=0.012"],
        ),
    ] {
        let run = export(&path, &[&["--to=collapsed"], options].concat()).code(0);
        golden(name, &run.stdout);
    }
}

/// speedscope's stacks are the collapsed ones, with time.
#[test]
fn speedscope_has_every_sample() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    let text = export(&path, &["--to=speedscope", "--output=-"])
        .code(0)
        .stdout;
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let schema = "https://www.speedscope.app/file-format-schema.json";
    assert_eq!(file["$schema"], schema);
    let name = |frame: &Value| {
        let frame = usize::try_from(frame.as_u64().expect("a number")).expect("small");
        file["shared"]["frames"][frame]["name"]
            .as_str()
            .expect("a name")
    };
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let mut counts = BTreeMap::<String, u64>::new();
    for profile in list(&file["profiles"]) {
        assert_eq!(profile["type"], "sampled");
        let weights = list(&profile["weights"]);
        let weights: Vec<u64> = weights
            .iter()
            .map(|one| one.as_u64().expect("ns"))
            .collect();
        assert_eq!(profile["endValue"], weights.iter().sum::<u64>());
        let samples = list(&profile["samples"]);
        assert_eq!(samples.len(), weights.len());
        for (stack, weight) in samples.iter().zip(weights) {
            let names: Vec<&str> = list(stack).iter().map(name).collect();
            *counts.entry(names.join(";")).or_default() += weight;
        }
    }
    let active = usize::try_from(file["activeProfileIndex"].as_u64().expect("one")).expect("small");
    let most = file["profiles"][active]["endValue"].as_u64().expect("ns");
    let total: u64 = counts.values().sum();
    assert!(most * 2 > total, "the busiest thread is shown first");
    let collapsed = export(&path, &["--to=collapsed"]).code(0).stdout;
    // Lines begin with the process.
    assert_eq!(
        counts.len(),
        collapsed.lines().count(),
        "{counts:#?}\n{collapsed}"
    );
    let samples = collapsed.lines().filter_map(|line| line.rsplit_once(' '));
    let samples: u64 = samples
        .map(|(_, count)| count.parse::<u64>().expect("a count"))
        .sum();
    assert_eq!(total % samples, 0, "a period for each sample");
}

#[test]
fn a_recording_without_chains_says_so() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes_without_chains());
    let run = export(&path, &["--to=collapsed"])
        .code(0)
        .says("no caller chains")
        .says("--call-graph");
    golden("no-chains.collapsed", &run.stdout);
}

/// What the page's script reads, from the only element with names.
fn data_of(page: &str) -> Value {
    let (_, data) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("data");
    let (data, _) = data.split_once("</script>").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

/// Frames of a view, one a line: total, own samples and color behind the name.
fn frames_of_view(data: &Value, view: usize) -> String {
    let numbers = data["views"][view].as_array().expect("a view");
    let numbers: Vec<usize> = numbers
        .iter()
        .map(|one| usize::try_from(one.as_u64().expect("a number")).expect("small"))
        .collect();
    let mut lines = String::new();
    for frame in numbers.chunks(4) {
        let label = &data["labels"][frame[1]];
        let name = label[0].as_str().expect("a name");
        let region = label[1]
            .as_u64()
            .and_then(|index| usize::try_from(index).ok());
        let region = region.map_or("-", |region| {
            data["regions"][region][0].as_str().expect("one")
        });
        let inlined = if label[2] == true { ", inlined" } else { "" };
        let color = label[3].as_str().expect("a color");
        lines.push_str(&" ".repeat(frame[0]));
        lines.push_str(&format!(
            "{name}: {} {} ({region}{inlined}, {color})\n",
            frame[2], frame[3]
        ));
    }
    lines
}

#[test]
fn a_flame_graph() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    let page = |options: &[&str]| {
        let options = [&["--to=flamegraph", "--output=-"], options].concat();
        export(&path, &options).code(0).stdout
    };
    let all = data_of(&page(&[]));
    assert_eq!(all["title"], "V8 11.3: /usr/bin/node bench.js");
    assert_eq!(all["about"], serde_json::json!(["20 samples of CPU time"]));
    golden("frames.html.txt", &frames_of_view(&all, 0));
    golden("inverted.html.txt", &frames_of_view(&all, 1));
    let options = ["--by-thread", "--threads=main,V8*", "--until=0.019"];
    let part = data_of(&page(&options));
    let about = part["about"].as_array().expect("a list");
    assert_eq!(about[1], "filter: 2 of 2 threads, window 0.000 to 0.019 s");
    golden("by-thread.html.txt", &frames_of_view(&part, 0));
    golden("by-thread-inverted.html.txt", &frames_of_view(&part, 1));
}

/// The innermost functions of the inverted view have the report's samples.
#[test]
fn an_inverted_flame_graph_begins_with_the_report() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    let page = export(&path, &["--to=flamegraph", "--output=-"])
        .code(0)
        .stdout;
    let mut roots = BTreeMap::new();
    for line in frames_of_view(&data_of(&page), 1).lines() {
        let frame = line.strip_prefix(' ').filter(|line| !line.starts_with(' '));
        let Some(frame) = frame else { continue };
        let (frame, _) = frame.rsplit_once(" (").expect("a region");
        let (name, samples) = frame.rsplit_once(": ").expect("samples");
        let (total, own) = samples.split_once(' ').expect("two numbers");
        assert_eq!(total, own, "{line}");
        let name = if name.starts_with("evil") {
            "evil"
        } else {
            name
        };
        roots.insert(name.to_owned(), own.parse::<u64>().expect("a number"));
    }
    let mut report = BTreeMap::new();
    for (name, samples) in by_report(&path) {
        let name = if name.starts_with("evil") {
            "evil".to_owned()
        } else {
            name
        };
        *report.entry(name).or_insert(0) += samples;
    }
    assert_eq!(roots, report);
}

/// No name is markup or script: names stand in the data alone, and the page's policy allows its own
/// script only and loads nothing.
#[test]
fn a_flame_graph_runs_no_name() {
    const NAME: &str = "</script><img src=x onerror=alert(1)><!--<script>";
    let folder = Folder::new();
    let mut hostile = a_vm();
    hostile.constituent(Constituent {
        name: NAME.into(),
        ..code(9, SECOND, ZONE + 0x900, ZONE + 0xa00)
    });
    sample(
        &mut hostile,
        1_000_000,
        THREAD,
        ZONE + 0x910,
        &[ZONE + 0x301],
    );
    let path = recording(&folder, &hostile.end(2 * SECOND).bytes());
    let (page, _) = exported(&folder, &path, "x.html", &["--to=flamegraph"]);
    let page = String::from_utf8(page).expect("UTF-8");
    let data = data_of(&page);
    assert!(frames_of_view(&data, 0).contains(NAME), "{data}");
    // The page's two scripts, no others.
    assert_eq!(page.matches("<script").count(), 2, "{page}");
    assert_eq!(page.matches("</script").count(), 2, "{page}");
    for odd in ["<img", "<!--", "http:", "https:", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(odd), "{odd:?} in {page}");
    }
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1);
    let policy = policy
        .and_then(|rest| rest.split('"').next())
        .expect("a policy");
    let parts: Vec<&str> = policy.split("; ").collect();
    assert_eq!(parts[0], "default-src 'none'");
    for (part, element) in parts[1..3].iter().zip(["script", "style"]) {
        let text = page.rsplit(&format!("<{element}>")).next().expect("it");
        let text = text
            .split(&format!("</{element}>"))
            .next()
            .expect("its end");
        let hash = STANDARD.encode(Sha256::digest(text));
        assert_eq!(*part, format!("{element}-src 'sha256-{hash}'"));
    }
}

/// A page omits the narrowest of too many frames, and says so.
#[test]
fn a_large_flame_graph_lacks_its_narrowest_frames() {
    const HOT: u64 = 100;
    let folder = Folder::new();
    let mut large = a_vm();
    let at = |number: u64| ZONE + 0x10000 + number % 64 * 0x100;
    for number in 0..64 {
        large.constituent(Constituent {
            name: format!("method {number}x"),
            ..code(100 + number, SECOND, at(number), at(number) + 0x100)
        });
    }
    let deep: Vec<u64> = (0..500).map(|depth| at(depth) + 5).collect();
    for number in 0..2300 + HOT {
        // One sample for each stack except the first.
        let stack = number.saturating_sub(HOT);
        let callers = [&deep[..], &[at(stack / 64) + 9, at(stack) + 9]].concat();
        sample(&mut large, number * 1000, THREAD, at(0) + 1, &callers);
    }
    let path = recording(&folder, &large.end(2 * SECOND).bytes());
    let page = export(&path, &["--to=flamegraph", "--output=-"])
        .code(0)
        .stdout;
    assert!(page.len() < 1 << 20, "{}", page.len());
    let data = data_of(&page);
    let left_out = "frames of fewer than 2 samples are left out";
    assert_eq!(data["about"][1], left_out);
    let frames = frames_of_view(&data, 0);
    assert!(frames.starts_with("all: 2400 0 "), "{frames}");
    assert!(frames.contains(" method 0x: 101 101 "), "{frames}");
}

#[test]
fn a_region_narrows_report_exports_and_annotation() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    // As JSON and text name them, in any case.
    for (regions, samples) in [
        ("generated", 14),
        ("kernel,VM", 5),
        ("unknown", 1),
        ("generated,kernel,vm,unknown", 20),
        ("libraries", 0),
    ] {
        let report = report(&path, &["--json", "--region", regions]).code(0);
        assert_eq!(report.json()["samples"]["total"], samples, "{regions}");
    }
    let options = ["--json", "--region=VM", "--region=kernel,vm"];
    let filter = report(&path, &options).code(0).json()["session"]["filter"].take();
    assert_eq!(filter["regions"], serde_json::json!(["vm", "kernel"]));
    let plain = report(&path, &["--region=kernel"]).code(0);
    plain.prints("filter: region kernel, window 0.000 to 1.000 s");

    let options = ["--to=collapsed", "--region=kernel"];
    let stacks = export(&path, &options).code(0).stdout;
    assert_eq!(stacks, "node;main;JSEntry_[j];memmove;vfs_read_[k] 2\n");
    let options = ["--to=flamegraph", "--output=-", "--region=kernel"];
    let data = data_of(&export(&path, &options).code(0).stdout);
    let filter = "filter: region kernel, window 0.000 to 1.000 s";
    assert_eq!(
        data["about"],
        serde_json::json!(["2 samples of CPU time", filter])
    );
    export(&path, &["--to=collapsed", "--region=gc"])
        .code(2)
        .says("no samples match this filter");

    let annotate = |region: &str| {
        let mut annotate = command(["annotate", "--region", region]);
        annotate.arg(&path);
        run(annotate)
    };
    annotate("generated")
        .code(0)
        .prints("filter: region generated, window");
    annotate("gc").code(2).says("no samples");
    report(&path, &["--region=program"])
        .code(2)
        .says("no region `program` in this recording: the VM's own code is `vm`");
    report(&path, &["--region=heap"])
        .code(2)
        .says("possible values: generated, interpreter, gc");
}

#[test]
fn a_profile_for_pprof() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    let (plain, _) = exported(&folder, &path, "x.pb", &["--to=pprof"]);
    golden("plain.pprof.txt", &pprof::text(&Profile::of(&plain)));
    let (zipped, _) = exported(&folder, &path, "x.pb.gz", &["--to=pprof"]);
    assert_eq!(pprof::unzipped(&zipped), plain);
    let (outer, _) = exported(&folder, &path, "y.pb", &["--to=pprof", "--no-inline"]);
    let outer = Profile::of(&outer);
    assert!(
        outer
            .location
            .iter()
            .all(|location| location.line.len() == 1)
    );
}

#[test]
fn a_profile_for_the_firefox_profiler() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    let (plain, _) = exported(&folder, &path, "x.json", &["--to=firefox"]);
    let document: Value = serde_json::from_slice(&plain).expect("JSON");
    let pretty = serde_json::to_string_pretty(&document).expect("JSON");
    golden("plain.firefox.json", &(pretty + "\n"));
    let (zipped, _) = exported(&folder, &path, "x.json.gz", &["--to=firefox"]);
    assert_eq!(pprof::unzipped(&zipped), plain);
    let to_stdout = export(&path, &["--to=firefox", "--output=-"]).code(0);
    assert_eq!(to_stdout.stdout.as_bytes(), plain);
}

/// Samples by entry of the report, as `name file (tier)`.
fn by_report(path: &Path) -> BTreeMap<String, u64> {
    // Stacks end with the innermost function.
    let report = report(path, &["--json", "--inlined"]).code(0).json();
    let mut counts = BTreeMap::new();
    for entry in report["entries"].as_array().expect("entries") {
        let text = |key: &str| entry[key].as_str().unwrap_or("").to_owned();
        let mut name = text("name");
        if !text("file").is_empty() {
            name.push_str(&format!(" {}", text("file")));
        }
        if !text("tier").is_empty() {
            name.push_str(&format!(" ({})", text("tier")));
        }
        *counts.entry(name).or_insert(0) += entry["samples"].as_u64().expect("a count");
    }
    counts
}

#[test]
fn every_format_has_every_sample_where_the_report_has_it() {
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    let plain = |name: &str| name.to_owned();
    let mut report = BTreeMap::new();
    for (name, samples) in by_report(&path) {
        // The report leaves names as they are in JSON; here they are for people.
        let name = if name.starts_with("evil") {
            plain("evil")
        } else {
            name
        };
        *report.entry(name).or_insert(0) += samples;
    }
    assert_eq!(report.values().sum::<u64>(), 20);

    let mut collapsed = BTreeMap::new();
    for line in export(&path, &["--to=collapsed"]).code(0).stdout.lines() {
        let (stack, samples) = line.rsplit_once(' ').expect("a count");
        let leaf = stack.rsplit(';').next().expect("a frame");
        let leaf = match leaf.rsplit_once("_[") {
            Some((name, mark)) if mark.len() == 2 => name,
            _ => leaf,
        };
        let leaf = if leaf.starts_with("evil") {
            "evil"
        } else {
            leaf
        };
        *collapsed.entry(plain(leaf)).or_insert(0) += samples.parse::<u64>().expect("a number");
    }
    assert_eq!(collapsed, report);

    let (pb, _) = exported(&folder, &path, "x.pb", &["--to=pprof"]);
    let mut leaves = BTreeMap::new();
    for (name, samples) in Profile::of(&pb).leaves() {
        let name = if name.starts_with("evil") {
            plain("evil")
        } else {
            name
        };
        *leaves.entry(name).or_insert(0) += samples;
    }
    assert_eq!(leaves, report);

    let (json, _) = exported(&folder, &path, "x.json", &["--to=firefox"]);
    let document: Value = serde_json::from_slice(&json).expect("JSON");
    let shared = &document["shared"];
    let index = |value: &Value| usize::try_from(value.as_u64().expect("an index")).expect("small");
    let mut leaves = BTreeMap::new();
    for thread in document["threads"].as_array().expect("threads") {
        for stack in thread["samples"]["stack"].as_array().expect("stacks") {
            let frame = index(&shared["stackTable"]["frame"][index(stack)]);
            let func = index(&shared["frameTable"]["func"][frame]);
            let name = index(&shared["funcTable"]["name"][func]);
            let name = shared["stringArray"][name].as_str().expect("a name");
            let name = if name.starts_with("evil") {
                "evil"
            } else {
                name
            };
            *leaves.entry(plain(name)).or_insert(0) += 1;
        }
    }
    assert_eq!(leaves, report);
}

/// The keys of an object.
fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().unwrap_or_else(|| panic!("{value}"));
    object.keys().map(String::as_str).collect()
}

#[test]
fn the_firefox_format_is_that_of_samplys_crate() {
    use fxprof_processed_profile as fxprof;
    let mut profile = fxprof::Profile::new(
        "x",
        fxprof::ReferenceTimestamp::from_millis_since_unix_epoch(0.0),
        fxprof::SamplingInterval::from_nanos(713_927),
    );
    let zero = fxprof::Timestamp::from_nanos_since_reference(0);
    let process = profile.add_process("x", 1, zero);
    profile.add_thread(process, 1, zero, true);
    profile.set_os_name("x");
    let theirs: Value = serde_json::to_value(&profile).expect("JSON");
    let folder = Folder::new();
    let path = recording(&folder, &bytes());
    let (json, _) = exported(&folder, &path, "x.json", &["--to=firefox"]);
    let ours: Value = serde_json::from_slice(&json).expect("JSON");
    let has_all = |ours: &Value, theirs: &Value, but: &[&str]| {
        for key in keys(theirs).into_iter().filter(|key| !but.contains(key)) {
            assert!(!ours[key].is_null() || theirs[key].is_null(), "no {key}");
        }
    };
    has_all(&ours, &theirs, &[]);
    has_all(&ours["meta"], &theirs["meta"], &[]);
    // What it keeps by thread (version 55) is shared from version 60 on.
    let tables = [
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "nativeSymbols",
    ];
    let thread = &theirs["threads"][0];
    let moved = [&tables[..], &["stringArray"]].concat();
    has_all(&ours["threads"][0], thread, &moved);
    for table in tables {
        // Files became a table of their own with version 58.
        let theirs = keys(&thread[table]).into_iter();
        let mut theirs: Vec<&str> = theirs
            .map(|key| if key == "fileName" { "source" } else { key })
            .collect();
        theirs.sort_unstable();
        let mut ours = keys(&ours["shared"][table]);
        ours.sort_unstable();
        assert_eq!(ours, theirs, "{table}");
    }
    for table in ["samples", "markers"] {
        let (mut ours, mut theirs) = (keys(&ours["threads"][0][table]), keys(&thread[table]));
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "{table}");
    }
}
