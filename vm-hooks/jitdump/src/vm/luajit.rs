//! LuaJIT, when built to tell perf (`src/lj_trace.c`, `LUAJIT_USE_PERFTOOLS`).

use vmscope_records::ConstituentKind;

use super::CodeName;
use super::name::{line_behind, number};

/// `TRACE_3::file.lua:12`.
pub(super) fn split(name: &str) -> Option<CodeName> {
    let (count, place) = name.strip_prefix("TRACE_")?.split_once("::")?;
    number(count)?;
    let (file, line) = line_behind(place)?;
    Some(CodeName::new(place, ConstituentKind::Method, "trace").at(file, line))
}
