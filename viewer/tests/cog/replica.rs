//! A process with the memory of a Cog VM: a snapshot, and code in its blank code zone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use vmscope_cog::testing::Snapshot;
use vmscope_process::MapEntry;
use vmscope_records::Avma;

use crate::code;
use crate::common::programs::{self, COG_REPLICA};
use crate::common::skipped;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, can_sample};
use crate::vm_file::{Symbol, symbols, vm_file};

/// Offsets of a method's code behind its class check, and of a block's code.
const UNCHECKED_ENTRY: u64 = 71;
const BLOCK_HEADER: u64 = 12;

/// A frame's flag for blocks.
const IS_BLOCK: u64 = 2;

/// Permissions of an executable's mappings: headers, code, constants, relocated constants, variables.
const PERMISSIONS: [(bool, bool); 5] = [
    (false, false),
    (false, true),
    (false, false),
    (false, false),
    (true, false),
];

/// Memory of a process that has not started.
pub struct Image {
    folder: Folder,
    /// Mappings and their contents.
    mappings: Vec<(MapEntry, Vec<u8>)>,
    symbols: Vec<Symbol>,
    /// What a correct reader finds, in lines.
    pub expected: String,
}

/// A call of code.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub entry: u64,
    pub at: u64,
}

impl Spot {
    /// Commands for the process.
    pub fn run(&self, name: &str, rounds: u64) -> String {
        format!("run {name} {:x} {:x} {rounds}\n", self.entry, self.at)
    }

    /// A copy of the code at higher addresses.
    pub fn up(&self, bytes: u64) -> Spot {
        Spot {
            entry: self.entry + bytes,
            at: self.at + bytes,
        }
    }

    /// The same code, moved down.
    pub fn down(&self, bytes: u64) -> Spot {
        Spot {
            entry: self.entry - bytes,
            at: self.at - bytes,
        }
    }
}

/// A file of the snapshots.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../vm-hooks/cog/tests/snapshots")
        .join(name)
}

pub fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect("a snapshot's text")
}

/// Whether the snapshots are of VMs for this processor; says so if not.
pub fn is_of_this_machine() -> bool {
    let is_it = cfg!(target_arch = "x86_64");
    if !is_it {
        skipped("the snapshots are of x86-64 VMs");
    }
    is_it
}

pub fn unpacked(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(file(name)).expect("a snapshot");
    zstd::decode_all(file).expect("a compressed file")
}

impl Image {
    /// Memory of a snapshot; `None`, told loudly, where no such process can run or be sampled.
    pub fn of(name: &str) -> Option<Self> {
        (is_of_this_machine() && can_sample()).then(|| Self::read(name))
    }

    /// Memory of a snapshot.
    pub fn read(name: &str) -> Self {
        let table = String::from_utf8(unpacked(&format!("{name}.symbols.tsv.zst")));
        let table = table.expect("UTF-8");
        let core = unpacked(&format!("{name}.core.zst"));
        let snapshot = Snapshot::new(core, &table).expect("a core file");
        let program = snapshot.program.as_bytes();
        let is_ours = |entry: &&MapEntry| entry.path().is_none_or(|path| path == program);
        let mut permissions = PERMISSIONS.iter();
        let mappings = snapshot.mappings.iter().filter(is_ours).map(|entry| {
            let mut entry = entry.clone();
            (entry.writable, entry.executable) = match entry.path() {
                Some(_) => *permissions.next().expect("five mappings"),
                None => (true, entry.executable),
            };
            let contents = contents(&snapshot, &entry);
            (entry, contents)
        });
        Image {
            folder: Folder::new(),
            mappings: mappings.collect(),
            symbols: symbols(&table),
            expected: text(&format!("{name}.expected.txt")),
        }
    }

    /// Address of a variable.
    pub fn symbol(&self, name: &str) -> u64 {
        let symbol = self.symbols.iter().find(|symbol| symbol.name == name);
        symbol.expect(name).address
    }

    /// The number at an address.
    pub fn number(&self, at: u64) -> u64 {
        let (entry, contents) = self.mapping(at);
        let offset = (at - entry.start.0) as usize;
        let word = contents[offset..].first_chunk().expect("a whole word");
        u64::from_le_bytes(*word)
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> u64 {
        self.number(self.symbol(name))
    }

    /// Bytes at an address.
    pub fn bytes(&self, at: u64, length: usize) -> &[u8] {
        let (entry, contents) = self.mapping(at);
        &contents[(at - entry.start.0) as usize..][..length]
    }

    fn mapping(&self, at: u64) -> &(MapEntry, Vec<u8>) {
        let holds = |(entry, _): &&(MapEntry, Vec<u8>)| entry.contains(Avma(at));
        self.mappings.iter().find(holds).expect("mapped")
    }

    /// Writes code into an area without instructions.
    fn put(&mut self, at: u64, code: &[u8]) {
        let holds = |(entry, _): &&mut (MapEntry, Vec<u8>)| entry.contains(Avma(at));
        let (entry, contents) = self.mappings.iter_mut().find(holds).expect("mapped");
        let offset = (at - entry.start.0) as usize;
        let area = &mut contents[offset..][..code.len()];
        assert!(area.iter().all(|byte| *byte == 0), "{at:x} is not blank");
        area.copy_from_slice(code);
    }

    /// Address of the entry of this type (`Method`, `ClosedPIC`) and name.
    pub fn entry(&self, kind: &str, name: &str) -> u64 {
        let is_it = |entry: &(u64, &str, &str)| (entry.1, entry.2) == (kind, name);
        self.entries().find(is_it).expect(name).0
    }

    /// Address, type and name of each entry in the zone.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &str, &str)> {
        let lines = self.expected.lines();
        lines.filter_map(|line| {
            let mut words = line.split_whitespace();
            let at = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.nth(1)?;
            let (_, rest) = line.split_once("usage ")?;
            Some((at, kind, rest.split_once(' ')?.1))
        })
    }

    /// Address of a trampoline.
    pub fn trampoline(&self, name: &str) -> u64 {
        let lines = self.expected.lines();
        let is_it = |line: &&str| line.starts_with("T ") && line.ends_with(&format!(" {name}"));
        let line = lines.into_iter().find(is_it).expect(name);
        let at = line.split(' ').nth(1).expect("an address");
        u64::from_str_radix(at, 16).expect("an address")
    }

    /// Writes a loop with a frame into the method or block with this header, at this offset.
    pub fn framed(&mut self, header: u64, is_block: bool, offset: u64) -> Spot {
        let (entry, flags) = match is_block {
            true => (header + BLOCK_HEADER, IS_BLOCK),
            false => (header + UNCHECKED_ENTRY, 0),
        };
        let frame = code::frame(entry, header | flags, self.value("nilObj"));
        if self.bytes(entry, frame.len()) != frame {
            self.put(entry, &frame);
        }
        let at = header + offset;
        self.put(at, &code::rounds(true));
        Spot { entry, at }
    }

    /// Writes a loop without a frame.
    pub fn frameless(&mut self, at: u64) -> Spot {
        self.put(at, &code::rounds(false));
        Spot { entry: at, at }
    }

    /// Folder of the process's files.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The VM's executable file, written.
    pub fn executable(&self) -> PathBuf {
        let of_file = |(entry, _): &&(MapEntry, Vec<u8>)| entry.path().is_some();
        let end = self.mappings.iter().rfind(of_file).expect("a file").0.end;
        let (mut segments, mut in_file) = (Vec::new(), Vec::new());
        for (entry, contents) in &self.mappings {
            if entry.path().is_some() {
                in_file.resize(entry.offset.0 as usize, 0);
                in_file.extend(contents);
            }
            if entry.path().is_some() || entry.start == end {
                segments.push(entry.clone());
            }
        }
        let path = self.folder.file("squeak");
        let file = vm_file(&segments, &in_file, &self.symbols);
        std::fs::write(&path, file).expect("our folder");
        path
    }

    /// Starts the process, which waits for commands. `None` where no compiler is.
    pub fn start(&self) -> Option<Target> {
        let program = programs::build(COG_REPLICA)?;
        let (mut plan, mut memory) = (String::new(), Vec::new());
        let (vm, copies) = (self.executable(), self.folder.file("memory of squeak"));
        for (entry, contents) in &self.mappings {
            let (kind, path, offset) = match entry.path() {
                Some(_) => ("file", &vm, entry.offset.0),
                None => {
                    let offset = memory.len() as u64;
                    memory.extend(contents);
                    ("copy", &copies, offset)
                }
            };
            let length = entry.end.0 - entry.start.0;
            let protection = 1 | u8::from(entry.writable) << 1 | u8::from(entry.executable) << 2;
            let (start, path) = (entry.start.0, path.display());
            writeln!(
                plan,
                "{kind} {start:x} {length:x} {protection:x} {offset:x} {path}"
            )
            .expect("a string");
        }
        let write = |path: &Path, bytes: &[u8]| std::fs::write(path, bytes).expect("our folder");
        write(&copies, &memory);
        write(&self.folder.file("plan"), plan.as_bytes());
        let mut command = Command::new(program);
        command.args([self.folder.file("plan"), self.folder.file("log")]);
        Some(Target::commanded(command))
    }
}

/// Contents of a mapping; zeros where the snapshot has none.
fn contents(snapshot: &Snapshot, entry: &MapEntry) -> Vec<u8> {
    const PAGE: usize = 4096;
    let length = usize::try_from(entry.end.0 - entry.start.0).expect("a small mapping");
    let mut contents = vec![0; length];
    for (page, at) in contents
        .chunks_mut(PAGE)
        .zip((entry.start.0..).step_by(PAGE))
    {
        // Missing pages stay zeros.
        let _ = snapshot.memory.read_partial(Avma(at), page);
    }
    contents
}

/// Passes a group of commands to the process.
pub fn tell(target: &mut Target, commands: &str) {
    let answer = target.command(&format!("{commands}go\n"));
    assert_eq!(answer, "done\n", "{commands}");
}

/// The command that writes bytes.
pub fn set(at: u64, bytes: &[u8]) -> String {
    let mut line = format!("set {at:x} ");
    for byte in bytes {
        write!(line, "{byte:02x}").expect("a string");
    }
    line.push('\n');
    line
}
