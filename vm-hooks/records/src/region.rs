//! Where in a VM code belongs, and by which names a VM's native code tells.

use crate::{ProcessKey, TimeNs};

/// The coarsest answer to "where": the regions of DESIGN.md §5.
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
    /// The VM's own other code; for a native program, the program.
    Vm,
    /// Shared libraries.
    Library,
    /// The kernel.
    Kernel,
    /// The thread did not run.
    Idle,
    /// Not known.
    Unknown,
}

impl Region {
    /// All regions, in the order in which reports show them.
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

    /// Its name in the JSON schema.
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

    /// Whether it is the VM in VMProfiler's sense: its executable, its plugins and
    /// its code zone.
    #[must_use]
    pub const fn is_vm(self) -> bool {
        matches!(
            self,
            Region::Generated | Region::Interpreter | Region::Gc | Region::Compiler | Region::Vm
        )
    }
}

/// What an adapter knows about its VM's native code: which functions belong to the
/// collector, to a compiler, to the interpreter. Written again for the same process
/// and VM, it replaces what was said before.
///
/// A native place is asked by its function's own symbol (not by what was inlined into
/// it), demangled, in the order of the rules: the first that fits counts, and where
/// none does, nothing is changed. So a module that belongs to the VM without being its
/// executable (`libjvm.so`, a plugin) ends its rules with one for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionRules {
    /// Whose.
    pub process: ProcessKey,
    /// When they were told.
    pub time: TimeNs,
    /// Which VM they are of, in its adapter's word (`v8`).
    pub vm: String,
    /// The rules.
    pub rules: Vec<RegionRule>,
}

/// One such rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegionRule {
    /// The file name (last component) of the module that it is about.
    pub module: String,
    /// What the function's demangled name begins with; empty for any.
    pub prefix: String,
    /// What it holds somewhere; empty for any.
    pub contains: String,
    /// What it ends with; empty for any.
    pub suffix: String,
    /// Where such a function belongs.
    pub region: Region,
    /// Which part of that region, in the VM's words (`scavenger`, `TurboFan`,
    /// `bytecode handler`); may be empty.
    pub part: String,
    /// Whether the function's name for people is what stands between `prefix` and
    /// `suffix` alone (`Builtins_LdaZeroHandler` → `LdaZero`).
    pub strip: bool,
}

impl RegionRule {
    /// What a function of that name is called, if this rule fits it. The module is the
    /// caller's to compare.
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
