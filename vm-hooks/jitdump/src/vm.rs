//! What is particular to each of the VMs that write such files: how to recognise
//! one, how it names its code, which of its own functions belong to which part of it.

use vmscope_records::{ConstituentKind, RegionRule, VmIdentity};
use vmscope_target::ProcessView;

/// A VM of a kind that can describe its code in files.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Which.
    pub kind: VmKind,
    /// What it says it is.
    pub identity: VmIdentity,
    /// What its native functions tell.
    pub rules: Vec<RegionRule>,
}

/// The VMs whose conventions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VmKind {
    /// V8 (Node.js, Deno, Electron).
    V8,
    /// .NET.
    DotNet,
    /// Erlang's BEAM.
    Beam,
    /// PHP with opcache.
    Php,
    /// CPython.
    CPython,
    /// Mono.
    Mono,
    /// Wasmtime, embedded anywhere.
    Wasmtime,
    /// Julia.
    Julia,
    /// Any other that writes such files.
    Other,
}

/// A name that a VM gave to a piece of code, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeName {
    /// The function's name for people, never empty.
    pub name: String,
    /// What the piece of code is.
    pub kind: ConstituentKind,
    /// Which compiler or level made it, in the VM's words; empty where it has one.
    pub tier: String,
    /// The script, module or file it is in; empty where it is not told.
    pub file: String,
    /// The line it begins at; 0 where it is not told.
    pub line: u32,
}

/// Which of these VMs `process` runs, by its program and modules.
#[must_use]
pub fn recognise(process: &ProcessView) -> Option<Vm> {
    let _ = process;
    None
}

impl VmKind {
    /// Takes a name apart by this VM's conventions.
    #[must_use]
    pub fn split(self, name: &str) -> CodeName {
        CodeName {
            name: name.to_owned(),
            kind: ConstituentKind::Method,
            tier: String::new(),
            file: String::new(),
            line: 0,
        }
    }
}
