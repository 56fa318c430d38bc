//! The releases of Node.js on this machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use vmscope_process::{ElfFile, LoadBias, ModuleFile};

use super::skipped;

/// The releases that `.ci/nodes` gets.
pub const RELEASES: [u32; 5] = [18, 20, 22, 24, 26];

/// A program that runs JavaScript.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its path.
    pub program: PathBuf,
    /// 18, 20, …
    pub release: u32,
}

impl Node {
    /// Writes a copy of the program that calls its V8 99. Copies of 22 and
    /// later run; earlier ones check the sum of their snapshot.
    pub fn as_unknown_version(&self, copy: &Path) {
        let file = ModuleFile::from_file(File::open(&self.program).expect("a program"));
        let elf = ElfFile::open(Arc::new(file.expect("a file"))).expect("an ELF file");
        let names =
            ["major", "minor", "build"].map(|name| format!("_ZN2v88internal7Version6{name}_E"));
        let names = names.each_ref().map(String::as_str);
        let symbols = elf.find(&names, LoadBias(0)).expect("symbols").into_iter();
        let places = symbols.map(|symbol| {
            let address = symbol.expect("V8's version").address.get();
            let offset = elf.file_offset(address);
            usize::try_from(offset.expect("in the file")).expect("an offset")
        });
        let places: Vec<usize> = places.collect();
        let mut bytes = std::fs::read(&self.program).expect("a program");
        let [major, minor, build] = [0, 1, 2].map(|at| {
            let number = bytes[places[at]..][..4].try_into().expect("4 bytes");
            u32::from_le_bytes(number)
        });
        bytes[places[0]..][..4].copy_from_slice(&99_u32.to_le_bytes());
        let rest = format!(".{minor}.{build}");
        let (old, new) = (format!("{major}{rest}"), format!("99{rest}"));
        // V8 compares the text with the text in its snapshot.
        for at in memchr::memmem::find_iter(&bytes.clone(), old.as_bytes()) {
            bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
        }
        std::fs::write(copy, bytes).expect("a copy");
        let rights = self.program.metadata().expect("a program").permissions();
        std::fs::set_permissions(copy, rights).expect("our copy");
    }
}

fn program_of(release: &str) -> PathBuf {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = ours
        .ancestors()
        .find(|folder| folder.join("Cargo.lock").is_file());
    let root = root.expect("a workspace");
    root.join(format!("target/nodes/{release}/bin/node"))
}

/// A release that `.ci/nodes` got; says SKIPPED if it is missing.
pub fn node(release: u32) -> Option<Node> {
    let program = program_of(&release.to_string());
    let found = program.is_file().then_some(Node { program, release });
    if found.is_none() {
        skipped(&format!(
            "there is no Node {release} here (.ci/nodes gets it)"
        ));
    }
    found
}

/// Those releases, and the `node` of PATH; says SKIPPED of each that is missing.
pub fn nodes() -> Vec<Node> {
    let installed = installed();
    if installed.is_none() {
        skipped("there is no `node` in PATH");
    }
    RELEASES
        .into_iter()
        .filter_map(node)
        .chain(installed)
        .collect()
}

/// The `node` of Debian's package, whose V8 is in `libnode.so`: that of PATH, or a program
/// `target/nodes/debian/bin/node` that starts an unpacked package. Says SKIPPED if both are missing.
pub fn debian() -> Option<Node> {
    let is_shared = |node: &Node| {
        let mut command = Command::new(&node.program);
        let printed = command
            .args(["-p", "process.config.variables.node_shared"])
            .output();
        printed.is_ok_and(|printed| printed.stdout == b"true\n")
    };
    let unpacked = program_of("debian");
    let unpacked = unpacked.is_file().then(|| of_program(unpacked)).flatten();
    let found = [installed(), unpacked]
        .into_iter()
        .flatten()
        .find(is_shared);
    if found.is_none() {
        skipped("there is no `node` of Debian's package here");
    }
    found
}

/// The `node` of PATH.
fn installed() -> Option<Node> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join("node"));
    of_program(files.find(|file| file.is_file())?)
}

fn of_program(program: PathBuf) -> Option<Node> {
    let version = Command::new(&program).arg("--version").output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let (release, _) = version.strip_prefix('v')?.split_once('.')?;
    let release = release.parse().ok()?;
    Some(Node { program, release })
}
