//! Regions of a VM, and rules that assign native functions to them.

use crate::{ProcessKey, TimeNs};

/// A region of a VM (DESIGN.md §5), the coarsest attribution of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    /// Generated code: methods, PICs, trampolines, stubs, builtins.
    Generated,
    /// The VM's interpreter.
    Interpreter,
    /// The garbage collector.
    Gc,
    /// A JIT compiler.
    Compiler,
    /// Other code of the VM; in a native program, the program.
    Vm,
    /// Shared libraries.
    Library,
    /// The kernel.
    Kernel,
    /// A blocked thread.
    Idle,
    /// Unknown.
    Unknown,
}

impl Region {
    /// All regions, in report order.
    pub const ALL: [Region; 9] = [
        Region::Generated,
        Region::Interpreter,
        Region::Gc,
        Region::Compiler,
        Region::Vm,
        Region::Library,
        Region::Kernel,
        Region::Idle,
        Region::Unknown,
    ];

    /// Name in the JSON schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Region::Generated => "generated",
            Region::Interpreter => "interpreter",
            Region::Gc => "gc",
            Region::Compiler => "compiler",
            Region::Vm => "vm",
            Region::Library => "library",
            Region::Kernel => "kernel",
            Region::Idle => "idle",
            Region::Unknown => "unknown",
        }
    }

    /// Whether VMProfiler counts it as VM: executable, plugins and code zone.
    #[must_use]
    pub const fn is_vm(self) -> bool {
        matches!(
            self,
            Region::Generated | Region::Interpreter | Region::Gc | Region::Compiler | Region::Vm
        )
    }
}

/// An adapter's rules that assign native functions of its VM to collector, compiler or interpreter.
/// Replaces earlier rules for the same process and VM.
///
/// The demangled symbol of a function (without inlined functions) is compared with each rule in
/// order: the first match counts, and without a match the region stays. Modules of the VM other
/// than its executable (`libjvm.so`, a plugin) therefore need a last rule for all functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionRules {
    /// The VM's process.
    pub process: ProcessKey,
    /// Time of emission.
    pub time: TimeNs,
    /// The adapter's name for the VM (`v8`).
    pub vm: String,
    /// Rules in order.
    pub rules: Vec<RegionRule>,
}

/// A rule for functions of one module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegionRule {
    /// File name (last component) of the module.
    pub module: String,
    /// Prefix of the demangled name; empty for any.
    pub prefix: String,
    /// Substring of the name; empty for any.
    pub contains: String,
    /// Suffix of the name; empty for any.
    pub suffix: String,
    /// Region of matching functions.
    pub region: Region,
    /// Component of the region, in the VM's words (`scavenger`, `TurboFan`, `bytecode handler`);
    /// may be empty.
    pub part: String,
    /// Whether the display name omits `prefix` and `suffix` (`Builtins_LdaZeroHandler` →
    /// `LdaZero`).
    pub strip: bool,
}

impl RegionRule {
    /// Display name of a matching function. Callers compare the module.
    #[must_use]
    pub fn apply<'a>(&self, name: &'a str) -> Option<&'a str> {
        let inner = name
            .strip_prefix(&*self.prefix)?
            .strip_suffix(&*self.suffix)?;
        if !self.contains.is_empty() && !name.contains(&*self.contains) {
            return None;
        }
        Some(if self.strip && !inner.is_empty() {
            inner
        } else {
            name
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_fits_when_all_it_asks_for_is_there() {
        let rule = |prefix: &str, contains: &str, suffix: &str, strip| RegionRule {
            module: String::new(),
            prefix: prefix.to_owned(),
            contains: contains.to_owned(),
            suffix: suffix.to_owned(),
            region: Region::Gc,
            part: String::new(),
            strip,
        };
        let handler = rule("Builtins_", "", "Handler", true);
        assert_eq!(handler.apply("Builtins_LdaZeroHandler"), Some("LdaZero"));
        assert_eq!(handler.apply("Builtins_Handler"), Some("Builtins_Handler"));
        assert_eq!(handler.apply("Builtins_Call"), None);
        assert_eq!(handler.apply("BuiltinsHandler"), None, "no letter twice");
        let inside = rule("", "::Scavenger::", "", false);
        assert_eq!(
            inside.apply("v8::Scavenger::Process"),
            Some("v8::Scavenger::Process")
        );
        assert_eq!(inside.apply("v8::Sweeper::Run"), None);
        assert_eq!(rule("", "", "", false).apply("x"), Some("x"));
    }
}
