//! `vmscope constituents` of the snapshots, with symbols from a file: lists and pairs against what another
//! reader found, and against the VM's own answer.

use std::fmt::Write as _;
use std::process::Command;

use crate::common::vmscope::{Folder, Run, vmscope};
use crate::replica::{Image, is_of_this_machine, text, unpacked};

/// A snapshot's core file, and its list of symbols.
struct Files {
    folder: Folder,
}

impl Files {
    /// `None` on other processors.
    fn of(name: &str) -> Option<Self> {
        if !is_of_this_machine() {
            return None;
        }
        let folder = Folder::new();
        for (file, packed) in [("core", "core.zst"), ("symbols.tsv", "symbols.tsv.zst")] {
            let bytes = unpacked(&format!("{name}.{packed}"));
            std::fs::write(folder.file(file), bytes).expect("our folder");
        }
        Some(Files { folder })
    }

    fn path(&self, name: &str) -> String {
        self.folder.file(name).to_string_lossy().into_owned()
    }

    /// Runs the command with the symbols of `file`.
    fn constituents(&self, file: &str, options: &[&str]) -> Run {
        let (core, symbols) = (self.path("core"), self.path(file));
        let files = ["constituents", "--core", &core, "--symbols", &symbols];
        vmscope([&files, options].concat())
    }
}

/// A line of the expected text about a trampoline or an entry.
#[derive(Debug, Default)]
struct Expected {
    at: u64,
    /// `T` of a trampoline.
    kind: String,
    is_block: bool,
    name: String,
    /// Offset and bytecode.
    map: Vec<(u64, u32)>,
}

/// Trampolines and entries, ascending, and the ends of methods and of the zone.
fn expected(name: &str) -> (Vec<Expected>, [u64; 2]) {
    let text = text(&format!("{name}.expected.txt"));
    let hex = |word: &str| u64::from_str_radix(word, 16).expect("an address");
    let mut lines = text.lines().take_while(|line| !line.starts_with("attach "));
    let bounds: Vec<&str> = lines.next().expect("bounds").split(' ').collect();
    let mut all: Vec<Expected> = Vec::new();
    let mut is_in_block = false;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["T", at, name] = words[..] {
            all.push(Expected {
                at: hex(at),
                kind: "T".to_owned(),
                name: name.to_owned(),
                ..Expected::default()
            });
        } else if words[0].starts_with('+') {
            let place = |word: &str| {
                let (offset, bytecode) = word[1..].split_once(':').expect("a place");
                (
                    offset.parse().expect("a number"),
                    bytecode.parse().expect("a number"),
                )
            };
            let last = all.last_mut().filter(|_| !is_in_block);
            if let Some(last) = last {
                last.map = words.iter().map(|word| place(word)).collect();
            }
        } else if words[0] == "block" {
            is_in_block = true;
        } else {
            is_in_block = false;
            let (_, rest) = line.split_once("usage ").expect("a usage");
            all.push(Expected {
                at: hex(words[0]),
                kind: words[2].to_owned(),
                is_block: words[3] == "fullblock",
                name: rest.split_once(' ').expect("a name").1.to_owned(),
                map: Vec::new(),
            });
        }
    }
    (all, [hex(bounds[5]), hex(bounds[7])])
}

/// The pairs by the expected text.
fn expected_pairs(name: &str, is_detailed: bool) -> String {
    let (all, [free, end]) = expected(name);
    let mut pairs = format!("~CogCode~ | {}\n", all[0].at);
    for one in all {
        let Expected { at, kind, name, .. } = &one;
        let mut line = match kind.as_str() {
            "Free" => continue,
            "T" => format!("~{name}~ | "),
            _ => format!("{name} | "),
        };
        match one.map.split_first() {
            Some((_, places)) if is_detailed => {
                write!(line, "({at} ").expect("a string");
                for (offset, bytecode) in places {
                    write!(line, "{} {bytecode} ", at + offset).expect("a string");
                }
                line.push(')');
            }
            _ => write!(line, "{at}").expect("a string"),
        }
        pairs += &line;
        pairs.push('\n');
    }
    pairs + &format!("~CCFree~ | {free}\n~CCEnd~ | {end}\n")
}

#[test]
fn pairs_are_those_of_another_reader() {
    for name in ["idle", "busy"] {
        let Some(files) = Files::of(name) else { return };
        for (options, is_detailed) in [
            (&["--pairs"][..], false),
            (&["--pairs", "--detailed"], true),
        ] {
            let ran = files.constituents("symbols.tsv", options).code(0);
            let wanted = expected_pairs(name, is_detailed);
            for (ours, theirs) in ran.stdout.lines().zip(wanted.lines()) {
                assert_eq!(ours, theirs, "{name} {options:?}");
            }
            assert_eq!(ran.stdout, wanted, "{name} {options:?}");
        }
    }
}

/// The pairs of the idle VM, line by line, against the answer of its own primitive 253.
///
/// The VM made more code between its answer and the snapshot, so free space begins later. The snapshot
/// has no machine code, so the cases of closed PICs are unknown.
#[test]
fn pairs_are_those_of_the_vm_itself() {
    let Some(files) = Files::of("idle") else {
        return;
    };
    for (name, options, newer) in [
        ("plain", &["--pairs"][..], 35),
        ("detailed", &["--pairs", "--detailed"], 9),
    ] {
        let ours = files.constituents("symbols.tsv", options).code(0).stdout;
        let theirs = text(&format!("idle.constituents-{name}.txt"));
        let mut ours = ours.lines();
        let mut theirs = theirs.lines().peekable();
        while let Some(line) = theirs.next_if(|line| !line.starts_with("~CCFree~")) {
            let (item, value) = line.rsplit_once(" | ").expect("a pair");
            let item = match item.strip_prefix('(') {
                Some(cases) => cases.split(' ').next().expect("a selector"),
                None => item,
            };
            assert_eq!(ours.next().expect("a pair"), format!("{item} | {value}"));
        }
        let rest: Vec<&str> = ours.collect();
        let (last, rest) = rest.split_last().expect("the end");
        assert_eq!(Some(*last), theirs.last());
        let (free, rest) = rest.split_last().expect("free space");
        assert!(free.starts_with("~CCFree~ | "), "{free}");
        assert_eq!(rest.len(), newer);
    }
}

/// The list has every entry of the zone, and no C code.
#[test]
fn lists_have_the_whole_zone() {
    for name in ["idle", "busy"] {
        let Some(files) = Files::of(name) else { return };
        let listed = files
            .constituents("symbols.tsv", &["--json"])
            .code(0)
            .json();
        let listed = listed["constituents"].as_array().expect("a list");
        let (all, _) = expected(name);
        let mut expected = all.iter().peekable();
        for one in listed {
            let text = |field: &str| one[field].as_str().expect("a text");
            let (kind, name) = (text("kind"), text("name"));
            let at = u64::from_str_radix(&text("start")[2..], 16).expect("an address");
            let Some(wanted) = expected.next_if(|wanted| wanted.at == at) else {
                let is_inside = kind == "block" && name.starts_with("[] in ");
                assert!(is_inside || (kind, name) == ("free", ""), "{one}");
                continue;
            };
            let (is_kind, other_name) = match wanted.kind.as_str() {
                "T" => (
                    ["trampoline", "enilopmart"].contains(&kind),
                    wanted.name.clone(),
                ),
                "Free" => (
                    kind == "freed",
                    wanted.name.replace(" #None", "").replace('#', ""),
                ),
                "ClosedPIC" => (kind == "closed pic", wanted.name[1..].to_owned() + " - "),
                "OpenPIC" => (kind == "open pic", wanted.name[1..].to_owned()),
                _ if wanted.is_block => (kind == "block", wanted.name.clone()),
                _ => (kind == "method", wanted.name.clone()),
            };
            assert!(is_kind, "{wanted:?}: {one}");
            let is_named = match wanted.kind.as_str() {
                "ClosedPIC" => name.starts_with(&other_name),
                _ => name == other_name,
            };
            assert!(is_named, "{wanted:?}: {one}");
        }
        assert!(expected.next().is_none());
    }
}

/// The VM's binary tells the same as the list of its symbols.
#[test]
fn an_elf_file_tells_the_same_as_a_list() {
    let Some(files) = Files::of("idle") else {
        return;
    };
    let image = Image::read("idle");
    let bytes = std::fs::read(image.executable()).expect("the binary");
    for name in ["squeak", "other"] {
        std::fs::write(files.folder.file(name), &bytes).expect("our folder");
    }
    let wanted = files.constituents("symbols.tsv", &["--detailed"]).code(0);
    let found = files.constituents("squeak", &["--detailed"]).code(0);
    assert_eq!(found.stdout, wanted.stdout);
    // The address of the module's first mapping takes the place of its name.
    files
        .constituents("other", &[])
        .code(2)
        .says("no mapped file has the name other: add --load-address");
    let at = &["--detailed", "--load-address", "0x56516c53f000"];
    assert_eq!(
        files.constituents("other", at).code(0).stdout,
        wanted.stdout
    );
    let nowhere = &["--load-address", "1000"];
    files
        .constituents("other", nowhere)
        .code(2)
        .says("no mapped file begins at 0x1000");
}

#[test]
fn wrong_symbols_are_told() {
    let Some(files) = Files::of("idle") else {
        return;
    };
    for (text, what) in [
        ("", "list: no line names a symbol with an address"),
        ("x\n", "list: line 1 is not a symbol; expected"),
        (
            "0x10\t0x20\tT\tmain\n",
            "list: line 1 is not a symbol; expected",
        ),
        (
            "1000 T main\n",
            "list lies in a mapped file: symbols need their run-time addresses",
        ),
    ] {
        std::fs::write(files.folder.file("list"), text).expect("our folder");
        files.constituents("list", &[]).code(2).says(what);
    }
    files.constituents("none", &[]).code(2).says("cannot open");
    // These symbols lie in the VM's file, and are no VM's.
    std::fs::write(files.folder.file("list"), "56516c563000 T main\n").expect("our folder");
    files
        .constituents("list", &[])
        .code(1)
        .says("no known VM is in the core file")
        .says("--symbols");
    let core = files.path("core");
    vmscope(["constituents", "--core", &core])
        .code(1)
        .says("--symbols");
    // Another build's file.
    let mut native = Command::new("sleep").arg("60").spawn().expect("sleep");
    let pid = native.id().to_string();
    std::fs::copy("/bin/ls", files.folder.file("sleep")).expect("a program");
    let other = files.path("sleep");
    vmscope(["constituents", &pid, "--symbols", &other])
        .code(2)
        .says("is of another build than the VM");
    native.kill().expect("our child");
    native.wait().expect("our child");
}
