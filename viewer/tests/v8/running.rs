//! Node.js at work, with vmscope attached.

use std::path::Path;
use std::process::Command;

use crate::common::programs::script;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, attached_by};
use crate::v8::nodes::Node;

/// Reads V8 from memory whatever the process writes.
pub const BY_MEMORY: [&str; 2] = ["--adapter", "v8"];

/// `node FLAGS SCRIPT ARGUMENTS`, which has said that it is ready, working in `place`.
pub fn ready(node: &Node, flags: &[&str], words: &[&str], place: &Folder) -> Target {
    let (name, arguments) = words.split_first().expect("a script");
    let mut command = Command::new(&node.program);
    command.args(flags).arg(script(name)).args(arguments);
    command.env_remove("NODE_OPTIONS").current_dir(place.path());
    Target::ready(command)
}

/// Attaches to a process for at least `samples` samples, ends it, and returns its pid; the recording is in
/// `file`.
pub fn recorded(target: Target, file: &Path, samples: usize) -> u32 {
    let pid = target.pid();
    let working = attached_by(&BY_MEMORY, pid, file, samples);
    target.end();
    working.end().code(0);
    pid
}
