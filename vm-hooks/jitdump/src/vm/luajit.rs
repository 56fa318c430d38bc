//! LuaJIT, when built to tell perf (`src/lj_trace.c`, `LUAJIT_USE_PERFTOOLS`).

use vmscope_process::region_table::{NamePattern::*, RegionEntry};
use vmscope_records::{ConstituentKind, Region};

use super::CodeName;
use super::name::{line_behind, number};

/// Functions of LuaJIT 2.1 by their source files, if the build kept its symbols. LuaJIT's makefile strips them.
pub(super) const REGIONS: &[RegionEntry] = &[
    // `vm_*.dasc`
    (Begins("lj_BC_"), Region::Interpreter, "bytecode handler"),
    (Begins("lj_ff_"), Region::Interpreter, "fast function"),
    (Begins("lj_cont_"), Region::Interpreter, ""),
    (Begins("lj_vmeta_"), Region::Interpreter, "metamethod"),
    (Begins("lj_vm_exit_"), Region::Vm, "trace exit"),
    (Begins("lj_vm_"), Region::Interpreter, ""),
    // Restoring the interpreter's state behind a trace
    (Begins("lj_trace_exit"), Region::Vm, "trace exit"),
    (Begins("trace_exit_"), Region::Vm, "trace exit"),
    (Begins("lj_snap_restore"), Region::Vm, "trace exit"),
    (Begins("snap_restore"), Region::Vm, "trace exit"),
    // `lj_gc.c`
    (Begins("lj_gc_"), Region::Gc, ""),
    (Begins("gc_"), Region::Gc, ""),
    (Begins("propagatemark"), Region::Gc, ""),
    (Begins("atomic"), Region::Gc, ""),
    // `lj_trace.c`, `lj_record.c`, `lj_ffrecord.c`, `lj_crecord.c`, `lj_snap.c`
    (Begins("lj_trace_"), Region::Compiler, "recorder"),
    (Begins("trace_"), Region::Compiler, "recorder"),
    (Begins("lj_record_"), Region::Compiler, "recorder"),
    (Begins("lj_ffrecord_"), Region::Compiler, "recorder"),
    (Begins("lj_crecord_"), Region::Compiler, "recorder"),
    (Begins("rec_"), Region::Compiler, "recorder"),
    (Begins("recff_"), Region::Compiler, "recorder"),
    (Begins("crec_"), Region::Compiler, "recorder"),
    (Begins("lj_snap_"), Region::Compiler, "recorder"),
    (Begins("snap_"), Region::Compiler, "recorder"),
    // `lj_opt_*.c`, `lj_ir.c`
    (Begins("lj_opt_"), Region::Compiler, "optimisation"),
    (Begins("fold_"), Region::Compiler, "optimisation"),
    (Begins("lj_ir_"), Region::Compiler, "optimisation"),
    // `lj_asm.c`, `lj_asm_x86.h`, `lj_emit_x86.h`, `lj_mcode.c`
    (Begins("lj_asm_"), Region::Compiler, "assembler"),
    (Begins("asm_"), Region::Compiler, "assembler"),
    (Begins("ra_"), Region::Compiler, "assembler"),
    (Begins("emit_"), Region::Compiler, "assembler"),
    (Begins("lj_mcode_"), Region::Compiler, "assembler"),
    (Begins("mcode_"), Region::Compiler, "assembler"),
    // `lj_parse.c`, `lj_lex.c`
    (Begins("lj_parse"), Region::Vm, "parsing"),
    (Begins("parse_"), Region::Vm, "parsing"),
    (Begins("expr_"), Region::Vm, "parsing"),
    (Begins("bcemit_"), Region::Vm, "parsing"),
    (Begins("lj_lex_"), Region::Vm, "parsing"),
    (Begins("lex_"), Region::Vm, "parsing"),
    (Begins("lj_alloc_"), Region::Vm, "allocator"),
    (Any, Region::Vm, ""),
];

/// `TRACE_3::file.lua:12`: a trace by its number (that of `-jv`), and where it begins.
pub(super) fn split(name: &str) -> Option<CodeName> {
    let (count, place) = name.strip_prefix("TRACE_")?.split_once("::")?;
    let count = number(count)?;
    let (file, line) = line_behind(place)?;
    let name = format!("TRACE {count}");
    Some(CodeName::new(&name, ConstituentKind::Method, "").at(file, line))
}
