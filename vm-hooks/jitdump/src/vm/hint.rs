//! Start options of VMs that give names to JIT code.

use vmscope_v8::product::CHROMIUM;

use super::VmKind;

/// Sentence for a VM of this kind; some kinds distinguish names.
pub(super) fn hint(kind: VmKind, name: &str) -> &'static str {
    match (kind, name) {
        (VmKind::V8, "Deno") => {
            "start it with DENO_V8_FLAGS=--perf-prof in the \
             environment, or through vmscope record"
        }
        (VmKind::V8, "Node.js") => {
            "start it as node --perf-prof (or with \
             NODE_OPTIONS=--perf-prof in the environment), or through vmscope record"
        }
        (VmKind::V8, "workerd") => "add v8Flags = [\"--perf-prof\"] to its configuration",
        (VmKind::V8, CHROMIUM) => "start it with --js-flags=--perf-prof --no-sandbox",
        (VmKind::V8, _) => {
            "give V8 the flag --perf-prof (Electron: \
             --js-flags=--perf-prof)"
        }
        (VmKind::DotNet, _) => {
            "start it with DOTNET_PerfMapEnabled=2 in the \
             environment, or through vmscope record (before .NET 6: with COMPlus_PerfMapEnabled=1)"
        }
        (VmKind::Beam, _) => {
            "start it as erl +JPperf true (OTP 24 or newer; or with \
             ERL_ZFLAGS='+JPperf true' in the environment), or through vmscope record"
        }
        (VmKind::Php, _) => {
            "start it as php -d opcache.enable_cli=1 -d \
             opcache.jit=function -d opcache.jit_buffer_size=64M -d opcache.jit_debug=32"
        }
        (VmKind::CPython, _) => {
            "start it as python -X perf (CPython 3.12 or newer; or \
             with PYTHONPERFSUPPORT=1 in the environment), or through vmscope record"
        }
        (VmKind::Mono, _) => {
            "start it as mono --jitmap with MONO_DEBUG=disable_omit_fp in the environment (for \
             callers), or through vmscope record"
        }
        (VmKind::Julia, _) => {
            "start it with ENABLE_JITPROFILING=1 in the environment \
             (a Julia built with USE_PERF_JITEVENTS=1), or through vmscope record"
        }
        (VmKind::Wasmtime, _) => {
            "set the profiler to jitdump in wasmtime's Config, or start \
             wasmtime with --profile=jitdump"
        }
        (VmKind::LuaJit, _) => {
            "build it with XCFLAGS=-DLUAJIT_USE_PERFTOOLS (and TARGET_STRIP=@: for its own functions)"
        }
        (VmKind::Other, "Ruby") => "start it as ruby --yjit --yjit-perf (Ruby 3.3 or newer)",
        (VmKind::Other, _) => "make it write a jitdump or /tmp/perf-PID.map",
    }
}
