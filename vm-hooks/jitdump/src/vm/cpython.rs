//! CPython since 3.12 (`Objects/perf_trampoline.c` or `Python/perf_trampoline.c`).

use vmscope_records::{ConstituentKind, Region};

use super::CodeName;
use vmscope_process::region_table::{NamePattern::*, RegionEntry};

const CYCLES: &str = "cycle collector";

pub(super) const REGIONS: &[RegionEntry] = &[
    (Begins("_PyEval_EvalFrameDefault"), Region::Interpreter, ""),
    (Begins("gc_"), Region::Gc, CYCLES),
    (Begins("_PyGC"), Region::Gc, CYCLES),
    (Begins("PyGC"), Region::Gc, CYCLES),
    (Begins("visit_"), Region::Gc, CYCLES),
    (Begins("subtract_refs"), Region::Gc, CYCLES),
    (Begins("move_unreachable"), Region::Gc, CYCLES),
    (Begins("deduce_unreachable"), Region::Gc, CYCLES),
    (Begins("subtype_traverse"), Region::Gc, CYCLES),
    (Begins("list_traverse"), Region::Gc, CYCLES),
    (Begins("dict_traverse"), Region::Gc, CYCLES),
    (Begins("tupletraverse"), Region::Gc, CYCLES),
    (Begins("func_traverse"), Region::Gc, CYCLES),
    (Begins("_PyPegen"), Region::Vm, "parsing"),
    (Begins("_PyParser"), Region::Vm, "parsing"),
    (Begins("_PyAST"), Region::Vm, "parsing"),
    (Begins("tok_"), Region::Vm, "parsing"),
    (Begins("_PyTokenizer"), Region::Vm, "parsing"),
    (Begins("compiler_"), Region::Compiler, "bytecode"),
    (Begins("_PyCompile"), Region::Compiler, "bytecode"),
    (Begins("_PyCfg"), Region::Compiler, "bytecode"),
    (Begins("_PyAssemble"), Region::Compiler, "bytecode"),
    (Any, Region::Vm, ""),
];

/// Splits `py::Class.function:/path/file.py`, the interpreter's trampoline for this function. The
/// trampoline takes hardly any time itself, and makes the function visible among callers.
pub(super) fn split(name: &str) -> Option<CodeName> {
    let rest = name.strip_prefix("py::")?;
    // Qualified names have no colons, paths may.
    let (function, file) = rest.split_once(':').unwrap_or((rest, ""));
    let trampoline = CodeName::new(function, ConstituentKind::Trampoline, "perf trampoline");
    Some(trampoline.at(file, 0))
}
