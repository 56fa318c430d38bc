//! Node.js at work, with vmscope attached.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::common::programs::script;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, Run, attached_by};
use crate::v8::nodes::Node;

/// Reads V8 from memory whatever the process writes.
pub const BY_MEMORY: [&str; 2] = ["--adapter", "v8"];

/// A recording of a process that was asked to end after enough samples.
pub struct Attached {
    /// The recording is in it.
    pub folder: Folder,
    pub run: Run,
    pub pid: u32,
    /// What the program printed.
    pub said: String,
}

impl Attached {
    pub fn recording(&self) -> PathBuf {
        self.folder.file("out.vmscope")
    }
}

/// `node FLAGS SCRIPT ARGUMENTS`, which has said that it is ready, working in `place`.
pub fn ready(node: &Node, flags: &[&str], words: &[&str], place: &Folder) -> Target {
    let (name, arguments) = words.split_first().expect("a script");
    let mut command = Command::new(&node.program);
    command.args(flags).arg(script(name)).args(arguments);
    command.env_remove("NODE_OPTIONS").current_dir(place.path());
    Target::ready(command)
}

/// Attaches to such a process for at least `samples` samples, and ends it.
pub fn attach(
    node: &Node,
    flags: &[&str],
    words: &[&str],
    (place, samples): (&Folder, usize),
) -> Attached {
    let folder = Folder::new();
    let mut target = ready(node, flags, words, place);
    let pid = target.pid();
    let file = folder.file("out.vmscope");
    let working = attached_by(&BY_MEMORY, pid, &file, samples);
    target.signal(Signal::SIGTERM);
    let said = target.wait();
    Attached {
        run: working.end().code(0),
        folder,
        pid,
        said,
    }
}
