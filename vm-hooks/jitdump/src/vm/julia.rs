//! Julia (LLVM's listener for perf; names as `src/codegen.cpp` makes them).

use vmscope_records::{ConstituentKind, Region};

use super::CodeName;
use super::name::number;
use vmscope_process::region_table::{NamePattern::Any, RegionEntry};

pub(super) const COMPILER: &[RegionEntry] = &[(Any, Region::Compiler, "")];
pub(super) const RUNTIME: &[RegionEntry] = &[(Any, Region::Vm, "")];

/// Splits `julia_fib_123` (the method), `japi1_fib_123` (arguments in an array), `jfptr_fib_123` (adapter
/// between calling conventions). The number is no part of the name.
pub(super) fn split(name: &str) -> Option<CodeName> {
    let (kind, rest) = if let Some(rest) = name.strip_prefix("julia_") {
        (ConstituentKind::Method, rest)
    } else if let Some(rest) = name.strip_prefix("japi1_") {
        (ConstituentKind::Method, rest)
    } else {
        (ConstituentKind::Adapter, name.strip_prefix("jfptr_")?)
    };
    let (function, count) = rest.rsplit_once('_')?;
    number(count)?;
    Some(CodeName::new(function, kind, ""))
}
