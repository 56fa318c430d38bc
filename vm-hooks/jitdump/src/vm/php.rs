//! PHP with opcache's JIT (`ext/opcache/jit`).

use vmscope_records::{ConstituentKind, Region};

use super::CodeName;
use super::name::number;
use vmscope_process::region_table::{NamePattern::*, RegionEntry};

/// Distributions strip PHP: only exported functions have names.
pub(super) const REGIONS: &[RegionEntry] = &[
    (Begins("execute_ex"), Region::Interpreter, ""),
    (Begins("ZEND_"), Region::Interpreter, ""),
    (Begins("zend_gc_"), Region::Gc, "cycle collector"),
    (Begins("gc_"), Region::Gc, "cycle collector"),
    (Begins("zend_jit_"), Region::Compiler, "JIT"),
    (Begins("zend_compile"), Region::Vm, "parsing"),
    (Begins("zend_ast_"), Region::Vm, "parsing"),
    (Begins("zendparse"), Region::Vm, "parsing"),
    (Begins("zendlex"), Region::Vm, "parsing"),
    (Begins("lex_scan"), Region::Vm, "parsing"),
    (Any, Region::Vm, ""),
];

/// opcache.so: the JIT's compiler has no exported functions.
pub(super) const OPCACHE: &[RegionEntry] = &[
    (Begins("zend_jit_"), Region::Compiler, "JIT"),
    (Any, Region::Vm, "opcache"),
];

/// `JIT$Class::function`, `JIT$/file.php` for a file's own code, `JIT$$stub`,
/// `TRACE-3$function$12`.
pub(super) fn split(name: &str) -> Option<CodeName> {
    if let Some(stub) = name.strip_prefix("JIT$$") {
        return Some(CodeName::new(stub, ConstituentKind::Stub, "stub"));
    }
    if let Some(function) = name.strip_prefix("JIT$") {
        let file = if function.starts_with('/') {
            function
        } else {
            ""
        };
        return Some(CodeName::new(function, ConstituentKind::Method, "JIT").at(file, 0));
    }
    let trace = name.strip_prefix("TRACE-")?;
    let (count, rest) = trace.split_once('$')?;
    number(count)?;
    let (function, line) = rest.rsplit_once('$')?;
    let line = number(line)?;
    Some(CodeName::new(function, ConstituentKind::Method, "trace").at("", line))
}
