//! Regions of a VM, and rules that assign native functions to them.

use crate::{ProcessKey, ThreadRole, TimeNs};

/// A region of a VM (DESIGN.md §5), the coarsest attribution of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    #[default]
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

/// A rule for functions of one module. All its conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegionRule {
    /// File name (last component) of the module.
    pub module: String,
    /// Role of the sampled thread; `None` for any. Needed for helper functions that several parts
    /// of a VM call.
    pub role: Option<ThreadRole>,
    /// Whole identifiers of the function's [qualified name](FunctionName): a namespace, class,
    /// template argument or function, or several joined by `::`. `*` at an end stands for the rest of an
    /// identifier. Empty for any.
    pub identifiers: String,
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
    /// Display name of a matching function, sampled on a thread with the role `role`. Callers
    /// compare the module.
    #[must_use]
    pub fn apply<'a>(&self, function: FunctionName<'a>, role: ThreadRole) -> Option<&'a str> {
        let FunctionName { name, qualified } = function;
        if self.role.is_some_and(|asked| asked != role) {
            return None;
        }
        // Most rules have no prefix and no suffix. Comparing an empty String took 0.1 µs in AVX-512's
        // memcmp, perhaps since its pointer is dangling.
        let mut inner = name;
        if !self.prefix.is_empty() {
            inner = inner.strip_prefix(&*self.prefix)?;
        }
        if !self.suffix.is_empty() {
            inner = inner.strip_suffix(&*self.suffix)?;
        }
        if !name.contains(&*self.contains) || !has_identifiers(qualified, &self.identifiers) {
            return None;
        }
        Some(if self.strip && !inner.is_empty() {
            inner
        } else {
            name
        })
    }
}

/// Whether `name` has the identifiers of `pattern`, whole but for `*` at its ends.
fn has_identifiers(name: &str, pattern: &str) -> bool {
    if pattern.is_empty() {
        return true;
    }
    let (any_before, any_after) = (pattern.starts_with('*'), pattern.ends_with('*'));
    let text = pattern.trim_matches('*');
    text.is_empty()
        || name.match_indices(text).any(|(at, found)| {
            let before = name.get(..at).unwrap_or_default();
            let after = name.get(at + found.len()..).unwrap_or_default();
            (any_before || !before.ends_with(is_of_identifier))
                && (any_after || !after.starts_with(is_of_identifier))
        })
}

fn is_of_identifier(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$')
}

/// A demangled C++ name, as [`RegionRule::apply`] needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionName<'a> {
    /// The whole name.
    pub name: &'a str,
    qualified: &'a str,
}

impl<'a> FunctionName<'a> {
    /// The name with namespaces, classes and template arguments, but without the parameters and the
    /// type of the result: `Table::iterate<Klass>` in `void Table::iterate<Klass>(Closure*)`.
    #[must_use]
    pub fn qualified(self) -> &'a str {
        self.qualified
    }

    /// Finds the qualified name in a demangled name. Names of unknown form count as a whole.
    #[must_use]
    pub fn new(name: &'a str) -> Self {
        const ANONYMOUS: &str = "(anonymous namespace)";
        const OPERATOR: &str = "operator";
        let (mut start, mut depth, mut at) = (0, 0_u32, 0);
        while let Some(rest) = name.get(at..)
            && let Some(letter) = rest.chars().next()
        {
            let mut length = letter.len_utf8();
            match letter {
                '(' if rest.starts_with(ANONYMOUS) => length = ANONYMOUS.len(),
                // An operator may contain brackets or spaces, and ends the name.
                'o' if rest.starts_with(OPERATOR)
                    && !name
                        .get(..at)
                        .is_some_and(|before| before.ends_with(is_of_identifier)) =>
                {
                    let symbols = rest.get(OPERATOR.len() + 1..).unwrap_or_default();
                    let symbols = symbols.find(['(', ' ']).unwrap_or(symbols.len());
                    at += OPERATOR.len() + 1 + symbols;
                    break;
                }
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                // A type of the result ends.
                ' ' if depth == 0 => start = at + 1,
                // The parameters begin.
                '(' if depth == 0 => break,
                _ => {}
            }
            at += length;
        }
        FunctionName {
            name,
            qualified: name.get(start..at).unwrap_or(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_fits_when_all_its_conditions_hold() {
        let applied = |rule: &RegionRule, name| {
            let name = rule.apply(FunctionName::new(name), ThreadRole::Compiler);
            name.map(str::to_owned)
        };
        let handler = RegionRule {
            prefix: "Builtins_".into(),
            suffix: "Handler".into(),
            strip: true,
            ..RegionRule::default()
        };
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(applied(&handler, "Builtins_LdaZeroHandler"), is("LdaZero"));
        let empty = "Builtins_Handler";
        assert_eq!(applied(&handler, empty), is(empty));
        assert_eq!(applied(&handler, "Builtins_Call"), None);
        assert_eq!(
            applied(&handler, "BuiltinsHandler"),
            None,
            "no letter twice"
        );
        let inside = RegionRule {
            contains: "::Scavenger::".into(),
            ..RegionRule::default()
        };
        let scavenger = "v8::Scavenger::Process";
        assert_eq!(applied(&inside, scavenger), is(scavenger));
        assert_eq!(applied(&inside, "v8::Sweeper::Run"), None);
        assert_eq!(applied(&RegionRule::default(), "x"), is("x"));
        for (role, fits) in [(ThreadRole::Compiler, true), (ThreadRole::Collector, false)] {
            let rule = RegionRule {
                role: Some(role),
                ..RegionRule::default()
            };
            assert_eq!(applied(&rule, "x").is_some(), fits);
        }
    }

    #[test]
    fn identifiers_are_whole_and_of_the_qualified_name() {
        let fits = |identifiers: &str, name| {
            let rule = RegionRule {
                identifiers: identifiers.into(),
                ..RegionRule::default()
            };
            rule.apply(FunctionName::new(name), ThreadRole::Other)
                .is_some()
        };
        let new = "nmethod::new_nmethod(methodHandle const&, OopMapSet*)";
        assert!(fits("nmethod", new) && fits("nmethod::new_nmethod", new));
        assert!(fits("nmethod::new*", new) && !fits("nmethod::new", new));
        assert!(fits("*_nmethod", new) && fits("*::new*", new) && !fits("*meth", new));
        assert!(!fits("OopMapSet", new) && !fits("method", new) && !fits("Oop*", new));
        let table = "void Dispatch<G1CMOopClosure>::Table::iterate<Klass, int>(Other*, Klass*)";
        assert!(fits("G1CM*", table) && fits("Klass", table) && fits("Dispatch", table));
        assert!(!fits("Other", table) && !fits("void", table) && !fits("CM*", table));
    }

    #[test]
    fn a_qualified_name_has_no_parameters_and_no_type_of_the_result() {
        for (name, qualified) in [
            ("jni_GetStringUTFChars", "jni_GetStringUTFChars"),
            ("os::javaTimeNanos()", "os::javaTimeNanos"),
            ("unsigned long f<int (*)(char)>(int)", "f<int (*)(char)>"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            (
                "Node::operator new(unsigned long, int)",
                "Node::operator new",
            ),
            ("bool A<B>::operator()(B*) const", "A<B>::operator()"),
            ("Set::operator<(Set const&)", "Set::operator<"),
            ("Set& Set::operator<< <int>(int)", "Set::operator<<"),
            ("f()::{lambda(int)#1}::operator()(int) const", "f"),
            ("int Cooperator::run(int)", "Cooperator::run"),
            ("", ""),
            ("(", ""),
            ("operator", "operator"),
        ] {
            assert_eq!(FunctionName::new(name).qualified(), qualified, "{name}");
        }
    }
}
