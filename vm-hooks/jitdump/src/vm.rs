//! Differences between VMs with jitdump files or perf maps: recognition, names of code, regions of
//! the VM's native functions.

mod beam;
mod cpython;
mod dotnet;
mod hint;
mod julia;
mod luajit;
mod mono;
mod name;
mod php;
mod recognise;
mod ruby;
mod v8;
mod wasmtime;

use vmscope_records::{ConstituentKind, RegionRule, ThreadRole, VmIdentity};

pub use recognise::recognise;
pub(crate) use recognise::{execute_ex, region_rules};

/// A VM of a kind that can describe its code in files.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Which.
    pub kind: VmKind,
    /// What it says it is.
    pub identity: VmIdentity,
    /// Region rules of V8's modules, which its recognition tells; empty for other VMs (`recognise::region_rules`).
    pub rules: Vec<RegionRule>,
}

impl Vm {
    /// One sentence for `attach` if this VM reports no code: the option that gives names to its code.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        self.kind.hint(&self.identity.kind)
    }
}

/// The VMs whose conventions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VmKind {
    /// V8 (Node.js, Deno, Electron, Chromium).
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
    /// LuaJIT.
    LuaJit,
    /// Any other that writes such files.
    Other,
}

impl VmKind {
    /// All kinds.
    pub const ALL: [VmKind; 10] = [
        VmKind::V8,
        VmKind::DotNet,
        VmKind::Beam,
        VmKind::Php,
        VmKind::CPython,
        VmKind::Mono,
        VmKind::Wasmtime,
        VmKind::Julia,
        VmKind::LuaJit,
        VmKind::Other,
    ];
}

/// A name that a VM gave to a piece of code, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeName {
    /// The function's name for people, never empty.
    pub name: String,
    /// What the piece of code is.
    pub kind: ConstituentKind,
    /// Compiler or tier, in the VM's words; empty for VMs with one.
    pub tier: String,
    /// Class, with which the name begins; empty if unknown.
    pub class: String,
    /// Script, module or file; empty if unknown.
    pub file: String,
    /// First line; 0 if unknown.
    pub line: u32,
}

impl VmKind {
    /// Takes a name apart by this VM's conventions. What does not follow them may
    /// follow another VM's that is embedded in the same process (wasmtime in Python);
    /// what follows none stays whole, and is a method.
    #[must_use]
    pub fn split(self, name: &str) -> CodeName {
        let own = match self {
            VmKind::V8 => v8::split(name),
            VmKind::DotNet => foreign(name).or_else(|| dotnet::split(name)),
            VmKind::Beam => beam::split(name),
            VmKind::Php => php::split(name),
            VmKind::CPython => cpython::split(name),
            VmKind::Mono => foreign(name).or_else(|| mono::split(name)),
            VmKind::Wasmtime => wasmtime::split(name),
            VmKind::Julia => julia::split(name),
            VmKind::LuaJit | VmKind::Other => None,
        };
        own.or_else(|| foreign(name))
            .unwrap_or_else(|| CodeName::new(name, ConstituentKind::Method, ""))
    }

    /// Whether source positions in code of this tier are usable. In code of Sparkplug and the
    /// interpreter, V8 states offsets of bytecodes as offsets in machine
    /// code.
    #[must_use]
    pub fn has_lines(self, tier: &str) -> bool {
        self != VmKind::V8 || !matches!(tier, "Sparkplug" | "Ignition")
    }

    /// Start option for a VM of this kind; `name` may select a more specific option.
    pub(crate) fn hint(self, name: &str) -> &'static str {
        hint::hint(self, name)
    }

    /// Role of a thread with this name (at most 15 bytes, as in the kernel) in this VM; `None` for other
    /// names.
    #[must_use]
    pub fn role_of_thread(self, name: &str) -> Option<ThreadRole> {
        match self {
            VmKind::V8 => v8::role_of_thread(name),
            VmKind::Beam => beam::role_of_thread(name),
            VmKind::Mono => mono::role_of_thread(name),
            VmKind::DotNet => dotnet::role_of_thread(name),
            _ => None,
        }
    }
}

/// Names with a recognisable VM, in any process.
fn foreign(name: &str) -> Option<CodeName> {
    wasmtime::split(name)
        .or_else(|| cpython::split(name))
        .or_else(|| php::split(name))
        .or_else(|| luajit::split(name))
}

#[cfg(test)]
mod tests;
